//! In a user's workspace the command writes the package of the estimator.

use memcheck_core::wire::exit;

use super::{config, figures};
use crate::fixture::Project;

/// The crates of candle whose profile the estimator shares with this workspace.
const MANIFEST: &str = "\
candle-nn = \"0.11.1\"
candle-transformers = \"0.11.1\"
[dev-dependencies]
memcheck-runtime = { path = \"RUNTIME\" }
";

#[test]
#[ignore = "slow: just all"]
fn an_estimator_that_another_workspace_builds_has_the_same_figures() {
    let project = Project::bare(MANIFEST);
    let config = config("smollm2-135m");
    let options = ["--seq", "64", "--generate", "2", "--device", "sim:l4"];
    let mut all = vec!["estimate", "--config", &config, "--message-format", "json"];
    all.extend(options);
    let run = project.memcheck(&all).exits(exit::OK);
    let lines = run.json();
    assert_eq!(lines[0], figures("smollm2-135m", &options));
    assert_eq!((&lines[1]["device"], &lines[1]["fits"]), (&"sim:l4".into(), &true.into()));
    // The user's package must not change.
    assert!(!project.read("Cargo.toml").contains("memcheck-estimate"));
    assert!(!project.read("Cargo.lock").contains("memcheck-estimate"));
}

#[test]
fn a_workspace_without_the_runtime_cannot_estimate() {
    let project = Project::bare("");
    let config = config("smollm2-135m");
    let arguments = ["estimate", "--config", &config, "--seq", "8"];
    let run = project.memcheck(&arguments).exits(exit::USAGE);
    assert_eq!(run.stdout, "");
    run.prints("comes with memcheck-runtime").prints("cargo add --dev memcheck-runtime");
}
