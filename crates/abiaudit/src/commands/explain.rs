//! `abiaudit explain`: rules, version nodes, symbols, libraries.

use std::io::Write;

use abiaudit_rules::find;
use anyhow::bail;

use crate::CLEAN;
use crate::cli::ExplainArgs;

pub fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    for query in &args.queries {
        let Some(rule) = find(query) else {
            bail!("nothing is known of {query:?}; expected a rule (ABI101), a version node (GLIBCXX_3.4.26), a symbol or a library");
        };
        writeln!(out, "{} {} ({})\n\n{}", rule.id, rule.name, rule.severity.as_str(), rule.documentation())?;
    }
    Ok(CLEAN)
}
