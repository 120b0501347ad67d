//! Why a wheel is not repaired. Whatever the reason, neither the input nor the directory of the output has changed.

use std::io;
use std::path::PathBuf;

use abiaudit_edit::EditError;
use abiaudit_scan::ScanError;
use abiaudit_wheel::WriteError;

/// A wheel is not repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The input cannot be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A file of the machine cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The wheel cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Output and input are the same file, and nobody asked for that.
    #[error("{}: input and output are the same file; --in-place allows that", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// There is no native code, so there is nothing to repair.
    #[error("the wheel has no native code; --allow-pure-python-wheel copies it as it is")]
    Pure,
    /// Neither tags nor files name an architecture that policies cover.
    #[error("no policy covers this wheel: neither its tags nor its files name a known Linux architecture")]
    NoPlatform,
    /// The dist-info directory is not one that can be rewritten.
    #[error("{0}")]
    DistInfo(String),
    /// RECORD says something else than the members are: somebody changed the wheel after it was built. A new RECORD would
    /// hide that.
    #[error(
        "RECORD does not fit the content of {}{}: the wheel was changed after it was built, and a new RECORD would hide it",
        members.first().map_or("", String::as_str),
        if members.len() > 1 { format!(" and {} more", members.len() - 1) } else { String::new() }
    )]
    Record {
        /// The members.
        members: Vec<String>,
    },
    /// The wanted tag is not one that can be judged.
    #[error("--plat {tag}: {reason}")]
    UnknownTarget {
        /// As given.
        tag: String,
        /// Why.
        reason: String,
    },
    /// Libraries are nowhere to be found.
    #[error("{}", missing(.0))]
    Missing(Vec<MissingLibrary>),
    /// Libraries that no wheel can carry.
    #[error("{soname}, needed by {}, is not for a wheel: {reason}", needed_by.join(", "))]
    NotForWheels {
        /// As in `DT_NEEDED`.
        soname: String,
        /// Members, or paths of libraries.
        needed_by: Vec<String>,
        /// Why, and what to do.
        reason: String,
    },
    /// No target is honoured even with all libraries grafted.
    #[error("{}", blocked(target, reasons))]
    Blocked {
        /// The target that comes nearest, or that was asked for.
        target: String,
        /// What stands in the way.
        reasons: Vec<String>,
    },
    /// A member is installed where no path leads to grafted libraries.
    #[error("{member} needs {soname}, which would have to be grafted, but {reason}")]
    Unplaceable {
        /// The member.
        member: String,
        /// The library.
        soname: String,
        /// Why there is no path.
        reason: &'static str,
    },
    /// Two files would get the name of one member.
    #[error("{member} is to be written, and the wheel has a member of that name already")]
    Occupied {
        /// The member.
        member: String,
    },
    /// An object's libstdc++ cannot be mended.
    #[error(
        "{member}: its libstdc++ cannot be mended:{}; link it again: dynamically, or with -Wl,--exclude-libs,ALL",
        incurable(reasons)
    )]
    Incurable {
        /// The member.
        member: String,
        /// Each method with the reason why it cannot be used.
        reasons: Vec<(&'static str, String)>,
    },
    /// An object cannot be edited.
    #[error("{member}: {source}")]
    Edit {
        /// The member, as it would be called.
        member: String,
        /// Why.
        source: EditError,
    },
    /// A file changed between plan and copy.
    #[error("{source_name} has changed since the repair was planned")]
    SourceChanged {
        /// The file.
        source_name: String,
    },
    /// The gate finds faults in the result that the input did not have.
    #[error("the repaired wheel was audited and thrown away: {}", findings.join("; "))]
    Rejected {
        /// The findings.
        findings: Vec<String>,
    },
    /// What was written is not what was planned; a fault of this program.
    #[error("the repaired wheel was thrown away: {0}")]
    Unverified(String),
    /// The user asked to stop.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

/// A library that is nowhere to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLibrary {
    /// As in `DT_NEEDED`.
    pub soname: String,
    /// Members, or paths of libraries.
    pub needed_by: Vec<String>,
    /// Where it was looked for, and what was found instead.
    pub looked: String,
}

impl RepairError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// The input or the request is at fault rather than the wheel's content: wrong usage, or unreadable input.
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::Scan(_)
                | Self::Io { .. }
                | Self::Write(WriteError::Io(_))
                | Self::SameFile { .. }
                | Self::UnknownTarget { .. }
                | Self::SourceChanged { .. }
                | Self::Unverified(_)
                | Self::Interrupted
        )
    }
}

fn missing(libraries: &[MissingLibrary]) -> String {
    let line = |library: &MissingLibrary| {
        format!("\n  {} (needed by {}): {}", library.soname, library.needed_by.join(", "), library.looked)
    };
    format!(
        "libraries are missing:{}\n  mend: install them, or say where they are (LD_LIBRARY_PATH, --ldpaths, --sysroot, \
         --from-wheel, --include), or leave them to another distribution (--exclude, and Requires-Dist in the metadata)",
        libraries.iter().map(line).collect::<Vec<_>>().concat()
    )
}

fn blocked(target: &str, reasons: &[String]) -> String {
    let mut text = format!("cannot be repaired to {target}, and no graft can change that:");
    for reason in reasons {
        text.push_str("\n  ");
        text.push_str(reason);
    }
    text
}

/// One reason for all methods is said once.
fn incurable(reasons: &[(&'static str, String)]) -> String {
    match reasons {
        [(_, first), rest @ ..] if rest.iter().all(|(_, reason)| reason == first) => format!(" {first}"),
        _ => reasons
            .iter()
            .fold(String::new(), |text, (method, reason)| text + "\n  " + method + ": " + reason),
    }
}
