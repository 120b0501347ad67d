//! Edits on [`Contents`]: what they mean, without offsets.

use std::collections::{BTreeMap, BTreeSet};

use crate::abi::{
    DT_FLAGS, DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_VERNEED, DT_VERNEEDNUM, DT_VERSYM,
    PF_R, PF_W, PF_X, SHN_UNDEF, STB_GLOBAL, STB_GNU_UNIQUE, STB_WEAK, STV_DEFAULT, STV_HIDDEN,
    STV_PROTECTED, VER_NDX_GLOBAL, VERSYM_HIDDEN,
};
use crate::contents::{Contents, Entry, Symbol, Value};
use crate::plan::{Binding, Edit, EditPlan, Place, RequiredVersion, SearchPathKind, SymbolName, Visibility};
use crate::refusal::Refusal;
use crate::text::Text;
use crate::versions::{NeededVersion, VersionNeed};

/// Highest version index: the sixteenth bit says that a version is hidden.
const LAST_VERSION: u16 = 0x7fff;

/// Carries out a plan, and gives a line for each edit that found nothing to work on.
pub(crate) fn apply(contents: &mut Contents, plan: &EditPlan) -> Result<Vec<String>, Refusal> {
    let unbound_before = version_files_without_needed(contents);
    let mut editor = Editor { contents, notes: Vec::new(), by_name: None, vacated: BTreeSet::new() };
    for edit in &plan.edits {
        editor.apply(edit)?;
    }
    editor.drop_vacated_versions();
    editor.count_version_files();
    let notes = editor.notes;
    let unbound = version_files_without_needed(contents);
    match unbound.difference(&unbound_before).next() {
        Some(library) => Err(Refusal::VersionNeedWithoutNeeded(library.clone())),
        None => Ok(notes),
    }
}

fn version_files_without_needed(contents: &Contents) -> BTreeSet<String> {
    let files = contents.needs.iter().map(|need| need.file.display().into_owned());
    files.filter(|file| !contents.has_needed(file)).collect()
}

struct Editor<'e, 'a> {
    contents: &'e mut Contents<'a>,
    notes: Vec<String>,
    /// Indices of the symbols of each name; made when the first edit asks for symbols.
    by_name: Option<BTreeMap<Vec<u8>, Vec<usize>>>,
    /// Version indices from which symbols were taken.
    vacated: BTreeSet<u16>,
}

