//! A reader opens the HTML report of a failure and finds the line, the cause and the next command,
//! without the terminal. Skipped with the reason on a machine without Chromium.

use std::path::Path;

use crate::browser::Page;
use crate::fixture::{CLEAN_AND_LEAKY, Programs, Project, memcheck, workspace};
use crate::report_page::{OPENED, READY, assert_fits};

/// The text of an element that a reader sees.
fn shown(page: &mut Page, selector: &str) -> String {
    page.text(&format!("document.querySelector({selector:?}).innerText"))
}

#[track_caller]
fn assert_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

/// `first` are parts of the first page, and `view` of the finding in the view of the test.
fn assert_found(report: &Path, first: &[&str], view: &[&str], marked: &str, next: &[&str]) {
    let Some(mut page) = Page::open() else { return };
    page.visit(report, "", READY);
    assert_parts(&shown(&mut page, ".failure"), first);
    // The failure is on the first screen of a laptop.
    let bottom = page.value("document.querySelector('.failure').getBoundingClientRect().bottom");
    assert!(bottom.as_f64().is_some_and(|bottom| bottom < 900.0), "{bottom}");
    page.click_on(".failure a");
    page.wait(OPENED);
    assert_parts(&shown(&mut page, ".finding"), view);
    let line = page.text("document.querySelector('.finding .snippet mark').textContent");
    assert!(line.contains(marked), "{line}");
    assert_parts(&shown(&mut page, ".next"), next);
    page.resize(390, 844, 2);
    page.wait("innerWidth <= 390");
    assert_fits(&mut page, 390);
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn of_a_peak_regression_the_line_the_tensor_and_the_next_command_are_shown() {
    let programs = Programs::of("report_reader").with_baselines();
    programs.run("cpu", &["--explain", "always"]).exits(0);
    programs.memcheck(&["accept"]).exits(0);
    // It holds the scores a second time.
    let twice = [("SCORES_HELD_TWICE", "yes")];
    programs.run_with("cpu", &["--report", "html=report.html"], &twice).exits(100);
    let line = programs.site("copy");
    let grown = ["peak-regression", "+64.0 KiB", &line];
    let rows = ["other call sites", "160.0 KiB"];
    let why = ["is new at the peak", "drop its tensor"];
    let commands = ["cargo memcheck profile ", "cargo memcheck accept "];
    let first =
        [&grown[..], &rows, &["let _before_softmax = scores.copy()?;"], &why, &commands].concat();
    let next = ["accept the figures", "cargo memcheck accept", "cargo memcheck profile"];
    let report = programs.path().join("report.html");
    let view = [&grown[..], &rows, &["new at the peak"]].concat();
    assert_found(&report, &first, &view, "scores.copy()", &next);
}

#[test]
fn of_a_training_that_keeps_its_losses_the_line_the_cause_and_the_remedy_are_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = folder.path().join("report.html");
    let kind = format!("html={}", report.display());
    let run = ["run", "--no-ci", "--run-ignored", "only", "--device", "cpu", "--report", &kind];
    let of = [
        "-p",
        "memcheck-tests",
        "--test",
        "controls",
        "training_keeps_losses",
        "--max-iterations",
        "16",
    ];
    memcheck(&workspace(), &[&run[..], &of].concat()).exits(100);
    let found = ["leak", "per iteration", "training.rs:", "the graph that computed", "detach()"];
    let look = ["allocated in calls at:", "self.loss()?"];
    let first = [&found[..], &look, &["cargo memcheck "]].concat();
    let view = [&found[..], &["called from", "graph-kept"]].concat();
    let next = ["cargo memcheck profile", "cargo memcheck explain"];
    assert_found(&report, &first, &view, "self.loss()?", &next);
}

#[test]
fn regressions_are_folded_below_the_leak_that_causes_them() {
    let Some(mut page) = Page::open() else { return };
    let programs = Programs::of("report_reader").with_baselines();
    let test = "report_reader::decoder_step";
    programs.run("cpu", &[test]).exits(0);
    programs.memcheck(&["accept"]).exits(0);
    let kept = [("SCORES_KEPT", "yes")];
    programs.run_with("cpu", &[test, "--report", "html=report.html"], &kept).exits(100);
    page.visit(&programs.path().join("report.html"), "", READY);
    let failure = shown(&mut page, ".failure");
    assert_parts(&failure, &["leak ", "also growth-regression", "also peak-regression"]);
    assert!(failure.find("leak ") < failure.find("also "), "{failure}");
    page.click_on(".failure a");
    page.wait(OPENED);
    let count = |page: &mut Page, selector: &str| {
        page.value(&format!("document.querySelectorAll({selector:?}).length"))
    };
    assert_eq!(count(&mut page, ".findings > .finding"), 1, "the leak alone is a finding");
    assert_eq!(count(&mut page, ".finding > details.also"), 2);
    assert_eq!(count(&mut page, "details.also[open]"), 0);
    let first = "document.querySelector('details.also .finding').checkVisibility()";
    assert_eq!(page.value(first), false);
    page.click_on("details.also summary");
    page.wait(first);
    assert_parts(&shown(&mut page, "details.also"), &["Also ", "-regression"]);
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn lines_are_links_to_the_commit_or_to_the_editor() {
    let Some(mut page) = Page::open() else { return };
    let project = Project::new(CLEAN_AND_LEAKY);
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]).args(arguments);
        let output = git.current_dir(project.path()).output().expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["remote", "add", "origin", "git@github.com:owner/name.git"]);
    git(&["add", "--all", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
    let commit = git(&["rev-parse", "HEAD"]);
    let source = project.read("tests/mem.rs");
    let line = 1 + source.lines().position(|line| line.contains("kept.push")).expect("the line");
    let web = format!("https://github.com/owner/name/blob/{commit}/tests/mem.rs#L{line}");
    let editor = format!("vscode://file{}/tests/mem.rs:{line}", project.path().display());
    for (flags, address) in
        [(&[][..], web), (&["--editor-url", "vscode://file{path}:{line}"][..], editor)]
    {
        let run = ["leaky", "--max-iterations", "16", "--report", "html=report.html"];
        project.run(&[&run[..], flags].concat()).exits(100);
        page.visit(&project.path().join("report.html"), "", READY);
        let links = |of: &str| {
            format!("[...document.querySelectorAll('{of} a')].some(a => a.href === '{address}')")
        };
        assert_eq!(page.value(&links(".failure .place")), true, "{address}");
        page.click_on(".failure a.test");
        page.wait(OPENED);
        for of in [".finding .place", ".finding .stack li.program"] {
            assert_eq!(page.value(&links(of)), true, "{of} has no link to {address}");
        }
    }
    assert_eq!(page.errors, [""; 0]);
}
