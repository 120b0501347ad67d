//! RECORD: the list of installed files ("Recording installed projects", PEP 376 and 627).

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Content of a RECORD file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The dist-info directory the file lies in, for instance `numpy-1.26.4.dist-info`.
    pub dist_info: String,
    /// The rows, in file order.
    pub rows: Vec<RecordRow>,
}

/// One row of RECORD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRow {
    /// Line number of the row, from 1.
    pub line: u64,
    /// Path, relative to the root of the wheel.
    pub path: String,
    /// Hash, if there is a readable one.
    pub hash: Option<RecordHash>,
    /// Size in bytes, if there is a readable one.
    pub size: Option<u64>,
}

/// `algorithm=digest` of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHash {
    /// The algorithm's `hashlib` name, in lower case. A RECORD can have a million rows, so that the common name takes no
    /// memory.
    pub algorithm: Cow<'static, str>,
    /// The digest, decoded.
    pub digest: Box<[u8]>,
}

impl RecordHash {
    /// `algorithm=digest` with the digest in URL-safe base64 without padding, as RECORD wants it.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}={}", self.algorithm, URL_SAFE_NO_PAD.encode(&self.digest))
    }
}

/// A member as it is, to be compared with RECORD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActualMember<'a> {
    /// Member name.
    pub name: &'a str,
    /// Its true size in bytes; `None` if it could not be read (then nothing but the name is compared).
    pub size: Option<u64>,
    /// Its SHA-256; `None` if it was not computed (then hashes are not compared).
    pub sha256: Option<[u8; 32]>,
}

/// What is wrong with RECORD, by itself or compared with the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordProblem {
    /// Bytes that are not UTF-8; they are read as U+FFFD.
    NotUtf8,
    /// Not CSV; what follows was not read.
    NotCsv {
        /// Line number, from 1, if known.
        line: Option<u64>,
    },
    /// A row without exactly three columns; missing ones are taken for empty.
    Columns {
        /// Line number, from 1.
        line: u64,
        /// Number of columns.
        found: usize,
    },
    /// A path that leaves the wheel. It is not looked for anywhere.
    UnsafePath {
        /// As written.
        path: String,
        /// In which way.
        reason: PathDefect,
    },
    /// The path is listed again.
    Duplicate {
        /// The path.
        path: String,
        /// Line number of the later row.
        line: u64,
    },
    /// No hash, for another file than RECORD and its signatures.
    MissingHash {
        /// The path.
        path: String,
    },
    /// The hash is not `algorithm=base64`, or the digest has another length than the algorithm's.
    BadHash {
        /// The path.
        path: String,
        /// As written.
        value: String,
    },
    /// MD5 and SHA-1 are forbidden (PEP 427).
    WeakHash {
        /// The path.
        path: String,
        /// The algorithm.
        algorithm: String,
    },
    /// A hash other than SHA-256, which is not compared with the content.
    HashNotChecked {
        /// The path.
        path: String,
        /// The algorithm.
        algorithm: String,
    },
    /// The size is not a number.
    BadSize {
        /// The path.
        path: String,
        /// As written.
        value: String,
    },
    /// A directory is listed.
    DirectoryListed {
        /// The path.
        path: String,
    },
    /// A member that RECORD does not list: installers refuse it or leave it behind on removal.
    NotListed {
        /// Member name.
        name: String,
    },
    /// A listed path that is not a member.
    Ghost {
        /// The path.
        path: String,
    },
    /// The member has another SHA-256.
    HashMismatch {
        /// The path.
        path: String,
        /// As listed, base64.
        expected: String,
        /// As computed, base64.
        found: String,
    },
    /// The member has another size.
    SizeMismatch {
        /// The path.
        path: String,
        /// As listed.
        expected: u64,
        /// As it is.
        found: u64,
    },
}

/// In which way a path leaves the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathDefect {
    /// Begins with `/` or a drive letter.
    Absolute,
    /// Has a `..` component.
    ParentTraversal,
    /// Has a backslash.
    Backslash,
}