impl Editor<'_, '_> {
    fn apply(&mut self, edit: &Edit) -> Result<(), Refusal> {
        match edit {
            Edit::AddNeeded { library, place } => self.add_needed(library, *place),
            Edit::RemoveNeeded { library } => self.remove_needed(library),
            Edit::ReplaceNeeded { from, to } => self.replace_needed(from, to),
            Edit::OrderNeeded { libraries } => self.order_needed(libraries),
            Edit::SetSoname { soname } => self.set_text("soname", DT_SONAME, soname),
            Edit::RemoveSoname => self.remove_entries(&[DT_SONAME]),
            Edit::SetSearchPath { kind, path } => self.set_search_path(*kind, path),
            Edit::RemoveSearchPath => self.remove_entries(&[DT_RPATH, DT_RUNPATH]),
            Edit::ConvertSearchPath { to } => self.convert_search_path(*to),
            Edit::RenameVersionFile { from, to } => self.rename_version_file(from, to),
            Edit::RenameVersion { library, from, to } => self.rename_version(library, from, to),
            Edit::RemoveVersion { library, version } => {
                self.remove_version(library, version);
                Ok(())
            }
            Edit::AssignVersion { symbols, library, version } => self.assign_version(
                symbols,
                &RequiredVersion { library: library.clone(), version: version.clone() },
            ),
            Edit::RenameSymbol { from, to } => self.rename_symbol(from, to),
            Edit::DemoteUnique { to } => {
                self.demote_unique(*to);
                Ok(())
            }
            Edit::SetBinding { symbols, binding } => {
                self.change_symbols(symbols, |symbol| symbol.raw.set_binding(binding_number(*binding)))
            }
            Edit::SetVisibility { symbols, visibility } => self
                .change_symbols(symbols, |symbol| symbol.raw.set_visibility(visibility_number(*visibility))),
            Edit::Hide { symbols } => self.hide(symbols),
            Edit::Undefine { symbols, version } => self.undefine(symbols, version.as_ref()),
            Edit::ClearExecutableStack => {
                let flags = self.contents.stack_flags.unwrap_or(PF_R | PF_W);
                self.contents.stack_flags = Some(flags & !PF_X);
                Ok(())
            }
            Edit::SetFlags { set, clear } => self.set_flags(DT_FLAGS, *set, *clear),
            Edit::SetFlags1 { set, clear } => self.set_flags(DT_FLAGS_1, *set, *clear),
            Edit::SetInterpreter { path } => self.set_interpreter(path),
            // What is not in the dynamic section: layout and strip do these.
            Edit::Heal | Edit::Strip { .. } => Ok(()),
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn require_dynamic(&self) -> Result<(), Refusal> {
        if self.contents.entries.is_empty() { Err(Refusal::NotDynamic) } else { Ok(()) }
    }
}

/// Libraries.
impl Editor<'_, '_> {
    fn add_needed(&mut self, library: &str, place: Place) -> Result<(), Refusal> {
        check_name("the needed library", library)?;
        self.require_dynamic()?;
        if self.contents.has_needed(library) {
            return Ok(());
        }
        let entries = &mut self.contents.entries;
        let entry = Entry { tag: DT_NEEDED, value: Value::Text(Text::new(library)) };
        let last = entries.iter().rposition(|e| e.tag == DT_NEEDED);
        let at = match place {
            Place::First => entries.iter().position(|e| e.tag == DT_NEEDED).unwrap_or(0),
            Place::Last => last.map_or(0, |last| last + 1),
        };
        entries.insert(at, entry);
        Ok(())
    }

    fn remove_needed(&mut self, library: &str) -> Result<(), Refusal> {
        self.require_dynamic()?;
        if !self.contents.has_needed(library) {
            self.note(format!("remove NEEDED {library}: it is not needed"));
            return Ok(());
        }
        self.contents.entries.retain(|entry| !is_needed(entry, library));
        let indices: Vec<u16> =
            self.needs_of(library).flat_map(|need| &need.versions).map(|v| v.index).collect();
        self.contents.needs.retain(|need| !need.file.is(library));
        self.forget_versions(&indices);
        Ok(())
    }

    fn replace_needed(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        check_name("the needed library", to)?;
        self.require_dynamic()?;
        if from == to {
            return Ok(());
        }
        if self.contents.has_needed(from) {
            for entry in self.contents.entries.iter_mut().filter(|entry| is_needed(entry, from)) {
                entry.value = Value::Text(Text::new(to));
            }
            self.drop_repeated_needed(to);
        } else if !self.contents.has_needed(to) {
            self.note(format!("replace NEEDED {from} by {to}: {from} is not needed"));
        }
        if self.contents.has_needed(to) && self.needs_of(from).next().is_some() {
            self.rename_version_file(from, to)?;
        }
        Ok(())
    }

    /// Keeps the first of several entries for one library.
    fn drop_repeated_needed(&mut self, library: &str) {
        let mut is_first = true;
        self.contents.entries.retain(|entry| !is_needed(entry, library) || std::mem::take(&mut is_first));
    }

    fn order_needed(&mut self, libraries: &[String]) -> Result<(), Refusal> {
        self.require_dynamic()?;
        if let Some(unknown) = libraries.iter().find(|library| !self.contents.has_needed(library)) {
            return Err(Refusal::UnknownNeeded(unknown.clone()));
        }
        let entries = &mut self.contents.entries;
        let places: Vec<usize> = (0..entries.len()).filter(|&i| entries[i].tag == DT_NEEDED).collect();
        let mut needed: Vec<Entry> = places.iter().map(|&i| entries[i].clone()).collect();
        let rank = |entry: &Entry| {
            libraries.iter().position(|library| is_needed(entry, library)).unwrap_or(libraries.len())
        };
        needed.sort_by_key(rank);
        for (place, entry) in places.into_iter().zip(needed) {
            entries[place] = entry;
        }
        Ok(())
    }
}

/// Other entries of the dynamic section.
impl Editor<'_, '_> {
    fn set_text(&mut self, what: &'static str, tag: u64, text: &str) -> Result<(), Refusal> {
        check_name(what, text)?;
        self.require_dynamic()?;
        let entries = &mut self.contents.entries;
        match entries.iter_mut().find(|entry| entry.tag == tag) {
            Some(Entry { value: Value::Text(old), .. }) => old.set(text),
            _ => entries.push(Entry { tag, value: Value::Text(Text::new(text)) }),
        }
        Ok(())
    }

    fn remove_entries(&mut self, tags: &[u64]) -> Result<(), Refusal> {
        self.require_dynamic()?;
        self.contents.entries.retain(|entry| !tags.contains(&entry.tag));
        Ok(())
    }

    fn set_search_path(&mut self, kind: SearchPathKind, path: &str) -> Result<(), Refusal> {
        self.convert_search_path(kind)?;
        self.set_text("search path", search_path_tag(kind), path)
    }

    fn convert_search_path(&mut self, to: SearchPathKind) -> Result<(), Refusal> {
        self.require_dynamic()?;
        let entries = &mut self.contents.entries;
        // The loader ignores DT_RPATH if there is DT_RUNPATH (ld.so(8)).
        if entries.iter().any(|entry| entry.tag == DT_RUNPATH) {
            entries.retain(|entry| entry.tag != DT_RPATH);
        }
        for entry in entries.iter_mut().filter(|entry| matches!(entry.tag, DT_RPATH | DT_RUNPATH)) {
            entry.tag = search_path_tag(to);
        }
        Ok(())
    }

    fn set_flags(&mut self, tag: u64, set: u64, clear: u64) -> Result<(), Refusal> {
        self.require_dynamic()?;
        let entries = &mut self.contents.entries;
        let old = entries.iter_mut().find(|entry| entry.tag == tag);
        match old.map(|entry| &mut entry.value) {
            Some(Value::Number(flags)) => *flags = (*flags & !clear) | set,
            _ if set != 0 => entries.push(Entry { tag, value: Value::Number(set) }),
            _ => {}
        }
        Ok(())
    }

    fn set_interpreter(&mut self, path: &str) -> Result<(), Refusal> {
        check_name("the interpreter", path)?;
        let interpreter = self.contents.interpreter.as_mut().ok_or(Refusal::NoInterpreter)?;
        *interpreter = path.as_bytes().to_vec();
        Ok(())
    }
}

/// Versions.
impl<'a> Editor<'_, 'a> {
    fn needs_of<'s>(&'s self, library: &'s str) -> impl Iterator<Item = &'s VersionNeed<'a>> {
        self.contents.needs.iter().filter(move |need| need.file.is(library))
    }

