//! `cargo memcheck init` in a fresh package, and the test that it writes.

use crate::fixture::{Project, workspace};

const MODEL: &str = "//! A user's package.
pub mod model;
";

const LAYER: &str = "use candle_core::{Module, Result, Tensor};

pub struct Doubled {
    offset: f64,
}

impl Doubled {
    pub fn new(offset: f64) -> Result<Self> {
        Ok(Self { offset })
    }
}

impl Module for Doubled {
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        xs.affine(2.0, self.offset)
    }
}
";

#[test]
fn a_fresh_package_gets_a_test_that_passes_and_nothing_is_replaced() {
    let project = Project::bare("");
    project.write("src/lib.rs", MODEL);
    project.write("src/model.rs", LAYER);
    // The workflow belongs to the root of the repository, which must not be that of this test.
    let mut git = std::process::Command::new("git");
    git.args(["init", "--quiet"]).current_dir(project.path());
    assert!(git.status().is_ok_and(|status| status.success()));
    let manifest = project.read("Cargo.toml");
    let root = workspace().display().to_string();

    // Without a terminal init shows its changes and does not write them.
    let asked = project.memcheck(&["init", "--path", &root]).exits(2);
    let asked = asked.prints("--yes writes these files without a question");
    assert!(asked.stderr.contains("+[dev-dependencies]"), "{}", asked.stderr);
    assert_eq!(project.read("Cargo.toml"), manifest);
    assert!(!project.has("tests/mem.rs") && !project.has(".github"));

    let written = project.memcheck(&["init", "--path", &root, "--yes", "--no-workflow"]).exits(0);
    let written = written.prints("the test runs `");
    assert!(written.stderr.contains("::model::Doubled::forward`"), "{}", written.stderr);
    assert!(!project.has(".github"));
    let changed = project.read("Cargo.toml");
    assert!(changed.starts_with(&manifest), "{changed}");
    let run = project.run(&[]).exits(0);
    let test = run.test("doubled_forward");
    assert_eq!(test["status"], "passed");
    // The output of the layer: 8 * 64 numbers of 4 bytes, beside the input.
    assert_eq!(test["metrics"]["host"]["growth"], 0);
    assert_eq!(test["metrics"]["host"]["setup"], 2048);
    assert_eq!(test["metrics"]["host"]["peak_allocated"], 4096);

    let again = project.memcheck(&["init", "--path", &root, "--yes"]).exits(2);
    again.prints("tests/mem.rs exists already").prints("--name gives the new file another name");
    // The dependency is there already, so that only the files are new.
    project.memcheck(&["init", "--yes", "--name", "second", "--git", "https://host/m"]).exits(0);
    assert_eq!(project.read("Cargo.toml"), changed);
    let workflow = project.read(".github/workflows/memcheck.yml");
    assert!(workflow.contains("cargo install --git \"https://host/m\""), "{workflow}");
    // As for another package of a workspace, for which the workflow is there already.
    let third = project.memcheck(&["init", "--yes", "--name", "third"]).exits(0);
    third.prints("memcheck.yml exists already and stays as it is");
    assert!(project.has("tests/third.rs"));
    assert_eq!(project.read(".github/workflows/memcheck.yml"), workflow);
}

#[test]
fn a_package_without_a_model_gets_a_test_that_passes() {
    let project = Project::bare("");
    // A dependency of the registry, and so is the command in the workflow.
    let asked = project.memcheck(&["init"]).exits(2);
    let version = env!("CARGO_PKG_VERSION");
    let asked = asked.prints(&format!("+memcheck-runtime = \"{version}\""));
    asked.prints(&format!("cargo install --version \"^{version}\" cargo-memcheck --locked"));

    let root = workspace().display().to_string();
    let written = project.memcheck(&["init", "--path", &root, "--yes", "--no-workflow"]).exits(0);
    written.prints("the test has a small model of its own");
    assert_eq!(project.run(&[]).exits(0).test("training_step")["status"], "passed");
}

#[test]
fn the_workflow_is_that_of_the_documentation() {
    let read = |path: &str| std::fs::read_to_string(workspace().join(path)).expect(path);
    let template = read("cargo-memcheck/templates/github-actions.yml");
    assert_eq!(template, read("docs/github-actions.yml"));
}
