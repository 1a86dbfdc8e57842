//! The pictures of the HTML report in the documentation: a package whose last commit made three tests
//! worse. `SCREENSHOTS=write` writes them (`scripts/report-screenshots`), each with the text of its page.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::browser::Page;
use crate::fixture::{Project, memcheck, own_directory, workspace};
use crate::report_page::{OPENED, READY};

const MANIFEST: &str = "candle-nn = \"0.11.1\"\n\n\
                        [dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n";

const TESTS: &str = r#"//! The memory of training and generation.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};
use tiny_transformer::attention::attend;
use tiny_transformer::layers::{KeptGradients, LastLogits, RunningLoss};
use tiny_transformer::training::Trainer;

#[mem_test(max_growth = "0 B")]
fn training_step(trial: &mut Trial) -> Result<()> {
    let mut trainer = Trainer::new(trial.device())?;
    trial.iterate(|_| trainer.train())
}

#[mem_test(max_growth = "0 B")]
fn evaluation(trial: &mut Trial) -> Result<()> {
    let trainer = Trainer::new(trial.device())?;
    trial.iterate(|_| trainer.loss().map(drop))
}

#[mem_test(max_growth = "0 B")]
fn attention_of_one_head(trial: &mut Trial) -> Result<()> {
    let query = Tensor::ones((512, 64), DType::F32, trial.device())?;
    trial.iterate(|_| attend(&query).map(drop))
}

#[mem_test(max_growth = "0 B")]
fn last_logits(trial: &mut Trial) -> Result<()> {
    let mut logits = LastLogits::new(trial.device())?;
    trial.iterate(|_| logits.keep_last())
}

#[mem_test(max_growth = "0 B")]
fn gradient_norms(trial: &mut Trial) -> Result<()> {
    let mut gradients = KeptGradients::new(trial.device())?;
    trial.iterate(|_| gradients.fixed_step())
}

#[mem_test(max_growth = "0 B")]
fn running_loss(trial: &mut Trial) -> Result<()> {
    let mut running = RunningLoss::new(trial.device())?;
    trial.iterate(|_| running.fixed_step())
}

#[mem_test]
fn loading_the_weights(device: &Device) -> Result<()> {
    Trainer::new(device).map(drop)
}

#[mem_test]
#[ignore = "takes minutes"]
fn a_prompt_of_100_000_tokens(device: &Device) -> Result<()> {
    let query = Tensor::ones((100_000, 64), DType::F32, device)?;
    attend(&query).map(drop)
}
"#;

const ATTENTION: &str = r#"//! Attention of one head.

use candle_core::{D, Result, Tensor};
use candle_nn::ops::softmax;

/// The weighted sum of the values, `(seq, width)`.
pub fn attend(query: &Tensor) -> Result<Tensor> {
    let scores = (query.matmul(&query.t()?)? * 0.125)?;
    let weights = softmax(&scores, D::Minus1)?;
    weights.matmul(query)
}
"#;

/// What the last commit changed: `(file, before, after)`.
const CHANGES: [(&str, &str, &str); 3] = [
    (
        "src/attention.rs",
        "    let weights =",
        "    let _for_the_log = scores.copy()?;\n    let weights =",
    ),
    ("src/training.rs", "self.history.push(loss.to_scalar()?);", "self.kept.push(loss);"),
    (
        "src/layers.rs",
        "self.kept.push(self.last()?.force_contiguous()?);\n        self.kept.truncate(1);",
        "self.kept.push(self.last()?);",
    ),
];

/// A source of the package `memcheck-tests` before the change.
fn source(file: &str) -> String {
    let text = std::fs::read_to_string(workspace().join("tests/src").join(file)).expect(file);
    let leak = "    /// The leak: a step whose loss is kept with its graph.\n";
    let text = text.replace(leak, "    /// A step that keeps its loss.\n");
    let text = text.replace("pub fn leaky_step(&mut self) -> Result<()> {\n        let loss = self.step()?;\n        self.kept.push(loss);", "pub fn train(&mut self) -> Result<()> {\n        let loss = self.step()?;\n        self.history.push(loss.to_scalar()?);");
    text.replace("pub fn leaky_step(&mut self) -> Result<()> {\n        self.kept.push(self.last()?);", "pub fn keep_last(&mut self) -> Result<()> {\n        self.kept.push(self.last()?.force_contiguous()?);\n        self.kept.truncate(1);")
}

fn git(project: &Project, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]).args(arguments);
    for date in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        git.env(date, "2026-11-20T12:00:00Z");
    }
    let status = git.current_dir(project.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "{arguments:?}");
}

fn commit(project: &Project, message: &str) {
    git(project, &["add", "--all", "."]);
    git(project, &["commit", "--quiet", "--message", message]);
}

const DEVICE: [&str; 2] = ["--device", "sim:rtx4090"];