    /// Renames the library of version needs; joins them with those of that name, if there are any.
    fn rename_version_file(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        check_name("the library of a version need", to)?;
        if from == to {
            return Ok(());
        }
        if self.needs_of(from).next().is_none() {
            if self.needs_of(to).next().is_none() {
                self.note(format!("no version of {from} is needed"));
            }
            return Ok(());
        }
        let all = std::mem::take(&mut self.contents.needs);
        let (moved, mut kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|need| need.file.is(from));
        let has_target = kept.iter().any(|need| need.file.is(to));
        if has_target || moved.len() > 1 {
            let versions: Vec<NeededVersion> = moved.into_iter().flat_map(|need| need.versions).collect();
            if !has_target {
                kept.push(VersionNeed { file: Text::new(to), versions: Vec::new(), at: None });
            }
            self.contents.needs = kept;
            for version in versions {
                self.join_version(to, version);
            }
        } else {
            // In place, so that the order of records stays.
            let renamed = moved.into_iter().map(|need| VersionNeed { file: Text::new(to), ..need });
            kept.extend(renamed);
            kept.sort_by_key(|need| need.at.unwrap_or(usize::MAX));
            self.contents.needs = kept;
        }
        Ok(())
    }

    /// Adds a version to a library's; if it has that name already, symbols change over to it.
    fn join_version(&mut self, library: &str, version: NeededVersion<'a>) {
        let needs = &mut self.contents.needs;
        let Some(need) = needs.iter_mut().find(|need| need.file.is(library)) else { return };
        match need.versions.iter().find(|known| known.name == version.name) {
            Some(known) => {
                let index = known.index;
                self.reindex(version.index, index);
            }
            None => need.versions.push(NeededVersion { at: None, ..version }),
        }
    }

