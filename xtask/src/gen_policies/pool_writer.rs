//! Writes a table in the format of `abiaudit_policy::symbols::pool`.

use std::collections::{BTreeMap, BTreeSet};

use abiaudit_policy::symbols::Release;
use abiaudit_policy::symbols::pool::{
    BLOCK, FLAG_DEFAULT, FLAG_SINCE_AT_LATEST, FLAG_UNTIL_AT_LATEST, HEADER_LEN, MAGIC, NONE, Record,
};
use anyhow::{Context, Result, ensure};

use super::rows::{Date, Row};
use super::{ARCHS, Table};

/// The bytes of a table.
pub fn encode(table: &Table<'_>) -> Result<Vec<u8>> {
    let archs: Vec<String> = ARCHS
        .iter()
        .filter(|arch| table.rows.iter().any(|row| row.arch == **arch))
        .map(|arch| (*arch).to_owned())
        .collect();
    let libraries = distinct(table.rows.iter().map(|row| &row.library));
    let mut versions = distinct(table.rows.iter().map(|row| &row.version));
    versions.sort_by_key(|version| version_key(version));
    let mut releases = table.releases.clone();
    releases.extend(versions.iter().filter_map(|version| table.nodes.get(version)));
    releases
        .extend(table.rows.iter().flat_map(|row| [row.since, row.until]).flatten().map(|date| date.release));
    let releases: Vec<Release> = releases.into_iter().collect();
    ensure!(releases.len() < usize::from(NONE), "too many releases");

    let indices = Indices { archs: &archs, libraries: &libraries, versions: &versions, releases: &releases };
    let symbols = indices.symbols(table.rows)?;
    let (index, blocks) = blocks(&symbols)?;
    let version_releases: Vec<u8> = versions
        .iter()
        .map(|version| table.nodes.get(version).map_or(Ok(NONE), |release| indices.release(*release)))
        .collect::<Result<_>>()?;
    let release_names: Vec<String> = releases.iter().map(ToString::to_string).collect();
    let sections = [
        strings(&archs)?,
        strings(&libraries)?,
        strings(&versions)?,
        strings(&release_names)?,
        version_releases,
        index.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
        blocks,
    ];

    let mut bytes = MAGIC.to_vec();
    let mut offset = HEADER_LEN;
    for section in &sections {
        bytes.extend(u32::try_from(offset)?.to_le_bytes());
        offset += section.len();
    }
    bytes.extend(u32::try_from(symbols.len())?.to_le_bytes());
    bytes.extend(u32::try_from(index.len())?.to_le_bytes());
    bytes.extend(sections.concat());
    Ok(bytes)
}

struct Indices<'a> {
    archs: &'a [String],
    libraries: &'a [String],
    versions: &'a [String],
    releases: &'a [Release],
}

impl Indices<'_> {
    /// The records of each symbol: rows that differ in the architecture only are one record.
    fn symbols<'r>(&self, rows: &'r [Row]) -> Result<BTreeMap<&'r [u8], Vec<Record>>> {
        let mut merged: BTreeMap<(&[u8], Record), u16> = BTreeMap::new();
        for row in rows {
            let bit = 1 << self.archs.iter().position(|arch| arch == row.arch).context("architecture")?;
            *merged.entry((row.symbol.as_bytes(), self.record(row)?)).or_default() |= bit;
        }
        let mut symbols: BTreeMap<&[u8], Vec<Record>> = BTreeMap::new();
        for ((symbol, record), archs) in merged {
            symbols.entry(symbol).or_default().push(Record { archs, ..record });
        }
        for records in symbols.values_mut() {
            records.sort_by_key(|record| (record.library, record.since, record.version, *record));
        }
        Ok(symbols)
    }

    fn record(&self, row: &Row) -> Result<Record> {
        let flag = |date: Option<Date>, flag| if date.is_some_and(|date| date.at_latest) { flag } else { 0 };
        let release = |date: Option<Date>| date.map_or(Ok(NONE), |date| self.release(date.release));
        Ok(Record {
            archs: 0,
            library: u8::try_from(position(self.libraries, &row.library)?)?,
            version: u16::try_from(position(self.versions, &row.version)?)?,
            since: release(row.since)?,
            until: release(row.until)?,
            kind: row.kind,
            flags: if row.default { FLAG_DEFAULT } else { 0 }
                | flag(row.since, FLAG_SINCE_AT_LATEST)
                | flag(row.until, FLAG_UNTIL_AT_LATEST),
            size: row.size,
        })
    }

    fn release(&self, release: Release) -> Result<u8> {
        Ok(u8::try_from(position(self.releases, &release)?)?)
    }
}

