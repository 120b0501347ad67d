//! What can be said against a list of members without inflating anything but symbolic links. Everything here
//! is at most n log n in the number of members.

use std::ops::Range;

use super::member::{Member, MemberKind, Method, Refusal};
use super::problem::{ArchiveProblem, NameDefect};
use crate::limits::Limits;

/// Highest ratio that DEFLATE can reach: a match of 258 bytes takes at least two bits.
const DEFLATE_MAX_RATIO: u64 = 1032;
/// Longest file name component that common file systems accept, in bytes.
const MAX_COMPONENT: usize = 255;

/// The components of a name as an installer sees them: empty and `.` ones are nothing.
fn components(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').filter(|component| !component.is_empty() && *component != ".")
}

/// Name defects of one member, in the order of [`NameDefect`].
pub(super) fn name_defects(member: &Member) -> Vec<NameDefect> {
    let name = member.name.as_str();
    let mut defects = Vec::new();
    let mut add = |found: bool, defect| {
        if found {
            defects.push(defect);
        }
    };
    add(name.starts_with('/'), NameDefect::Absolute);
    // A backslash is also a separator for those who would be harmed by it.
    add(name.split(['/', '\\']).any(|component| component == ".."), NameDefect::ParentTraversal);
    // In an escaped name the backslashes are ours, so the stored bytes are asked.
    add(member.raw_name.contains(&b'\\'), NameDefect::Backslash);
    add(
        matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()),
        NameDefect::DriveLetter,
    );
    add(!member.name_is_utf8, NameDefect::NotUtf8);
    add(components(name).next().is_none(), NameDefect::Empty);
    add(name.bytes().any(|byte| byte.is_ascii_control()), NameDefect::ControlCharacter);
    add(
        member.raw_name.split(|byte| *byte == b'/').any(|component| component.len() > MAX_COMPONENT),
        NameDefect::ComponentTooLong,
    );
    defects
}

/// Defects of each name, and duplicates and clashes between them.
pub(super) fn names(members: &[Member], problems: &mut Vec<ArchiveProblem>) {
    for member in members {
        for reason in name_defects(member) {
            problems.push(ArchiveProblem::UnsafeName { member: member.index, reason });
        }
    }
    // Compared component by component, a file comes right before everything that lies below its name.
    let mut order: Vec<&Member> = members.iter().collect();
    order.sort_by(|a, b| components(&a.name).cmp(components(&b.name)).then(a.index.cmp(&b.index)));
    let mut found = Vec::new();
    duplicates(&order, &mut found);
    clashes(&order, &mut found);
    problems.append(&mut found);
}

fn duplicates(order: &[&Member], found: &mut Vec<ArchiveProblem>) {
    let mut files = order.iter().filter(|member| member.kind != MemberKind::Directory).peekable();
    while let Some(first) = files.next() {
        let mut members = vec![first.index];
        while let Some(next) = files.next_if(|next| components(&next.name).eq(components(&first.name))) {
            members.push(next.index);
        }
        if members.len() > 1 {
            let name = components(&first.name).collect::<Vec<_>>().join("/");
            found.push(ArchiveProblem::DuplicateMember { name, members });
        }
    }
}

fn clashes(order: &[&Member], found: &mut Vec<ArchiveProblem>) {
    // The files whose names may still be prefixes of what follows, innermost last.
    let mut open: Vec<&Member> = Vec::new();
    for member in order {
        while open.last().is_some_and(|file| !is_below(&member.name, &file.name)) {
            open.pop();
        }
        let is_file = member.kind != MemberKind::Directory;
        match open.last() {
            // Two files of one name are duplicates, not a clash.
            Some(file) if is_file && components(&file.name).eq(components(&member.name)) => {}
            Some(file) => {
                found.push(ArchiveProblem::FileDirectoryClash { file: file.index, directory: member.index });
                if is_file {
                    open.push(member);
                }
            }
            None if is_file && components(&member.name).next().is_some() => open.push(member),
            None => {}
        }
    }
    // A directory entry sorts by index among equals, so `a/` may come before the file `a`.
    for pair in order.windows(2) {
        if let [directory, file] = pair
            && directory.kind == MemberKind::Directory
            && file.kind != MemberKind::Directory
            && components(&directory.name).eq(components(&file.name))
        {
            found.push(ArchiveProblem::FileDirectoryClash { file: file.index, directory: directory.index });
        }
    }
}

