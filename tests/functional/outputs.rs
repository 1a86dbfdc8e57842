//! Every block of command output in the documentation must be the output of a real run.
//!
//! A comment above a block names the run. The block begins with its command, and the pictures of
//! the terminal come from the same runs:
//!
//! ```text
//! <!-- write tests/mem.rs of project app -->                      the block becomes this file
//! <!-- change tests/mem.rs of project app -->                     a diff, applied to this file
//! <!-- run in project app: exit 100, picture docs/images/leak --> the output of its command
//! <!-- run in folder tests: lines 1-8, without fields -->         a part of the output
//! ```
//!
//! The steps of a page run in their order. A project is a temporary package that depends on
//! memcheck-runtime and candle. A folder is one of this repository. Durations may differ between a
//! block and a run; the lines about the build are left out.
//!
//! `just outputs` writes the blocks and the pictures again. Without it, the tests compare.

mod page;
mod picture;
mod play;

use std::path::Path;

use crate::fixture::workspace;
use crate::links::documents;
use page::steps;
use play::{play, stable};

/// The variable that `just outputs` sets.
const WRITE: &str = "OUTPUTS";

/// True if `just outputs` runs the tests.
pub(crate) fn is_written() -> bool {
    std::env::var_os(WRITE).is_some_and(|value| value == "write")
}

/// Compares a file with its expected text, and writes it if `just outputs` runs the test.
fn settle(file: &Path, text: &str) -> Option<String> {
    let old = std::fs::read_to_string(file).unwrap_or_default();
    if stable(&old) == stable(text) {
        return None;
    }
    if is_written() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(file, text).expect("the file is written");
        return None;
    }
    let new: Vec<String> = stable(text).lines().map(str::to_owned).collect();
    let old: Vec<String> = stable(&old).lines().map(str::to_owned).collect();
    let only = |sign, lines: &[String], others: &[String]| -> Vec<String> {
        let missing = lines.iter().filter(|line| !others.contains(line));
        missing.map(|line| format!("{sign} {line}")).collect()
    };
    let lines = [only('-', &old, &new), only('+', &new, &old)].concat().join("\n");
    Some(format!("{}, `just outputs` writes it again:\n{lines}", file.display()))
}

/// Compares a block of a page with the output of a run that another test has made. The block begins
/// with `first`, which the page has once, and ends with `fence`.
#[track_caller]
pub(crate) fn assert_shown(page: &str, first: &str, fence: &str, output: &str) {
    let file = workspace().join(page);
    let text = std::fs::read_to_string(&file).expect("the page");
    let start = text.find(&format!("\n{first}\n")).expect(first) + 1;
    let length = text[start..].find(&format!("\n{fence}\n")).expect("the end of the block") + 1;
    let output = format!("{}\n", output.trim_end());
    let new = format!("{}{output}{}", &text[..start], &text[start + length..]);
    let stale = settle(&file, &new);
    assert!(stale.is_none(), "{}", stale.unwrap_or_default());
}

fn assert_played(page: &Path) {
    let text = std::fs::read_to_string(page).expect("the page");
    let (text, pictures) = play(&text);
    let pictures = pictures.iter().map(|(file, svg)| settle(&workspace().join(file), svg));
    let stale: Vec<String> = pictures.chain([settle(page, &text)]).flatten().collect();
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn every_output_in_the_readme_is_that_of_a_real_run() {
    assert_played(&workspace().join("README.md"));
}

#[test]
#[ignore = "slow: just all"]
fn every_output_in_the_book_is_that_of_a_real_run() {
    let readme = workspace().join("README.md");
    let mut played = 0;
    for page in documents() {
        let text = std::fs::read_to_string(&page).expect("a page");
        if page != readme && !steps(&text).is_empty() {
            assert_played(&page);
            played += 1;
        }
    }
    assert!(played > 1, "{played} pages with outputs");
}

/// A block without a run could show anything.
#[test]
fn every_block_of_output_has_a_run() {
    for page in documents() {
        let text = std::fs::read_to_string(&page).expect("a page");
        let runs: Vec<usize> = steps(&text).iter().map(|step| step.line).collect();
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            let Some(language) = line.trim_start().strip_prefix("```") else { continue };
            is_code ^= true;
            // `text` is for diagrams and lists. All other languages are written by hand.
            let is_output = is_code && matches!(language, "" | "console");
            assert!(
                !is_output || runs.contains(&number),
                "{}:{}: no comment names the run of this block",
                page.display(),
                number + 1
            );
        }
    }
}

#[test]
fn only_durations_last_iterations_and_build_lines_are_left_out_of_the_comparison() {
    let one = "building the tests…\n    Blocking waiting for a lock\n  PASS [   0.336s] app::mem a  peak 3.1 MiB\nok: in 0.89s\n";
    let colored = "\r\x1b[K\x1b[1m\x1b[92m    Blocking\x1b[0m waiting for a lock\n";
    assert_eq!(stable(&format!("{colored}{one}")), stable(one));
    let two = "  PASS [  12.001s] app::mem a  peak 3.1 MiB\nok: in 1.02s\n";
    assert_eq!(stable(one), stable(two));
    for other in [two.replace("3.1", "3.2"), two.replace("PASS", "FAIL"), two.replace(":: ", "")] {
        assert_eq!(stable(&other) == stable(two), other == two, "{other}");
    }
    assert_eq!(stable("an evidence of 10s and 5x1s"), "an evidence of TIMEs and 5x1s");
    let last = |number| format!("confirms it: memory still grows in iteration {number}\n");
    assert_eq!(stable(&last("165")), stable(&last("1,002")));
    assert_ne!(stable("in iteration 165"), stable("in iteration 1,002"));
}
