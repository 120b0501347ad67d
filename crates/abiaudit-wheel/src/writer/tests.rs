use std::io::Cursor;

use super::*;
use crate::archive::Scratch;
use crate::support::{Descriptor, Entry as ZipEntry, Zip};
use crate::{DistInfo, Limits, WheelName};

const NAME: &str = "p-1.0-cp312-cp312-linux_x86_64.whl";
const INFO: &str = "p-1.0.dist-info";

/// A wheel, streamed (with data descriptors) or not.
fn input(streamed: Option<Descriptor>) -> Archive {
    let entries = [
        ("p/__init__.py", b"x = 1\n".repeat(40)),
        ("p/m.so", b"\x7fELF not really".to_vec()),
        ("p-1.0.dist-info/WHEEL", b"Wheel-Version: 1.0\nTag: cp312-cp312-linux_x86_64\n".to_vec()),
        ("p-1.0.dist-info/RECORD", b"p-1.0.dist-info/RECORD,,\n".to_vec()),
    ]
    .map(|(name, content)| {
        let mut entry = ZipEntry::deflated(name, &content);
        entry.comment = b"kept".to_vec();
        if name.ends_with(".so") {
            entry.mode = 0o100_755;
        }
        match streamed {
            Some(descriptor) => entry.streamed(descriptor),
            None => entry,
        }
    });
    Archive::from_bytes(Zip::new(entries.to_vec()).write(), &Limits::default()).expect("an archive")
}

fn content(archive: &Archive, name: &str) -> Vec<u8> {
    let member = archive.member(name).expect("a member");
    archive.read_prefix(member, &mut Scratch::new(), usize::MAX).expect("readable")
}

fn hash_of(archive: &Archive, member: &Member) -> [u8; 32] {
    Sha256::digest(content(archive, &member.name)).into()
}

/// Copies everything, replaces `p/m.so` if there is something to replace it with, adds a file.
fn rewrite(archive: &Archive, other: Option<&[u8]>, added: Option<&str>, options: WriteOptions) -> Vec<u8> {
    let mut writer =
        WheelWriter::new(archive, INFO, Cursor::new(Vec::new()), options).expect("a clean archive");
    for member in archive.members() {
        match other {
            _ if is_record_or_signature(&member.name, INFO) => {}
            Some(bytes) if member.name == "p/m.so" => {
                writer.replace(member, bytes).expect("written");
            }
            _ => writer.copy(member, hash_of(archive, member)).expect("copied"),
        }
    }
    if let Some(name) = added {
        writer.add(name, MODE_PROGRAM, b"added").expect("written");
    }
    writer.finish().expect("written").into_inner()
}

fn assert_clean(bytes: &[u8]) -> Archive {
    let archive = Archive::from_bytes(bytes.to_vec(), &Limits::default()).expect("an archive");
    assert_eq!(archive.problems(), []);
    let name = WheelName::parse(NAME).expect("a name");
    let info = DistInfo::read(&archive, Some(&name), &mut Scratch::new());
    let record = info.record.expect("RECORD");
    let hashes: Vec<[u8; 32]> = archive.members().iter().map(|member| hash_of(&archive, member)).collect();
    let actual =
        archive.members().iter().zip(&hashes).map(|(member, hash)| crate::distinfo::record::ActualMember {
            name: &member.name,
            size: Some(member.size),
            sha256: Some(*hash),
        });
    assert_eq!(crate::distinfo::record::compare(&record, actual), []);
    assert_eq!(archive.members().last().map(|member| member.name.as_str()), Some("p-1.0.dist-info/RECORD"));
    archive
}

#[test]
fn what_is_copied_keeps_its_bytes() {
    for streamed in [None, Some(Descriptor::Signed32), Some(Descriptor::Signed64), Some(Descriptor::Bare32)] {
        let archive = input(streamed);
        let output = assert_clean(&rewrite(&archive, None, None, WriteOptions::default()));
        for member in archive.members().iter().filter(|member| !member.name.ends_with("RECORD")) {
            let copy = output.member(&member.name).expect("copied");
            assert_eq!(
                archive.local_bytes(member),
                output.local_bytes(copy),
                "{}, streamed {streamed:?}",
                member.name
            );
            assert_eq!((copy.unix_mode, copy.method), (member.unix_mode, member.method));
        }
    }
}

