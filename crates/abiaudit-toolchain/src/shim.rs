//! What older releases of glibc lack, from sources of ours in `shim/`, compiled by the compiler that is to use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use object::elf;

use crate::archive::Member;
use crate::compiler::Compiler;
use crate::error::{Error, Result, read, write};
use crate::nonshared::member;
use crate::relocatable::{Place, Relocatable};

/// One object of `libc_compat.a`.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The object's name, without `.o`.
    pub object: &'static str,
    /// The file in `shim/`.
    pub file: &'static str,
    /// Macros: name and value.
    pub defines: &'static [(&'static str, &'static str)],
    /// What it defines. The object is made if the target has not the first of them.
    pub functions: &'static [&'static str],
}

/// The symbol of GCC 13's iostreams that `shim/ios_init.cc` replaces.
pub const IOS_INIT_SYMBOL: &str = "_ZSt21ios_base_library_initv";
/// Stand-ins for symbols of libstdc++: the object, which is the source's name too, and what it defines.
const LIBSTDCXX: &[(&str, &[&str])] = &[
    ("ios_init", &[IOS_INIT_SYMBOL]),
    ("handlers", &["_ZSt13get_terminatev", "_ZSt14get_unexpectedv", "_ZSt15get_new_handlerv"]),
];
/// The symbol by which the toolchain's crt1.o finds `start_main.c`.
pub const START_MAIN_SYMBOL: &str = "__abiaudit_libc_start_main";

const fn plain(object: &'static str, file: &'static str, functions: &'static [&'static str]) -> Source {
    Source { object, file, defines: &[], functions }
}

macro_rules! instance {
    ($file:literal, $function:literal, $($name:ident = $value:literal),+) => {
        Source {
            object: $function,
            file: $file,
            defines: &[("FUNCTION", $function), $((stringify!($name), $value)),+],
            functions: &[$function],
        }
    };
}

macro_rules! scanf {
    ($file:literal, $function:literal, $variadic:literal, $old:literal, $character:literal, $source:literal) => {
        Source {
            object: $variadic,
            file: $file,
            defines: &[
                ("FUNCTION", $function),
                ("VARIADIC", $variadic),
                ("OLD", $old),
                ("CHARACTER", $character),
                ("SOURCE", $source),
            ],
            functions: &[$variadic, $function],
        }
    };
}

