//! Prints the findings on wheels, one a line, and how long the audit took.
//!
//! ```text
//! cargo run --release -p abiaudit-rules --example findings -- [--select RULE].. WHEEL..
//! ```

#![allow(clippy::print_stdout, reason = "its purpose")]

use std::path::Path;
use std::time::Instant;

use abiaudit_rules::{Audit, Settings};

fn main() {
    let mut settings = Settings::default();
    let mut arguments = std::env::args().skip(1);
    let mut wheels = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--select" => settings.select.extend(arguments.next()),
            _ => wheels.push(argument),
        }
    }
    for wheel in &wheels {
        let subjects = match abiaudit_scan::scan(Path::new(wheel), &abiaudit_scan::Options::default()) {
            Ok(subjects) => subjects,
            Err(error) => {
                println!("{wheel}: {error}");
                continue;
            }
        };
        for subject in &subjects {
            let start = Instant::now();
            let audit = Audit::new(subject, &settings);
            let modelled = start.elapsed();
            let findings = abiaudit_rules::run(&audit);
            let base = wheel.rsplit('/').next().unwrap_or(wheel);
            let tag = audit.verdict.as_ref().map_or("none", |v| v.tag.as_str());
            let rules = start.elapsed().saturating_sub(modelled);
            println!("# {base}: {tag}; model {modelled:?}, rules {rules:?}");
            for finding in findings {
                let member = finding.member.as_deref().unwrap_or("-");
                let (rule, severity) = (finding.rule.id, finding.severity.as_str());
                println!("{base}|{rule}|{severity}|{member}|{}", finding.message);
                for evidence in finding.evidence.iter().take(4) {
                    let parts = [
                        &evidence.member,
                        &evidence.symbol,
                        &evidence.version,
                        &evidence.library,
                        &evidence.note,
                    ];
                    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
                    println!("    {}", parts.join(" | "));
                }
            }
        }
    }
}