impl Record {
    /// Reads a RECORD of the given dist-info directory; what cannot be read is a problem.
    #[must_use]
    pub fn parse(bytes: &[u8], dist_info: &str) -> (Self, Vec<RecordProblem>) {
        let mut record = Self { dist_info: dist_info.to_owned(), rows: Vec::new() };
        let mut problems = Vec::new();
        if std::str::from_utf8(bytes).is_err() {
            problems.push(RecordProblem::NotUtf8);
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        for row in reader.byte_records() {
            match row {
                Ok(row) => record.read_row(&row, &mut problems),
                Err(error) => {
                    let line = error.position().map(csv::Position::line);
                    problems.push(RecordProblem::NotCsv { line });
                    break;
                }
            }
        }
        record.note_duplicates(&mut problems);
        (record, problems)
    }

    fn read_row(&mut self, row: &csv::ByteRecord, problems: &mut Vec<RecordProblem>) {
        let line = row.position().map_or(0, csv::Position::line);
        let column = |index| String::from_utf8_lossy(row.get(index).unwrap_or_default()).into_owned();
        let (path, hash_text, size_text) = (column(0), column(1), column(2));
        if row.len() != 3 {
            problems.push(RecordProblem::Columns { line, found: row.len() });
        }
        if path.is_empty() {
            return;
        }
        if let Some(reason) = path_defect(&path) {
            problems.push(RecordProblem::UnsafePath { path: path.clone(), reason });
        }
        if path.ends_with('/') {
            problems.push(RecordProblem::DirectoryListed { path: path.clone() });
        }
        let hash = parse_hash(&hash_text);
        match &hash {
            None if !hash_text.is_empty() => {
                problems.push(RecordProblem::BadHash { path: path.clone(), value: hash_text });
            }
            None if !self.is_exempt(&path) && !path.ends_with('/') => {
                problems.push(RecordProblem::MissingHash { path: path.clone() });
            }
            Some(hash) if matches!(hash.algorithm.as_ref(), "md5" | "sha1") => {
                let algorithm = hash.algorithm.clone().into_owned();
                problems.push(RecordProblem::WeakHash { path: path.clone(), algorithm });
            }
            _ => {}
        }
        let size = size_text.parse().ok();
        if size.is_none() && !size_text.is_empty() {
            problems.push(RecordProblem::BadSize { path: path.clone(), value: size_text });
        }
        self.rows.push(RecordRow { line, path, hash, size });
    }

    fn note_duplicates(&self, problems: &mut Vec<RecordProblem>) {
        let mut order: Vec<&RecordRow> = self.rows.iter().collect();
        order.sort_by(|a, b| a.path.cmp(&b.path));
        for pair in order.windows(2) {
            if let [first, again] = pair
                && first.path == again.path
            {
                problems.push(RecordProblem::Duplicate { path: again.path.clone(), line: again.line });
            }
        }
    }

    /// Whether a path needs neither hash nor row: RECORD itself, which cannot hold its own hash, and its
    /// signatures RECORD.jws and RECORD.p7s, which are made after it.
    #[must_use]
    pub fn is_exempt(&self, path: &str) -> bool {
        path.strip_prefix(self.dist_info.as_str())
            .is_some_and(|file| matches!(file, "/RECORD" | "/RECORD.jws" | "/RECORD.p7s"))
    }
}

/// Compares RECORD with the file members of the wheel: directories are left out, members that cannot be read are
/// included without size and hash, lest they seem absent. Problems come in the order of
/// the members, then of the rows.
#[must_use]
pub fn compare<'a>(
    record: &Record,
    actual: impl IntoIterator<Item = ActualMember<'a>>,
) -> Vec<RecordProblem> {
    let mut problems = Vec::new();
    // Of duplicate rows the last one counts, as for a reader that fills a dictionary.
    let mut listed: BTreeMap<&str, (&RecordRow, bool)> =
        record.rows.iter().map(|row| (row.path.as_str(), (row, false))).collect();
    for member in actual {
        let Some((row, seen)) = listed.get_mut(member.name) else {
            if !record.is_exempt(member.name) {
                problems.push(RecordProblem::NotListed { name: member.name.to_owned() });
            }
            continue;
        };
        *seen = true;
        compare_row(row, &member, &mut problems);
    }
    for row in &record.rows {
        let ghost =
            listed.get(row.path.as_str()).is_some_and(|(last, seen)| !seen && std::ptr::eq(*last, row));
        if ghost && !row.path.ends_with('/') {
            problems.push(RecordProblem::Ghost { path: row.path.clone() });
        }
    }
    problems
}

fn compare_row(row: &RecordRow, member: &ActualMember<'_>, problems: &mut Vec<RecordProblem>) {
    let path = || row.path.clone();
    if let (Some(expected), Some(found)) = (row.size, member.size)
        && expected != found
    {
        problems.push(RecordProblem::SizeMismatch { path: path(), expected, found });
    }
    let (Some(hash), Some(found)) = (&row.hash, &member.sha256) else { return };
    if hash.algorithm != "sha256" {
        let algorithm = hash.algorithm.clone().into_owned();
        problems.push(RecordProblem::HashNotChecked { path: path(), algorithm });
    } else if *hash.digest != *found {
        let (expected, found) = (URL_SAFE_NO_PAD.encode(&hash.digest), URL_SAFE_NO_PAD.encode(found));
        problems.push(RecordProblem::HashMismatch { path: path(), expected, found });
    }
}

fn path_defect(path: &str) -> Option<PathDefect> {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if path.starts_with('/') || drive {
        Some(PathDefect::Absolute)
    } else if path.split(['/', '\\']).any(|component| component == "..") {
        Some(PathDefect::ParentTraversal)
    } else if path.contains('\\') {
        Some(PathDefect::Backslash)
    } else {
        None
    }
}

