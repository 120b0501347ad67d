//! apk's database (Alpine: `/lib/apk/db/installed`; apko and Wolfi: `/usr/lib/apk/db/installed`): paragraphs of one-letter
//! fields, `F` a directory and `R` a file in it.

use std::collections::HashMap;

use super::os_release::Distribution;
use super::{Package, purl};
use crate::machine::Root;

/// The database of one tree.
pub(super) struct Database {
    packages: Vec<Fields>,
    /// Position of the package by file.
    files: HashMap<String, usize>,
}

#[derive(Debug, Clone, Default)]
struct Fields {
    name: String,
    version: String,
    architecture: String,
    licence: String,
}

impl Database {
    /// `None` if there is none.
    pub(super) fn open(root: &Root) -> Option<Self> {
        let bytes = root.read("/usr/lib/apk/db/installed").or_else(|| root.read("/lib/apk/db/installed"))?;
        let mut database = Self { packages: Vec::new(), files: HashMap::new() };
        for paragraph in String::from_utf8_lossy(&bytes).split("\n\n") {
            database.read(paragraph);
        }
        Some(database)
    }

    fn read(&mut self, paragraph: &str) {
        let mut fields = Fields::default();
        let mut directory = String::new();
        for line in paragraph.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            match key {
                "P" => value.clone_into(&mut fields.name),
                "V" => value.clone_into(&mut fields.version),
                "A" => value.clone_into(&mut fields.architecture),
                "L" => value.clone_into(&mut fields.licence),
                "F" => value.clone_into(&mut directory),
                "R" => {
                    let slash = if directory.is_empty() { "" } else { "/" };
                    self.files.insert(format!("/{directory}{slash}{value}"), self.packages.len());
                }
                _ => {}
            }
        }
        self.packages.push(fields);
    }

    /// The owner of a file that has these names.
    pub(super) fn owner(&self, names: &[String], distribution: &Distribution) -> Option<Package> {
        let fields = self.packages.get(*names.iter().find_map(|name| self.files.get(name))?)?;
        let qualifiers = [("arch", fields.architecture.as_str()), ("distro", &distribution.distro)];
        Some(Package {
            name: fields.name.clone(),
            version: fields.version.clone(),
            purl: purl("apk", &distribution.id, &fields.name, &fields.version, &qualifiers),
            licence: (!fields.licence.is_empty()).then(|| fields.licence.clone()),
            licence_file: None,
        })
    }
}