    fn rename_version(&mut self, library: &str, from: &str, to: &str) -> Result<(), Refusal> {
        check_name("the version", to)?;
        let Some((need, version)) = self.find_version(library, from) else {
            if self.find_version(library, to).is_none() {
                self.note(format!("version {from} of {library} is not needed"));
            }
            return Ok(());
        };
        match self.find_version(library, to) {
            Some((_, known)) if from != to => {
                let known = self.contents.needs[need].versions[known].index;
                let old = self.contents.needs[need].versions.remove(version);
                self.reindex(old.index, known);
            }
            _ => self.contents.needs[need].versions[version].name.set(to),
        }
        Ok(())
    }

    fn remove_version(&mut self, library: &str, version: &str) {
        let Some((need, position)) = self.find_version(library, version) else {
            self.note(format!("version {version} of {library} is not needed"));
            return;
        };
        let removed = self.contents.needs[need].versions.remove(position);
        self.contents.needs.retain(|need| !need.versions.is_empty());
        self.forget_versions(&[removed.index]);
    }

    fn assign_version(&mut self, symbols: &[SymbolName], to: &RequiredVersion) -> Result<(), Refusal> {
        let selected = self.select_or_done(symbols, Some(to))?;
        if let Some(&defined) =
            selected.iter().find(|&&index| !self.contents.symbols[index].raw.is_undefined())
        {
            return Err(self.wrong_state(defined, "defined here, and has a version of this file"));
        }
        let version = self.version_index(to)?;
        for symbol in selected {
            self.set_version(symbol, version);
        }
        Ok(())
    }

    /// The index of a needed version, which is added if need be.
    fn version_index(&mut self, to: &RequiredVersion) -> Result<u16, Refusal> {
        check_name("the library of a version need", &to.library)?;
        check_name("the version", &to.version)?;
        if !self.contents.has_versions || self.contents.needs.is_empty() {
            return Err(Refusal::NoVersionTables);
        }
        if let Some((need, version)) = self.find_version(&to.library, &to.version) {
            return Ok(self.contents.needs[need].versions[version].index & !VERSYM_HIDDEN);
        }
        let index = self.free_version_index()?;
        let version = NeededVersion { name: Text::new(&to.version), flags: 0, index, at: None };
        let needs = &mut self.contents.needs;
        match needs.iter_mut().find(|need| need.file.is(&to.library)) {
            Some(need) => need.versions.push(version),
            None => {
                needs.push(VersionNeed { file: Text::new(&to.library), versions: vec![version], at: None });
            }
        }
        Ok(index)
    }

    fn free_version_index(&self) -> Result<u16, Refusal> {
        let needed = self.contents.needs.iter().flat_map(|need| &need.versions).map(|version| version.index);
        let defined = self.contents.definitions.iter().map(|definition| definition.index);
        let used = self.contents.symbols.iter().map(|symbol| symbol.version);
        let highest = needed.chain(defined).chain(used).map(|index| index & !VERSYM_HIDDEN).max();
        let free = highest.unwrap_or(VER_NDX_GLOBAL).max(VER_NDX_GLOBAL) + 1;
        if free > LAST_VERSION { Err(Refusal::TooManyVersions) } else { Ok(free) }
    }