#[test]
fn replaced_and_added_members() {
    let archive = input(Some(Descriptor::Signed32));
    let big: Vec<u8> = (0..3_000_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
    let output = assert_clean(&rewrite(
        &archive,
        Some(&big),
        Some("p.libs/d\u{e9}j\u{e0},.so"),
        WriteOptions::default(),
    ));
    assert!(content(&output, "p/m.so") == big);
    let (old, new) = (archive.member("p/m.so").expect("there"), output.member("p/m.so").expect("there"));
    assert_eq!(old.unix_mode, new.unix_mode);
    assert!(new.compressed_size < new.size / 2);
    let added = output.member("p.libs/d\u{e9}j\u{e0},.so").expect("there");
    assert_eq!(added.unix_mode, Some(MODE_PROGRAM));
    assert_eq!(content(&output, &added.name), b"added");
}

#[test]
fn level_zero_stores() {
    let archive = input(None);
    let options = WriteOptions { level: 0, ..WriteOptions::default() };
    let output = assert_clean(&rewrite(&archive, Some(b"changed"), None, options));
    assert_eq!(output.member("p/m.so").map(|member| member.method), Some(Method::Stored));
}

#[test]
fn the_same_twice_whatever_the_threads() {
    let archive = input(None);
    let big: Vec<u8> = (0..3_000_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
    let options = WriteOptions { time: Some(DosTime::from_unix(1_700_000_000)), ..WriteOptions::default() };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| rewrite(&archive, Some(&big), Some("p.libs/x.so"), options))
    };
    assert!(with(1) == with(4));
}

#[test]
fn timestamps() {
    let archive = input(None);
    let time_of = |bytes: &[u8], name: &str| {
        let output = Archive::from_bytes(bytes.to_vec(), &Limits::default()).expect("an archive");
        let member = output.member(name).expect("there");
        directory_entry(&output, member).expect("there").time
    };
    let own = time_of(archive.as_bytes(), "p-1.0.dist-info/WHEEL");
    let kept = rewrite(&archive, Some(b"other"), Some("new"), WriteOptions::default());
    assert_eq!((time_of(&kept, "p/m.so"), time_of(&kept, "new")), (own, own));
    let epoch = DosTime::from_unix(1_700_000_000);
    let set = rewrite(&archive, Some(b"other"), Some("new"), WriteOptions { time: Some(epoch), level: 6 });
    assert_eq!((time_of(&set, "p/m.so"), time_of(&set, "new")), (epoch, epoch));
    assert_eq!(time_of(&set, "p/__init__.py"), own);
}

#[test]
fn a_name_is_written_once() {
    let archive = input(None);
    let mut writer =
        WheelWriter::new(&archive, INFO, Cursor::new(Vec::new()), WriteOptions::default()).expect("clean");
    writer.add("a", MODE_FILE, b"").expect("written");
    assert!(
        matches!(writer.add("a", MODE_FILE, b""), Err(WriteError::DuplicateName { name }) if name == "a")
    );
}

#[test]
fn archives_that_readers_disagree_on_are_refused() {
    let mut bytes = b"hidden".to_vec();
    bytes.extend_from_slice(input(None).as_bytes());
    let archive = Archive::from_bytes(bytes, &Limits::default()).expect("an archive");
    let refused = WheelWriter::new(&archive, INFO, Cursor::new(Vec::new()), WriteOptions::default()).err();
    let text = refused.expect("refused").to_string();
    assert_eq!(text, "the archive is not one to be copied: 6 bytes stand before the first member");
}

#[test]
fn more_members_than_sixteen_bits_count() {
    let archive = input(None);
    let mut writer =
        WheelWriter::new(&archive, INFO, Cursor::new(Vec::new()), WriteOptions::default()).expect("clean");
    for n in 0..70_000 {
        writer.add(&format!("d/{n}"), MODE_FILE, b"").expect("written");
    }
    let bytes = writer.finish().expect("written").into_inner();
    let output = Archive::from_bytes(bytes, &Limits::default()).expect("an archive");
    assert_eq!(output.problems(), []);
    assert_eq!(output.members().len(), 70_001);
}

#[test]
fn an_offset_beyond_32_bits() {
    let mut entry = Entry::new("n", MODE_FILE, DosTime::EPOCH);
    (entry.offset, entry.size, entry.compressed_size) = (1 << 33, 1 << 34, 7);
    let bytes = entry.central();
    // Offset and size went to the extra field, which comes first there; the compressed size stayed.
    let back = Entry::parse(&bytes).expect("an entry");
    assert_eq!((back.offset, back.size, back.compressed_size), (WIDE.into(), WIDE.into(), 7));
    assert_eq!(bytes[47..51], [1, 0, 16, 0]);
    assert_eq!(bytes[51..59], (1u64 << 34).to_le_bytes());
    assert_eq!(bytes[59..67], (1u64 << 33).to_le_bytes());
}
