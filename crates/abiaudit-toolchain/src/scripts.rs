//! Linker scripts under the names that `-l` looks for.
//!
//! A file that a script names without a directory is looked for along the search path, of which the wrapper makes the
//! toolchain's directory the first; so the directory can be moved. (`-l:NAME` would say the same more strictly, but gold
//! does not know it in scripts.)

use std::collections::BTreeSet;
use std::fmt::Write as _;

use abiaudit_policy::Arch;

use crate::library::loader_of;

/// File name and content of each script. `sonames`: the stubs that there are.
pub(crate) fn scripts(arch: Arch, sonames: &BTreeSet<String>) -> Vec<(String, String)> {
    let has = |soname: &str| sonames.contains(soname);
    let late: String =
        [loader_of(arch), "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libm.so.6"]
            .into_iter()
            .filter(|soname| has(soname))
            .fold(String::new(), |mut text, soname| {
                let _ = write!(text, " {soname}");
                text
            });
    let mut scripts = vec![
        // The shared library again at the end, for --as-needed: the archive alone may be what needs it.
        (
            "libstdc++.so".to_owned(),
            "INPUT ( libstdc++.so.6 libstdc++_nonshared.a AS_NEEDED ( libstdc++.so.6 ) )".to_owned(),
        ),
        // Functions of a newer libgcc_s are in libgcc.a too; the unwinder must stay the shared one.
        ("libgcc_s.so".to_owned(), "GROUP ( libgcc_s.so.1 -lgcc )".to_owned()),
        // What moved into libc in glibc 2.34 is in other libraries before. The compiler's own libc_nonshared.a has
        // atexit and the like.
        (
            "libc.so".to_owned(),
            format!(
                "GROUP ( libc.so.6 AS_NEEDED ({late} ) libc_compat.a libc_nonshared.a AS_NEEDED ({late} ) )"
            ),
        ),
    ];
    let vector = if has("libmvec.so.1") { " AS_NEEDED ( libmvec.so.1 )" } else { "" };
    scripts.push(("libm.so".to_owned(), format!("GROUP ( libm.so.6{vector} )")));
    for (name, soname) in [
        ("libpthread.so", "libpthread.so.0"),
        ("libdl.so", "libdl.so.2"),
        ("librt.so", "librt.so.1"),
        ("libutil.so", "libutil.so.1"),
        ("libresolv.so", "libresolv.so.2"),
        ("libanl.so", "libanl.so.1"),
        ("libmvec.so", "libmvec.so.1"),
        ("libatomic.so", "libatomic.so.1"),
    ] {
        if has(soname) {
            scripts.push((name.to_owned(), format!("INPUT ( AS_NEEDED ( {soname} ) )")));
        }
    }
    let format = match arch {
        Arch::Aarch64 => "elf64-littleaarch64",
        _ => "elf64-x86-64",
    };
    for (_, text) in &mut scripts {
        *text = format!("/* GNU ld script */\nOUTPUT_FORMAT({format})\n{text}\n");
    }
    scripts
}
