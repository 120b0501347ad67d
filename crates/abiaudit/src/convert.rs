//! From an audit to the report's data model.

use std::collections::BTreeMap;

use abiaudit_report::model;
use abiaudit_rules::{
    Audit, AuditObject, Blockers, ClaimVerdict, Evidence, External, Finding, LibraryBlocker, LibraryReason,
    Origin, Role, Severity, Step, SymbolBlocker, Verdict, demangle, since,
};
use abiaudit_scan::{ScanError, SubjectKind};

/// The report of one audited input.
pub fn wheel(audit: &Audit<'_>, findings: &[Finding]) -> model::Wheel {
    let subject = audit.subject;
    let (name, version) = subject.name_and_version().unzip();
    model::Wheel {
        path: subject.path.clone(),
        kind: match subject.kind {
            SubjectKind::Wheel => model::InputKind::Wheel,
            SubjectKind::Distribution | SubjectKind::Directory => model::InputKind::Directory,
            SubjectKind::File => model::InputKind::File,
        },
        name,
        version,
        sha256: subject.sha256.map(|hash| hex(&hash)),
        tags: audit.platform_tags.iter().map(ToString::to_string).collect(),
        arch: audit.platform.map(|p| p.arch.tag().to_owned()),
        libc: audit.platform.map(|p| p.libc.to_string()),
        pure: audit.is_pure(),
        not_judged: audit.not_judged(),
        verdict: audit.verdict.as_ref().map(|v| verdict(audit, v)),
        objects: audit.objects.iter().map(object).collect(),
        external: audit.externals.iter().map(|e| external(audit, e)).collect(),
        ladder: audit.verdict.iter().flat_map(|v| &v.ladder).map(|step| rung(audit, step)).collect(),
        findings: findings.iter().map(finding).collect(),
        error: None,
    }
}

