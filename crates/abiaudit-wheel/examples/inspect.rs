//! Prints everything that this crate finds wrong with the wheels given: structure, file name, dist-info, members
//! that cannot be read, RECORD against content. `inspect WHEEL..`

#![expect(clippy::print_stdout, reason = "this is a command")]

use std::path::Path;

use abiaudit_wheel::distinfo::record::{ActualMember, compare};
use abiaudit_wheel::{Archive, DistInfo, Limits, MemberKind, Scratch, WheelName};
use sha2::{Digest, Sha256};

fn main() {
    for path in std::env::args().skip(1) {
        println!("{path}");
        for line in inspect(Path::new(&path)) {
            println!("  {line}");
        }
    }
}

fn inspect(path: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = WheelName::parse(&file_name);
    match &name {
        Ok(name) => lines.extend(name.problems().iter().map(|problem| format!("name: {problem:?}"))),
        Err(error) => lines.push(format!("name: {error}")),
    }
    let archive = match Archive::open(path, &Limits::default()) {
        Ok(archive) => archive,
        Err(error) => {
            lines.push(format!("error: {error}"));
            return lines;
        }
    };
    lines.extend(archive.problems().iter().map(|problem| format!("archive: {problem:?}")));
    let mut scratch = Scratch::new();
    let info = DistInfo::read(&archive, name.as_ref().ok(), &mut scratch);
    lines.extend(info.problems.iter().map(|problem| format!("dist-info: {problem:?}")));
    let mut actual = Vec::new();
    for member in archive.members().iter().filter(|member| member.kind != MemberKind::Directory) {
        let mut hasher = Sha256::new();
        let outcome = archive.read(member, &mut scratch, &mut |chunk| {
            hasher.update(chunk);
            Ok(())
        });
        match outcome {
            Ok(outcome) => {
                if outcome.unused > 0 {
                    lines.push(format!("{}: {} unused bytes", member.name, outcome.unused));
                }
                let sha256 = Some(hasher.finalize().into());
                actual.push(ActualMember { name: &member.name, size: Some(outcome.bytes), sha256 });
            }
            Err(error) => {
                lines.push(format!("member: {error}"));
                actual.push(ActualMember { name: &member.name, size: None, sha256: None });
            }
        }
    }
    if let Some(record) = &info.record {
        lines.extend(compare(record, actual).iter().map(|problem| format!("RECORD: {problem:?}")));
    }
    lines
}
