//! Files that the loader does not find or does not take.

use crate::signature::{Certainty, Check, Sign, Signature};

pub static LIBPYTHON_MISSING: Signature = Signature {
    id: "libpython-missing",
    name: "The extension needs a shared libpython",
    certainty: Certainty::Certain,
    meaning: "The extension was linked with libpython. Most interpreters on Linux contain it and have no such file; \
              extensions get the C API from the program.",
    checks: &[Check { rule: "ABI619", shows: "files that need libpython" }],
    mend: "Link without -lpythonX.Y (CMake: Python::Module instead of Python::Python).",
    references: &["PEP 513", "bpo-36721"],
    sign: Sign::MissingLibrary(|name| file_name(name).starts_with("libpython")),
};

pub static DRIVER_MISSING: Signature = Signature {
    id: "driver-missing",
    name: "The NVIDIA driver's library is not there",
    certainty: Certainty::Certain,
    meaning: "The library comes with the device's driver and can be in no wheel: the machine or container has no \
              driver, or the container was started without access to it.",
    checks: &[],
    mend: "Install the driver, or start the container with the NVIDIA runtime. A library that should also work without \
           a device must load the driver with dlopen instead of needing it.",
    references: &["CUDA installation guide for Linux", "NVIDIA Container Toolkit documentation"],
    sign: Sign::MissingLibrary(|name| {
        ["libcuda.so", "libnvidia-", "libnvcuvid.so", "libnvidia_"]
            .iter()
            .any(|d| file_name(name).starts_with(d))
    }),
};

pub static LIBRARY_MISSING: Signature = Signature {
    id: "library-missing",
    name: "A needed library was not found",
    certainty: Certainty::Certain,
    meaning: "No directory of the search path has the library: it is not in the wheel, or in it where no RPATH or \
              RUNPATH leads (RUNPATH counts for the file's own needs only, not for those of its libraries), or it \
              comes with another wheel that is not required.",
    checks: &[
        Check { rule: "ABI401", shows: "needs that the loader will not resolve from inside the wheel" },
        Check { rule: "ABI103", shows: "libraries that the tag does not promise" },
        Check { rule: "ABI408", shows: "a library of another wheel that METADATA does not require" },
        Check { rule: "ABI409", shows: "a library of a required wheel that the search path does not reach" },
    ],
    mend: "Vendor the library, or require the wheel that has it and lead an RPATH with $ORIGIN there. \
           abiaudit explain SONAME says who is known to bring it.",
    references: &["ld.so(8)", "PEP 513", "glibc elf/dl-load.c"],
    sign: Sign::MissingLibrary(|_| true),
};

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub static STATIC_TLS: Signature = Signature {
    id: "static-tls",
    name: "Static thread-local storage is used up",
    certainty: Certainty::Certain,
    meaning: "The library uses the initial-exec TLS model, so its thread-local variables must fit into a reserve that \
              the program set up at its start and that all such libraries share. Whoever is loaded last gets \
              nothing; so it depends on the import order. On aarch64 the reserve goes faster: vendored copies of \
              libgomp are the usual takers.",
    checks: &[Check {
        rule: "ABI304",
        shows: "the libraries with DF_STATIC_TLS and what they take together",
    }],
    mend: "Do not vendor a second libgomp; build without -ftls-model=initial-exec. Users: import the library named in \
           the message first, preload it, or set GLIBC_TUNABLES=glibc.rtld.optional_static_tls.",
    references: &[
        "scikit-learn #17231, #28362",
        "opencv #14884",
        "xgboost #8488",
        "LightGBM #6509",
        "glibc manual, tunables",
    ],
    sign: Sign::Message {
        any: &[
            r"(?:(?P<library>[^ :]+): )?cannot allocate memory in static TLS block",
            r"cannot load any more object with static TLS",
        ],
        also: &[],
    },
};

pub static PAGE_ALIGNMENT: Signature = Signature {
    id: "page-alignment",
    name: "The file is laid out for smaller pages than this kernel has",
    certainty: Certainty::Certain,
    meaning: "The segments are aligned to less than the page size of the running kernel: kernels of aarch64, ppc64le \
              and loongarch64 may have pages of 16 or 64 KiB.",
    checks: &[Check {
        rule: "ABI504",
        shows: "files whose segments are aligned too little for their architecture",
    }],
    mend: "Link with -Wl,-z,max-page-size=65536, and edit with tools that keep the alignment (patchelf --page-size \
           65536).",
    references: &["pytorch #53597", "numpy #16677", "glibc elf/dl-load.c"],
    sign: Sign::Message {
        any: &[r"(?:(?P<library>[^ :]+): )?ELF load command alignment not page-aligned"],
        also: &[],
    },
};