/// All objects, in the order in which they stand in the archive.
pub const SOURCES: &[Source] = &[
    plain("stat", "stat.c", &["stat", "stat64"]),
    plain("lstat", "lstat.c", &["lstat", "lstat64"]),
    plain("fstat", "fstat.c", &["fstat", "fstat64"]),
    plain("fstatat", "fstatat.c", &["fstatat", "fstatat64"]),
    plain("mknod", "mknod.c", &["mknod"]),
    plain("mknodat", "mknodat.c", &["mknodat"]),
    plain("single_threaded", "single_threaded.c", &["__libc_single_threaded"]),
    plain("pthread_cond_clockwait", "pthread_cond_clockwait.c", &["pthread_cond_clockwait"]),
    instance!("clock_wait.c", "pthread_mutex_clocklock", TIMED = "pthread_mutex_timedlock"),
    instance!("clock_wait.c", "pthread_rwlock_clockrdlock", TIMED = "pthread_rwlock_timedrdlock"),
    instance!("clock_wait.c", "pthread_rwlock_clockwrlock", TIMED = "pthread_rwlock_timedwrlock"),
    plain("sem_clockwait", "sem_clockwait.c", &["sem_clockwait"]),
    plain("gettid", "gettid.c", &["gettid"]),
    plain("tgkill", "tgkill.c", &["tgkill"]),
    plain("getdents64", "getdents64.c", &["getdents64"]),
    plain("getcpu", "getcpu.c", &["getcpu"]),
    plain("close_range", "close_range.c", &["close_range"]),
    plain("arc4random", "arc4random.c", &["arc4random", "arc4random_buf", "arc4random_uniform"]),
    plain("getentropy", "getentropy.c", &["getentropy"]),
    plain("getrandom", "getrandom.c", &["getrandom"]),
    plain("strlcpy", "strlcpy.c", &["strlcpy", "__strlcpy_chk"]),
    plain("strlcat", "strlcat.c", &["strlcat", "__strlcat_chk"]),
    plain("fcntl64", "fcntl64.c", &["fcntl64"]),
    plain("statx", "statx.c", &["statx"]),
    plain("renameat2", "renameat2.c", &["renameat2"]),
    plain("copy_file_range", "copy_file_range.c", &["copy_file_range"]),
    plain("memfd_create", "memfd_create.c", &["memfd_create"]),
    plain("reallocarray", "reallocarray.c", &["reallocarray"]),
    plain("explicit_bzero", "explicit_bzero.c", &["explicit_bzero", "__explicit_bzero_chk"]),
    instance!("isoc23_strto.c", "__isoc23_strtol", OLD = "strtol", RESULT = "long", CHARACTER = "char"),
    instance!(
        "isoc23_strto.c",
        "__isoc23_strtoul",
        OLD = "strtoul",
        RESULT = "unsigned long",
        CHARACTER = "char"
    ),
    instance!(
        "isoc23_strto.c",
        "__isoc23_strtoll",
        OLD = "strtoll",
        RESULT = "long long",
        CHARACTER = "char"
    ),
    instance!(
        "isoc23_strto.c",
        "__isoc23_strtoull",
        OLD = "strtoull",
        RESULT = "unsigned long long",
        CHARACTER = "char"
    ),
    instance!("isoc23_strto.c", "__isoc23_strtoimax", OLD = "strtoimax", RESULT = "long", CHARACTER = "char"),
    instance!(
        "isoc23_strto.c",
        "__isoc23_strtoumax",
        OLD = "strtoumax",
        RESULT = "unsigned long",
        CHARACTER = "char"
    ),
    instance!("isoc23_strto.c", "__isoc23_wcstol", OLD = "wcstol", RESULT = "long", CHARACTER = "wchar_t"),
    instance!(
        "isoc23_strto.c",
        "__isoc23_wcstoul",
        OLD = "wcstoul",
        RESULT = "unsigned long",
        CHARACTER = "wchar_t"
    ),
    instance!(
        "isoc23_strto.c",
        "__isoc23_wcstoll",
        OLD = "wcstoll",
        RESULT = "long long",
        CHARACTER = "wchar_t"
    ),
    instance!(
        "isoc23_strto.c",
        "__isoc23_wcstoull",
        OLD = "wcstoull",
        RESULT = "unsigned long long",
        CHARACTER = "wchar_t"
    ),
    instance!("isoc23_strto_l.c", "__isoc23_strtol_l", OLD = "strtol_l", RESULT = "long", CHARACTER = "char"),
    instance!(
        "isoc23_strto_l.c",
        "__isoc23_strtoul_l",
        OLD = "strtoul_l",
        RESULT = "unsigned long",
        CHARACTER = "char"
    ),
    instance!(
        "isoc23_strto_l.c",
        "__isoc23_strtoll_l",
        OLD = "strtoll_l",
        RESULT = "long long",
        CHARACTER = "char"
    ),
    instance!(
        "isoc23_strto_l.c",
        "__isoc23_strtoull_l",
        OLD = "strtoull_l",
        RESULT = "unsigned long long",
        CHARACTER = "char"
    ),
    scanf!(
        "isoc23_scanf.c",
        "__isoc23_vsscanf",
        "__isoc23_sscanf",
        "__isoc99_vsscanf",
        "char",
        "const char *"
    ),
    scanf!("isoc23_scanf.c", "__isoc23_vfscanf", "__isoc23_fscanf", "__isoc99_vfscanf", "char", "void *"),
    scanf!(
        "isoc23_scanf.c",
        "__isoc23_vswscanf",
        "__isoc23_swscanf",
        "__isoc99_vswscanf",
        "wchar_t",
        "const wchar_t *"
    ),
    scanf!(
        "isoc23_scanf.c",
        "__isoc23_vfwscanf",
        "__isoc23_fwscanf",
        "__isoc99_vfwscanf",
        "wchar_t",
        "void *"
    ),
    scanf!("isoc23_scanf_stdin.c", "__isoc23_vscanf", "__isoc23_scanf", "__isoc99_vscanf", "char", ""),
    scanf!("isoc23_scanf_stdin.c", "__isoc23_vwscanf", "__isoc23_wscanf", "__isoc99_vwscanf", "wchar_t", ""),
];

const START_MAIN: Source = plain("start_main", "start_main.c", &[START_MAIN_SYMBOL]);