fn position<T: PartialEq>(list: &[T], item: &T) -> Result<usize> {
    list.iter().position(|other| other == item).context("an index is missing")
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// `GLIBC_2.9` before `GLIBC_2.10`.
fn version_key(version: &str) -> (String, Vec<u32>, String) {
    let family = version.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default();
    let numbers = version[family.len()..].split('.').map_while(|part| part.parse().ok()).collect();
    (family.to_owned(), numbers, version.to_owned())
}

fn strings(names: &[String]) -> Result<Vec<u8>> {
    let mut bytes = u16::try_from(names.len())?.to_le_bytes().to_vec();
    for name in names {
        bytes.push(u8::try_from(name.len())?);
        bytes.extend(name.as_bytes());
    }
    Ok(bytes)
}

fn blocks(symbols: &BTreeMap<&[u8], Vec<Record>>) -> Result<(Vec<u32>, Vec<u8>)> {
    let (mut index, mut bytes) = (Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for (number, (&name, records)) in symbols.iter().enumerate() {
        if number % BLOCK == 0 {
            index.push(u32::try_from(bytes.len())?);
            before = &[];
        }
        let shared = name.iter().zip(before).take_while(|(a, b)| a == b).count();
        varint(&mut bytes, shared);
        varint(&mut bytes, name.len() - shared);
        bytes.extend(&name[shared..]);
        varint(&mut bytes, records.len());
        bytes.extend(records.iter().flat_map(Record::encode));
        before = name;
    }
    Ok((index, bytes))
}

fn varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use abiaudit_policy::symbols::Kind;
    use abiaudit_policy::symbols::pool::Pool;

    use super::*;
    use crate::gen_policies::rows::NodeReleases;

    #[test]
    fn what_is_written_is_read() {
        let release = Release::with_patch(1, 2, 3);
        let row = |number: u32, arch| Row {
            symbol: format!("symbol_{number:05}_{}", "x".repeat(number as usize % 200)),
            library: format!("lib{}.so", number % 3),
            version: format!("NODE_1.{}", number % 20),
            since: Some(Date::at_latest(release)),
            until: None,
            kind: Kind::Object,
            default: number.is_multiple_of(2),
            size: number,
            arch,
        };
        let rows: Vec<Row> = (0..500).flat_map(|n| [row(n, "aarch64"), row(n, "s390x")]).collect();
        let nodes: NodeReleases = [("NODE_1.7".to_owned(), release)].into();
        let bytes =
            encode(&Table { name: "test", rows: &rows, nodes: &nodes, releases: BTreeSet::new() }).unwrap();
        let pool = Pool::new(bytes.leak());
        assert_eq!(pool.symbol_count(), 500);
        assert_eq!(pool.arch_bit("s390x"), Some(2));
        assert_eq!(pool.arch_bit("x86_64"), None);
        for row in &rows {
            let records: Vec<_> = pool.records(&row.symbol).collect();
            assert_eq!(records.len(), 1, "{}", row.symbol);
            assert_eq!((records[0].archs, records[0].size), (3, row.size));
            assert_eq!(pool.library(records[0].library), Some(row.library.as_str()));
            assert_eq!(pool.version(records[0].version), Some(row.version.as_str()));
            assert_eq!(pool.release(records[0].since), Some(release));
            assert_eq!(pool.release(records[0].until), None);
        }
        let versions: Vec<_> = pool.versions().collect();
        assert_eq!(versions[7], ("NODE_1.7", Some(release)));
        assert_eq!(versions[10], ("NODE_1.10", None), "nodes are in the order of their numbers");
    }
}