/// Whether `name` is `ancestor` or lies below it.
fn is_below(name: &str, ancestor: &str) -> bool {
    let mut inner = components(name);
    components(ancestor).all(|component| inner.next() == Some(component))
}

/// Marks members whose bytes belong to somebody else too.
pub(super) fn overlaps(members: &mut [Member], directory_offset: u64, problems: &mut Vec<ArchiveProblem>) {
    let mut order: Vec<(Range<u64>, usize)> = members
        .iter()
        .filter_map(|member| {
            let end = member.data.as_ref()?.end as u64;
            Some((member.local_header_offset..end, member.index))
        })
        .collect();
    order.sort_by_key(|(range, index)| (range.start, range.end, *index));

    let mut rest = order.as_slice();
    while let Some(((first, _), _)) = rest.split_first() {
        let mut end = first.end;
        let mut count = 1;
        while let Some((next, _)) = rest.get(count).filter(|(next, _)| next.start < end) {
            end = end.max(next.end);
            count += 1;
        }
        let (cluster, tail) = rest.split_at(count);
        rest = tail;
        let into_directory = end > directory_offset;
        if count > 1 || into_directory {
            let indexes: Vec<usize> = cluster.iter().map(|(_, index)| *index).collect();
            for index in &indexes {
                if let Some(member) = members.get_mut(*index) {
                    member.refusal = Some(Refusal::Overlap);
                }
            }
            problems.push(ArchiveProblem::OverlappingMembers { members: indexes, into_directory });
        }
    }
}

/// Encryption, methods, and the declared sizes against each other and against the limits.
pub(super) fn sizes(members: &mut [Member], limits: &Limits, problems: &mut Vec<ArchiveProblem>) {
    let mut total = 0u64;
    let mut total_reported = false;
    for member in members {
        let index = member.index;
        if member.encrypted {
            problems.push(ArchiveProblem::Encrypted { member: index });
        }
        if let Method::Other(_) = member.method {
            problems.push(ArchiveProblem::UnsupportedMethod { member: index, method: member.method });
        }
        if sizes_contradict(member) {
            problems.push(ArchiveProblem::SizeLie {
                member: index,
                size: member.size,
                compressed_size: member.compressed_size,
            });
        }
        if member.refusal.is_some() {
            continue;
        }
        if member.size > limits.max_member_size {
            member.refusal = Some(Refusal::TooLarge);
            problems.push(ArchiveProblem::TooLarge { member: index, size: member.size });
            continue;
        }
        if member.size > limits.ratio_floor
            && member.size > member.compressed_size.saturating_mul(limits.max_ratio)
        {
            member.refusal = Some(Refusal::Ratio);
            let ratio = member.size / member.compressed_size.max(1);
            problems.push(ArchiveProblem::BombRatio { member: index, ratio });
            continue;
        }
        total = total.saturating_add(member.size);
        if total > limits.max_total_size {
            member.refusal = Some(Refusal::Total);
            if !total_reported {
                problems.push(ArchiveProblem::TotalTooLarge { member: index });
            }
            total_reported = true;
        }
    }
}

fn sizes_contradict(member: &Member) -> bool {
    if member.encrypted {
        return false;
    }
    match member.method {
        Method::Stored => member.size != member.compressed_size,
        Method::Deflate => member.size > member.compressed_size.saturating_mul(DEFLATE_MAX_RATIO),
        _ => false,
    }
}