/// Name and text of each file.
const FILES: &[(&str, &str)] = &[
    ("arc4random.c", include_str!("../shim/arc4random.c")),
    ("clock_slice.h", include_str!("../shim/clock_slice.h")),
    ("clock_wait.c", include_str!("../shim/clock_wait.c")),
    ("close_range.c", include_str!("../shim/close_range.c")),
    ("copy_file_range.c", include_str!("../shim/copy_file_range.c")),
    ("explicit_bzero.c", include_str!("../shim/explicit_bzero.c")),
    ("fcntl64.c", include_str!("../shim/fcntl64.c")),
    ("fstat.c", include_str!("../shim/fstat.c")),
    ("fstatat.c", include_str!("../shim/fstatat.c")),
    ("getcpu.c", include_str!("../shim/getcpu.c")),
    ("getdents64.c", include_str!("../shim/getdents64.c")),
    ("getentropy.c", include_str!("../shim/getentropy.c")),
    ("getrandom.c", include_str!("../shim/getrandom.c")),
    ("gettid.c", include_str!("../shim/gettid.c")),
    ("handlers.cc", include_str!("../shim/handlers.cc")),
    ("ios_init.cc", include_str!("../shim/ios_init.cc")),
    ("isoc23_scanf.c", include_str!("../shim/isoc23_scanf.c")),
    ("isoc23_scanf_stdin.c", include_str!("../shim/isoc23_scanf_stdin.c")),
    ("isoc23_strto.c", include_str!("../shim/isoc23_strto.c")),
    ("isoc23_strto_l.c", include_str!("../shim/isoc23_strto_l.c")),
    ("lstat.c", include_str!("../shim/lstat.c")),
    ("memfd_create.c", include_str!("../shim/memfd_create.c")),
    ("mknod.c", include_str!("../shim/mknod.c")),
    ("mknodat.c", include_str!("../shim/mknodat.c")),
    ("pthread_cond_clockwait.c", include_str!("../shim/pthread_cond_clockwait.c")),
    ("random_bytes.h", include_str!("../shim/random_bytes.h")),
    ("reallocarray.c", include_str!("../shim/reallocarray.c")),
    ("renameat2.c", include_str!("../shim/renameat2.c")),
    ("sem_clockwait.c", include_str!("../shim/sem_clockwait.c")),
    ("shim.h", include_str!("../shim/shim.h")),
    ("single_threaded.c", include_str!("../shim/single_threaded.c")),
    ("start_main.c", include_str!("../shim/start_main.c")),
    ("stat.c", include_str!("../shim/stat.c")),
    ("stat_version.h", include_str!("../shim/stat_version.h")),
    ("statx.c", include_str!("../shim/statx.c")),
    ("strlcat.c", include_str!("../shim/strlcat.c")),
    ("strlcpy.c", include_str!("../shim/strlcpy.c")),
    ("tgkill.c", include_str!("../shim/tgkill.c")),
];

/// The objects of one target.
#[derive(Debug, Clone)]
pub struct Shim {
    /// `libc_compat.a`
    pub libc: Vec<Member>,
    /// What replaces members of libstdc++.
    pub libstdcxx: Vec<Member>,
    /// Each function and the object that defines it.
    pub functions: BTreeMap<String, String>,
}

/// The visibility of definitions in an archive.
pub const HIDDEN: &str = "hidden";

/// What a target needs.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// What its C library offers.
    pub libc: &'a BTreeSet<String>,
    /// Its `__libc_start_main` does not run the constructors of executables (glibc before 2.34).
    pub start_main: bool,
    /// What the compiler's libstdc++ has beyond the target's.
    pub new: &'a BTreeSet<String>,
    /// Which visibility the definitions get: hidden for an archive, default for a companion library.
    pub visibility: &'a str,
}