    fn find_version(&self, library: &str, version: &str) -> Option<(usize, usize)> {
        let needs = self.contents.needs.iter().enumerate().filter(|(_, need)| need.file.is(library));
        needs
            .map(|(index, need)| (index, need.versions.iter().position(|v| v.name.is(version))))
            .find_map(|(need, position)| position.map(|position| (need, position)))
    }

    fn set_version(&mut self, symbol: usize, version: u16) {
        let Some(symbol) = self.contents.symbols.get_mut(symbol) else { return };
        if symbol.version_index() != version {
            self.vacated.insert(symbol.version_index());
            symbol.version = version;
        }
    }

    fn reindex(&mut self, from: u16, to: u16) {
        let (from, to) = (from & !VERSYM_HIDDEN, to & !VERSYM_HIDDEN);
        for symbol in self.contents.symbols.iter_mut().filter(|symbol| symbol.version_index() == from) {
            symbol.version = to;
        }
    }

    /// Symbols of versions that are gone refer to their names alone.
    fn forget_versions(&mut self, indices: &[u16]) {
        for &index in indices {
            self.reindex(index, VER_NDX_GLOBAL);
        }
    }

    /// Keeps `DT_VERNEEDNUM` true. Without any need the tags go: glibc reads a first record whatever the count says.
    fn count_version_files(&mut self) {
        let count = self.contents.needs.len() as u64;
        let entries = &mut self.contents.entries;
        if count == 0 {
            entries.retain(|entry| !matches!(entry.tag, DT_VERNEED | DT_VERNEEDNUM));
        }
        // Without any version glibc makes no table of versions, and DT_VERSYM leads it into the one that is not there.
        if count == 0 && self.contents.definitions.is_empty() && self.contents.has_versions {
            entries.retain(|entry| entry.tag != DT_VERSYM);
            self.contents.has_versions = false;
            for symbol in &mut self.contents.symbols {
                symbol.version = VER_NDX_GLOBAL;
            }
        }
        for entry in entries.iter_mut().filter(|entry| entry.tag == DT_VERNEEDNUM) {
            entry.value = Value::Number(count);
        }
    }

    /// A version that no symbol has any more would still be demanded by the loader.
    fn drop_vacated_versions(&mut self) {
        if self.vacated.is_empty() {
            return;
        }
        let used: BTreeSet<u16> = self.contents.symbols.iter().map(Symbol::version_index).collect();
        for need in &mut self.contents.needs {
            need.versions.retain(|version| {
                let index = version.index & !VERSYM_HIDDEN;
                used.contains(&index) || !self.vacated.contains(&index)
            });
        }
        self.contents.needs.retain(|need| !need.versions.is_empty());
    }
}

/// Symbols.
impl Editor<'_, '_> {
    fn select(&mut self, names: &[SymbolName]) -> Result<Vec<usize>, Refusal> {
        self.select_or_done(names, None)
    }

    /// A symbol that is not there with its old version may be there with its new one: then the work is done.
    fn select_or_done(
        &mut self,
        names: &[SymbolName],
        new: Option<&RequiredVersion>,
    ) -> Result<Vec<usize>, Refusal> {
        let mut selected = Vec::new();
        for name in names {
            let mut found = self.find_symbols(name);
            if let Some(new) = new.filter(|_| found.is_empty()) {
                let done = SymbolName { name: name.name.clone(), version: Some(new.version.clone()) };
                found = self.find_symbols(&done);
            }
            if found.is_empty() {
                return Err(Refusal::SymbolNotFound(name.to_string()));
            }
            selected.extend(found);
        }
        Ok(selected)
    }

