//! State of the C++ library exists twice in one process.
//!
//! ## What it does
//! Looks at a simulated process (`check` with `--with`, `--import` or `--trace`) and tells of `std::cout`, the classic locale
//! or the generic error category when different objects get them from different copies of libstdc++.
//!
//! ## Why is this bad?
//! By itself it is not: each copy works. But what one sets the other does not see: a redirected or formatted `std::cout`, a
//! global locale; and error codes of the two do not compare equal, since categories are compared by address.
//!
//! ## Example
//! A module with an exported static libstdc++ beside one that uses the system's.
//!
//! ## How to mend it
//! Link libstdc++ dynamically, so that there is one.
//!
//! ## References
//! ISO C++, [syserr.errcat.overview] (identity of categories).

use abiaudit_process::Collision;

use crate::audit::Audit;
use crate::demangle;
use crate::finding::{Evidence, Sink};

super::rule!("ABI211", "cxx-state-duplicated", Info, "abi211_cxx_state_duplicated.rs");

fn check(audit: &Audit<'_>, sink: &mut Sink) {
    for meeting in &audit.beside.meetings {
        let Collision::StateDuplicated { symbol, providers } = &meeting.collision else { continue };
        let others = meeting.more.iter().filter_map(|collision| match collision {
            Collision::StateDuplicated { symbol, .. } => Some(symbol),
            _ => None,
        });
        let symbols: Vec<&String> = [symbol].into_iter().chain(others).collect();
        let what: Vec<String> = symbols.iter().map(|symbol| demangle(symbol)).collect();
        let names: Vec<String> = providers.iter().map(|provider| meeting.name(*provider)).collect();
        let message = format!(
            "{}: there are {} in one process, in {}, {}",
            what.join(", "),
            names.len(),
            names.join(" and "),
            meeting.when
        );
        let about: Vec<_> = providers.iter().map(|provider| (*provider, "has one")).collect();
        sink.member(&meeting.member, message)
            .help(meeting.help("link libstdc++ dynamically, so that there is one"))
            .evidence(symbols.into_iter().map(Evidence::symbol))
            .evidence(meeting.evidence(&about));
    }
}

#[cfg(test)]
mod tests {
    use abiaudit_testing::TestWheel;

    use crate::finding::Severity;
    use crate::testing::{Compiler, findings_together};

    #[test]
    fn two_of_each() {
        let Some(compiler) = Compiler::new() else { return };
        let more = "#include <iostream>\nint more() { std::cout << 1; return 0; }\n";
        let wheel = |name: &str, flags: &[&str]| {
            TestWheel::new(name, "1", "cp312-cp312-manylinux_2_28_x86_64")
                .file(&format!("{name}/m.so"), compiler.module_with(more, flags))
        };
        let found =
            findings_together("ABI211", &[wheel("copy", &["-static-libstdc++"]), wheel("user", &[])], false);
        let [(0, finding)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.message.starts_with("std::"), "{}", finding.message);
        assert!(finding.message.ends_with("in either order of copy 1 and user 1"), "{}", finding.message);
        let hidden = wheel("copy", &["-static-libstdc++", "-Wl,--exclude-libs,ALL"]);
        assert!(findings_together("ABI211", &[hidden, wheel("user", &[])], false).is_empty());
    }
}