/// Compiles what the target lacks, in an empty directory.
pub fn build(compiler: &Compiler, directory: &Path, needs: &Needs<'_>) -> Result<Shim> {
    for (name, text) in FILES {
        write(&directory.join(name), text)?;
    }
    let missing = SOURCES.iter().filter(|source| !needs.libc.contains(source.functions[0]));
    let mut sources: Vec<&Source> = missing.collect();
    if needs.start_main {
        sources.push(&START_MAIN);
    }
    // Two at a time: most of the time goes into starting the compiler.
    let (left, right) = sources.split_at(sources.len() / 2);
    let (left, right) = std::thread::scope(|scope| {
        let other = scope.spawn(|| compile_all(compiler, directory, right, needs.visibility));
        let mine = compile_all(compiler, directory, left, needs.visibility);
        (mine, other.join())
    });
    let mut libc = left?;
    // The other thread runs the same code, which does not panic.
    libc.extend(right.unwrap_or_else(|_| Ok(Vec::new()))?);
    let mut libstdcxx = Vec::new();
    for (object, symbols) in LIBSTDCXX {
        if symbols.iter().any(|symbol| needs.new.contains(*symbol)) {
            libstdcxx.push(compile_cxx(compiler, directory, object, needs.visibility)?);
        }
    }
    let of = |member: &Member| {
        let names = member.symbols.iter().map(|s| String::from_utf8_lossy(s).into_owned());
        names.map(|name| (name, member.name.clone())).collect::<Vec<_>>()
    };
    let functions = libc.iter().chain(&libstdcxx).flat_map(of).collect();
    Ok(Shim { libc, libstdcxx, functions })
}

fn compile_all(
    compiler: &Compiler,
    directory: &Path,
    sources: &[&Source],
    visibility: &str,
) -> Result<Vec<Member>> {
    sources
        .iter()
        .map(|source| {
            let defines: Vec<String> =
                source.defines.iter().map(|(name, value)| format!("-D{name}={value}")).collect();
            let mut arguments = vec!["-x", "c", "-std=gnu11", "-fno-builtin"];
            arguments.extend(defines.iter().map(String::as_str));
            compile(compiler, directory, source.object, source.file, &arguments, visibility)
        })
        .collect()
}

fn compile_cxx(compiler: &Compiler, directory: &Path, object: &str, visibility: &str) -> Result<Member> {
    let source = format!("{object}.cc");
    compile(compiler, directory, object, &source, &["-x", "c++", "-std=c++14"], visibility)
}

fn compile(
    compiler: &Compiler,
    directory: &Path,
    object: &str,
    source: &str,
    more: &[&str],
    visibility: &str,
) -> Result<Member> {
    let output = format!("{object}.o");
    let option = format!("-fvisibility={visibility}");
    let mut arguments = vec![
        "-c",
        "-O2",
        "-g0",
        "-w",
        "-fPIC",
        "-fno-lto",
        "-fno-stack-protector",
        "-ffunction-sections",
        "-U_FORTIFY_SOURCE",
        &option,
        "-o",
        &output,
    ];
    arguments.extend(more);
    arguments.push(source);
    compiler.run(directory, &arguments)?;
    let path = directory.join(&output);
    let file = Relocatable::parse(&path, &read(&path)?)?;
    let mut file = file.ok_or_else(|| Error::Malformed {
        path: path.clone(),
        what: "object",
        found: "no symbols".to_owned(),
    })?;
    // Headers of libstdc++ declare their names visible, whatever the option says.
    if visibility == HIDDEN {
        for symbol in file.symbols.iter_mut().filter(|symbol| symbol.is_definition()) {
            symbol.visibility = elf::STV_HIDDEN;
        }
    }
    Ok(member(&output, &file))
}

/// A start file (`crt1.o`, `Scrt1.o`) that begins with `start_main.c` in place of the library's function.
pub fn redirect_start(path: &Path, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(mut file) = Relocatable::parse(path, bytes)? else { return Ok(None) };
    let mut found = false;
    for symbol in
        file.symbols.iter_mut().filter(|s| s.place == Place::Undefined && s.binding != elf::STB_LOCAL)
    {
        if symbol.name == b"__libc_start_main" {
            symbol.name = START_MAIN_SYMBOL.as_bytes().to_vec();
            found = true;
        }
    }
    Ok(found.then(|| file.write()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_there_and_every_file_is_used() {
        for source in SOURCES.iter().chain([&START_MAIN]) {
            assert!(FILES.iter().any(|(name, _)| *name == source.file), "{}", source.file);
            assert!(!source.functions.is_empty(), "{}", source.object);
        }
        let mut objects: Vec<_> = SOURCES.iter().map(|source| source.object).collect();
        objects.sort_unstable();
        objects.dedup();
        assert_eq!(objects.len(), SOURCES.len(), "each object has its own name");
    }
}
