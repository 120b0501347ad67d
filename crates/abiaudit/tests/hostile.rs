//! Wheels that try to break, deceive or exhaust the command. Each case says which verdict, error or finding is right;
//! all of them must end in time, in little memory, and without a panic.
#![allow(clippy::print_stderr, reason = "says why a case fails")]

mod common;
#[path = "hostile/tricks.rs"]
mod tricks;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use abiaudit_testing::{Arch, Built, ElfWriter, Entry, TestWheel};
use common::{folder, run};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

/// Most time for one wheel; a build with checks and little optimisation may take longer.
const MOST_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });
/// Most resident memory, in bytes.
const MOST_MEMORY: i64 = 300_000_000;
/// Most address space, in KiB: an allocation that a file asks for fails here instead of on somebody's machine.
const MOST_ADDRESSES: u32 = 2_000_000;

/// A wheel file: its name and its bytes.
struct Wheel {
    name: String,
    bytes: Vec<u8>,
}

impl Wheel {
    /// A wheel with this platform tag in its name.
    fn claiming(platform: &str, wheel: &TestWheel) -> Self {
        Self { name: format!("h-1-cp312-cp312-{platform}.whl"), bytes: wheel.bytes() }
    }
}

impl From<TestWheel> for Wheel {
    fn from(wheel: TestWheel) -> Self {
        Self { name: NAME.to_owned(), bytes: wheel.bytes() }
    }
}

/// What is right.
#[derive(Default)]
struct Expect {
    /// The verdict without the architecture; `None` if there is none.
    tag: Option<&'static str>,
    /// Kind of the error of an input that cannot be read.
    error: Option<&'static str>,
    /// Findings that must be there: rule, severity, and a member or a part of the message.
    findings: Vec<(&'static str, &'static str, &'static str)>,
    /// Whether findings of these severities are all.
    no_errors: bool,
}

fn verdict(tag: &'static str) -> Expect {
    Expect { tag: Some(tag), ..Expect::default() }
}

fn no_verdict() -> Expect {
    Expect::default()
}

fn unreadable(kind: &'static str) -> Expect {
    Expect { error: Some(kind), ..Expect::default() }
}

impl Expect {
    fn with(mut self, rule: &'static str, severity: &'static str, about: &'static str) -> Self {
        self.findings.push((rule, severity, about));
        self
    }

    fn clean(mut self) -> Self {
        self.no_errors = true;
        self
    }
}

/// Runs the command on a wheel with limits and compares.
fn try_wheel(wheel: &Wheel, expect: &Expect) {
    let folder = folder();
    let path = folder.path().join(&wheel.name);
    std::fs::write(&path, &wheel.bytes).expect("the folder can be written to");
    let start = Instant::now();
    let result = run(&mut limited(&path));
    let elapsed = start.elapsed();
    let memory = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system counts").max_rss() * 1024;

    assert!(matches!(result.code, Some(0..=2)), "{result:?}");
    assert!(!result.stderr.contains("panicked"), "{result:?}");
    assert!(elapsed <= MOST_TIME, "{elapsed:?}");
    // Of the largest child so far, which is what the bound is for.
    assert!(memory <= MOST_MEMORY, "{memory} bytes");
    let report = result.json()["wheels"][0].take();
    compare(&report, expect);
    let has_errors = findings(&report).any(|finding| finding["severity"] == "error");
    let code = if report["error"].is_object() { 2 } else { i32::from(has_errors) };
    assert_eq!(result.code, Some(code));
    assert_eq!(common::names(folder.path()), [wheel.name.as_str()], "nothing is written");
}

fn limited(path: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {MOST_ADDRESSES}; exec \"$0\" \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_abiaudit")).args(["check", "--no-config", "--format", "json"]).arg(path);
    command
}

fn findings(report: &Value) -> impl Iterator<Item = &Value> {
    report["findings"].as_array().into_iter().flatten()
}

fn compare(report: &Value, expect: &Expect) {
    assert_eq!(report["error"]["kind"].as_str(), expect.error, "{report:#}");
    let tag = report["verdict"]["tag"].as_str();
    let tag = tag.map(|tag| tag.trim_end_matches("_x86_64"));
    assert_eq!(tag, expect.tag, "{:#}", report["findings"]);
    for (rule, severity, about) in &expect.findings {
        let is_it = |finding: &Value| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            let evidence = finding["evidence"].as_array().into_iter().flatten();
            let members: Vec<&Value> = evidence.map(|e| &e["member"]).collect();
            let said = text("member") == *about
                || text("message").contains(about)
                || members.contains(&&Value::from(*about));
            text("rule") == *rule && text("severity") == *severity && said
        };
        assert!(findings(report).any(is_it), "no {severity} {rule} about {about}: {:#}", report["findings"]);
    }
    if expect.no_errors {
        assert!(!findings(report).any(|finding| finding["severity"] == "error"), "{:#}", report["findings"]);
    }
}

