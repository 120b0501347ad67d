//! Version nodes that the system's libraries do not have.

use crate::signature::{Certainty, Check, Sign, Signature};

const TOO_NEW: Check =
    Check { rule: "ABI101", shows: "the symbols that are newer than the wheel's tag allows" };
const CLAIM: Check = Check { rule: "ABI601", shows: "the tag that the wheel should have had" };

pub static GLIBCXX_TOO_OLD: Signature = Signature {
    id: "glibcxx-too-old",
    name: "libstdc++ is older than the one built against",
    certainty: Certainty::Certain,
    meaning: "The file uses symbols of a version node that the libstdc++ which the process loaded does not have. \
              Either the wheel was built with a newer compiler than its tag allows, or an older libstdc++ (of conda, \
              of a module system, a vendored one) was loaded before the system's.",
    checks: &[TOO_NEW, CLAIM],
    mend: "Builder: build in the manylinux image of the tag, or link through a split toolchain, which puts the newer \
           symbols into the file itself. User: take the libstdc++ named in the message out of the search path \
           (LD_LIBRARY_PATH), or update it. abiaudit explain NODE says which compiler brought the node.",
    references: &["GCC libstdc++ manual, ABI policy", "PEP 600", "xgrammar #821"],
    sign: Sign::Message {
        any: &[
            r"(?:(?P<library>[^ :]+): )?version [`'‘](?P<version>(?:GLIBCXX|CXXABI)_[0-9A-Za-z_.]+)['’] not found(?: \(required by (?P<required_by>[^ )]+)\))?",
        ],
        also: &[],
    },
};

pub static GLIBC_TOO_OLD: Signature = Signature {
    id: "glibc-too-old",
    name: "glibc is older than the one built against",
    certainty: Certainty::Certain,
    meaning: "The file uses symbols of a version of glibc that this system does not have: it was built on a newer \
              system than its tag promises, or installed past its tag.",
    checks: &[TOO_NEW, CLAIM],
    mend: "Build in the manylinux image of the oldest system to support, vendored libraries included; or give the \
           wheel the tag that it honours, so that installers leave it alone. glibc itself cannot be vendored.",
    references: &["PEP 600", "llvmlite #393", "pytorch #160425", "TensorFlow #60738"],
    sign: Sign::Message {
        any: &[
            r"(?:(?P<library>[^ :]+): )?version [`'‘](?P<version>GLIBC_(?:[0-9][0-9.]*|PRIVATE))['’] not found(?: \(required by (?P<required_by>[^ )]+)\))?",
        ],
        also: &[],
    },
};

pub static RELR: Signature = Signature {
    id: "relr-unsupported",
    name: "The loader is too old for packed relative relocations",
    certainty: Certainty::Certain,
    meaning: "The file has its relative relocations in the compact form DT_RELR (-z pack-relative-relocs) and demands \
              glibc 2.36 through the version node GLIBC_ABI_DT_RELR; no symbol says so.",
    checks: &[Check { rule: "ABI108", shows: "files with DT_RELR under a tag older than glibc 2.36" }],
    mend: "Link with -Wl,-z,nopack-relative-relocs; some distributions pack by default.",
    references: &["gABI, DT_RELR", "glibc 2.36 release notes"],
    sign: Sign::Message {
        any: &[
            r"version [`'‘](?P<version>GLIBC_ABI_DT_RELR)['’] not found(?: \(required by (?P<required_by>[^ )]+)\))?",
            r"DT_RELR without GLIBC_ABI_DT_RELR dependency",
        ],
        also: &[],
    },
};

pub static OTHER_VERSION: Signature = Signature {
    id: "version-not-found",
    name: "A library lacks a version that is asked for",
    certainty: Certainty::Certain,
    meaning: "The library that was found under the wanted name has no such version node: it is another build or an \
              older release than the one linked against.",
    checks: &[
        Check { rule: "ABI109", shows: "needed versions that the vendored library does not have" },
        Check { rule: "ABI101", shows: "versions that the target's library does not have" },
    ],
    mend: "Vendor the library that was linked against, or depend on the wheel that brings it; look for another copy \
           earlier in the search path.",
    references: &["Linux Standard Base, symbol versioning"],
    sign: Sign::Message {
        any: &[
            // Any node but those above. The regular expressions have no look-ahead: the first letters are spelled out.
            r"(?:(?P<library>[^ :]+): )?version [`'‘](?P<version>(?:[ABD-FH-Za-z_]|C[A-WYZa-z_]|G[A-KM-Za-z_])[0-9A-Za-z_.+-]*)['’] not found(?: \(required by (?P<required_by>[^ )]+)\))",
        ],
        also: &[],
    },
};

pub static VERNEED_WITHOUT_NEEDED: Signature = Signature {
    id: "verneed-without-needed",
    name: "A version demand names a library that is not needed",
    certainty: Certainty::Certain,
    meaning: "The file's version requirements (.gnu.version_r) name a library that is not among its DT_NEEDED; glibc \
              stops at an assertion. An editor renamed the one and forgot the other, typically while vendoring.",
    checks: &[Check { rule: "ABI405", shows: "the requirement and the file that holds it" }],
    mend: "Repair the wheel with a tool that renames both, from the original build.",
    references: &["uccl #1038", "glibc elf/dl-version.c"],
    sign: Sign::Message {
        any: &[r"_dl_check_map_versions: Assertion [`'‘]needed != NULL['’] failed"],
        also: &[],
    },
};
