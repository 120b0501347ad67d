//! Any bytes as an ELF file to edit: no panic, and what is accepted has passed the verifier. The first byte chooses the
//! edits.
#![no_main]

use abiaudit_edit::{Binding, Edit, EditPlan, Options, Place, SearchPathKind, StripLevel, SymbolName, edit};
use libfuzzer_sys::fuzz_target;

fn plan(choice: u8) -> EditPlan {
    let symbols = || vec![SymbolName::new("a")];
    let edits = match choice & 7 {
        0 => vec![Edit::SetSoname { soname: "libedited-0123456789.so.1".into() }],
        1 => vec![
            Edit::SetSearchPath { kind: SearchPathKind::Runpath, path: "$ORIGIN/a.libs".into() },
            Edit::AddNeeded { library: "libz.so.1".into(), place: Place::First },
        ],
        2 => vec![Edit::ReplaceNeeded { from: "libc.so.6".into(), to: "libc-0123.so.6".into() }],
        3 => vec![Edit::Hide { symbols: symbols() }],
        4 => vec![Edit::RenameSymbol { from: SymbolName::new("a"), to: "another_name".into() }],
        5 => vec![Edit::Undefine { symbols: symbols(), version: None }, Edit::DemoteUnique { to: Binding::Weak }],
        6 => vec![Edit::Strip { level: StripLevel::Symbols, debug_link: None }, Edit::Heal],
        _ => vec![Edit::RemoveNeeded { library: "libc.so.6".into() }, Edit::ClearExecutableStack, Edit::RemoveSoname],
    };
    EditPlan::new(edits)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let _ = edit(bytes, &plan(choice), &Options { allow_phdr_move: choice & 8 != 0 });
});
