//! RECORD, written (PEP 376, 427; "Recording installed projects").

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A file and what RECORD says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub path: String,
    pub sha256: [u8; 32],
    pub size: u64,
}

/// The text: one row a file in the given order, RECORD itself last and without hash and size. Fields are quoted as CSV wants
/// it (RFC 4180), lines end in `\n`.
pub(super) fn text(rows: &[Row], record: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        field(&row.path, &mut out);
        let line = format!(",sha256={},{}\n", URL_SAFE_NO_PAD.encode(row.sha256), row.size);
        out.extend_from_slice(line.as_bytes());
    }
    field(record, &mut out);
    out.extend_from_slice(b",,\n");
    out
}

fn field(text: &str, out: &mut Vec<u8>) {
    if text.contains([',', '"', '\n', '\r']) {
        out.push(b'"');
        out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    #[test]
    fn the_reader_reads_it_without_complaint() {
        let paths = ["plain.py", "a,b.py", "a \"quoted\" name.py", "d\u{e9}j\u{e0}.py"];
        let rows: Vec<Row> = (1..)
            .zip(paths)
            .map(|(n, path)| Row { path: path.to_owned(), sha256: [n; 32], size: n.into() })
            .collect();
        let (record, problems) = Record::parse(&text(&rows, "p-1.dist-info/RECORD"), "p-1.dist-info");
        assert_eq!(problems, []);
        let read: Vec<(&str, Option<u64>)> =
            record.rows.iter().map(|row| (row.path.as_str(), row.size)).collect();
        assert_eq!(&read[..2], [("plain.py", Some(1)), ("a,b.py", Some(2))]);
        assert_eq!(read[2].0, paths[2]);
        assert_eq!(read[4], ("p-1.dist-info/RECORD", None));
        assert_eq!(record.rows[1].hash.as_ref().map(|hash| hash.digest.clone()), Some([2; 32].into()));
    }
}
