//! A file that streams by gives the same object as one that is in memory as a whole, at little cost.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test speaks and fails")]

mod common;

use std::ops::Range;

use abiaudit_elf::test_support::{Arch, ElfWriter, HashStyle};
use abiaudit_elf::{Collector, Image, Object, ParseError, Parsed, Wants};
use common::Sample;

/// What streaming a file came to.
struct Streamed {
    result: Result<Object, ParseError>,
    passes: u32,
    kept: u64,
    /// What the first pass had not kept.
    missing: Vec<Range<u64>>,
}

/// Streams until nothing is missing, in chunks whose sizes repeat.
fn stream(bytes: &[u8], chunks: &[usize], first: Collector, wants: &Wants) -> Streamed {
    const MOST_PASSES: u32 = 12;
    let size = bytes.len() as u64;
    let mut image = Image::empty(size);
    let mut collector = first;
    let mut missing = Vec::new();
    for passes in 1..=MOST_PASSES {
        let mut rest = bytes;
        for chunk in chunks.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at((*chunk).min(rest.len()));
            collector.push(now);
            rest = later;
        }
        image.merge(collector.finish());
        let result = match Object::parse(&image, wants) {
            Ok(Parsed::Missing(ranges)) => {
                collector = Collector::for_ranges(size, &ranges);
                missing = if passes == 1 { ranges } else { missing };
                continue;
            }
            Ok(Parsed::Complete(object)) => Ok(*object),
            Err(error) => Err(error),
        };
        return Streamed { result, passes, kept: image.kept(), missing };
    }
    panic!("still missing something after {MOST_PASSES} passes");
}

fn assert_streams(sample: &Sample, chunks: &[&[usize]]) -> Streamed {
    let size = sample.bytes.len() as u64;
    let wants = Wants::default();
    let whole = Object::from_bytes(&sample.bytes, &wants);
    for chunks in chunks {
        let streamed = stream(&sample.bytes, chunks, Collector::new(size), &wants);
        assert!(streamed.result == whole, "{} in chunks of {chunks:?}", sample.name);
    }
    // A first pass that learned next to nothing must come to the same in the end.
    let starved = stream(&sample.bytes, &[65536], Collector::for_ranges(size, &[0..16]), &wants);
    assert!(starved.result == whole, "{} after a first pass of 16 bytes", sample.name);
    let with_symtab = Wants { symtab: true };
    let whole = Object::from_bytes(&sample.bytes, &with_symtab);
    let streamed = stream(&sample.bytes, &[32768], Collector::new(size), &with_symtab);
    assert!(streamed.result == whole, "{} with .symtab", sample.name);
    stream(&sample.bytes, &[32768], Collector::new(size), &wants)
}

const ODD: &[&[usize]] = &[&[7], &[1, 4093, 64, 3], &[65536], &[usize::MAX]];

#[test]
fn built_files() {
    for sample in common::built() {
        assert_streams(&sample, ODD);
    }
}

#[test]
fn written_files_of_all_architectures() {
    for arch in Arch::ALL {
        for style in [HashStyle::None, HashStyle::Sysv, HashStyle::Gnu, HashStyle::Both] {
            for sections in [false, true] {
                let file = ElfWriter::new(arch)
                    .needed("libc.so.6")
                    .define_versioned("f", "ONE")
                    .undefined_versioned("memcpy", "libc.so.6", "GLIBC_2.17")
                    .build_id(&[1; 20])
                    .hash_style(style)
                    .sections(sections)
                    .build();
                let name = format!("{arch:?} {style:?} sections {sections}");
                assert_streams(&Sample { name, bytes: file.into_bytes() }, &[&[1], &[5, 64], &[usize::MAX]]);
            }
        }
    }
}

