//! Which cure is chosen for which build, and why others are not.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test speaks and fails")]

mod common;

use std::path::Path;

use abiaudit_mend::{Cure, Method, Refusal, cure};
use common::{Case, Compiler};

type Outcome = Result<Cure, Vec<(Method, Refusal)>>;

fn cure_of(path: &Path) -> Outcome {
    cure(&Case::new(path).patient(), &Method::ALL)
}

fn method(outcome: &Outcome) -> Option<Method> {
    outcome.as_ref().ok().map(|cure| cure.method)
}

fn refusal(outcome: Outcome, method: Method) -> Refusal {
    let refusals = outcome.expect_err("all methods refused");
    refusals.into_iter().find(|(of, _)| *of == method).unwrap().1
}

const STATIC: &str = "-static-libstdc++";

#[test]
fn a_plain_static_link_is_shared() {
    let Some(compiler) = Compiler::new() else { return };
    for flags in [&[STATIC][..], &[STATIC, "-static-libgcc"], &[STATIC, "-O3", "-flto"], &[STATIC, "-s"]] {
        let outcome = cure_of(&compiler.module("m", flags));
        assert_eq!(method(&outcome), Some(Method::Share), "{flags:?}: {outcome:?}");
    }
}

#[test]
fn what_is_bound_by_the_linker_is_hidden() {
    let Some(compiler) = Compiler::new() else { return };
    let half = compiler.version_script("{ local: extern \"C++\" { std::*; }; };");
    for flag in ["-Wl,-Bsymbolic", "-Wl,-Bsymbolic-functions", &half] {
        let outcome = cure_of(&compiler.module("m", &[STATIC, flag]));
        assert_eq!(method(&outcome), Some(Method::Hide), "{flag}");
    }
}

#[test]
fn refuses_what_it_cannot_prove() {
    let Some(compiler) = Compiler::new() else { return };
    let path = compiler.module("m", &[STATIC, "-static-libgcc", "-Wl,-Bsymbolic"]);
    let outcome = cure_of(&path);
    assert_eq!(refusal(outcome.clone(), Method::Share), Refusal::Symbolic);
    assert_eq!(refusal(outcome, Method::Demote), Refusal::PrivateUnwinder);
    for flags in [&[STATIC, "-Wl,--exclude-libs,ALL"][..], &[]] {
        let outcome = cure_of(&compiler.module("m", flags));
        assert_eq!(refusal(outcome, Method::Share), Refusal::NothingToCure, "{flags:?}");
    }
}

#[test]
fn a_sibling_that_uses_the_copy_forbids_hiding_it() {
    let Some(compiler) = Compiler::new() else { return };
    let path = compiler.module("m", &[STATIC, "-Wl,-Bsymbolic"]);
    let outcome = cure(&Case::new(&path).wanted("_ZSt4cout", "p/other.so").patient(), &Method::ALL);
    assert_eq!(method(&outcome), Some(Method::Demote), "{outcome:?}");
}
