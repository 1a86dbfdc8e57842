//! A comparison as the comment of a pull request: the changes only, the worst first, as many as fit.

use memcheck_core::size::counted;

use super::{ComparedRuns, ListedTest, UpdateReport, capitalized, difference, reasons, value};
use crate::comparison::runs::{ChangedTest, FigureChange, TestId};
use crate::presentation::presenters::exports::markdown::inline::{code, fenced, message};
use crate::system::escape::{self, Form, escape};

/// GitHub refuses a longer comment. A byte is at most one character.
const MOST: usize = 65_536;
/// For the lines about tests that are left out.
const RESERVE: usize = 1_024;

/// The most packages of an update in the list.
const PACKAGES: usize = 50;

/// By this line a workflow finds the comment that it updates.
const MARK: &str = "<!-- memcheck compare -->";

const HEADING: &str =
    "| test | device | figure | base | head | change |\n|---|---|---|---:|---:|---:|\n";

pub(super) fn page(compared: &ComparedRuns) -> String {
    let ComparedRuns { update, comparison, .. } = compared;
    let mut page = format!("{MARK}\n## Memory: {}\n\n", message(&compared.counts()));
    let sides: Vec<String> = compared
        .sides()
        .iter()
        .map(|(word, side)| format!("{}: {}.", capitalized(word), message(side)))
        .collect();
    if !sides.is_empty() {
        page.push_str(&format!("{}\n\n", sides.join(" ")));
    }
    if let Some(update) = update {
        page.push_str(&packages(update));
    }
    // A row without its details would not explain anything, so that both count.
    let (mut rows, mut details, mut shown) = (String::new(), String::new(), 0);
    for test in &comparison.changed {
        let (row, detail) = (self::rows(test), self::details(test));
        let length = [&page, &rows, &details, &row, &detail].map(|text| safe(text).len());
        if length.iter().sum::<usize>() + HEADING.len() + RESERVE > MOST {
            break;
        }
        rows.push_str(&row);
        details.push_str(&detail);
        shown += 1;
    }
    if shown > 0 {
        page.push_str(HEADING);
        page.push_str(&rows);
        page.push('\n');
    }
    let left = comparison.changed.len() - shown;
    if left > 0 {
        let tests = counted(left as u64, "more changed test is", "more changed tests are");
        page.push_str(&format!("{tests} left out: `cargo memcheck compare` prints all.\n\n"));
    }
    page.push_str(&details);
    for (word, tests) in compared.listed() {
        let room = MOST.saturating_sub(safe(&page).len() + RESERVE / 4);
        page.push_str(&names(&capitalized(word), &tests, room).unwrap_or_default());
    }
    safe(&page)
}

fn safe(text: &str) -> String {
    escape(text, Form::Text).into_owned()
}

fn name(id: &TestId) -> String {
    format!("{} {}", code(&id.binary), code(&id.test))
}

/// The packages whose version changed, as a list.
fn packages(update: &UpdateReport) -> String {
    let lines = update.lines();
    let lines: Vec<String> = lines
        .map(|(word, change)| {
            let change = change.to_string().replace("->", "→");
            format!("- {}: {}\n", capitalized(word), message(&change))
        })
        .collect();
    let shown = lines.len().min(PACKAGES);
    let mut list = lines[..shown].concat();
    if shown < lines.len() {
        list.push_str(&format!("- and {} more\n", lines.len() - shown));
    }
    if list.is_empty() { list } else { list + "\n" }
}

fn rows(test: &ChangedTest) -> String {
    let device = message(&test.id.device);
    let row = |(number, change): (usize, &FigureChange)| {
        let name = if number == 0 { name(&test.id) } else { String::new() };
        let difference = difference(change);
        let difference = if change.is_worse() { format!("**{difference}**") } else { difference };
        format!(
            "| {name} | {device} | {} `{}` | {} | {} | {difference} |\n",
            change.space,
            change.figure,
            value(change, change.base),
            value(change, change.head)
        )
    };
    if test.figures.is_empty() {
        return format!("| {} | {device} | status | | | |\n", name(&test.id));
    }
    test.figures.iter().enumerate().map(row).collect()
}

fn details(test: &ChangedTest) -> String {
    let reasons = reasons(test);
    if reasons.is_empty() {
        return String::new();
    }
    let reasons: Vec<String> = reasons.iter().map(|line| escape::line(line)).collect();
    let name = message(&escape::line(&format!("{} {}", test.id.binary, test.id.test)));
    format!(
        "<details><summary>{name}</summary>\n\n{}\n\n</details>\n\n",
        fenced(&reasons.join("\n"))
    )
}

/// As many names as fit into `room` bytes.
fn names(word: &str, tests: &[ListedTest<'_>], room: usize) -> Option<String> {
    let mut line = format!("{word}: ");
    let mut shown = 0;
    for ListedTest { id, failure } in tests {
        let failure = failure.as_ref().map(|failure| format!(": {}", code(failure)));
        let separator = if shown > 0 { ", " } else { "" };
        let name = format!("{separator}{}{}", name(id), failure.unwrap_or_default());
        if safe(&line).len() + safe(&name).len() + 64 > room {
            break;
        }
        line.push_str(&name);
        shown += 1;
    }
    if shown == 0 {
        return None;
    }
    if shown < tests.len() {
        line.push_str(&format!(" and {} more", tests.len() - shown));
    }
    Some(line + ".\n\n")
}