pub static SEGMENT_OFFSET: Signature = Signature {
    id: "segment-offset",
    name: "A segment's address and offset do not fit together",
    certainty: Certainty::Certain,
    meaning: "Address and file offset of a loadable segment differ modulo its alignment, which cannot be mapped. That \
              is what strip leaves of a segment into which no section falls, as repeated edits by patchelf add; or \
              the file is for smaller pages than this kernel has.",
    checks: &[
        Check {
            rule: "ABI503",
            shows: "segments that strip will spoil, in the wheel before it was stripped",
        },
        Check { rule: "ABI504", shows: "files whose segments are aligned too little for their architecture" },
        Check { rule: "ABI508", shows: "files that are damaged already" },
    ],
    mend: "Do not strip wheels after they were repaired; strip first, then edit once.",
    references: &["auditwheel #716, #717", "glibc elf/dl-load.c"],
    sign: Sign::Message {
        any: &[r"(?:(?P<library>[^ :]+): )?ELF load command address/offset not (?:properly|page-) ?aligned"],
        also: &[],
    },
};

pub static EXECUTABLE_STACK: Signature = Signature {
    id: "executable-stack",
    name: "The file demands an executable stack",
    certainty: Certainty::Certain,
    meaning: "PT_GNU_STACK of the file asks for an executable stack, mostly by accident: one assembler source without \
              .note.GNU-stack is enough. glibc 2.41 no longer grants it to libraries that are loaded at run time; \
              SELinux and some kernels never did.",
    checks: &[Check { rule: "ABI501", shows: "files that demand it" }],
    mend: "Link with -Wl,-z,noexecstack; in a finished file clear the flag (patchelf --clear-execstack).",
    references: &["glibc 2.41 release notes", "auditwheel #634", "CTranslate2 #1849"],
    sign: Sign::Message {
        any: &[r"(?:(?P<library>[^ :]+): )?cannot enable executable stack as shared object requires"],
        also: &[],
    },
};

pub static TEXT_RELOCATION: Signature = Signature {
    id: "text-relocation",
    name: "The loader may not write to code",
    certainty: Certainty::Certain,
    meaning: "The file has relocations in its code (DT_TEXTREL), so the loader must make code writable for a while; \
              SELinux, systemd's MemoryDenyWriteExecute and musl forbid it.",
    checks: &[Check { rule: "ABI502", shows: "files with relocations in read-only segments" }],
    mend: "Compile everything that goes into the library with -fPIC, assembler sources included; link with -Wl,-z,text.",
    references: &["gABI chapter 5, DF_TEXTREL", "glibc elf/dl-reloc.c"],
    sign: Sign::Message {
        any: &[
            r"(?:(?P<library>[^ :]+): )?cannot (?:restore|make) segment (?:prot after reloc|writable for relocation)",
        ],
        also: &[],
    },
};

pub static WRONG_ELF: Signature = Signature {
    id: "wrong-elf",
    name: "The file is no library for this machine",
    certainty: Certainty::Certain,
    meaning: "The file was found and is damaged, cut off, for another word size or machine, or no ELF file at all: a \
              linker script, a Git LFS pointer, a symbolic link that a zip archive turned into text.",
    checks: &[
        Check { rule: "ABI105", shows: "files for another architecture than the tag's" },
        Check { rule: "ABI508", shows: "damaged files" },
        Check { rule: "ABI611", shows: "symbolic links in the archive" },
    ],
    mend: "Build for the architecture of the tag; look at the file with the file command.",
    references: &["gABI chapter 4, ELF identification", "glibc elf/dl-load.c"],
    sign: Sign::Message {
        any: &[
            r"(?:(?P<library>[^ :]+): )?invalid ELF header",
            r"(?:(?P<library>[^ :]+): )?wrong ELF class: (?P<class>ELFCLASS[0-9]+)",
            r"(?P<library>[^ :]+\.so[^ :]*): (?:file too short|ELF file data encoding not|cannot open shared object file: Exec format error)",
            r"Error loading shared library (?P<library>[^ :]+): Exec format error",
        ],
        also: &[],
    },
};
