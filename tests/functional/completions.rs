//! The completions of shells, as a shell asks for them.

use std::process::Command;

use crate::fixture::{command, skip_reader, workspace};

/// What a shell prints for `script`, after it has read the completions from `$1`. The command under test
/// comes first in `PATH`.
fn asked(shell: &str, script: &str) -> Option<String> {
    let own = command(&workspace(), &["completions", shell]);
    let completions =
        String::from_utf8(command(&workspace(), &["completions", shell]).output().ok()?.stdout);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("completions");
    std::fs::write(&file, completions.expect("UTF-8")).expect("a script");
    let program = std::path::Path::new(own.get_program()).parent().expect("a folder").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new(shell);
    shell.args(["-c", script, "shell"]).arg(&file).current_dir(workspace());
    shell.env("PATH", format!("{}:{path}", program.display())).env("FILE", &file);
    let output = shell.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A line as readline gives it to the function that cargo's completions call.
const BASH: &str = r#"
source "$1"
compopt() { :; }
for COMP_LINE in 'cargo memcheck --device sim:a100-8' 'cargo memcheck --max-pe' 'cargo memcheck profile --sor' 'cargo-memcheck prof'; do
    COMP_POINT=${#COMP_LINE} COMP_WORDS=($COMP_LINE) COMP_CWORD=$(($(wc -w <<<"$COMP_LINE") - 1)) COMPREPLY=()
    if [[ $COMP_LINE == cargo-* ]]; then _cargo_memcheck; else _cargo_or_memcheck; fi
    echo "$COMP_LINE -> ${COMPREPLY[*]}"
done
"#;

#[test]
fn bash_completes_what_people_type() {
    let shown = asked("bash", BASH).expect("bash runs");
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        [
            // bash replaces what follows the last colon.
            "cargo memcheck --device sim:a100-8 -> a100-80g",
            "cargo memcheck --max-pe -> --max-peak",
            "cargo memcheck profile --sor -> --sort",
            "cargo-memcheck prof -> profile",
        ]
    );
}

#[test]
fn fish_completes_what_people_type() {
    let script = "source $FILE; complete -C 'cargo memcheck --device sim:a100-8'";
    match asked("fish", script) {
        Some(shown) => assert_eq!(shown.trim_end(), "sim:a100-80g\tNVIDIA A100-SXM4-80GB"),
        None => skip_reader("this machine has no fish"),
    }
}
