//! The commands of other programs that memcheck's texts name, each run as it is printed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{RUNTIME, files_below};
use crate::fixture::{Project, Run, cargo, memcheck, workspace};
use crate::which_candle::git;

/// The program and the subcommand of each command in backticks in the sources of the command, which has
/// an argument.
fn forms() -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for path in files_below(&workspace().join("cargo-memcheck/src")) {
        let text = std::fs::read_to_string(path).expect("a text");
        forms.extend(forms_of(&text));
    }
    forms
}

fn forms_of(text: &str) -> Vec<String> {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let lines: Vec<&str> = product.lines().filter(|line| !is_comment(line)).collect();
    let text = lines.join("\n");
    let quoted = text.split('`').map(|piece| piece.split_whitespace().collect::<Vec<_>>());
    let commands = quoted.filter(|words| {
        words.len() > 2 && ["cargo", "git"].contains(&words[0]) && words[1] != "memcheck"
    });
    commands.map(|words| words.join(" ")).collect()
}

/// The commands as the sources have them, and the test of this file that runs each.
const RUN: [(&str, &str); 4] = [
    ("cargo add --dev {RUNTIME} --git URL", "the_runtime_is_added"),
    ("cargo add {RUNTIME} --git URL", "the_runtime_is_added"),
    ("cargo add -p {name} candle-core", "candle_is_added"),
    ("git log --notes=memcheck", "the_notes_of_a_damaged_history_are_shown"),
];

#[test]
fn each_command_of_another_program_has_a_run() {
    let run: BTreeSet<String> = RUN.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(forms(), run);
    let own =
        std::fs::read_to_string(workspace().join("tests/functional/printed_commands/others.rs"));
    let own = own.expect("this file");
    for (command, test) in RUN {
        assert!(own.contains(&format!("#[test]\nfn {test}() {{")), "no test {test} runs {command}");
    }
    let more = "hint(\"`git notes show` and `cargo update -p a` and `cargo memcheck list` and `git`\");\n\
                // `cargo doc --open`\n#[cfg(test)]\n\"`git push -f`\"";
    assert_eq!(forms_of(more), ["git notes show", "cargo update -p a"]);
}

/// The command in backticks that begins with these words, in the output of a run.
#[track_caller]
fn named(run: &Run, begin: &str) -> Vec<String> {
    let text = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = text.split('`').find(|piece| piece.starts_with(begin));
    let command = command.unwrap_or_else(|| panic!("`{begin} is not in\n{}", run.stderr));
    shlex::split(command).expect("words of a shell")
}

/// Runs the words of a command of cargo or git in a folder. Cargo asks only the copy of the registry's index
/// that this machine has, unless it gets another home.
#[track_caller]
fn run_in(folder: &Path, words: &[String], home: Option<&PathBuf>) -> String {
    let mut command = match words[0].as_str() {
        "cargo" => cargo(),
        program => Command::new(program),
    };
    command.args(&words[1..]).current_dir(folder);
    match home {
        Some(home) => command.env("CARGO_HOME", home),
        None => command.env("CARGO_NET_OFFLINE", "true"),
    };
    let run = Run::from_output(&command.output().expect("the program runs")).exits(0);
    format!("{}{}", run.stdout, run.stderr)
}

/// A repository of a package with the name of the runtime, which cargo can fetch in a moment.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest =
        "[package]\nname = \"memcheck-runtime\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).expect("the manifest");
    std::fs::create_dir(folder.path().join("src")).expect("the folder is made");
    std::fs::write(folder.path().join("src/lib.rs"), "").expect("the library");
    git(folder.path(), &["init", "--quiet"]);
    git(folder.path(), &["add", "--all"]);
    git(folder.path(), &["commit", "--quiet", "--message", "All"]);
    folder
}

/// The table of a manifest.
fn table(project: &Project, name: &str) -> toml::Table {
    let manifest: toml::Table = project.read("Cargo.toml").parse().expect("a manifest");
    manifest.get(name).and_then(toml::Value::as_table).cloned().unwrap_or_default()
}

#[test]
fn the_runtime_is_added() {
    let repository = repository();
    let home = repository.path().join("home");
    let git = ["--git".to_owned(), format!("file://{}", repository.path().display())];
    // The other form of the sentences.
    let path = ["--path".to_owned(), workspace().join("memcheck-runtime").display().to_string()];
    let estimate = ["estimate", "--config", "config.json", "--seq", "8"];
    let (list, profile) = (["list"], ["profile", "--bin", "NAME"]);
    for (arguments, exit, begin, dependencies, source) in [
        (&list[..], 4, "cargo add --dev", "dev-dependencies", &git),
        (&list, 4, "cargo add --dev", "dev-dependencies", &path),
        (&estimate, 2, "cargo add --dev", "dev-dependencies", &git),
        // The program of a package whose tests have the runtime, from a folder.
        (&profile, 2, "cargo add memcheck-runtime", "dependencies", &path),
    ] {
        let is_profile = dependencies == "dependencies";
        let project = Project::bare(if is_profile { RUNTIME } else { "" });
        project.write("config.json", "{\"model_type\": \"llama\"}");
        project.write("src/main.rs", "fn main() {}\n");
        let name = |word: &&'static str| if *word == "NAME" { project.name() } else { *word };
        let arguments: Vec<&str> = arguments.iter().map(name).collect();
        let run = project.memcheck(&arguments).exits(exit).prints("--git URL");
        let words = named(&run, begin);
        let (words, of_source) = words.split_at(words.len() - 2);
        assert_eq!(of_source, ["--git", "URL"]);
        let words = [words, &source[..]].concat();
        // The copy of the repository is not left in the folder of this machine's cargo.
        run_in(project.path(), &words, (source == &git).then_some(&home));
        let added = &table(&project, dependencies)["memcheck-runtime"];
        assert_eq!(added.get("git").is_some(), source == &git, "{added}");
        assert_eq!(added.get("path").is_some(), source == &path, "{added}");
    }
}

#[test]
fn candle_is_added() {
    let project = Project::package("without-candle", "");
    let manifest = "[package]\nname = \"without-candle\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    project.write("Cargo.toml", manifest);
    let run = project.memcheck(&["init", "--yes", "--no-workflow"]).exits(2);
    let words = named(&run, "cargo add");
    assert_eq!(words[2..], ["-p", "without-candle", "candle-core"]);
    run_in(project.path(), &words, None);
    assert!(table(&project, "dependencies").contains_key("candle-core"));
    let next = project.memcheck(&["init", "--yes", "--no-workflow"]);
    assert!(!next.stderr.contains("does not depend on candle-core"), "{}", next.stderr);
}

#[test]
fn the_notes_of_a_damaged_history_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = "[package]\nname = \"noted\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).expect("the manifest");
    std::fs::create_dir(folder.path().join("src")).expect("the folder is made");
    std::fs::write(folder.path().join("src/lib.rs"), "").expect("the library");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "All"],
        &["notes", "--ref=memcheck", "add", "--message", "a line of a person"],
    ] {
        git(folder.path(), arguments);
    }
    let run = memcheck(folder.path(), &["history", "a", "--history", "git"]).exits(2);
    let words = named(&run, "git log");
    let shown = run_in(folder.path(), &words, None);
    assert!(shown.contains("Notes (memcheck):") && shown.contains("a line of a person"), "{shown}");
}
