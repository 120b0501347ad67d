//! Reading a wheel.

use std::collections::HashSet;
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
    Ok(scan_archive(&archive, path, file_name, options, &mut Vec::new()))
}

/// Reads a wheel that is open already, under the file name that it has or is to get.
///
/// `known` holds members whose content needs no reading, since the caller knows that the archive's members of these names
/// have the very same bytes; they become part of the subject.
pub fn scan_archive(
    archive: &Archive,
    path: &Path,
    file_name: WheelName,
    options: &Options<'_>,
    known: &mut Vec<Member>,
) -> Subject {
    let (sha256, mut members) =
        rayon::join(|| options.digest.then(|| digest(archive)), || read_members(archive, options, known));
    members.append(known);
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let dist_info = DistInfo::read(archive, Some(&file_name), &mut Scratch::new());
    Subject {
        path: path.to_string_lossy().into_owned(),
        kind: SubjectKind::Wheel,
        size: archive.as_bytes().len() as u64,
        sha256,
        file_name: Some(file_name),
        dist_info: Some(dist_info),
        archive_problems: archive.problems().to_vec(),
        archive_names: archive.members().iter().map(|m| m.name.clone()).collect(),
        members,
    }
}

/// Reads all files that are not known, the largest first so that no thread is left with a large one at the end.
fn read_members(archive: &Archive, options: &Options<'_>, known: &[Member]) -> Vec<Member> {
    let known: HashSet<&str> = known.iter().map(|member| member.name.as_str()).collect();
    let unread = |m: &&archive::Member| m.kind != MemberKind::Directory && !known.contains(m.name.as_str());
    let mut order: Vec<&archive::Member> = archive.members().iter().filter(unread).collect();
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

/// Facts about content that is to become the member of this name.
pub fn member_of(name: &str, executable: bool, content: &[u8]) -> Member {
    let mut intake = Intake::new(name, content.len() as u64, true);
    intake.push(content);
    let Gathered { taken, markers, sha256 } = intake.finish();
    let size = content.len() as u64;
    let content = examine(taken, |ranges| {
        let mut collector = Collector::for_ranges(size, ranges);
        collector.push(content);
        Ok(collector.finish())
    });
    let installed = installed::of_member(name);
    Member {
        name: name.to_owned(),
        installed,
        size,
        compressed_size: size,
        executable,
        sha256,
        content,
        markers,
    }
}

fn digest(archive: &Archive) -> [u8; 32] {
    Sha256::digest(archive.as_bytes()).into()
}
