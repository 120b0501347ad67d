//! Why a wheel cannot be written.

use std::io;

use crate::archive::{Archive, ArchiveProblem, Member};

/// A wheel cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output cannot be written to.
    #[error("cannot write: {0}")]
    Io(#[from] io::Error),
    /// The input is an archive that readers may understand in different ways.
    #[error(
        "the archive is not one to be copied: {what}{}",
        if *count > 1 { format!(" ({count} such problems)") } else { String::new() }
    )]
    Structure {
        /// The first problem, with its members.
        what: String,
        /// How many problems there are.
        count: usize,
    },
    /// A name was to be written twice.
    #[error("{name}: written already")]
    DuplicateName {
        /// The member.
        name: String,
    },
    /// A name has more than 65,535 bytes.
    #[error("{name}: the name is longer than a zip archive can have it")]
    NameTooLong {
        /// The member.
        name: String,
    },
    /// The mapped file no longer holds what its directory said when it was opened, or the entry has no room for a further
    /// extra field.
    #[error("{member}: its directory entry or local header at offset {offset} is not as it was read")]
    Changed {
        /// The member.
        member: String,
        /// Offset of the local header.
        offset: u64,
    },
}

impl WriteError {
    pub(super) fn changed(member: &Member) -> Self {
        Self::Changed { member: member.name.clone(), offset: member.local_header_offset }
    }

    pub(super) fn structure(archive: &Archive, problem: &ArchiveProblem, count: usize) -> Self {
        let name = |index: &usize| archive.members().get(*index).map_or("?", |member| &member.name);
        let what = match problem {
            ArchiveProblem::DuplicateMember { name, members } => {
                format!("{} members are called {name}", members.len())
            }
            ArchiveProblem::OverlappingMembers { members, .. } => {
                let names: Vec<&str> = members.iter().take(3).map(name).collect();
                format!("the data of {} overlaps", names.join(", "))
            }
            ArchiveProblem::UnsafeName { member, reason } => {
                format!("{:?} is not a safe name ({reason:?})", name(member))
            }
            ArchiveProblem::FileDirectoryClash { file, .. } => {
                format!("{} is both a file and a directory", name(file))
            }
            ArchiveProblem::Symlink { member, .. } => {
                format!("{} is a symbolic link, which installers do not keep", name(member))
            }
            ArchiveProblem::Encrypted { member } => format!("{} is encrypted", name(member)),
            ArchiveProblem::UnsupportedMethod { member, method } => {
                format!("{} is compressed by {method}", name(member))
            }
            ArchiveProblem::HeaderMismatch { member, .. } => {
                format!("the local header of {} contradicts the central directory", name(member))
            }
            ArchiveProblem::NoLocalHeader { member, .. } => format!("{} has no local header", name(member)),
            ArchiveProblem::SizeLie { member, .. } => {
                format!("the sizes of {} contradict each other", name(member))
            }
            ArchiveProblem::TooLarge { member, .. }
            | ArchiveProblem::BombRatio { member, .. }
            | ArchiveProblem::TotalTooLarge { member } => format!("{} is larger than is read", name(member)),
            ArchiveProblem::PrefixData { bytes } => format!("{bytes} bytes stand before the first member"),
            ArchiveProblem::EntryCount { declared, found } => {
                format!("the end record declares {declared} members, the directory has {found}")
            }
            ArchiveProblem::DirectoryTrailer { .. } => {
                "the directory ends in bytes that are no entry".to_owned()
            }
            ArchiveProblem::TrailingData { bytes } => format!("{bytes} bytes follow the end record"),
        };
        Self::Structure { what, count }
    }
}