/// `patchelf` puts new tables at the end and leaves holes where they were.
#[test]
fn edited_files() {
    let folder = tempfile::tempdir().unwrap();
    if !common::run(folder.path(), "patchelf --version") {
        eprintln!("SKIPPED: no patchelf here");
        return;
    }
    let long = "x".repeat(3000);
    let commands = [
        "patchelf --set-soname libother.so.9 f".to_owned(),
        format!("patchelf --force-rpath --set-rpath $ORIGIN/{long} f"),
        "patchelf --add-needed libadded.so.1 --add-needed libadded.so.2 f".to_owned(),
    ];
    for sample in common::built() {
        let path = folder.path().join("f");
        std::fs::write(&path, &sample.bytes).unwrap();
        for command in &commands {
            if common::run(folder.path(), command) {
                let bytes = std::fs::read(&path).unwrap();
                let name = format!("{} after {}", sample.name, &command[..30]);
                assert_streams(&Sample { name, bytes }, ODD);
            }
        }
    }
}

/// A file that ends early is a file that ends early, whatever size was announced.
#[test]
fn a_stream_shorter_than_announced() {
    let file = ElfWriter::new(Arch::X86_64).needed("libc.so.6").define("f").build().into_bytes();
    for cut in 0..file.len() {
        let mut collector = Collector::new(file.len() as u64 + 1000);
        collector.push(&file[..cut]);
        let image = collector.finish();
        assert_eq!(image.size(), cut as u64);
        let whole = Object::from_bytes(&file[..cut], &Wants::default());
        match Object::parse(&image, &Wants::default()) {
            Ok(Parsed::Complete(object)) => assert_eq!(Ok(*object), whole, "cut at {cut}"),
            Ok(Parsed::Missing(ranges)) => {
                panic!("cut at {cut}: {ranges:?} of a file that was kept as a whole")
            }
            Err(error) => assert_eq!(Err(error), whole, "cut at {cut}"),
        }
    }
}

/// Real files: one pass is enough, and little is kept. Prints the large ones.
#[test]
fn members_of_wheels() {
    const LARGE: usize = 16 << 20;
    const MOST_KEPT: u64 = 64 << 20;
    let most: u64 = std::env::var("ABIAUDIT_CORPUS_MOST").map_or(20 << 20, |text| text.parse().unwrap());
    let mut failures = Vec::new();
    let (mut files, mut bytes, mut kept) = (0u64, 0u64, 0u64);
    for wheel in common::wheels(most) {
        common::each_elf(&wheel, |sample| {
            let streamed = if sample.bytes.len() > LARGE {
                let whole = Object::from_bytes(&sample.bytes, &Wants::default());
                let streamed = stream(
                    &sample.bytes,
                    &[32768],
                    Collector::new(sample.bytes.len() as u64),
                    &Wants::default(),
                );
                assert!(streamed.result == whole, "{}", sample.name);
                streamed
            } else {
                assert_streams(sample, &[&[32768], &[99991]])
            };
            files += 1;
            bytes += sample.bytes.len() as u64;
            kept += streamed.kept;
            let line = format!(
                "{} passes, {:.2} of {:.1} MiB kept: {}",
                streamed.passes,
                mib(streamed.kept),
                mib(sample.bytes.len() as u64),
                sample.name
            );
            if sample.bytes.len() > LARGE {
                println!("{line}");
            }
            if streamed.passes > 1 || streamed.kept > MOST_KEPT {
                let parts: Vec<_> =
                    streamed.missing.iter().map(|range| section_at(&streamed, range)).collect();
                failures.push(format!("{line}; missing {}", parts.join(", ")));
            }
        });
    }
    println!("{files} files, {:.1} MiB, {:.1} MiB kept", mib(bytes), mib(kept));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The range and what lies there, for people.
fn section_at(streamed: &Streamed, range: &Range<u64>) -> String {
    let sections = streamed.result.iter().flat_map(|object| &object.sections.headers);
    let mut sections = sections.filter(|s| !s.is_nobits());
    let section = sections.find(|s| (s.offset..s.offset.saturating_add(s.size)).contains(&range.start));
    format!("{range:x?} {}", section.map_or("?".to_owned(), |s| s.name.to_text()))
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
