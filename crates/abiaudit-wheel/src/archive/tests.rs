//! Archives that are well, and archives that are not.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::support::{Descriptor, Entry, Zip, deflate};

fn open(zip: &Zip) -> Archive {
    Archive::from_bytes(zip.write(), &Limits::default()).expect("readable")
}

fn open_with(zip: &Zip, limits: &Limits) -> Archive {
    Archive::from_bytes(zip.write(), limits).expect("readable")
}

fn content(archive: &Archive, index: usize) -> Result<Vec<u8>, MemberError> {
    archive.read_prefix(&archive.members()[index], &mut Scratch::new(), usize::MAX)
}

/// Half a megabyte that compresses somewhat.
fn text() -> Vec<u8> {
    numbers(100_000)
}

fn numbers(count: u32) -> Vec<u8> {
    (0..count).flat_map(|i| (i.wrapping_mul(i) >> 7).to_string().into_bytes()).collect()
}

#[test]
fn every_method_gives_back_the_content() {
    let text = text();
    let zip = Zip::new(vec![
        Entry::stored("stored", &text),
        Entry::deflated("deflated", &text),
        Entry::bzip2("bzip2", &text),
        Entry::lzma("lzma", &text),
        Entry::zstd("zstd", &text),
        Entry::deflated("empty", b""),
        Entry::lzma("empty.lzma", b""),
    ]);
    let archive = open(&zip);
    assert_eq!(archive.problems(), []);
    let mut scratch = Scratch::new();
    for member in archive.members() {
        let mut found = Vec::new();
        let outcome = archive.read(member, &mut scratch, &mut |chunk| {
            assert!(chunk.len() <= Scratch::CHUNK);
            found.extend_from_slice(chunk);
            Ok(())
        });
        assert_eq!(
            outcome,
            Ok(ReadOutcome { bytes: member.size, complete: true, unused: 0 }),
            "{}",
            member.name
        );
        assert!(found == if member.size == 0 { Vec::new() } else { text.clone() }, "{}", member.name);
    }
    assert_eq!(archive.stored_slice(&archive.members()[0]), Some(text.as_slice()));
    assert_eq!(archive.stored_slice(&archive.members()[1]), None);
}

#[test]
fn a_member_is_what_the_central_directory_says() {
    let mut file = Entry::deflated("pkg/mod.so", b"content");
    file.mode = 0o100_755;
    file.comment = b"a comment".to_vec();
    let zip = Zip { comment: b"PK and a comment".to_vec(), ..Zip::new(vec![Entry::directory("pkg/"), file]) };
    let archive = open(&zip);
    assert_eq!(archive.problems(), []);
    let member = archive.member("pkg/mod.so").expect("there");
    assert_eq!((member.index, member.size, member.method), (1, 7, Method::Deflate));
    assert_eq!(member.unix_mode, Some(0o100_755));
    assert!(member.is_executable() && member.name_is_utf8 && !member.encrypted);
    assert_eq!(member.crc32, crc32fast::hash(b"content"));
    assert_eq!(member.data_offset(), Some(30 + 4 + 30 + 10));
    assert_eq!(archive.members()[0].kind, MemberKind::Directory);
}

#[test]
fn reading_stops_where_the_sink_has_enough() {
    let text = text();
    for entry in [
        Entry::deflated("m", &text),
        Entry::stored("m", &text),
        Entry::zstd("m", &text),
        Entry::lzma("m", &text),
    ] {
        let archive = open(&Zip::new(vec![entry]));
        let mut scratch = Scratch::new();
        let outcome =
            archive.read(&archive.members()[0], &mut scratch, &mut |_| Err(Stop)).expect("no error");
        assert!(!outcome.complete && outcome.bytes <= Scratch::CHUNK as u64);
        let prefix = archive.read_prefix(&archive.members()[0], &mut scratch, 1000).expect("readable");
        assert_eq!(prefix, text[..1000]);
        // The scratch is fit for the next member.
        assert_eq!(content(&archive, 0).expect("readable").len(), text.len());
    }
}