    fn find_symbols(&mut self, wanted: &SymbolName) -> Vec<usize> {
        let contents = &*self.contents;
        let by_name = self.by_name.get_or_insert_with(|| {
            let mut by_name: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
            for (index, symbol) in contents.symbols.iter().enumerate().skip(1) {
                by_name.entry(symbol.name.bytes().to_vec()).or_default().push(index);
            }
            by_name
        });
        let candidates = by_name.get(wanted.name.as_bytes()).map(Vec::as_slice).unwrap_or_default();
        let is_meant = |index: &&usize| match (&wanted.version, contents.symbols.get(**index)) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(version), Some(symbol)) => {
                contents.version_name(symbol).is_some_and(|name| name.is(version))
            }
        };
        candidates.iter().filter(is_meant).copied().collect()
    }

    fn change_symbols(&mut self, names: &[SymbolName], change: impl Fn(&mut Symbol)) -> Result<(), Refusal> {
        for index in self.select(names)? {
            change(&mut self.contents.symbols[index]);
        }
        Ok(())
    }

    fn rename_symbol(&mut self, from: &SymbolName, to: &str) -> Result<(), Refusal> {
        check_name("the symbol", to)?;
        let selected = self.find_symbols(from);
        if selected.is_empty() {
            let renamed = SymbolName { name: to.to_owned(), version: from.version.clone() };
            if self.find_symbols(&renamed).is_empty() {
                return Err(Refusal::SymbolNotFound(from.to_string()));
            }
        }
        for index in selected {
            self.contents.symbols[index].name.set(to);
            self.by_name = None;
        }
        Ok(())
    }

    fn demote_unique(&mut self, to: Binding) {
        for symbol in self.contents.symbols.iter_mut().filter(|s| s.raw.binding() == STB_GNU_UNIQUE) {
            symbol.raw.set_binding(binding_number(to));
        }
    }

    fn hide(&mut self, names: &[SymbolName]) -> Result<(), Refusal> {
        let selected = self.select(names)?;
        if let Some(&undefined) =
            selected.iter().find(|&&index| self.contents.symbols[index].raw.is_undefined())
        {
            return Err(self.wrong_state(undefined, "undefined, so that nobody can bind to it anyway"));
        }
        for index in selected {
            let symbol = &mut self.contents.symbols[index];
            symbol.raw.set_visibility(STV_HIDDEN);
            (symbol.in_gnu_hash, symbol.in_sysv_hash) = (false, false);
        }
        Ok(())
    }

    fn undefine(&mut self, names: &[SymbolName], version: Option<&RequiredVersion>) -> Result<(), Refusal> {
        let selected = self.select_or_done(names, version)?;
        let index = match version {
            Some(version) => self.version_index(version)?,
            None => VER_NDX_GLOBAL,
        };
        for symbol in selected {
            self.set_version(symbol, index);
            let symbol = &mut self.contents.symbols[symbol];
            symbol.raw.shndx = SHN_UNDEF;
            (symbol.raw.value, symbol.raw.size) = (0, 0);
            symbol.raw.set_binding(STB_GLOBAL);
            symbol.raw.set_visibility(STV_DEFAULT);
            symbol.in_gnu_hash = false;
        }
        Ok(())
    }

    fn wrong_state(&self, symbol: usize, state: &'static str) -> Refusal {
        let name = self.contents.symbols.get(symbol).map(|symbol| symbol.name.display().into_owned());
        Refusal::WrongSymbolState { symbol: name.unwrap_or_default(), state }
    }
}

fn is_needed(entry: &Entry, library: &str) -> bool {
    entry.tag == DT_NEEDED && matches!(&entry.value, Value::Text(text) if text.is(library))
}

fn search_path_tag(kind: SearchPathKind) -> u64 {
    match kind {
        SearchPathKind::Runpath => DT_RUNPATH,
        SearchPathKind::Rpath => DT_RPATH,
    }
}

fn binding_number(binding: Binding) -> u8 {
    match binding {
        Binding::Global => STB_GLOBAL,
        Binding::Weak => STB_WEAK,
    }
}

fn visibility_number(visibility: Visibility) -> u8 {
    match visibility {
        Visibility::Default => STV_DEFAULT,
        Visibility::Protected => STV_PROTECTED,
        Visibility::Hidden => STV_HIDDEN,
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.contains('\0') {
        return Err(Refusal::BadName { what, name: name.to_owned() });
    }
    Ok(())
}
