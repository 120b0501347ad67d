//! Whatever the bytes: no panic, and what is accepted has been verified.

use std::sync::OnceLock;

use abiaudit_edit::{
    Binding, Edit, EditError, EditPlan, Options, Place, SearchPathKind, StripLevel, SymbolName, edit,
};
use abiaudit_elf::test_support::{Arch, ElfWriter};
use proptest::prelude::*;

/// A library of each architecture, by the reader's writer, and one by the machine's linker if it has one.
fn seeds() -> &'static Vec<Vec<u8>> {
    static SEEDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let mut seeds: Vec<Vec<u8>> = Arch::ALL.into_iter().flat_map(written).collect();
        seeds.extend(linked());
        seeds
    })
}

/// One of them; every other time the one that a linker made, which has the most parts.
fn seed(index: prop::sample::Index, prefer_linked: bool) -> &'static [u8] {
    let seeds = seeds();
    let at = if prefer_linked { seeds.len() - 1 } else { index.index(seeds.len()) };
    &seeds[at]
}

fn written(arch: Arch) -> Vec<Vec<u8>> {
    let writer = || {
        ElfWriter::new(arch)
            .soname("liba.so.1")
            .needed("libc.so.6")
            .needed("libm.so.6")
            .runpath("$ORIGIN:$LIB")
            .define("a")
            .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.17")
            .build_id(&[1, 2, 3, 4])
    };
    vec![writer().build().bytes().to_vec(), writer().sections(false).build().bytes().to_vec()]
}

fn linked() -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().ok()?;
    let (source, output) = (folder.path().join("a.c"), folder.path().join("a.so"));
    std::fs::write(&source, "#include <stdio.h>\nint a(void) { return puts(\"\"); } int b;").ok()?;
    let mut gcc = std::process::Command::new("gcc");
    let run = gcc.args(["-shared", "-fPIC", "-g", "-o"]).args([&output, &source]).status().ok()?;
    run.success().then(|| std::fs::read(output).ok())?
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", Just("libc.so.6".to_owned()), Just("libm.so.6".to_owned()), "[a-z]{200}"]
}

fn symbol() -> impl Strategy<Value = SymbolName> {
    prop_oneof![Just("a"), Just("b"), Just("memcpy"), Just("puts"), Just("memcpy@GLIBC_2.17")]
        .prop_map(|name| SymbolName::from(name.to_owned()))
}

fn any_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (name(), any::<bool>()).prop_map(|(library, first)| Edit::AddNeeded {
            library,
            place: if first { Place::First } else { Place::Last }
        }),
        name().prop_map(|library| Edit::RemoveNeeded { library }),
        (name(), name()).prop_map(|(from, to)| Edit::ReplaceNeeded { from, to }),
        name().prop_map(|soname| Edit::SetSoname { soname }),
        Just(Edit::RemoveSoname),
        (name(), any::<bool>()).prop_map(|(path, old)| Edit::SetSearchPath {
            kind: if old { SearchPathKind::Rpath } else { SearchPathKind::Runpath },
            path
        }),
        Just(Edit::RemoveSearchPath),
        (name(), name()).prop_map(|(from, to)| Edit::RenameVersion { library: "libc.so.6".into(), from, to }),
        Just(Edit::RenameVersion {
            library: "libc.so.6".into(),
            from: "GLIBC_2.17".into(),
            to: "GLIBC_2.2.5".into()
        }),
        Just(Edit::RemoveVersion { library: "libc.so.6".into(), version: "GLIBC_2.17".into() }),
        (symbol(), name()).prop_map(|(symbol, version)| Edit::AssignVersion {
            symbols: vec![symbol],
            library: "libc.so.6".into(),
            version
        }),
        (symbol(), name()).prop_map(|(from, to)| Edit::RenameSymbol { from, to }),
        Just(Edit::DemoteUnique { to: Binding::Weak }),
        symbol().prop_map(|symbol| Edit::Hide { symbols: vec![symbol] }),
        symbol().prop_map(|symbol| Edit::Undefine { symbols: vec![symbol], version: None }),
        Just(Edit::ClearExecutableStack),
        (any::<u64>(), any::<u64>()).prop_map(|(set, clear)| Edit::SetFlags1 { set: set >> 33, clear }),
        Just(Edit::Heal),
        Just(Edit::Strip { level: StripLevel::Symbols, debug_link: None }),
    ]
}

/// A few bytes of a file changed, and perhaps its end cut off.
fn damage() -> impl Strategy<Value = (Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>)> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (changes, prop::option::weighted(0.1, any::<prop::sample::Index>()))
}

fn plan() -> impl Strategy<Value = EditPlan> {
    prop::collection::vec(any_edit(), 1..5).prop_map(EditPlan::new)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sound_file_is_edited_or_refused_never_failed(index in any::<prop::sample::Index>(), linked in any::<bool>(), plan in plan()) {
        let bytes = seed(index, linked);
        match edit(bytes, &plan, &Options::default()) {
            Ok(edited) => {
                let again = edit(bytes, &plan, &Options::default()).expect("the same result");
                prop_assert_eq!(edited.bytes, again.bytes);
            }
            Err(EditError::Refused(_)) => {}
            Err(error) => prop_assert!(false, "{plan}: {error}"),
        }
    }

    /// The headers are where damage tells, so that half of the changes hit the first kilobyte.
    #[test]
    fn damaged_bytes_do_no_harm(
        index in any::<prop::sample::Index>(),
        linked in any::<bool>(),
        (changes, cut) in damage(),
        near_the_front in any::<bool>(),
        allow_phdr_move in any::<bool>(),
        plan in plan(),
    ) {
        let mut bytes = seed(index, linked).to_vec();
        let reach = if near_the_front { bytes.len().min(1024) } else { bytes.len() };
        for (at, value) in changes {
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // A file that contradicts itself may be found out only by the verifier; what comes back has passed it.
        let _ = edit(&bytes, &plan, &Options { allow_phdr_move });
    }

    #[test]
    fn plans_are_the_same_as_json(plan in plan()) {
        let text = serde_json::to_string(&plan).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<EditPlan>(&text).expect("a plan"), plan);
    }
}
