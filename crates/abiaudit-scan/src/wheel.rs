//! Reading a wheel.

use std::path::Path;

use abiaudit_detect::Markers;
use abiaudit_elf::Collector;
use abiaudit_wheel::archive::{self, ArchiveProblem, MemberError, MemberKind, Scratch};
use abiaudit_wheel::{Archive, DistInfo, WheelName};
use rayon::iter::{ParallelBridge, ParallelIterator};
use sha2::{Digest, Sha256};

use crate::content::{Content, Gathered, Intake, examine};
use crate::error::ScanError;
use crate::subject::{Member, Subject, SubjectKind};
use crate::{Options, installed};

pub(crate) fn scan(path: &Path, options: &Options<'_>) -> Result<Subject, ScanError> {
    let base = path.file_name().unwrap_or_default().to_string_lossy();
    let file_name = WheelName::parse(&base)?;
    let archive = Archive::open(path, &options.limits)
        .map_err(|source| ScanError::Archive { path: path.to_owned(), source })?;
    let (sha256, members) =
        rayon::join(|| options.digest.then(|| digest(&archive)), || read_members(&archive, options));
    let dist_info = DistInfo::read(&archive, Some(&file_name), &mut Scratch::new());
    Ok(Subject {
        path: path.to_string_lossy().into_owned(),
        kind: SubjectKind::Wheel,
        size: archive.as_bytes().len() as u64,
        sha256,
        file_name: Some(file_name),
        dist_info: Some(dist_info),
        archive_problems: archive.problems().to_vec(),
        archive_names: archive.members().iter().map(|m| m.name.clone()).collect(),
        members,
    })
}

/// Reads all files, the largest first so that no thread is left with a large one at the end.
fn read_members(archive: &Archive, options: &Options<'_>) -> Vec<Member> {
    let mut order: Vec<&archive::Member> =
        archive.members().iter().filter(|m| m.kind != MemberKind::Directory).collect();
    order.sort_by_key(|m| (std::cmp::Reverse(m.size), m.index));
    let mut members: Vec<(usize, Member)> = order
        .into_iter()
        .par_bridge()
        .map_init(Scratch::new, |scratch, member| {
            (member.index, read_member(archive, member, scratch, options))
        })
        .collect();
    members.sort_by(|(i, a), (j, b)| a.name.cmp(&b.name).then(i.cmp(j)));
    members.into_iter().map(|(_, member)| member).collect()
}

fn read_member(
    archive: &Archive,
    entry: &archive::Member,
    scratch: &mut Scratch,
    options: &Options<'_>,
) -> Member {
    let (content, sha256, markers) = match entry.kind {
        MemberKind::Symlink => (Content::Symlink(link_target(archive, entry)), None, Markers::default()),
        _ => read_content(archive, entry, scratch, options),
    };
    Member {
        installed: installed::of_member(&entry.name),
        name: entry.name.clone(),
        size: entry.size,
        compressed_size: entry.compressed_size,
        executable: entry.is_executable(),
        sha256,
        content,
        markers,
    }
}

fn link_target(archive: &Archive, entry: &archive::Member) -> Option<String> {
    archive.problems().iter().find_map(|problem| match problem {
        ArchiveProblem::Symlink { member, target } if *member == entry.index => target.clone(),
        _ => None,
    })
}

fn read_content(
    archive: &Archive,
    entry: &archive::Member,
    scratch: &mut Scratch,
    options: &Options<'_>,
) -> (Content, Option<[u8; 32]>, Markers) {
    let mut intake = Intake::new(&entry.name, entry.size, true);
    let outcome = archive.read(entry, scratch, &mut |chunk| {
        intake.push(chunk);
        if let Some(progress) = options.progress {
            progress(chunk.len() as u64);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        return (Content::Unreadable(error.to_string()), None, Markers::default());
    }
    let Gathered { taken, markers, sha256 } = intake.finish();
    let content = examine(taken, |ranges| {
        let mut collector = Collector::for_ranges(entry.size, ranges);
        let outcome = archive.read(entry, scratch, &mut |chunk| {
            collector.push(chunk);
            Ok(())
        });
        outcome.map(|_| collector.finish()).map_err(|error: MemberError| error.to_string())
    });
    (content, sha256, markers)
}

fn digest(archive: &Archive) -> [u8; 32] {
    Sha256::digest(archive.as_bytes()).into()
}
