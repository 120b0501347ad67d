//! What a file turned out to be, told while it streams by.

use std::ops::Range;

use abiaudit_detect::{MarkerScan, Markers};
use abiaudit_elf::{Collector, FileKind, Image, Object, ParseError, Parsed, Wants};
use sha2::{Digest, Sha256};

/// The content of a member.
#[derive(Debug, Clone)]
pub enum Content {
    /// ELF whose facts could be read.
    Object(Box<Object>),
    /// Starts like ELF and cannot be read.
    BrokenElf(ParseError),
    /// Not ELF.
    Other(FileKind),
    /// A symbolic link, with its target if that could be read. Installers write its text as a file.
    Symlink(Option<String>),
    /// The archive or the system would not give it: why.
    Unreadable(String),
}

/// Takes a file chunk by chunk.
pub(crate) struct Intake<'a> {
    name: &'a str,
    size: u64,
    hasher: Option<Sha256>,
    head: Vec<u8>,
    state: State,
}

enum State {
    /// Too few bytes to tell the kind.
    Sniffing,
    Elf(Collector, MarkerScan),
    Other(FileKind),
}

/// What is left to do when the stream has ended.
pub(crate) enum Taken {
    Elf(Image<'static>),
    Other(FileKind),
}

/// What a whole stream gave.
pub(crate) struct Gathered {
    pub(crate) taken: Taken,
    /// Texts that speak for a runtime; none if the file is not ELF.
    pub(crate) markers: Markers,
    /// If it was asked for.
    pub(crate) sha256: Option<[u8; 32]>,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(name: &'a str, size: u64, hash: bool) -> Self {
        let hasher = hash.then(Sha256::new);
        Self { name, size, hasher, head: Vec::new(), state: State::Sniffing }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(chunk);
        }
        match &mut self.state {
            State::Elf(collector, scan) => {
                collector.push(chunk);
                scan.push(chunk);
            }
            State::Other(_) => {}
            State::Sniffing if self.head.is_empty() && chunk.len() >= FileKind::SNIFF_LEN => {
                self.settle(chunk);
            }
            State::Sniffing => {
                self.head.extend_from_slice(chunk);
                if self.head.len() >= FileKind::SNIFF_LEN {
                    let head = std::mem::take(&mut self.head);
                    self.settle(&head);
                }
            }
        }
    }

    fn settle(&mut self, head: &[u8]) {
        self.state = match FileKind::sniff(self.name, &head[..head.len().min(FileKind::SNIFF_LEN)]) {
            FileKind::Elf => {
                let mut collector = Collector::new(self.size);
                collector.push(head);
                let mut scan = MarkerScan::new();
                scan.push(head);
                State::Elf(collector, scan)
            }
            other => State::Other(other),
        };
    }

    pub(crate) fn finish(mut self) -> Gathered {
        if matches!(self.state, State::Sniffing) {
            let head = std::mem::take(&mut self.head);
            self.settle(&head);
        }
        let sha256 = self.hasher.map(|hasher| hasher.finalize().into());
        let (taken, markers) = match self.state {
            State::Elf(collector, scan) => (Taken::Elf(collector.finish()), scan.finish()),
            State::Other(kind) => (Taken::Other(kind), Markers::default()),
            State::Sniffing => (Taken::Other(FileKind::Empty), Markers::default()),
        };
        Gathered { taken, markers, sha256 }
    }
}

/// Makes facts of the kept bytes; `again` streams the member once more and keeps the ranges it is given.
pub(crate) fn examine(
    taken: Taken,
    mut again: impl FnMut(&[Range<u64>]) -> Result<Image<'static>, String>,
) -> Content {
    // Headers, dynamic section, tables, symbol table: no layout needs more rounds than there are steps.
    const MOST_PASSES: usize = 6;
    let mut image = match taken {
        Taken::Elf(image) => image,
        Taken::Other(kind) => return Content::Other(kind),
    };
    for _ in 0..MOST_PASSES {
        match Object::parse(&image, &Wants::default()) {
            Ok(Parsed::Complete(object)) => return Content::Object(object),
            Ok(Parsed::Missing(ranges)) => match again(&ranges) {
                Ok(more) => image.merge(more),
                Err(error) => return Content::Unreadable(error),
            },
            Err(error) => return Content::BrokenElf(error),
        }
    }
    Content::Unreadable(
        "the tables of this ELF file are scattered over more places than are looked at".to_owned(),
    )
}