/// The file name of a wheel that promises nothing, so that findings are about its content.
const NAME: &str = "h-1-cp312-cp312-linux_x86_64.whl";

fn wheel() -> TestWheel {
    TestWheel::new("h", "1", "cp312-cp312-linux_x86_64")
}

/// An extension that needs one version of the C library.
fn needs(version: &str) -> ElfWriter {
    ElfWriter::new(Arch::X86_64).needed("libc.so.6").undefined_versioned(
        format!("sym_{version}"),
        "libc.so.6",
        version,
    )
}

/// manylinux_2_34.
fn new() -> ElfWriter {
    needs("GLIBC_2.34").define("PyInit_mod")
}

/// manylinux_2_17.
fn old() -> ElfWriter {
    needs("GLIBC_2.17").define("PyInit_ok")
}

/// manylinux_2_5.
fn oldest() -> ElfWriter {
    needs("GLIBC_2.2.5").define("PyInit_mod")
}

fn plain() -> TestWheel {
    wheel().elf("mod.so", &new())
}

fn entry(change: impl FnOnce(&mut Entry, &[u8])) -> TestWheel {
    let content = new().build().into_bytes();
    wheel().entry("mod.so", &content, |entry| change(entry, &content))
}

/// A module that was broken after it was written.
fn broken(change: impl FnOnce(&mut Built)) -> TestWheel {
    let mut built = new().build();
    change(&mut built);
    wheel().program("mod.so", built.bytes())
}

/// A module that ends where `end` says, beside a good one.
fn cut(end: impl FnOnce(&Built) -> usize) -> TestWheel {
    let built = new().build();
    let end = end(&built);
    wheel().program("mod.so", &built.bytes()[..end]).elf("ok.so", &old())
}

/// Offsets of the section headers whose `sh_type` and `sh_flags` are as wanted (ELF64).
fn section_headers(built: &Built, wanted: impl Fn(u32, u64) -> bool) -> Vec<usize> {
    let part = built.part("section headers");
    let bytes = built.bytes();
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    part.step_by(64).filter(|&at| wanted(u32_at(at + 4), u64::from(u32_at(at + 8)))).collect()
}

const DT_NEEDED: i64 = 1;
const DT_VERNEEDNUM: i64 = 0x6fff_ffff;
const SHT_GNU_VERNEED: u32 = 0x6fff_fffe;