#[test]
fn an_empty_archive_has_no_members() {
    let archive = open(&Zip::default());
    assert!(archive.members().is_empty());
    assert_eq!(archive.problems(), []);
}

#[test]
fn what_is_no_archive_is_said() {
    let error = |bytes: Vec<u8>| Archive::from_bytes(bytes, &Limits::default()).expect_err("no archive");
    assert!(matches!(error(Vec::new()), ArchiveError::Empty));
    assert!(matches!(
        error(b"not a zip".to_vec()),
        ArchiveError::NoEndRecord { file_size: 9, search_start: 0, starts_like_zip: false }
    ));
    let whole = Zip::new(vec![Entry::stored("m", &[7; 100_000])]).write();
    let size = whole.len() * 6 / 10;
    let truncated = error(whole[..size].to_vec());
    assert!(matches!(truncated, ArchiveError::NoEndRecord { starts_like_zip: true, .. }));
    assert_eq!(
        truncated.to_string(),
        format!(
            "truncated zip file: expected an end-of-central-directory record (PK\\5\\6) between offset 0 and the \
             end at {size}, found none"
        )
    );
    // The end record is cut in its middle.
    assert!(matches!(error(whole[..whole.len() - 5].to_vec()), ArchiveError::BadEndRecord { .. }));
    let directory = std::env::temp_dir();
    assert!(matches!(Archive::open(&directory, &Limits::default()), Err(ArchiveError::NotAFile { .. })));
    let missing = directory.join("no such directory/no such file");
    assert!(matches!(Archive::open(missing, &Limits::default()), Err(ArchiveError::Io { .. })));
}

#[test]
fn a_broken_directory_is_an_error_with_its_offset() {
    let whole = Zip::new(vec![Entry::stored("a", b"1"), Entry::stored("b", b"2")]).write();
    let second = whole.windows(4).rposition(|window| window == b"PK\x01\x02").expect("there");
    let mut broken = whole.clone();
    broken[second] = 0;
    let error = Archive::from_bytes(broken, &Limits::default()).expect_err("broken");
    let ArchiveError::BadDirectoryEntry { index: 1, offset, .. } = error else { panic!("{error}") };
    assert_eq!(offset, second as u64);

    let zip = Zip { declared_entries: Some(3), ..Zip::new(vec![Entry::stored("a", b"1")]) };
    let error = Archive::from_bytes(zip.write(), &Limits::default()).expect_err("short");
    assert!(matches!(error, ArchiveError::MissingEntries { declared: 3, found: 1, .. }));

    let zip = Zip {
        declared_entries: Some(1),
        ..Zip::new(vec![Entry::stored("a", b"1"), Entry::stored("b", b"1")])
    };
    assert_eq!(open(&zip).problems(), [ArchiveProblem::EntryCount { declared: 1, found: 2 }]);

    let limits = Limits { max_members: 1, ..Limits::default() };
    let error = Archive::from_bytes(whole, &limits).expect_err("too many");
    assert!(matches!(error, ArchiveError::TooManyMembers { limit: 1 }));
}

#[test]
fn zip64_records_and_fields_are_read() {
    let mut entry = Entry::deflated("m", b"content");
    entry.zip64 = true;
    let zip = Zip { zip64_end: true, ..Zip::new(vec![entry]) };
    let archive = open(&zip);
    assert_eq!(archive.problems(), []);
    assert_eq!(content(&archive, 0).as_deref(), Ok(b"content".as_slice()));
}

#[test]
fn prefix_and_trailing_data_are_reported_and_read_past() {
    for adjust_offsets in [false, true] {
        let zip = Zip {
            prefix: vec![b'j'; 1000],
            adjust_offsets,
            ..Zip::new(vec![Entry::deflated("m", b"content")])
        };
        let archive = open(&zip);
        assert_eq!(archive.problems(), [ArchiveProblem::PrefixData { bytes: 1000 }]);
        assert_eq!(content(&archive, 0).as_deref(), Ok(b"content".as_slice()));
    }
    let mut bytes = Zip::new(vec![Entry::stored("m", b"content")]).write();
    bytes.extend_from_slice(&[0; 10]);
    let archive = Archive::from_bytes(bytes, &Limits::default()).expect("readable");
    assert_eq!(archive.problems(), [ArchiveProblem::TrailingData { bytes: 10 }]);
}

