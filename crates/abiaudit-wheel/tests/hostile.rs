//! Whole wheels that lie, through the public interface only: what an audit of them would learn.

#[path = "support/mod.rs"]
mod support;

use std::fmt::Write as _;

use abiaudit_wheel::distinfo::record::{ActualMember, PathDefect, compare};
use abiaudit_wheel::{
    Archive, ArchiveProblem, DistInfo, DistInfoProblem, Limits, MemberKind, RecordProblem, Scheme, Scratch,
    WheelName, classify,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use support::{Entry, Zip};

const FILE_NAME: &str = "h-1-cp312-cp312-linux_x86_64.whl";

/// A wheel under construction; `record` starts honest and is then bent.
struct Wheel {
    entries: Vec<Entry>,
    record: String,
}

/// Everything found in a wheel.
struct Findings {
    archive: Vec<ArchiveProblem>,
    dist_info: Vec<DistInfoProblem>,
    record: Vec<RecordProblem>,
    unreadable: Vec<String>,
}

impl Wheel {
    fn new() -> Self {
        let mut wheel = Self { entries: Vec::new(), record: String::new() };
        wheel.add("mod.so", b"\x7fELF, nearly");
        wheel.add("h-1.dist-info/METADATA", b"Metadata-Version: 2.1\nName: h\nVersion: 1\n");
        wheel.add(
            "h-1.dist-info/WHEEL",
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp312-cp312-linux_x86_64\n",
        );
        wheel
    }

    fn add(&mut self, name: &str, content: &[u8]) {
        self.entries.push(Entry::deflated(name, content));
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
        writeln!(self.record, "{name},sha256={digest},{}", content.len()).expect("writing to memory");
    }

    fn audit(mut self) -> Findings {
        self.record.push_str("h-1.dist-info/RECORD,,\n");
        self.entries.push(Entry::deflated("h-1.dist-info/RECORD", self.record.as_bytes()));
        audit(Zip::new(self.entries).write())
    }
}

fn audit(bytes: Vec<u8>) -> Findings {
    let archive = Archive::from_bytes(bytes, &Limits::default()).expect("readable");
    let name = WheelName::parse(FILE_NAME).expect("valid");
    let mut scratch = Scratch::new();
    let info = DistInfo::read(&archive, Some(&name), &mut scratch);
    let mut actual = Vec::new();
    let mut unreadable = Vec::new();
    for member in archive.members().iter().filter(|member| member.kind != MemberKind::Directory) {
        let mut hasher = Sha256::new();
        let outcome = archive.read(member, &mut scratch, &mut |chunk| {
            hasher.update(chunk);
            Ok(())
        });
        let (size, sha256) = match outcome {
            Ok(outcome) => (Some(outcome.bytes), Some(hasher.finalize().into())),
            Err(error) => {
                unreadable.push(error.to_string());
                (None, None)
            }
        };
        actual.push(ActualMember { name: &member.name, size, sha256 });
    }
    Findings {
        archive: archive.problems().to_vec(),
        record: info.record.as_ref().map(|record| compare(record, actual)).unwrap_or_default(),
        dist_info: info.problems,
        unreadable,
    }
}

#[test]
fn an_honest_wheel_has_no_findings() {
    let found = Wheel::new().audit();
    assert_eq!(found.archive, []);
    assert_eq!(found.dist_info, []);
    assert_eq!(found.record, []);
    assert!(found.unreadable.is_empty());
}

#[test]
fn an_unlisted_member_is_found() {
    let mut wheel = Wheel::new();
    wheel.entries.push(Entry::deflated("evil.so", b"\x7fELF"));
    assert_eq!(wheel.audit().record, [RecordProblem::NotListed { name: "evil.so".to_owned() }]);
}

#[test]
fn a_wrong_hash_is_found() {
    let mut wheel = Wheel::new();
    wheel.entries[0] = Entry::deflated("mod.so", b"\x7fELF, NEARLY");
    let found = wheel.audit();
    assert!(
        matches!(found.record.as_slice(), [RecordProblem::HashMismatch { path, .. }] if path == "mod.so")
    );
}

#[test]
fn a_listed_path_of_the_host_is_a_ghost_and_not_looked_at() {
    let mut wheel = Wheel::new();
    wheel.record.push_str("/usr/bin/env,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n");
    let found = wheel.audit();
    let path = "/usr/bin/env".to_owned();
    let defect = RecordProblem::UnsafePath { path: path.clone(), reason: PathDefect::Absolute };
    assert_eq!(found.dist_info, [DistInfoProblem::Record(defect)]);
    assert_eq!(found.record, [RecordProblem::Ghost { path }]);
}

#[test]
fn of_duplicate_members_both_are_compared() {
    let mut wheel = Wheel::new();
    wheel.add("mod.so", b"another");
    let found = wheel.audit();
    assert_eq!(
        found.archive,
        [ArchiveProblem::DuplicateMember { name: "mod.so".to_owned(), members: vec![0, 3] }]
    );
    assert!(matches!(
        found.record.as_slice(),
        [RecordProblem::SizeMismatch { .. }, RecordProblem::HashMismatch { .. }]
    ));
}

#[test]
fn an_unreadable_member_is_no_ghost() {
    let mut wheel = Wheel::new();
    wheel.entries[0].flags |= 1;
    let found = wheel.audit();
    assert_eq!(found.unreadable, ["mod.so: encrypted"]);
    assert_eq!(found.record, []);
}

#[test]
fn a_gigabyte_of_zeros_is_read_in_pieces() {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    let mut crc = crc32fast::Hasher::new();
    let zeros = vec![0u8; 1 << 20];
    for _ in 0..1024 {
        std::io::Write::write_all(&mut encoder, &zeros).expect("writing to memory");
        crc.update(&zeros);
    }
    let mut bomb = Entry::stored("bomb.so", b"");
    bomb.method = 8;
    bomb.size = 1 << 30;
    bomb.crc32 = crc.finalize();
    bomb.data = encoder.finish().expect("writing to memory");
    let archive = Archive::from_bytes(Zip::new(vec![bomb]).write(), &Limits::default()).expect("readable");
    assert_eq!(archive.problems(), []);
    let mut largest = 0;
    let outcome = archive.read(&archive.members()[0], &mut Scratch::new(), &mut |chunk| {
        largest = largest.max(chunk.len());
        Ok(())
    });
    assert!(outcome.is_ok_and(|outcome| outcome.complete && outcome.bytes == 1 << 30));
    assert!(largest <= Scratch::CHUNK);
}

#[test]
fn an_object_in_purelib_is_classified() {
    assert_eq!(classify("h-1.data/purelib/mod.so"), (Scheme::Purelib, "mod.so"));
}
