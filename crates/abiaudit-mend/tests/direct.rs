//! What the linker bound directly, on builds of which it is known.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test speaks and fails")]

mod common;

use std::path::Path;

use abiaudit_elf::{Object, Wants, fixups};
use abiaudit_mend::code::Code;
use abiaudit_mend::direct::{Definitions, DirectBinding, bindings};
use abiaudit_policy::symbols::libstdcxx;
use common::Compiler;

/// Direct bindings to every definition that the system's libstdc++.so.6 of GCC 7 has too.
fn direct(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let object = Object::from_bytes(&bytes, &Wants::default()).unwrap();
    let table = libstdcxx(object.identity.arch().unwrap().parse().unwrap()).unwrap();
    let shared = |name: &str| {
        let nodes = table.exports(name).into_iter().filter_map(|export| export.since);
        nodes.into_iter().any(|since| since <= "7.0.0".parse().unwrap())
    };
    let indexes = (1u32..).zip(object.symbols.iter());
    let indexes = indexes.filter(|(_, s)| s.is_exported() && shared(&object.symbols.name_text(s)));
    let chosen: Vec<u32> = indexes.map(|(index, _)| index).collect();
    assert!(chosen.len() > 1000, "{} definitions", chosen.len());
    let code = Code::new(&bytes, &object).unwrap();
    let all = fixups(&bytes, &object).unwrap();
    let stays = |index: u32| {
        let symbol = object.symbols.get(index).unwrap();
        object.symbols.name(symbol).starts_with(b"mend_")
    };
    let found = bindings(&code, &object, &all, &Definitions::new(&object, chosen), stays);
    let name = |symbol: u32| object.symbols.name_text(object.symbols.get(symbol).unwrap());
    found
        .iter()
        .map(|binding| match binding {
            DirectBinding::Code { reference, symbol } => format!("{reference:x?} {}", name(*symbol)),
            DirectBinding::Word { at, to, symbol } => format!("word {at:x} {to:x} {}", name(*symbol)),
            DirectBinding::Tls { at, symbol } => format!("tls {at:x} {}", name(*symbol)),
        })
        .collect()
}

/// The archive is compiled for shared libraries: its parts call each other through the PLT.
#[test]
fn an_archive_in_a_plain_link_is_bound_by_the_loader_alone() {
    let Some(compiler) = Compiler::new() else { return };
    for flags in [
        &["-static-libstdc++"][..],
        &["-static-libstdc++", "-static-libgcc"],
        &["-static-libstdc++", "-fvisibility=hidden", "-fvisibility-inlines-hidden"],
        &["-static-libstdc++", "-fno-gnu-unique"],
        &["-static-libstdc++", "-s"],
        &["-static-libstdc++", "-O0"],
        &["-static-libstdc++", "-ffunction-sections", "-Wl,--gc-sections"],
    ] {
        let found = direct(&compiler.module("m", flags));
        assert!(
            found.is_empty(),
            "{flags:?}: {} direct bindings: {:#?}",
            found.len(),
            &found[..found.len().min(20)]
        );
    }
}

/// The compiler sees that its own instances of templates are called by nobody else, and calls them directly.
#[test]
fn link_time_optimisation_binds_instances_of_templates() {
    let Some(compiler) = Compiler::new() else { return };
    let found = direct(&compiler.module("m", &["-static-libstdc++", "-O3", "-flto"]));
    let other = found.iter().find(|binding| {
        let name = binding.rsplit(' ').next().unwrap();
        binding.starts_with("word") || abiaudit_detect::itanium::is_plain(name)
    });
    assert_eq!(other, None);
}

#[test]
fn symbolic_links_are_bound_by_the_linker() {
    let Some(compiler) = Compiler::new() else { return };
    for flag in ["-Wl,-Bsymbolic", "-Wl,-Bsymbolic-functions"] {
        let found = direct(&compiler.module("m", &["-static-libstdc++", flag]));
        assert!(found.len() > 50, "{flag}: {}", found.len());
    }
}

/// One function of the module itself that is called directly is enough.
#[test]
fn one_direct_call_is_found() {
    let Some(compiler) = Compiler::new() else { return };
    let source = ".hidden mine\n.globl mend_call\nmend_call: call mine\n";
    std::fs::write(compiler.path().join("call.s"), source).unwrap();
    compiler.run(&["-c", "call.s", "-o", "call.o"]);
    let alias = "-Wl,--defsym=mine=_ZSt9terminatev";
    let found = direct(&compiler.module("m", &["-static-libstdc++", alias, "call.o"]));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("_ZSt9terminatev") && found[0].contains("Call"), "{found:?}");
}