/// The package after its last commit, with accepted baselines of the one before.
fn changed_package() -> Project {
    let project = Project::package("tiny-transformer", MANIFEST);
    let (_, token_ids) = source("lib.rs")
        .split_once("/// Token ids")
        .map(|(_, it)| ((), it.to_owned()))
        .expect("a function");
    project.write("src/lib.rs", &format!("//! A small transformer.\n\nuse candle_core::{{Device, Result, Tensor}};\n\npub mod attention;\npub mod layers;\npub mod training;\n\n/// Token ids{token_ids}"));
    project.write("src/attention.rs", ATTENTION);
    project.write("src/training.rs", &source("training.rs"));
    project.write("src/layers.rs", &source("leaks.rs"));
    project.write("tests/memory.rs", TESTS);
    project.write(".gitignore", "target\n");
    git(&project, &["init", "--quiet", "--initial-branch", "main"]);
    git(&project, &["remote", "add", "origin", "git@github.com:owner/tiny-transformer.git"]);
    project.memcheck(&DEVICE).exits(0);
    project.memcheck(&["accept"]).exits(0);
    commit(&project, "Baselines");
    for (file, before, after) in CHANGES {
        let text = project.read(file);
        assert_eq!(text.matches(before).count(), 1, "{file}: {before}");
        project.write(file, &text.replace(before, after));
    }
    commit(&project, "Keep more");
    project
}

/// The page of the package, and the address of the view in the pictures.
fn visited(page: &mut Page, project: &Project) -> (PathBuf, String) {
    page.hide_scrollbars();
    memcheck(project.path(), &[&DEVICE[..], &["--report", "html"]].concat()).exits(100);
    let path = own_directory(project).join("report.html");
    page.visit(&path, "", READY);
    let links = "[...document.querySelectorAll('#tests a.test')]";
    let of_test = "a => a.textContent === 'training_step'";
    let test = page.text(&format!("{links}.find({of_test}).getAttribute('href')"));
    (path, test)
}

fn image(file: &str) -> PathBuf {
    workspace().join("docs/images").join(file)
}

#[test]
fn pictures_of_the_report_are_written_on_request() {
    if std::env::var("SCREENSHOTS").as_deref() != Ok("write") {
        return;
    }
    let mut page = Page::open().expect("a browser");
    let project = changed_package();
    let (path, test) = visited(&mut page, &project);
    for (file, text) in texts(&mut page, &path, &test) {
        std::fs::write(image(file), text).expect("the text of a picture");
    }
    let mut take = |name: &str, fragment: &str, (width, height), dark, scroll: &str| {
        page.resize(width, height, 1);
        page.set_dark(dark);
        page.visit(&path, fragment, if fragment.is_empty() { READY } else { OPENED });
        if !scroll.is_empty() {
            page.value(&format!("document.querySelector({scroll:?}).scrollIntoView()"));
        }
        page.value("new Promise(done => setTimeout(() => done(true), 500))");
        std::fs::write(image(&format!("{name}.webp")), page.picture()).expect("a picture");
    };
    take("report-light", "", (1200, 860), false, "");
    take("report-blocks-light", &test, (1200, 900), false, ".choice, .blocks");
    take("report-blocks-dark", &test, (1200, 900), true, ".choice, .blocks");
    take("report-phone", &test, (390, 844), false, "");
}

/// The text of the pages in the pictures, by the file next to the pictures that keeps it.
fn texts(page: &mut Page, path: &Path, test: &str) -> [(&'static str, String); 2] {
    page.resize(1200, 900, 1);
    [("report-light.txt", "", READY), ("report-blocks-light.txt", test, OPENED)].map(
        |(file, fragment, ready)| {
            page.visit(path, fragment, ready);
            (file, format!("{}\n", page.text(SHOWN).trim_end()))
        },
    )
}

/// The text of a page without what differs from run to run.
const SHOWN: &str = "document.body.innerText.replace(/\\b\\d+\\.\\d+\\ss\\b/g, 'TIME').replace(/\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC/, 'DATE')\
    .replace(/commit [0-9a-f]{12}/, 'commit HASH').replace(/memcheck \\d+\\.\\d+\\.\\d+/, 'memcheck VERSION')\
    .replace(/^process\\b.*\\n?/gm, '').replace(/[ \\t]+$/gm, '')";

/// A picture with other figures or words than the page has now is out of date.
#[test]
#[ignore = "slow: just all"]
fn the_pictures_have_the_text_of_the_page() {
    let Some(mut page) = Page::open() else { return };
    let project = changed_package();
    let (path, test) = visited(&mut page, &project);
    for (file, text) in texts(&mut page, &path, &test) {
        let stored = std::fs::read_to_string(image(file)).unwrap_or_default();
        assert_eq!(stored, text, "{file}: `just report-screenshots` takes the pictures again");
    }
}