/// The report of an input that could not be read.
pub fn unreadable(path: &str, error: &ScanError) -> model::Wheel {
    model::Wheel {
        path: path.to_owned(),
        error: Some(model::WheelError { kind: error.kind().to_owned(), message: error.reason() }),
        ..model::Wheel::default()
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn verdict(audit: &Audit<'_>, verdict: &Verdict) -> model::Verdict {
    let broken = verdict.claims.iter().find(|c| !c.holds);
    let claim = broken.or(verdict.claims.first()).map(|c| c.tag.clone());
    model::Verdict {
        tag: verdict.tag.clone(),
        tag_with_providers: verdict.tag_with_providers.clone(),
        by: model::Criteria {
            symbols: verdict.by.symbols.clone(),
            libraries: verdict.by.libraries.clone(),
            forbidden: verdict.by.forbidden.clone(),
            isa: verdict.by.isa.clone(),
            python: verdict.by.python.clone(),
        },
        claim_ok: verdict.claim_ok,
        claim,
        reasons: broken.map(|c| reasons(audit, c)).unwrap_or_default(),
        python_abi: python_abi(audit),
    }
}

/// Why the claim does not hold, a line for each kind of reason.
fn reasons(audit: &Audit<'_>, claim: &ClaimVerdict) -> Vec<String> {
    let mut reasons = Vec::new();
    // A node stands for all its symbols.
    let symbols: std::collections::BTreeSet<&str> =
        claim.blockers.symbols.iter().filter_map(|s| s.node.as_deref().or(s.symbol.as_deref())).collect();
    if !symbols.is_empty() {
        reasons.push(format!("symbols: {}", symbols.into_iter().collect::<Vec<_>>().join(", ")));
    }
    if !claim.blockers.libraries.is_empty() {
        let names: Vec<&str> = claim.blockers.libraries.iter().map(|l| l.soname.as_str()).collect();
        reasons.push(format!("libraries: {}", names.join(", ")));
    }
    reasons.extend(other(audit, &claim.blockers));
    reasons
}

fn python_abi(audit: &Audit<'_>) -> model::PythonAbi {
    let step = audit.verdict.iter().flat_map(|v| &v.ladder).next();
    let symbols = || step.into_iter().flat_map(|s| &s.blockers.python).flat_map(|(_, symbols)| symbols);
    model::PythonAbi {
        pyfpe: symbols().any(|s| s.starts_with("PyFPE_")),
        ucs2: symbols().any(|s| s.contains("PyUnicodeUCS2_")),
    }
}

fn object(entry: &AuditObject<'_>) -> model::Object {
    let object = entry.object;
    let paths = |name: &Option<abiaudit_elf::Name>| -> Vec<String> {
        name.iter().flat_map(|n| n.to_text().split(':').map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let mut versions: BTreeMap<String, String> = BTreeMap::new();
    let mut by_library: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for need in &object.versions.needs {
        let nodes = by_library.entry(need.library.to_text()).or_default();
        for version in &need.versions {
            let node = version.name.to_text();
            keep_newest(&mut versions, &node);
            nodes.push(node);
        }
        nodes.sort();
        nodes.dedup();
    }
    model::Object {
        member: entry.member.name.clone(),
        soname: object.dynamic.soname.as_ref().map(abiaudit_elf::Name::to_text),
        needed: object.dynamic.needed.iter().map(abiaudit_elf::Name::to_text).collect(),
        rpath: paths(&object.dynamic.rpath),
        runpath: paths(&object.dynamic.runpath),
        versions,
        runtimes: entry.carries.runtimes().into_iter().map(runtime).collect(),
        arch: Some(object.identity.machine_name()),
        object_type: Some(role(&entry.role).to_owned()),
        build_id: object.notes.build_id_hex(),
        versions_by_library: by_library,
        compilers: entry.carries.compilers.iter().map(|compiler| compiler.text.clone()).collect(),
        producers: Vec::new(),
    }
}

fn runtime(runtime: abiaudit_rules::Runtime) -> model::Runtime {
    let abiaudit_rules::Runtime { kind, class, exposure, evidence } = runtime;
    model::Runtime { kind: kind.to_owned(), class, exposure: exposure.to_owned(), evidence }
}

fn role(role: &Role) -> &'static str {
    match role {
        Role::Extension(_) => "extension",
        Role::Program => "program",
        Role::Library => "library",
        Role::NotLinked => "object file",
        Role::Debug => "debug information",
    }
}

/// Keeps the newest numbered node of each family: `GLIBC` -> `2.17`.
fn keep_newest(newest: &mut BTreeMap<String, String>, node: &str) {
    let Some((family, version)) =
        node.rsplit_once('_').filter(|(_, v)| v.starts_with(|c: char| c.is_ascii_digit()))
    else {
        return;
    };
    let older = |known: &String| {
        abiaudit_policy::compare_versions(known, version).is_some_and(std::cmp::Ordering::is_lt)
    };
    if newest.get(family).is_none_or(older) {
        newest.insert(family.to_owned(), version.to_owned());
    }
}

fn external(audit: &Audit<'_>, external: &External) -> model::External {
    let provider = match &external.origin {
        Origin::Provider { provider, declared_by } => Some((provider, Some(declared_by.clone()))),
        Origin::Driver(provider) | Origin::Host(provider) => Some((provider, None)),
        _ => None,
    };
    model::External {
        soname: external.soname.clone(),
        needed_by: external.needed_by.iter().map(|&i| audit.member_name(i).to_owned()).collect(),
        provider: provider.map(|(provider, declared_as)| model::Provider {
            distribution: provider.distribution.clone().unwrap_or_else(|| provider.note.clone()),
            lib_dir: provider.lib_dir.clone(),
            declared_as,
        }),
        class: match &external.origin {
            Origin::System => model::ExternalClass::System,
            Origin::Provider { .. } => model::ExternalClass::Provider,
            Origin::Driver(_) => model::ExternalClass::Driver,
            Origin::Host(_) => model::ExternalClass::Host,
            Origin::Undeclared(_) | Origin::LibPython | Origin::Unknown => model::ExternalClass::Unprovided,
        },
    }
}

fn rung(audit: &Audit<'_>, step: &Step) -> model::Rung {
    let blockers = &step.blockers;
    model::Rung {
        tag: step.target.tag(),
        symbols: blockers.symbols.iter().map(|s| ladder_symbol(audit, s)).collect(),
        libraries: blockers.libraries.iter().map(|l| l.soname.clone()).collect(),
        forbidden: blockers
            .forbidden
            .iter()
            .map(|f| model::LadderSymbol {
                member: audit.member_name(f.object).to_owned(),
                symbol: f.symbol.clone(),
                version: None,
                library: Some(f.library.clone()),
                demangled: None,
                since: None,
            })
            .collect(),
        other: blockers.libraries.iter().filter_map(library_reason).chain(other(audit, blockers)).collect(),
    }
}

fn ladder_symbol(audit: &Audit<'_>, blocker: &SymbolBlocker) -> model::LadderSymbol {
    let symbol = blocker.symbol.clone().unwrap_or_default();
    let readable = demangle(&symbol);
    model::LadderSymbol {
        member: audit.member_name(blocker.object).to_owned(),
        version: blocker.node.clone(),
        library: Some(blocker.library.clone()),
        demangled: (readable != symbol).then_some(readable),
        since: blocker.node.as_deref().and_then(since),
        symbol,
    }
}

/// What the soname alone does not say.
fn library_reason(blocker: &LibraryBlocker) -> Option<String> {
    match &blocker.reason {
        LibraryReason::NotPromised => None,
        LibraryReason::MustBundle(reason) => {
            Some(format!("{} must come with the wheel: {reason}", blocker.soname))
        }
        LibraryReason::Denied(reason) => Some(format!("{} is not wanted: {reason}", blocker.soname)),
        LibraryReason::Unreachable { .. } => {
            Some(format!("{} is in the input, but no search path leads there", blocker.soname))
        }
    }
}

fn other(audit: &Audit<'_>, blockers: &Blockers) -> Vec<String> {
    let isa = blockers.isa.iter().map(|(object, level)| {
        format!("{} needs a processor of level {level:?}", audit.member_name(*object))
    });
    let python = blockers
        .python
        .iter()
        .map(|(object, symbols)| format!("{} uses {}", audit.member_name(*object), symbols.join(", ")));
    isa.chain(python).collect()
}

fn finding(finding: &Finding) -> model::Finding {
    model::Finding {
        rule: finding.rule.id.to_owned(),
        name: finding.rule.name.to_owned(),
        severity: severity(finding.severity),
        member: finding.member.clone(),
        message: finding.message.clone(),
        help: finding.help.clone(),
        evidence: finding.evidence.iter().map(evidence).collect(),
        count: finding.evidence.len().max(1),
        suppressed: finding
            .suppressed
            .as_ref()
            .map(|s| model::Suppression { reason: s.reason.clone(), expires: s.expires.clone() }),
    }
}

/// Severities are two types so that the report knows nothing of rules.
pub fn severity(severity: Severity) -> model::Severity {
    match severity {
        Severity::Info => model::Severity::Info,
        Severity::Warning => model::Severity::Warning,
        Severity::Error => model::Severity::Error,
    }
}

fn evidence(evidence: &Evidence) -> model::Evidence {
    let demangled =
        evidence.symbol.as_ref().map(|s| demangle(s)).filter(|d| Some(d) != evidence.symbol.as_ref());
    model::Evidence {
        symbol: evidence.symbol.clone(),
        demangled,
        version: evidence.version.clone(),
        since: evidence.version.as_deref().and_then(since),
        library: evidence.library.clone(),
        member: evidence.member.clone(),
        note: evidence.note.clone(),
    }
}
