//! In a user's workspace the command writes the package of the estimator.

use memcheck_core::wire::exit;

use super::{config, figures};
use crate::fixture::Project;

#[test]
fn another_workspace_builds_an_estimator_that_says_the_same() {
    let project = Project::new("");
    let config = config("smollm2-135m");
    let asked = ["--seq", "64", "--generate", "2", "--device", "sim:t4"];
    let mut all = vec!["estimate", "--config", &config, "--message-format", "json"];
    all.extend(asked);
    let run = project.memcheck(&all).exits(exit::OK);
    let lines = run.json();
    assert_eq!(lines[0], figures("smollm2-135m", &asked));
    assert_eq!((&lines[1]["device"], &lines[1]["fits"]), (&"sim:t4".into(), &true.into()));
    // The user's package must not change.
    assert!(!project.read("Cargo.toml").contains("memcheck-estimate"));
    assert!(!project.read("Cargo.lock").contains("memcheck-estimate"));
}

#[test]
fn without_the_runtime_there_is_no_estimator() {
    let project = Project::bare("");
    let config = config("smollm2-135m");
    let said = ["estimate", "--config", &config, "--seq", "8"];
    let run = project.memcheck(&said).exits(exit::USAGE);
    assert_eq!(run.stdout, "");
    run.says("comes with memcheck-runtime").says("cargo add --dev memcheck-runtime");
}
