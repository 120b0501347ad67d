//! Each signature on a text that shows it and on texts that nearly do.

use std::io::{BufReader, Read};

use abiaudit_triage::{Certainty, Diagnosis, Error, Recognised, SIGNATURES, triage};

fn diagnose(text: &str) -> Diagnosis {
    triage(text.as_bytes()).expect("a text")
}

fn ids(text: &str) -> Vec<&'static str> {
    diagnose(text).recognised.iter().map(|found| found.id).collect()
}

fn only(text: &str) -> Recognised {
    let mut all = diagnose(text).recognised;
    assert_eq!(all.len(), 1, "{text}\n{all:?}");
    all.remove(0)
}

/// The second crash of PyTorch wheels with static libstdc++.
const FACET: &str = "\
Thread 1 (Thread 0x7ffff7eb3740 (LWP 77) \"python\"):
#0  0x00007fffe98a0c24 in std::codecvt<char16_t, char, __mbstate_t>::do_unshift(__mbstate_t&, char*, char*, char*&) const () from /env/torch/lib/liba.so
#1  0x00007fffe9907d1d in std::basic_ostream<char, std::char_traits<char> >& std::basic_ostream<char, std::char_traits<char> >::_M_insert<long>(long) () from /env/torch/lib/liba.so
#2  0x00007fffe9900000 in start () from /env/torch/lib/liba.so
";

/// The first crash: a null call under call_once, while two OpenBLAS wait for work.
const ONCE: &str = "\
Thread 9 (Thread 0x7ffeda (LWP 85)):
#0  0x00007ffff7c98d61 in __futex_abstimed_wait_common64 () from /lib/libc.so.6
#1  0x00007ffedacf1b8b in blas_thread_server () from /env/numpy/_core/../../numpy.libs/libscipy_openblas64_-ff65.so

Thread 5 (Thread 0x7ffeda (LWP 81)):
#0  0x00007ffff7c98d61 in __futex_abstimed_wait_common64 () from /lib/libc.so.6
#1  0x00007fffa25514fb in ?? () from /env/torch/lib/../../torch.libs/libopenblasp-r0-2ead.so

Thread 1 (Thread 0x7ffff7 (LWP 77)):
#0  0x0000000000000000 in ?? ()
#1  0x00007ffff7ca1ed3 in __pthread_once_slow (once_control=0x7fff24bfeaf8 <storage+8>,
    init_routine=0x7fff24ceb420 <__once_proxy>) at ./nptl/pthread_once.c:116
#2  0x00007fff24b35274 in __gthread_once (__func=<optimized out>, __once=0x7fff24bfeaf8 <storage+8>)
    at /usr/include/c++/13/bits/gthr-default.h:700
#3  std::call_once<store<module_>::run(lambda&&)::<lambda()> >(std::once_flag &) (__once=..., __f=...)
    at /usr/include/c++/13/mutex:907
";