#[test]
fn data_descriptors_are_read_in_every_layout() {
    for descriptor in [Descriptor::Signed32, Descriptor::Signed64, Descriptor::Bare32] {
        let archive = open(&Zip::new(vec![Entry::deflated("m", b"content").streamed(descriptor)]));
        assert_eq!(archive.problems(), [], "{descriptor:?}");
        assert_eq!(content(&archive, 0).as_deref(), Ok(b"content".as_slice()));
    }
    let archive = open(&Zip::new(vec![Entry::deflated("m", b"content").streamed(Descriptor::Missing)]));
    let fields = vec![HeaderField::DataDescriptor];
    assert_eq!(archive.problems(), [ArchiveProblem::HeaderMismatch { member: 0, fields }]);
}

#[test]
fn seventy_thousand_members_take_no_time() {
    let entries = (0..70_000).map(|i| Entry::stored(&format!("pkg/{}/m{i}.py", i % 300), b"")).collect();
    let bytes = Zip::new(entries).write();
    let start = Instant::now();
    let archive = Archive::from_bytes(bytes, &Limits::default()).expect("readable");
    let elapsed = start.elapsed();
    assert_eq!(archive.members().len(), 70_000);
    assert_eq!(archive.problems(), []);
    // Quadratic would be minutes without optimisation; linear is a fraction of a second.
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[test]
fn names_are_judged() {
    let long = "a".repeat(256);
    let cases: [(&[u8], &[NameDefect]); 13] = [
        (b"pkg/mod.so", &[]),
        (b"/abs.so", &[NameDefect::Absolute]),
        (b"../../x.so", &[NameDefect::ParentTraversal]),
        (b"a/../b", &[NameDefect::ParentTraversal]),
        (b"a..b/..c", &[]),
        (b"a\\b", &[NameDefect::Backslash]),
        (b"..\\b", &[NameDefect::ParentTraversal, NameDefect::Backslash]),
        (b"C:/x", &[NameDefect::DriveLetter]),
        (b"m\xff\xfe\xff\xfed.so", &[NameDefect::NotUtf8]),
        (b"", &[NameDefect::Empty]),
        (b"./", &[NameDefect::Empty]),
        (b"a\0.so", &[NameDefect::ControlCharacter]),
        (long.as_bytes(), &[NameDefect::ComponentTooLong]),
    ];
    for (name, expected) in cases {
        let archive = open(&Zip::new(vec![Entry::stored("", b"x").raw_name(name)]));
        let found = checks::name_defects(&archive.members()[0]);
        assert_eq!(found, expected, "{}", archive.members()[0].name);
        assert_eq!(archive.problems().len(), expected.len());
        assert_eq!(content(&archive, 0).as_deref(), Ok(b"x".as_slice()));
    }
    let archive = open(&Zip::new(vec![Entry::stored("", b"").raw_name(b"m\xff.so")]));
    assert_eq!(archive.members()[0].name, "m\\xff.so");
    assert_eq!(archive.members()[0].raw_name, b"m\xff.so");
}

#[test]
fn duplicates_and_clashes_are_found() {
    let names =
        ["mod.so", "./mod.so", "pkg//a", "pkg/a", "pkg/b", "x", "x/y", "x/y/z", "d/", "d/", "e/", "e", "xx"];
    let archive = open(&Zip::new(names.iter().map(|name| Entry::stored(name, b"")).collect()));
    assert_eq!(
        archive.problems(),
        [
            ArchiveProblem::DuplicateMember { name: "mod.so".to_owned(), members: vec![0, 1] },
            ArchiveProblem::DuplicateMember { name: "pkg/a".to_owned(), members: vec![2, 3] },
            ArchiveProblem::FileDirectoryClash { file: 5, directory: 6 },
            ArchiveProblem::FileDirectoryClash { file: 6, directory: 7 },
            ArchiveProblem::FileDirectoryClash { file: 11, directory: 10 },
        ]
    );
    // Of duplicates the last one is given, by exact name.
    assert_eq!(archive.member("d/").map(|member| member.index), Some(9));
}

#[test]
fn overlaps_are_found_without_inflating_and_not_read() {
    let mut entries = vec![Entry::deflated("big", &[0; 4 << 20]), Entry::stored("fine", b"x")];
    for i in 0..200 {
        let mut copy = entries[0].clone();
        copy.name = format!("o/{i:04}").into_bytes();
        copy.local_name = None;
        copy.same_as = Some(0);
        entries.push(copy);
    }
    let archive = open(&Zip::new(entries));
    let overlaps: Vec<&ArchiveProblem> = archive
        .problems()
        .iter()
        .filter(|problem| matches!(problem, ArchiveProblem::OverlappingMembers { .. }))
        .collect();
    let expected: Vec<usize> = [0].into_iter().chain(2..202).collect();
    assert_eq!(overlaps, [&ArchiveProblem::OverlappingMembers { members: expected, into_directory: false }]);
    assert!(matches!(content(&archive, 0), Err(MemberError::Overlap { .. })));
    assert!(matches!(content(&archive, 201), Err(MemberError::Overlap { .. })));
    assert_eq!(content(&archive, 1).as_deref(), Ok(b"x".as_slice()));
}

#[test]
fn data_that_runs_into_the_directory_is_an_overlap() {
    let mut entry = Entry::stored("m", b"content");
    entry.compressed_size = Some(20);
    entry.size = 20;
    let archive = open(&Zip::new(vec![entry]));
    assert_eq!(
        archive.problems(),
        [ArchiveProblem::OverlappingMembers { members: vec![0], into_directory: true }]
    );
}

#[test]
fn data_outside_the_file_is_said() {
    let mut entry = Entry::stored("m", b"content");
    entry.compressed_size = Some(1 << 20);
    entry.size = 1 << 20;
    let archive = open(&Zip::new(vec![entry]));
    assert_eq!(archive.problems()[0], ArchiveProblem::NoLocalHeader { member: 0, offset: 0 });
    assert!(matches!(content(&archive, 0), Err(MemberError::OutOfBounds { compressed_size: 0x10_0000, .. })));
    assert_eq!(archive.stored_slice(&archive.members()[0]), None);
}

#[test]
fn symlinks_are_reported_with_their_target() {
    let archive = open(&Zip::new(vec![Entry::symlink("libx.so.1", "../../../etc/passwd")]));
    assert_eq!(archive.members()[0].kind, MemberKind::Symlink);
    assert_eq!(
        archive.problems(),
        [ArchiveProblem::Symlink { member: 0, target: Some("../../../etc/passwd".to_owned()) }]
    );
}

#[test]
fn encrypted_and_unknown_methods_are_refused() {
    let mut encrypted = Entry::stored("e", b"content");
    encrypted.flags |= 1;
    let mut unknown = Entry::stored("u", b"content");
    unknown.method = 97;
    let archive = open(&Zip::new(vec![encrypted, unknown]));
    assert_eq!(
        archive.problems(),
        [
            ArchiveProblem::Encrypted { member: 0 },
            ArchiveProblem::UnsupportedMethod { member: 1, method: Method::Other(97) },
        ]
    );
    assert!(matches!(content(&archive, 0), Err(MemberError::Encrypted { .. })));
    assert!(matches!(content(&archive, 1), Err(MemberError::UnsupportedMethod { .. })));
}

#[test]
fn headers_that_disagree_are_reported_field_by_field() {
    let mut entry = Entry::deflated("good.so", b"content");
    entry.local_name = Some(b"evil.so".to_vec());
    entry.local_method = Some(0);
    let archive = open(&Zip::new(vec![entry]));
    assert_eq!(
        archive.problems(),
        [ArchiveProblem::HeaderMismatch {
            member: 0,
            fields: vec![
                HeaderField::Name { local: "evil.so".to_owned() },
                HeaderField::Method { local: Method::Stored },
            ],
        }]
    );
    // The central directory is believed.
    assert_eq!(content(&archive, 0).as_deref(), Ok(b"content".as_slice()));
}

#[test]
fn sizes_and_checksums_are_verified() {
    let with = |change: fn(&mut Entry)| {
        let mut entry = Entry::deflated("m", b"some content");
        change(&mut entry);
        open(&Zip::new(vec![entry]))
    };
    let longer = with(|entry| entry.size = 5);
    assert!(matches!(
        content(&longer, 0),
        Err(MemberError::SizeMismatch { expected: 5, found: 6, more: true, .. })
    ));
    let shorter = with(|entry| entry.size = 100);
    assert!(matches!(
        content(&shorter, 0),
        Err(MemberError::SizeMismatch { expected: 100, found: 12, more: false, .. })
    ));
    let wrong = with(|entry| entry.crc32 ^= 1);
    assert!(
        matches!(content(&wrong, 0), Err(MemberError::CrcMismatch { expected, found, .. }) if expected ^ found == 1)
    );
    let corrupt = with(|entry| entry.data[0] = 0xff);
    assert!(matches!(content(&corrupt, 0), Err(MemberError::Corrupt { method: Method::Deflate, .. })));
    let cut = with(|entry| {
        entry.data.truncate(5);
    });
    assert!(matches!(content(&cut, 0), Err(MemberError::Corrupt { .. })));
    let padded = with(|entry| entry.data.extend_from_slice(b"hidden"));
    let outcome = padded.read(&padded.members()[0], &mut Scratch::new(), &mut |_| Ok(()));
    assert_eq!(outcome, Ok(ReadOutcome { bytes: 12, complete: true, unused: 6 }));
}

#[test]
fn impossible_sizes_are_lies() {
    let mut deflated = Entry::deflated("d", b"content");
    deflated.zip64 = true;
    deflated.size = (1 << 63) - 1;
    let mut stored = Entry::stored("s", b"content");
    stored.size = 8;
    let archive = open(&Zip::new(vec![deflated, stored, Entry::stored("fine", b"x")]));
    let size = (1 << 63) - 1;
    assert_eq!(
        archive.problems(),
        [
            ArchiveProblem::SizeLie { member: 0, size, compressed_size: 9 },
            ArchiveProblem::TooLarge { member: 0, size },
            ArchiveProblem::SizeLie { member: 1, size: 8, compressed_size: 7 },
        ]
    );
    assert!(matches!(content(&archive, 0), Err(MemberError::TooLarge { .. })));
    assert!(matches!(content(&archive, 1), Err(MemberError::SizeMismatch { .. })));
    assert_eq!(archive.stored_slice(&archive.members()[1]), None);
    assert_eq!(content(&archive, 2).as_deref(), Ok(b"x".as_slice()));
}

#[test]
fn bombs_are_bounded() {
    let zeros = vec![0; 1 << 20];
    let bomb =
        Zip::new(vec![Entry::deflated("a", &zeros), Entry::deflated("b", &zeros), Entry::stored("c", b"x")]);
    let limits = Limits { max_ratio: 100, ratio_floor: 1 << 10, ..Limits::default() };
    let archive = open_with(&bomb, &limits);
    assert!(matches!(archive.problems()[0], ArchiveProblem::BombRatio { member: 0, ratio: 900..1032 }));
    assert!(matches!(content(&archive, 0), Err(MemberError::Ratio { limit: 100, .. })));
    assert!(content(&archive, 2).is_ok());

    let limits = Limits { max_total_size: (1 << 20) + 10, ..Limits::default() };
    let archive = open_with(&bomb, &limits);
    assert_eq!(archive.problems(), [ArchiveProblem::TotalTooLarge { member: 1 }]);
    assert!(content(&archive, 0).is_ok());
    assert!(matches!(content(&archive, 1), Err(MemberError::TotalTooLarge { .. })));
    assert!(matches!(content(&archive, 2), Err(MemberError::TotalTooLarge { .. })));

    // With the default limits a gigabyte of zeros is read, in cache-sized pieces, to its declared end.
    assert!(content(&open(&bomb), 0).is_ok());

    // A member that declares little and holds much is stopped at what it declares.
    let mut liar = Entry::deflated("l", &zeros);
    liar.size = 10;
    let archive = open(&Zip::new(vec![liar]));
    let mut received = 0;
    let error = archive.read(&archive.members()[0], &mut Scratch::new(), &mut |chunk| {
        received += chunk.len();
        Ok(())
    });
    assert!(matches!(error, Err(MemberError::SizeMismatch { expected: 10, more: true, .. })));
    assert_eq!(received, 10);
}

#[test]
fn dictionaries_are_bounded() {
    let mut zstd = Entry::zstd("z", b"content");
    // A frame header with a window descriptor of 2^41 bytes instead of a single segment.
    zstd.data = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 1, 0, 0];
    let archive = open(&Zip::new(vec![zstd]));
    assert!(matches!(content(&archive, 0), Err(MemberError::Corrupt { method: Method::Zstd, .. })));
    let mut lzma = Entry::lzma("l", b"content");
    lzma.data[2] = 6;
    let archive = open(&Zip::new(vec![lzma]));
    assert!(matches!(content(&archive, 0), Err(MemberError::Corrupt { method: Method::Lzma, .. })));
}

