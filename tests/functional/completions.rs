//! The completions of shells, as a shell asks for them.

use std::path::Path;
use std::process::Command;

use crate::fixture::{Programs, command, skip_reader, workspace};

/// The lines that a shell prints for `script` in a folder, after it has read the completions from `$1` or
/// `$FILE`. The command under test comes first in `PATH`. `None` with a printed reason if this machine does
/// not have the shell.
fn asked(shell: &str, script: &str, folder: &Path) -> Option<Vec<String>> {
    if Command::new(shell).arg("--version").output().is_err() {
        skip_reader(&format!("this machine has no {shell}"));
        return None;
    }
    let mut own = command(&workspace(), &["completions", shell]);
    let completions = own.output().expect("the command runs").stdout;
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let file = temporary.path().join("completions");
    std::fs::write(&file, completions).expect("a script");
    let program = Path::new(own.get_program()).parent().expect("a folder").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new(shell);
    shell.args(["-c", script, "shell"]).arg(&file).current_dir(folder);
    shell.env("PATH", format!("{}:{path}", program.display())).env("FILE", &file);
    // The results of a run are in the folder of the targets, and a person's zsh is not tested.
    shell.env_remove("CARGO_TARGET_DIR").env("ZDOTDIR", temporary.path());
    let output = shell.output().expect("the shell runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    Some(stdout.lines().map(|line| line.trim_end().to_owned()).collect())
}

/// The lines to complete, and the name of a test of `report_page`.
const LINES: [&str; 5] = [
    "cargo memcheck --device sim:a100-8",
    "cargo memcheck --max-pe",
    "cargo memcheck profile --sor",
    "cargo-memcheck prof",
    "cargo memcheck report_page::cl",
];

/// A script with each of [`LINES`] as `line`.
fn for_each_line(begin: &str, body: &str, end: &str) -> String {
    let lines: Vec<String> = LINES.iter().map(|line| format!("'{line}'")).collect();
    format!("{begin} {}\n{body}\n{end}\n", lines.join(" "))
}

/// A folder whose last run has the tests of `report_page`.
fn after_a_run() -> Programs {
    let programs = Programs::of("report_page");
    programs.run("cpu", &["--results", "target/memcheck/results"]).exits(100);
    programs
}

/// A line as readline gives it to the function that cargo's completions call.
#[test]
fn bash_completes_what_people_type_and_the_tests_of_the_last_run() {
    let body = r#"
    COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=($line) COMP_CWORD=$(($(wc -w <<<"$line") - 1)) COMPREPLY=()
    if [[ $line == cargo-* ]]; then _cargo_memcheck; else _cargo_or_memcheck; fi
    echo "${COMPREPLY[*]}""#;
    let begin = "source \"$1\"\ncompopt() { :; }\nfor line in";
    let script = for_each_line(begin, &format!("do{body}"), "done");
    let programs = after_a_run();
    let shown = asked("bash", &script, programs.path()).expect("bash runs");
    // bash replaces the text after the last colon.
    assert_eq!(shown, ["a100-80g", "--max-peak", "--sort", "profile", "clean"]);
}

/// `_describe`, which shows the candidates, prints them.
#[test]
fn zsh_completes_what_people_type_and_the_tests_of_the_last_run() {
    let begin = "compdef() { echo \"compdef $*\"; }\n_describe() { print -rl -- \"${(@P)2}\"; }\n\
                 source \"$1\"\nfor line in";
    let body = "do words=(${=line}); CURRENT=${#words}; _cargo-memcheck";
    let script = for_each_line(begin, body, "done");
    let programs = after_a_run();
    let Some(shown) = asked("zsh", &script, programs.path()) else { return };
    let begins = [
        "compdef _cargo-memcheck cargo-memcheck",
        // A colon separates the description.
        r"sim\:a100-80g:NVIDIA A100-SXM4-80GB",
        "--max-peak:",
        "--sort:",
        "profile:",
        r"report_page\:\:clean:",
    ];
    assert_eq!(shown.len(), begins.len(), "{shown:?}");
    for (line, begin) in shown.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line} does not begin with {begin}");
    }
    // cargo's own completion removes the word `cargo`.
    let script = for_each_line(
        begin,
        "do words=(${=line#cargo }); CURRENT=${#words}; _cargo-memcheck",
        "done",
    );
    assert_eq!(asked("zsh", &script, programs.path()), Some(shown));
}

#[test]
fn fish_completes_what_people_type_and_the_tests_of_the_last_run() {
    let script = for_each_line("source $FILE; for line in", "complete -C \"$line\"", "end");
    let programs = after_a_run();
    let Some(shown) = asked("fish", &script, programs.path()) else { return };
    let begins = [
        "sim:a100-80g\tNVIDIA A100-SXM4-80GB",
        "--max-peak\t",
        "--sort\t",
        "profile\t",
        "report_page::clean",
    ];
    assert_eq!(shown.len(), begins.len(), "{shown:?}");
    for (line, begin) in shown.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line} does not begin with {begin}");
    }
}

/// Before the first run no names are known, and that is not an error.
#[test]
fn without_a_run_no_test_is_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let script =
        "cargo-memcheck memcheck complete --shell bash -- cargo memcheck report_page::cl; echo $?";
    assert_eq!(asked("bash", script, folder.path()).expect("bash runs"), ["0"]);
}
