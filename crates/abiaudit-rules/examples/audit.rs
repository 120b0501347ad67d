//! Prints the verdict and the findings of each input, one a line and separated by tabs, for looking at many wheels
//! at once: `cargo run -p abiaudit-rules --example audit -- [--select RULE,..] PATH..`

use std::io::Write as _;
use std::path::Path;

use abiaudit_rules::{Audit, Finding, Settings, run};
use abiaudit_scan::{Options, scan};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut settings = Settings::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--select" {
            let rules = arguments.next().unwrap_or_default();
            settings.select = rules.split(',').map(str::to_owned).collect();
            continue;
        }
        let subjects = match scan(Path::new(&argument), &Options::default()) {
            Ok(subjects) => subjects,
            Err(error) => {
                writeln!(out, "{argument}\tunreadable\t{}\t\t{error}", error.kind())?;
                continue;
            }
        };
        for subject in &subjects {
            let audit = Audit::new(subject, &settings);
            let tag = audit.verdict.as_ref().map_or("-", |v| v.tag.as_str());
            let claim =
                audit.verdict.as_ref().map_or("not judged", |v| if v.claim_ok { "holds" } else { "fails" });
            writeln!(out, "{}\tverdict\t{tag}\t\tclaim {claim}", subject.path)?;
            for finding in run(&audit) {
                print(&mut out, &subject.path, &finding)?;
            }
        }
    }
    Ok(())
}

fn print(out: &mut impl std::io::Write, path: &str, finding: &Finding) -> std::io::Result<()> {
    const MOST_EVIDENCE: usize = 4;
    writeln!(
        out,
        "{path}\t{}\t{}\t{}\t{}",
        finding.severity.as_str(),
        finding.rule.id,
        finding.member.as_deref().unwrap_or("-"),
        finding.message
    )?;
    for evidence in finding.evidence.iter().take(MOST_EVIDENCE) {
        let parts =
            [&evidence.member, &evidence.symbol, &evidence.version, &evidence.library, &evidence.note];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        writeln!(out, "{path}\tevidence\t{}\t\t{}", finding.rule.id, parts.join(" | "))?;
    }
    Ok(())
}
