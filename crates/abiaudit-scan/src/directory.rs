//! Reading a directory: an unpacked wheel, an installed `site-packages`, or just files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use abiaudit_detect::Markers;
use abiaudit_wheel::{DistInfo, DistInfoProblem, Metadata, Record, WheelFile};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::content::Content;
use crate::error::ScanError;
use crate::subject::{Member, Subject, SubjectKind};
use crate::{Options, file, installed};

pub(crate) fn scan(root: &Path, options: &Options<'_>) -> Result<Vec<Subject>, ScanError> {
    let files = walk(root)?;
    if files.is_empty() {
        return Err(ScanError::EmptyDirectory { path: root.to_owned() });
    }
    let mut members: BTreeMap<String, Member> = files
        .into_par_iter()
        .map(|(name, path)| (name.clone(), read(&path, name, options)))
        .collect::<Vec<_>>()
        .into_iter()
        .collect();
    let dist_infos: BTreeSet<String> = members
        .keys()
        .filter_map(|name| name.split_once('/'))
        .map(|(top, _)| top)
        .filter(|top| top.ends_with(".dist-info"))
        .map(str::to_owned)
        .collect();
    let only = dist_infos.len() == 1;
    let mut subjects = Vec::new();
    for directory in dist_infos {
        let dist_info = read_dist_info(root, &directory);
        let own =
            if only { std::mem::take(&mut members) } else { take_own(&mut members, &directory, &dist_info) };
        subjects.push(subject(root, SubjectKind::Distribution, Some(dist_info), own));
    }
    let native_left = members.values().any(|m| !matches!(m.content, Content::Other(_)));
    if subjects.is_empty() || native_left {
        subjects.push(subject(root, SubjectKind::Directory, None, members));
    }
    Ok(subjects)
}

/// The files that RECORD lists, and the dist-info directory itself.
fn take_own(
    members: &mut BTreeMap<String, Member>,
    directory: &str,
    info: &DistInfo,
) -> BTreeMap<String, Member> {
    let mut own = BTreeMap::new();
    let listed = info.record.iter().flat_map(|r| r.rows.iter().map(|row| row.path.clone()));
    let prefix = format!("{directory}/");
    let inside: Vec<String> = members.keys().filter(|name| name.starts_with(&prefix)).cloned().collect();
    for name in listed.chain(inside) {
        if let Some(member) = members.remove(&name) {
            own.insert(name, member);
        }
    }
    own
}

fn subject(
    root: &Path,
    kind: SubjectKind,
    dist_info: Option<DistInfo>,
    members: BTreeMap<String, Member>,
) -> Subject {
    let directory = dist_info.as_ref().and_then(|d| d.directory.clone());
    let path = match (&directory, kind) {
        (Some(directory), SubjectKind::Distribution) => root.join(directory),
        _ => root.to_owned(),
    };
    Subject {
        path: path.to_string_lossy().into_owned(),
        kind,
        size: members.values().map(|m| m.size).sum(),
        sha256: None,
        file_name: None,
        dist_info,
        archive_problems: Vec::new(),
        archive_names: Vec::new(),
        members: members.into_values().collect(),
    }
}

fn read(path: &Path, name: String, options: &Options<'_>) -> Member {
    let installed = installed::of_record_path(&name);
    let placeholder = |name: String, installed: String, content| Member {
        name,
        installed,
        size: 0,
        compressed_size: 0,
        executable: false,
        sha256: None,
        content,
        markers: Markers::default(),
    };
    if path.is_symlink() && !path.is_file() {
        let target = fs::read_link(path).ok().map(|t| t.to_string_lossy().into_owned());
        return placeholder(name, installed, Content::Symlink(target));
    }
    match file::read(path, name.clone(), installed.clone(), options) {
        Ok(member) => member,
        Err(error) => placeholder(name, installed, Content::Unreadable(error.to_string())),
    }
}

/// All files below `root` as (name with `/`, path), sorted by name. Links to directories are not followed, so
/// the walk ends; links to files are read as what they point to, as the loader would.
fn walk(root: &Path) -> Result<Vec<(String, PathBuf)>, ScanError> {
    let mut files = Vec::new();
    let mut pending = vec![(String::new(), root.to_owned())];
    while let Some((prefix, directory)) = pending.pop() {
        let entries = fs::read_dir(&directory).map_err(|source| ScanError::io(&directory, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| ScanError::io(&directory, source))?;
            let file_type = entry.file_type().map_err(|source| ScanError::io(&entry.path(), source))?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if file_type.is_dir() {
                pending.push((format!("{name}/"), entry.path()));
            } else if file_type.is_file() || file_type.is_symlink() {
                files.push((name, entry.path()));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read_dist_info(root: &Path, directory: &str) -> DistInfo {
    let mut info = DistInfo { directory: Some(directory.to_owned()), ..DistInfo::default() };
    let mut read = |file: &'static str| match fs::read(root.join(directory).join(file)) {
        Ok(bytes) => Some(bytes),
        Err(_) => {
            info.problems.push(DistInfoProblem::MissingFile { file });
            None
        }
    };
    let (wheel, metadata, record) = (read("WHEEL"), read("METADATA"), read("RECORD"));
    if let Some((wheel, problems)) = wheel.map(|bytes| WheelFile::parse(&bytes)) {
        info.wheel = Some(wheel);
        info.problems.extend(problems.into_iter().map(DistInfoProblem::Wheel));
    }
    if let Some((metadata, problems)) = metadata.map(|bytes| Metadata::parse(&bytes)) {
        info.metadata = Some(metadata);
        info.problems.extend(problems.into_iter().map(DistInfoProblem::Metadata));
    }
    // An installer adds rows that a wheel must not have (scripts outside, byte code), so RECORD's own problems
    // say nothing about an installed tree.
    info.record = record.map(|bytes| Record::parse(&bytes, directory).0);
    info
}
