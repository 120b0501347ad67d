//! Wheels: zip members, file name, tags, dist-info, read and written. This crate knows nothing of ELF.
//!
//! ```text
//! Archive     the zip file on a memory map: members in directory order, structural problems, streamed content
//! WheelName   the file name taken apart: name, version, build, tag sets, variant label
//! PlatformTag a platform tag taken apart; promise() tells which system a set of them promises
//! DistInfo    WHEEL, METADATA and RECORD with what is wrong with them
//! Scheme      where an installer puts a member
//! WheelWriter a wheel that differs from another in some members
//! ```
//!
//! Rules of the crate:
//! * The central directory says which members there are; RECORD is compared with them, never used to find them.
//! * A wheel that can be read at all is read: what is wrong is a value (`*Problem`) with its data, for others to
//!   judge. Errors ([`ArchiveError`], [`MemberError`]) are for what cannot be read.
//! * Nothing is extracted, nothing outside the file is looked at, no declared size is trusted, and every loop and
//!   allocation is bounded by [`Limits`] or by the size of the file.
//!
//! ```no_run
//! use abiaudit_wheel::{Archive, DistInfo, Limits, Scratch, WheelName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let name = WheelName::parse("pkg-1.0-cp312-cp312-manylinux_2_28_x86_64.whl")?;
//! let archive = Archive::open("pkg-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", &Limits::default())?;
//! let mut scratch = Scratch::new();
//! let info = DistInfo::read(&archive, Some(&name), &mut scratch);
//! for member in archive.members() {
//!     let mut length = 0;
//!     archive.read(member, &mut scratch, &mut |chunk| {
//!         length += chunk.len();
//!         Ok(())
//!     })?;
//! }
//! # let _ = info;
//! # Ok(())
//! # }
//! ```

pub mod archive;
pub mod distinfo;
pub mod filename;
pub mod layout;
mod limits;
mod name;
pub mod tags;
pub mod writer;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

pub use archive::{
    Archive, ArchiveError, ArchiveProblem, Member, MemberError, MemberKind, Method, ReadOutcome, Scratch,
    Stop,
};
pub use distinfo::{DistInfo, DistInfoProblem, Environment, Metadata, Record, RecordProblem, WheelFile};
pub use filename::{WheelName, WheelNameError, WheelNameProblem};
pub use layout::{Scheme, classify};
pub use limits::Limits;
pub use name::normalize_name;
pub use tags::{PlatformTag, Tag};
pub use writer::{WheelWriter, WriteError, WriteOptions};