#[test]
fn the_facet_crash() {
    let found = only(FACET);
    assert_eq!((found.id, found.certainty), ("facet-mismatch", Certainty::Certain));
    assert_eq!(found.evidence.iter().map(|e| e.line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(found.details["library"], ["/env/torch/lib/liba.so"]);
    assert_eq!(found.checks[0].rule, "ABI201");
}

#[test]
fn the_once_crash_and_its_bystanders() {
    let all = diagnose(ONCE).recognised;
    assert_eq!(all.iter().map(|f| f.id).collect::<Vec<_>>(), ["once-null-call", "openblas-two-pools"]);
    assert_eq!(all[0].evidence[1].line, 11);
    assert!(all[0].evidence[1].text.contains("__once_proxy"));
    assert_eq!(all[0].checks[0].rule, "ABI203");
    let pools = &all[1].details["library"];
    assert_eq!(pools[0], "/env/numpy.libs/libscipy_openblas64_-ff65.so");
    assert_eq!(pools.len(), 2);
}

/// For each signature texts that show it; the named one must be among what is seen.
const POSITIVE: &[(&str, &[&str])] = &[
    (
        "facet-mismatch",
        &[
            FACET,
            // As faulthandler of Python 3.14 prints it.
            "  Binary file \"/a.so\", at _ZNKSt7codecvtIDsc11__mbstate_tE10do_unshiftERS0_PcS3_RS3_+0x4 [0x7f]\n  Binary \
         file \"/a.so\", at _ZNSo9_M_insertIlEERSoT_+0x1d [0x7f]\n",
            "#0  0x1 in std::codecvt<char16_t, char, __mbstate_t>::do_in(x) const () from /a.so\n#1  0x2 in std::ostream& \
         std::ostream::_M_insert<unsigned long>(unsigned long) () from /b.so\n",
            "#0  0x1 in std::__try_use_facet<std::num_put<char> > (loc=...) at locale.h:1\n#1  0x2 in f ()\n",
        ],
    ),
    (
        "bad-cast-in-stream",
        &[
            "#0 0x1 in raise () from /c.so\n#1 0x2 in abort () from /c.so\n#2 0x3 in std::__throw_bad_cast() () from /s.so\n\
         #3 0x4 in std::ctype<char> const& std::use_facet<std::ctype<char> >(std::locale const&) () from /s.so\n",
            "#0 0x1 in __cxa_throw () from /s.so\n#1 0x2 in __cxa_bad_cast () from /s.so\n\
         #2 0x3 in std::num_put<char> const& std::use_facet<std::num_put<char> >(std::locale const&) () from /s.so\n",
        ],
    ),
    (
        "once-null-call",
        &[
            ONCE,
            "#0  0x0000000000000000 in ?? ()\n#1  0x1 in __pthread_once_slow (init_routine=0x2 <__once_proxy>) at once.c:1\n",
        ],
    ),
    (
        "private-unwinder",
        &[
            "#0  0x1 in __pthread_kill_implementation ()\n#1  0x2 in raise () from /c.so\n#2  0x3 in abort () from /c.so\n\
         #3  0x4 in _Unwind_SetGR () from /a.so\n#4  0x5 in __gxx_personality_v0 () from /s.so\n",
        ],
    ),
    (
        "two-unwinders",
        &[
            "#0  0x1 in _Unwind_GetIP () from /l/libunwind.so.1\n#1  0x2 in _Unwind_RaiseException () from /l/libgcc_s.so.1\n",
        ],
    ),
    (
        "heap-across-runtimes",
        &[
            "free(): invalid pointer\n\n#0 0x1 in abort () from /c.so\n#1 0x2 in malloc_printerr () from /c.so\n\
         #2 0x3 in std::locale::~locale() () from /w.libs/libstdc++-0a1b2c3d.so.6.0.30\n",
        ],
    ),
    (
        "glibcxx-too-old",
        &[
            "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /e/m.so)",
            "/lib/libstdc++.so.6: version `CXXABI_1.3.13' not found (required by /e/m.so)",
            "libstdc++.so.6: version ‘GLIBCXX_3.4.26’ not found",
            // Wrapped by a terminal, with the colours and times of a CI job.
            "2026-01-02T03:04:05.1234567Z \u{1b}[31mE   ImportError: /lib/libstdc++.so.6: ver\u{1b}[0m\n\
         2026-01-02T03:04:05.1234567Z \u{1b}[31msion `GLIBCXX_3.4.30' not\u{1b}[0m\n\
         2026-01-02T03:04:05.1234567Z found (required by /e/m.so)\n",
        ],
    ),
    ("glibc-too-old", &["/lib/libc.so.6: version `GLIBC_2.34' not found (required by /e/m.so)"]),
    ("relr-unsupported", &["/lib/libc.so.6: version `GLIBC_ABI_DT_RELR' not found (required by /e/m.so)"]),
    (
        "version-not-found",
        &[
            "/lib/libssl.so.3: version `OPENSSL_3.2.0' not found (required by /e/m.so)",
            "/lib/libgomp.so.1: version `GOMP_5.0' not found (required by /e/m.so)",
            "/lib/libcrypt.so: version `XCRYPT_2.0' not found (required by /e/m.so)",
        ],
    ),
    (
        "verneed-without-needed",
        &[
            "Inconsistency detected by ld.so: dl-version.c: 205: _dl_check_map_versions: Assertion `needed != NULL' failed!",
        ],
    ),
    ("python-symbol-missing", &["ImportError: /e/m.so: undefined symbol: _PyUnicode_Ready"]),
    (
        "cuda-symbol-missing",
        &[
            "/e/libtorch_cuda.so: undefined symbol: ncclCommRegister",
            "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
        ],
    ),
    (
        "standard-library-symbol-missing",
        &["/e/m.so: undefined symbol: _ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev"],
    ),
    ("cxx11-abi-mismatch", &["/e/m.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"]),
    ("torch-symbol-missing", &["/e/m.so: undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jS2_"]),
    (
        "undefined-symbol",
        &[
            "/e/m.so: undefined symbol: frobnicate",
            "Error relocating /e/m.so: __cxx_thread: symbol not found",
            "m.so: symbol frob, version FROB_2 not defined in file libfrob.so.1 with link time reference",
            "ImportError: Error relocating /e/m.so: fopen64: symbol not\nfound\n",
        ],
    ),
    (
        "libpython-missing",
        &["libpython3.12.so.1.0: cannot open shared object file: No such file or directory"],
    ),
    (
        "driver-missing",
        &["ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"],
    ),
    (
        "library-missing",
        &[
            "ImportError: libfoo.so.3: cannot open shared object file: No such file or directory",
            "Error loading shared library libfoo.so.3: No such file or directory (needed by /e/m.so)",
            "OSError: libfoo.so.3: cannot open shared obj\nect file: No such file or directory",
        ],
    ),
    (
        "static-tls",
        &[
            "ImportError: /e/libgomp-d22c30c5.so.1: cannot allocate memory in static TLS block",
            "ImportError: dlopen: cannot load any more object with static TLS",
        ],
    ),
    ("page-alignment", &["ImportError: /e/m.so: ELF load command alignment not page-aligned"]),
    (
        "segment-offset",
        &[
            "ImportError: /e/m.so: ELF load command address/offset not properly aligned",
            "ImportError: /e/m.so: ELF load command address/offset not page-aligned",
        ],
    ),
    (
        "executable-stack",
        &["ImportError: m.so: cannot enable executable stack as shared object requires: Invalid argument"],
    ),
    ("text-relocation", &["/e/m.so: cannot restore segment prot after reloc: Permission denied"]),
    (
        "wrong-elf",
        &[
            "OSError: /e/m.so: invalid ELF header",
            "ImportError: /e/m.so: wrong ELF class: ELFCLASS32",
            "ImportError: /e/m.so: file too short",
        ],
    ),
    (
        "omp-two-runtimes",
        &[
            "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\nOMP: Hint This means x\n",
        ],
    ),
    ("openblas-two-pools", &[ONCE]),
    (
        "illegal-instruction",
        &[
            "Fatal Python error: Illegal instruction\n",
            "Program received signal SIGILL, Illegal instruction.",
            "./run.sh: line 3: 12 Illegal instruction (core dumped) python x.py",
        ],
    ),
    (
        "fatal-python-error",
        &["Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File \
         \"<frozen importlib._bootstrap_external>\", line 1289 in create_module\n\nExtension modules: a._b, c (total: 2)\n"],
    ),
];

#[test]
fn every_signature_is_seen() {
    for (id, texts) in POSITIVE {
        for text in *texts {
            assert!(ids(text).contains(id), "{id}\n{text}\n{:?}", diagnose(text));
        }
    }
    for signature in SIGNATURES {
        assert!(POSITIVE.iter().any(|(id, _)| *id == signature.id), "{} has no example", signature.id);
    }
}

/// Texts of which nothing is known although they look alike.
const NEGATIVE: &[&str] = &[
    "",
    "all 1234 tests passed",
    // A stream prints through its own facet; a crash there may have any cause.
    "#0  0x1 in std::num_put<char>::do_put(x, long) const () from /s.so\n#1  0x2 in std::ostream& \
     std::ostream::_M_insert<long>(long) () from /s.so\n",
    // Streams of wide characters use facets of wide characters.
    "#0  0x1 in std::num_put<wchar_t>::do_put(x) const () from /s.so\n#1  0x2 in std::basic_ostream<wchar_t, t>& \
     std::basic_ostream<wchar_t, t>::_M_insert<long>(long) () from /s.so\n",
    // A file stream converts; codecvt is right there.
    "#0  0x1 in std::codecvt<char16_t, char, __mbstate_t>::do_in(x) () from /s.so\n#1  0x2 in mine () from /m.so\n",
    // A null call without once; once without a null call.
    "#0  0x0000000000000000 in ?? ()\n#1  0x1 in callback () from /m.so\n",
    "#0  0x1 in init () from /m.so\n#1  0x2 in __pthread_once_slow (init_routine=0x3 <__once_proxy>) at once.c:1\n",
    "#0  0x0000000000000000 in ?? ()\n#1  0x1 in __pthread_once_slow (init_routine=0x3 <mine>) at once.c:1\n",
    // A failed dynamic_cast of the program's own.
    "#0 0x1 in abort () from /c.so\n#1 0x2 in __cxa_bad_cast () from /s.so\n#2 0x3 in f () from /m.so\n",
    "#0 0x1 in std::__throw_bad_cast() () from /s.so\n#1 0x2 in my_cast () from /m.so\n",
    // An uncaught exception aborts in the unwinder's callers, with one unwinder.
    "#0 0x1 in abort () from /c.so\n#1 0x2 in std::terminate() () from /s.so\n#2 0x3 in __gxx_personality_v0 () from \
     /s.so\n#3 0x4 in _Unwind_RaiseException () from /l/libgcc_s.so.1\n#4 0x5 in _Unwind_Resume () from /l/libgcc_s.so.1\n",
    "#0 0x1 in _Unwind_SetGR () from /l/libgcc_s.so.1\n#1 0x2 in __gxx_personality_v0 () from /s.so\n",
    // A double free of the program's own.
    "double free or corruption (out)\n#0 0x1 in abort () from /c.so\n#1 0x2 in _int_free () from /c.so\n#2 0x3 in f () \
     from /m.so\n#3 0x4 in g () from /lib/libstdc++.so.6\n",
    "#0 0x1 in f () from /w.libs/libstdc++-0a1b2c3d.so.6.0.30\n",
    "checking for version `GLIBC_2.34'... found",
    "GLIBCXX_3.4.30 not found in the list",
    "warning: version `FOO_1' not found in the changelog",
    // The linker's message at build time.
    "m.o: in function `f': undefined reference to `PyObject_Call'",
    "Error relocating: see above; symbol not found on map",
    "cannot open file: No such file or directory: shared object",
    "cannot allocate memory",
    "static TLS block is fine",
    "OMP: Warning #15: x",
    "OMP: Error #13: Assertion failure",
    "load command alignment: page-aligned",
    "warning: m.o: missing .note.GNU-stack section implies executable stack",
    "dl-version.c: Assertion `def_offset != 0' failed!",
    "readelf: Error: invalid header",
    // One pool, two spellings of its path.
    "#0 0x1 in blas_thread_server () from /e/a/../libopenblas.so\n\n#0 0x1 in blas_thread_server () from /e/libopenblas.so\n",
    "#0 0x1 in blas_thread_server_not () from /e/a.so\n\n#0 0x1 in blas_thread_server_not () from /e/b.so\n",
    "Fatal Python error: init_fs_encoding: failed to get the Python codec",
    "Extension modules: a._b, c (total: 2)",
    "Segmentation fault (core dumped)",
    "illegal instruction set selected",
    // Fragments that make a message only if lines are joined that have another between them.
    "cannot allocate memory\n\nin static TLS block",
];

#[test]
fn near_misses_are_not_seen() {
    for text in NEGATIVE {
        assert_eq!(ids(text), Vec::<&str>::new(), "{text}\n{:?}", diagnose(text));
    }
}

#[test]
fn details_are_named() {
    let found =
        only("ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /e/m.so)");
    assert_eq!(found.details["library"], ["/lib/libstdc++.so.6"]);
    assert_eq!(found.details["version"], ["GLIBCXX_3.4.30"]);
    assert_eq!(found.details["required_by"], ["/e/m.so"]);
    let found = only("/e/m.so: undefined symbol: frob\nAborted (core dumped)\n");
    assert_eq!((found.details["symbol"].as_slice(), found.occurrences), (&["frob".to_owned()][..], 1));
    let found = only(
        "Fatal Python error: Aborted\n  File \"<frozen importlib._bootstrap_external>\", line 1 in create_module\n\
         Extension modules: z._b, a (total: 2)\n",
    );
    assert_eq!(found.details["extension_modules"], ["z._b", "a"]);
    assert_eq!(found.details["during"], ["create_module"]);
}

#[test]
fn a_wrapped_message_counts_once() {
    let text = "x: cannot\nallocate memory in\nstatic TLS block\nnext\nlines\n";
    let found = only(text);
    assert_eq!((found.id, found.occurrences), ("static-tls", 1));
    assert_eq!(found.evidence.iter().map(|e| e.line).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn evidence_is_bounded() {
    let lines: Vec<String> = (0..10_000).map(|n| format!("/e/m.so: undefined symbol: frob{n}")).collect();
    let text = lines.join("\n");
    let found = only(&text);
    assert_eq!(found.occurrences, 10_000);
    assert!(found.evidence.len() <= 16 && found.details["symbol"].len() <= 512);
}

#[test]
fn hostile_texts_are_survived() {
    let long = std::io::repeat(b'a').take(200 << 20).chain(&b"\nm.so: invalid ELF header\n"[..]);
    let diagnosis = triage(BufReader::with_capacity(1 << 16, long)).expect("a text");
    assert_eq!((diagnosis.lines, diagnosis.shortened_lines), (2, 1));
    assert_eq!(diagnosis.recognised[0].id, "wrong-elf");
    assert!(matches!(triage(&b"\x7fELF\x02\x01\x01\0\0"[..]), Err(Error::NotText { offset: 7 })));
    let noise: Vec<u8> = (1..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
    assert!(triage(noise.as_slice()).is_ok());
    for text in [
        "#",
        "#0",
        "#99999999999999999999 x ()",
        "#0  0xffffffffffffffffffffffff in f ()",
        "#0  0x in f",
        "\u{1b}[",
    ] {
        assert!(ids(text).is_empty(), "{text}");
    }
    let deep: Vec<String> = (0..200_000).map(|n| format!("#{n}  0x1 in f () from /m.so")).collect();
    assert!(ids(&deep.join("\n")).is_empty());
}

/// Whatever the terminal's width, the crash is recognised.
#[test]
fn wrapping_does_not_matter() {
    for width in 40..200 {
        let wrapped: Vec<String> = FACET
            .lines()
            .flat_map(|line| {
                line.as_bytes()
                    .chunks(width)
                    .map(|c| String::from_utf8_lossy(c).into_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(ids(&wrapped.join("\n")), ["facet-mismatch"], "width {width}\n{}", wrapped.join("\n"));
    }
}