/// Reads `algorithm=digest`. Padding is tolerated; a digest of the wrong length is not.
fn parse_hash(text: &str) -> Option<RecordHash> {
    let (algorithm, digest) = text.split_once('=')?;
    let algorithm = match algorithm {
        "sha256" => Cow::Borrowed("sha256"),
        other => Cow::Owned(other.to_ascii_lowercase()),
    };
    let digest = URL_SAFE_NO_PAD.decode(digest.trim_end_matches('=')).ok()?;
    let length = match algorithm.as_ref() {
        "md5" => 16,
        "sha1" => 20,
        "sha224" => 28,
        "sha256" => 32,
        "sha384" => 48,
        "sha512" => 64,
        _ => digest.len(),
    };
    let fits = !algorithm.is_empty() && digest.len() == length;
    fits.then(|| RecordHash { algorithm, digest: digest.into_boxed_slice() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EMPTY_SHA256: &str = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

    fn empty_digest() -> [u8; 32] {
        parse_hash(EMPTY_SHA256).and_then(|hash| hash.digest.as_ref().try_into().ok()).expect("valid")
    }

    fn actual(name: &str) -> ActualMember<'_> {
        ActualMember { name, size: Some(0), sha256: Some(empty_digest()) }
    }

    #[test]
    fn a_clean_record() {
        let text = format!("\"a,b.py\",{EMPTY_SHA256},0\r\na-1.dist-info/RECORD,,\r\n");
        let (record, problems) = Record::parse(text.as_bytes(), "a-1.dist-info");
        assert_eq!(problems, []);
        assert_eq!(record.rows[0].path, "a,b.py");
        assert_eq!(record.rows[0].hash.as_ref().map(RecordHash::to_text).as_deref(), Some(EMPTY_SHA256));
        let members = ["a,b.py", "a-1.dist-info/RECORD", "a-1.dist-info/RECORD.jws"].map(actual);
        assert_eq!(compare(&record, members), []);
    }

    #[test]
    fn every_defect_of_the_file_is_named() {
        let text = format!(
            "/bin/ls,{EMPTY_SHA256},0\n../x,{EMPTY_SHA256},0\na\\b,{EMPTY_SHA256},0\nC:/x,{EMPTY_SHA256},0\n\
             m,md5=1B2M2Y8AsgTpgAmY7PhCfg,0\nn,,0\nd/,,\nq,sha256=AAAA,0\nz,{EMPTY_SHA256},many\n\
             z,{EMPTY_SHA256},0\ntwo,{EMPTY_SHA256}\n"
        );
        let (_, problems) = Record::parse(text.as_bytes(), "a-1.dist-info");
        let path = |text: &str| text.to_owned();
        assert_eq!(
            problems,
            [
                RecordProblem::UnsafePath { path: path("/bin/ls"), reason: PathDefect::Absolute },
                RecordProblem::UnsafePath { path: path("../x"), reason: PathDefect::ParentTraversal },
                RecordProblem::UnsafePath { path: path("a\\b"), reason: PathDefect::Backslash },
                RecordProblem::UnsafePath { path: path("C:/x"), reason: PathDefect::Absolute },
                RecordProblem::WeakHash { path: path("m"), algorithm: path("md5") },
                RecordProblem::MissingHash { path: path("n") },
                RecordProblem::DirectoryListed { path: path("d/") },
                RecordProblem::BadHash { path: path("q"), value: path("sha256=AAAA") },
                RecordProblem::BadSize { path: path("z"), value: path("many") },
                RecordProblem::Columns { line: 11, found: 2 },
                RecordProblem::Duplicate { path: path("z"), line: 10 },
            ]
        );
    }

    #[test]
    fn members_and_rows_are_compared() {
        let text = format!("same,{EMPTY_SHA256},0\nbig,{EMPTY_SHA256},7\nghost,{EMPTY_SHA256},0\n");
        let (record, problems) = Record::parse(text.as_bytes(), "a-1.dist-info");
        assert_eq!(problems, []);
        let mut changed = actual("big");
        changed.sha256 = Some([0; 32]);
        let found = compare(&record, [actual("same"), changed, actual("extra")]);
        assert_eq!(
            found,
            [
                RecordProblem::SizeMismatch { path: "big".to_owned(), expected: 7, found: 0 },
                RecordProblem::HashMismatch {
                    path: "big".to_owned(),
                    expected: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU".to_owned(),
                    found: "A".repeat(43),
                },
                RecordProblem::NotListed { name: "extra".to_owned() },
                RecordProblem::Ghost { path: "ghost".to_owned() },
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (record, _) = Record::parse(&bytes, "a-1.dist-info");
            let _ = compare(&record, []);
        }
    }
}