macro_rules! cases {
    ($($(#[doc = $doc:literal])+ $name:ident: $wheel:expr => $expect:expr;)+) => {
        $($(#[doc = $doc])+ #[test] fn $name() { try_wheel(&Wheel::from($wheel), &$expect); })+
    };
}

cases! {
    /// Nothing is wrong with it.
    c00_control: plain() => verdict("manylinux_2_34").clean();

    // The archive.

    /// An ELF header and 1 GiB of zeros, deflated to 1 MiB.
    z04_bomb: entry(|entry, content| tricks::bomb(entry, content, 1 << 10)) => verdict("manylinux_2_34");
    /// Names that lead out of the folder where the wheel is installed.
    z06_traversal: plain().elf("../../../../../../escape.so", &new()).elf("/escape2.so", &new()) =>
        verdict("manylinux_2_34").with("ABI609", "error", "../../../../../../escape.so").with("ABI609", "error", "/escape2.so");
    /// Two members of one name: the first needs 2.34, the second 2.2.5.
    z07_duplicate_members: plain().elf("mod.so", &oldest()) => verdict("manylinux_2_34").with("ABI608", "error", "mod.so");
    /// Traditional PKWARE encryption.
    z09_encrypted: entry(|entry, content| {
        entry.flags |= 1;
        entry.method = 0;
        entry.data = [&[7; 12], content].concat();
    }) => no_verdict().with("ABI610", "error", "mod.so");
    /// Method 12.
    z11_bzip2: entry(tricks::bzip2) => verdict("manylinux_2_34");
    /// Method 14.
    z12_lzma: entry(tricks::lzma) => verdict("manylinux_2_34");
    /// Method 93.
    z13_zstd: entry(tricks::zstd) => verdict("manylinux_2_34");
    /// The UTF-8 flag is set, the name is not UTF-8.
    z15_non_utf8_name: entry(|entry, _| entry.name = b"m\xff\xfe\xff\xfed.so".to_vec()) =>
        verdict("manylinux_2_34").with("ABI609", "error", "m\\xff\\xfe\\xff\\xfed.so");
    /// A link that leads out of the wheel, needed by a module.
    z16_symlink_escape: wheel()
        .elf("mod.so", &new().needed("libx.so.1").runpath("$ORIGIN"))
        .symlink("libx.so.1", "../../../../../../../../etc/passwd") =>
        verdict("linux").with("ABI611", "error", "libx.so.1");
    /// A link to a library beside it. Installers write it as a text file, so it does not serve.
    z17_symlink_inside: wheel()
        .elf("mod.so", &new().needed("libx.so.1").runpath("$ORIGIN"))
        .elf("libx.so.1.0", &old().soname("libx.so.1"))
        .symlink("libx.so.1", "libx.so.1.0") =>
        verdict("linux").with("ABI611", "error", "libx.so.1");
    /// Longer than most file systems allow.
    z19_long_name: wheel().elf(&format!("{}.so", "a".repeat(300)), &new()) => verdict("manylinux_2_34");
    /// Bytes before the first member.
    z20_prefix_data: plain().prefix(format!("#!{}", "j".repeat(998))) => verdict("manylinux_2_34");
    /// 60,000 members with nothing in them.
    z21_many_members: (0..60_000).fold(plain(), |wheel, i| wheel.file(&format!("e/{i}"), "")) => verdict("manylinux_2_34");
    /// 200 members share the data of one (David Fifield, "A better zip bomb", 2019).
    z22_overlap: {
        let content = [new().build().bytes(), &vec![0; 4 << 20]].concat();
        let first = Entry::new("big.so", &content);
        // The headers of all are those of the first.
        let again = |entry: &mut Entry| *entry = Entry { name: entry.name.clone(), same_as: Some(0), ..first.clone() };
        (0..200).fold(wheel().file("big.so", &content), |wheel, i| wheel.entry(&format!("o/{i:04}.so"), "", again))
    } => no_verdict().with("ABI610", "error", "overlap");

    // The wheel.

    /// No RECORD.
    w01_no_record: plain().without("RECORD") => verdict("manylinux_2_34").with("ABI606", "error", "RECORD");
    /// No WHEEL.
    w02_no_wheel: plain().without("WHEEL") => verdict("manylinux_2_34").with("ABI607", "error", "WHEEL");
    /// A second dist-info.
    w04_two_dist_infos: plain().file("other-1.dist-info/RECORD", "") =>
        verdict("manylinux_2_34").with("ABI607", "error", "other-1.dist-info");
    /// RECORD has another hash.
    w05_wrong_hash: plain().wrong_hash("mod.so") => verdict("manylinux_2_34").with("ABI606", "error", "mod.so");
    /// The member that RECORD does not list is the one that matters.
    w06_unlisted_elf: wheel().elf("mod.so", &oldest()).elf("evil.so", &new()).unlisted("evil.so") =>
        verdict("manylinux_2_34").with("ABI606", "error", "evil.so");
    /// WHEEL has other tags than the file name.
    w08_tag_mismatch: plain().wheel_tags(&["cp39-abi3-manylinux_2_5_x86_64"]) =>
        verdict("manylinux_2_34").with("ABI607", "error", "cp39-abi3-manylinux_2_5_x86_64");
    /// Native code where only Python belongs.
    w10_purelib: wheel().elf("h-1.data/purelib/mod.so", &new()) =>
        verdict("manylinux_2_34").with("ABI605", "error", "h-1.data/purelib/mod.so");
    /// The name says Python, the content is ELF.
    w11_elf_named_py: wheel().elf("mod.so", &oldest()).elf("evil.py", &new()) => verdict("manylinux_2_34");
    /// RECORD names a file of the host, which must not be read.
    w12_record_host_path: wheel().elf("mod.so", &oldest()).record_row("/usr/bin/env,,") =>
        verdict("manylinux_2_5").with("ABI606", "error", "/usr/bin/env");
    /// What the inner wheel needs does not count, but it is said that it is there.
    w14_nested_wheel: wheel().elf("mod.so", &oldest()).file("inner/x-1-cp312-cp312-linux_x86_64.whl", plain().bytes()) =>
        verdict("manylinux_2_5").with("ABI613", "warning", "inner/x-1-cp312-cp312-linux_x86_64.whl");

    // ELF.

    /// Four bytes.
    e01_cut_magic: cut(|_| 4) => verdict("manylinux_2_17").with("ABI508", "error", "mod.so");
    /// Inside `e_ident`.
    e02_cut_ident: cut(|_| 10) => verdict("manylinux_2_17").with("ABI508", "error", "mod.so");
    /// Inside the header.
    e03_cut_header: cut(|_| 40) => verdict("manylinux_2_17").with("ABI508", "error", "mod.so");
    /// Inside the program headers.
    e04_cut_program_headers: cut(|_| 100) => verdict("manylinux_2_17").with("ABI508", "error", "mod.so");
    /// Inside PT_DYNAMIC.
    e05_cut_dynamic: cut(|built| built.part(".dynamic").start + 24) =>
        verdict("manylinux_2_17").with("ABI508", "error", "mod.so");
    /// Inside the section headers: what the loader reads is all there.
    e06_cut_section_headers: cut(|built| built.part("section headers").start + 100) =>
        verdict("manylinux_2_34").with("ABI508", "error", "mod.so");
    /// Inside the strings.
    e07_cut_strings: cut(|built| built.part(".dynstr").start + 5) =>
        verdict("manylinux_2_17").with("ABI508", "error", "mod.so");
    /// No section headers at all.
    e08_no_sections: wheel().elf("mod.so", &new().sections(false)) => verdict("manylinux_2_34");
    /// The section of the version needs has another type, so tools that look for it find none.
    e09_renamed_section: broken(|built| {
        for at in section_headers(built, |kind, _| kind == SHT_GNU_VERNEED) {
            built.put_u32(at + 4, 1);
        }
    }) => verdict("manylinux_2_34");
    /// 65,300 sections, their number in section 0.
    e10_extended_section_count: broken(|built| {
        let count = 65_300_u64;
        let table = built.bytes()[built.part("section headers")].to_vec();
        let names = u16::from_le_bytes([built.bytes()[62], built.bytes()[63]]);
        let start = built.bytes().len().next_multiple_of(8);
        let bytes = built.bytes_mut();
        bytes.resize(start, 0);
        bytes.extend(&table);
        bytes.resize(start + 64 * usize::try_from(count).expect("small"), 0);
        built.put_word(start + 32, count);
        built.put_u32(start + 40, names.into());
        built.put_word(0x28, start as u64);
        built.put_u16(0x3c, 0);
        built.put_u16(0x3e, 0xffff);
    }) => verdict("manylinux_2_34");
    /// Two segments map other bytes to the same addresses.
    e11_overlapping_segments: wheel().elf("mod.so", &new().segment(abiaudit_testing::SegmentSpec {
        segment_type: 1, flags: 5, offset: 64, address: 0, file_size: 256, memory_size: 256, align: 0x1000,
    })) => verdict("manylinux_2_34");
    /// 16 million version needs, all of them the first.
    e12_version_cycle: broken(|built| {
        for at in section_headers(built, |kind, _| kind == SHT_GNU_VERNEED) {
            built.put_u32(at + 44, 0x00ff_ffff);
        }
        built.put_word(built.dynamic_entry(DT_VERNEEDNUM), 0x00ff_ffff);
    }) => verdict("manylinux_2_34").with("ABI508", "error", "mod.so");
    /// A library's name is not UTF-8.
    e15_non_utf8_needed: Wheel::claiming("manylinux_2_34_x86_64", &wheel().elf("mod.so", &new().needed(b"lib\xff\xfe.so.1"))) =>
        verdict("linux").with("ABI103", "error", "lib\\xff\\xfe.so.1");
    /// A file of the host.
    e16_absolute_needed: Wheel::claiming("manylinux_2_34_x86_64", &wheel().elf("mod.so", &new().needed("/etc/passwd"))) =>
        verdict("linux").with("ABI103", "error", "/etc/passwd");
    /// Two libraries need each other.
    e17_cycle: wheel()
        .elf("mod.so", &new().needed("liba.so").runpath("$ORIGIN"))
        .elf("liba.so", &old().soname("liba.so").needed("libb.so").runpath("$ORIGIN"))
        .elf("libb.so", &old().soname("libb.so").needed("liba.so").runpath("$ORIGIN")) => verdict("manylinux_2_34").clean();
    /// GNU ld's script in place of a library.
    e18_linker_script: plain().file("libx.so", "/* GNU ld script */\nGROUP ( libx.so.1 )\n") =>
        verdict("manylinux_2_34").with("ABI614", "info", "libx.so");
    /// A library of no bytes.
    e20_empty_library: plain().file("libz0.so", "") => verdict("manylinux_2_34").with("ABI614", "info", "libz0.so");
    /// Mach-O and PE.
    e21_foreign_binaries: {
        let mach: Vec<u8> = [0xfeed_facf_u32, 0x0100_000c, 0, 6, 0, 0, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut pe = b"MZ".to_vec();
        pe.resize(60, 0);
        pe.extend([64, 0, 0, 0]);
        pe.extend(b"PE\0\0\x64\x86");
        pe.resize(96, 0);
        plain().file("x.dylib", mach).file("y.dll", pe)
    } => verdict("manylinux_2_34").with("ABI612", "error", "x.dylib").with("ABI612", "warning", "y.dll");
    /// A library for s390x.
    e22_big_endian: wheel().elf("mod.so", &old()).elf("be.so", &ElfWriter::new(Arch::S390x).needed("libc.so.6")
        .undefined_versioned("x", "libc.so.6", "GLIBC_2.34")) => verdict("manylinux_2_17").with("ABI105", "error", "be.so");
    /// A library for 32-bit x86.
    e23_other_class: wheel().elf("mod.so", &old()).elf("x86.so", &ElfWriter::new(Arch::I686).needed("libc.so.6")) =>
        verdict("manylinux_2_17").with("ABI105", "error", "x86.so");
    /// Nothing for the machine that the tag names.
    e24_only_foreign: wheel().elf("mod.so", &ElfWriter::new(Arch::Aarch64).needed("libc.so.6")) =>
        no_verdict().with("ABI105", "error", "mod.so");
    /// An object file and an archive of it.
    e25_object_and_archive: {
        let object = ElfWriter::new(Arch::X86_64).object_type(1).define("x").build().into_bytes();
        let header = format!("!<arch>\n{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "x.o/", 0, 0, 0, 644, object.len());
        wheel().elf("mod.so", &old()).file("x.o", &object).file("libx.a", [header.as_bytes(), &object].concat())
    } => verdict("manylinux_2_17").with("ABI614", "info", "x.o").with("ABI614", "info", "libx.a");
    /// A name that lies outside the strings.
    e26_name_outside: broken(|built| built.put_word(built.dynamic_entry(DT_NEEDED), 0x7fff_ffff)) =>
        no_verdict().with("ABI508", "error", "mod.so");
    /// More program headers than the file has room for.
    e28_program_header_count: broken(|built| built.put_u16(0x38, 0xffff)) => no_verdict().with("ABI508", "error", "mod.so");
    /// Program headers of no size.
    e29_program_header_size: broken(|built| built.put_u16(0x36, 0)) => no_verdict().with("ABI508", "error", "mod.so");
    /// A version that no tag admits.
    e32_glibc_private: wheel().elf("mod.so", &new().undefined_versioned("p", "libc.so.6", "GLIBC_PRIVATE")) => verdict("linux");
    /// Relative relocations in the compact form need glibc 2.36.
    e33_relr: wheel().elf("mod.so", &oldest().undefined_versioned("r", "libc.so.6", "GLIBC_ABI_DT_RELR")) =>
        verdict("manylinux_2_36");
    /// It says that it needs x86-64-v3.
    e34_isa: wheel().elf("mod.so", &new().property(0xc000_8002, 7)) => verdict("linux");
    /// A version of a library of its own counts for nothing.
    e35_vendored_version: wheel()
        .elf("mod.so", &new().needed("libfoo.so.1").runpath("$ORIGIN").undefined_versioned("f", "libfoo.so.1", "GLIBCXX_3.4.99"))
        .elf("libfoo.so.1", &old().soname("libfoo.so.1").define_versioned("f", "GLIBCXX_3.4.99")) => verdict("manylinux_2_34");
    /// 20,000 libraries that are not there.
    e36_many_needed: wheel().elf("mod.so", &(0..20_000).fold(new(), |w, i| w.needed(format!("lib{i}.so.1")))) => verdict("linux");
    /// Libraries that many hosts have and no tag promises.
    e37_host_library: Wheel::claiming("manylinux_2_34_x86_64",
        &wheel().elf("mod.so", &oldest().needed("liblzma.so.5").needed("libcrypt.so.1"))) =>
        verdict("linux").with("ABI103", "error", "liblzma.so.5").with("ABI103", "error", "libcrypt.so.1");
    /// Needs nothing.
    e38_needs_nothing: wheel().elf("mod.so", &ElfWriter::new(Arch::X86_64).define("PyInit_mod")) => verdict("manylinux_2_5");
    /// A Python built with `--with-fpectl` (PEP 513).
    e40_pyfpe: wheel().elf("mod.so", &oldest().undefined("PyFPE_jbuf")) => verdict("linux");
    /// Separate debug information: what the loader would read is not there.
    e41_split_debug: {
        let mut debug = new().build();
        for at in section_headers(&debug, |_, flags| flags & 2 != 0) {
            debug.put_u32(at + 4, 8);
        }
        // The segments keep their places in memory and have no bytes in the file.
        for at in debug.part("program headers").step_by(56) {
            debug.put_word(at + 32, 0);
        }
        plain().program("mod.debug", debug.bytes())
    } => verdict("manylinux_2_34").with("ABI507", "info", "mod.debug");
    /// A path that libraries below inherit.
    e44_rpath_inherited: wheel()
        .elf("mod.so", &new().needed("liba.so").rpath("$ORIGIN/h.libs"))
        .elf("h.libs/liba.so", &old().soname("liba.so").needed("libb.so"))
        .elf("h.libs/libb.so", &old().soname("libb.so")) => verdict("manylinux_2_34").clean();
    /// A path that they do not.
    e45_runpath_not_inherited: wheel()
        .elf("mod.so", &new().needed("liba.so").runpath("$ORIGIN/h.libs"))
        .elf("h.libs/liba.so", &old().soname("liba.so").needed("libb.so"))
        .elf("h.libs/libb.so", &old().soname("libb.so")) => verdict("linux").with("ABI401", "error", "libb.so");
    /// The UCS-2 interface of Python 2, referenced as assemblers do: without a type.
    ucs2_without_type: Wheel {
        name: "h-1-cp27-cp27m-linux_x86_64.whl".to_owned(),
        bytes: wheel().elf("mod.so", &needs("GLIBC_2.2.5").define("initmod").undefined("PyUnicodeUCS2_AsUTF8String")).bytes(),
    } => verdict("linux");
    /// A vendored library uses what is private to zlib.
    forbidden_symbols: wheel()
        .elf("mod.so", &new().needed("libinner.so").runpath("$ORIGIN"))
        .elf("libinner.so", &old().soname("libinner.so").needed("libz.so.1").undefined("zcfree")) => verdict("linux");
}

#[test]
fn z01_truncated() {
    let mut bytes = plain().file("padding", (0..=255).collect::<Vec<u8>>().repeat(200)).bytes();
    bytes.truncate(bytes.len() * 6 / 10);
    try_wheel(&Wheel { name: NAME.to_owned(), bytes }, &unreadable("archive"));
}

#[test]
fn z02_empty() {
    try_wheel(&Wheel { name: NAME.to_owned(), bytes: Vec::new() }, &unreadable("archive"));
}

/// 8 EiB by the directory, some hundred bytes in truth.
#[test]
fn z05_huge_declared() {
    let bytes = tricks::zip64(&plain().bytes(), Some(("mod.so", (1 << 63) - 1)));
    try_wheel(&Wheel { name: NAME.to_owned(), bytes }, &no_verdict().with("ABI610", "error", "mod.so"));
}

/// Zip64 everywhere, and nothing wrong.
#[test]
fn z10_zip64() {
    let bytes = tricks::zip64(&plain().bytes(), None);
    try_wheel(&Wheel { name: NAME.to_owned(), bytes }, &verdict("manylinux_2_34").clean());
}

#[test]
fn w09_bad_file_name() {
    try_wheel(&Wheel { name: "wheel.whl".to_owned(), bytes: plain().bytes() }, &unreadable("file-name"));
}

/// musl takes `libc.so` as itself; a vendored library comes first.
#[test]
fn e42_musl_libc_so() {
    let musl = |name: &str| ElfWriter::new(Arch::X86_64).needed("libc.so").define(name);
    let module = wheel().elf("h.libs/libgcc_s-1.so.1", &musl("g").soname("libgcc_s-1.so.1")).elf(
        "mod.cpython-312-x86_64-linux-musl.so",
        &musl("PyInit_mod").needed("libgcc_s-1.so.1").rpath("$ORIGIN/h.libs"),
    );
    let wheel = Wheel::claiming("musllinux_1_2_x86_64", &module);
    try_wheel(&wheel, &verdict("musllinux_1_2"));
}
