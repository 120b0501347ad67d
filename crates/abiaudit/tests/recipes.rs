//! The commands in docs/recipes do what the pages say: every `abiaudit` command line in a fenced block is run, once where
//! `dist` has a wheel that keeps its promise and once where it has one that does not.
//!
//! A block's first line may say what to expect of good wheels: ```` ```console exit=1 ````.
#![allow(clippy::print_stderr, reason = "says what was skipped")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{folder, honest, liar, run};

/// One command line of a page.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    page: String,
    command: String,
    /// Exit code with wheels that keep their promise.
    code: i32,
}

/// The languages of blocks in which commands are looked for.
const LANGUAGES: [&str; 4] = ["console", "yaml", "sh", "toml"];

fn recipes_of(page: &str, text: &str) -> Vec<Recipe> {
    let mut recipes = Vec::new();
    let mut block: Option<i32> = None;
    for line in text.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let mut words = info.split_whitespace();
            let known = words.next().is_some_and(|language| LANGUAGES.contains(&language));
            let code = words
                .find_map(|word| word.strip_prefix("exit="))
                .map_or(0, |code| code.parse().expect("a code"));
            block = (block.is_none() && known).then_some(code);
        } else if let (Some(code), Some(command)) = (block, command(line)) {
            recipes.push(Recipe { page: page.to_owned(), command, code });
        }
    }
    recipes
}

/// The command line in a line of a block: behind a prompt, or as a value of YAML or TOML.
fn command(line: &str) -> Option<String> {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("- ").unwrap_or(line);
    let value =
        ["run: ", "audit-command = \"", "audit-command = ["].iter().find_map(|key| line.strip_prefix(key));
    let line = value.unwrap_or(line).trim_end_matches(['"', ']']).trim_matches('"');
    let line = line.replace("{wheel}", "dist/*.whl");
    let is_ours = line.split('|').any(|part| part.trim().starts_with("abiaudit "));
    is_ours.then_some(line)
}

/// Runs a command line in a folder as a shell would, with the program under test on the search path.
fn shell(line: &str, directory: &Path) -> common::Run {
    let program = Path::new(env!("CARGO_BIN_EXE_abiaudit"));
    let path = format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(directory).env("PATH", path).stdin(Stdio::null());
    run(command.env_remove("GITHUB_STEP_SUMMARY"))
}

fn all_recipes() -> Vec<Recipe> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        recipes_of(&name, &fs::read_to_string(path).expect("a page"))
    };
    pages.iter().flat_map(read).collect()
}

#[test]
fn recipes_work() {
    let recipes = all_recipes();
    if recipes.is_empty() {
        eprintln!("SKIPPED: docs/recipes has no commands");
        return;
    }
    for (wheel, good) in [(honest(), true), (liar(), false)] {
        for recipe in &recipes {
            let folder = folder();
            let dist = folder.path().join("dist");
            fs::create_dir(&dist).expect("a folder");
            wheel.write(&dist);
            let result = shell(&recipe.command, folder.path());
            let fails = !good && recipe.command.contains("abiaudit check");
            let expected = if fails { 1 } else { recipe.code };
            assert_eq!(result.code, Some(expected), "good wheel: {good}, {recipe:?}: {result:?}");
        }
    }
}

#[test]
fn commands_are_found() {
    let page = "text `abiaudit x`\n```console\n$ abiaudit check dist/*.whl\noutput\n```\n```yaml exit=1\n  run: abiaudit check a\n    - find x | abiaudit check -\n```\n```toml\naudit-command = \"abiaudit check {wheel}\"\n```\n```python\nabiaudit no\n```\n";
    let found: Vec<(String, i32)> = recipes_of("p", page).into_iter().map(|r| (r.command, r.code)).collect();
    let expected = [
        ("abiaudit check dist/*.whl", 0),
        ("abiaudit check a", 1),
        ("find x | abiaudit check -", 1),
        ("abiaudit check dist/*.whl", 0),
    ];
    assert_eq!(found, expected.map(|(command, code)| (command.to_owned(), code)));
}