/// An archive with one member of each method and most structural features.
fn seed() -> Vec<u8> {
    let text = &numbers(150)[..300];
    let mut wide = Entry::deflated("w", text);
    wide.zip64 = true;
    let mut zip = Zip::new(vec![
        Entry::stored("s", text),
        Entry::deflated("d/e", text).streamed(Descriptor::Signed32),
        Entry::bzip2("b", text),
        Entry::lzma("l", text),
        Entry::zstd("z", text),
        Entry::symlink("y", "d/e"),
        Entry::directory("d/"),
        wide,
    ]);
    zip.zip64_end = true;
    zip.comment = b"comment".to_vec();
    zip.write()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mutated_archives_neither_panic_nor_hang(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = seed();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            let length = cut.index(bytes.len());
            bytes.truncate(length);
        }
        let start = Instant::now();
        read_all(bytes);
        prop_assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn mutated_streams_neither_panic_nor_hang(
        method in prop::sample::select(vec![8u16, 12, 14, 93]),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        size in 0u64..2000,
    ) {
        let text = &numbers(300)[..600];
        let mut entry = match method {
            8 => Entry::deflated("m", text),
            12 => Entry::bzip2("m", text),
            14 => Entry::lzma("m", text),
            _ => Entry::zstd("m", text),
        };
        entry.size = size;
        for (index, byte) in changes {
            let at = index.index(entry.data.len());
            entry.data[at] = byte;
        }
        let start = Instant::now();
        read_all(Zip::new(vec![entry]).write());
        prop_assert!(start.elapsed() < Duration::from_secs(5));
    }
}

fn read_all(bytes: Vec<u8>) {
    let Ok(archive) = Archive::from_bytes(bytes, &Limits::default()) else { return };
    let mut scratch = Scratch::new();
    for member in archive.members() {
        let mut received = 0;
        let outcome = archive.read(member, &mut scratch, &mut |chunk| {
            received += chunk.len() as u64;
            Ok(())
        });
        assert!(received <= member.size);
        if let Ok(outcome) = outcome {
            assert_eq!((outcome.bytes, outcome.complete), (member.size, true));
        }
    }
}

#[test]
fn deflate_of_the_test_writer_is_not_trivial() {
    assert!(deflate(&text()).len() < text().len() / 2);
}
