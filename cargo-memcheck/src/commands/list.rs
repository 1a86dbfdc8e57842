//! `cargo memcheck list`: prints the tests and their devices on stdout, with `--verbose` also their
//! limits and the sources of these.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use memcheck_core::limits::Limits;
use memcheck_core::wire::exit;
use serde::Serialize;

use crate::discovery::legs;
use crate::discovery::session::Session;
use crate::discovery::task::Task;
use crate::execution::bookkeeping;
use crate::execution::note::Note;
use crate::invocation::cli::ListArgs;
use crate::invocation::options::Flags;
use crate::invocation::suggestion::suggestion;
use crate::invocation::values::{Format, NoTests, UnpackOptions, Verbosity};
use crate::presentation::events::Presenter;
use crate::presentation::presenters::{JsonLines, Unselected, json, style};
use crate::system::error::Failure;
use crate::system::escape;
use crate::system::printing::{self, Stdout, eprint_line, print, print_raw};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum TestState {
    Run,
    Ignored,
    Elsewhere,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum ListLine<'a> {
    Test {
        package: &'a str,
        binary: &'a str,
        test: &'a str,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        case: &'a BTreeMap<String, String>,
        leg: String,
        fate: TestState,
        file: &'a std::path::Path,
        line: u32,
        limits: &'a Limits,
    },
    Summary {
        tests: usize,
        exit_code: u8,
    },
}

pub(super) fn list(args: &ListArgs) -> Result<u8, Failure> {
    let ListArgs { select, ci, part, archive, runner, no_run, limits, output, cargo } = args;
    let flags = Flags::new(output, cargo).select(select)?.partition(part)?;
    let archive = UnpackOptions { no_run: *no_run, ..archive.clone() };
    let (ci, limits) = (ci.clone(), limits.layer());
    let flags = Flags { archive, ci, limits, ..flags.runner(runner.as_deref())? };
    let session = Session::open(flags)?;
    session.announce();
    let (_, legs) = legs::discover(&session)?;
    let notes = bookkeeping::unmatched_overrides(&session, &legs);
    if session.options.reporting.verbosity != Verbosity::Quiet {
        for Note { finding, .. } in &notes {
            eprint_line!("{} {}: {}", style::warning("warning:"), finding.code, finding.message);
        }
    }
    let mut tasks: Vec<(Task, TestState)> = Vec::new();
    for tests in &legs {
        let chosen = session.choose(tests);
        for (list, fate) in [
            (chosen.run, TestState::Run),
            (chosen.ignored, TestState::Ignored),
            (chosen.elsewhere, TestState::Elsewhere),
        ] {
            tasks.extend(list.into_iter().map(|task| (task, fate)));
        }
    }
    let key = |(task, _): &(Task, TestState)| (task.binary.id.clone(), task.name().to_owned());
    tasks.sort_by_key(key);
    let runs = tasks.iter().filter(|(_, fate)| *fate == TestState::Run).count();
    let none = runs == 0 && session.options.scheduling.no_tests == NoTests::Fail;
    let exit_code = printing::exit_code(if none { exit::NO_TESTS } else { exit::OK });
    match session.options.reporting.format {
        Format::Json => {
            let mut lines = JsonLines::new(Stdout);
            notes.iter().for_each(|note| lines.note(note));
            print_json(&tasks, runs, exit_code);
        }
        Format::Human if session.options.reporting.verbosity == Verbosity::Verbose => {
            print_limits(&tasks);
        }
        Format::Human => print_table(&tasks),
    }
    if session.options.warns_about_filters() {
        for warning in session.unmatched_filters(&legs) {
            eprint_line!("{} {warning}", style::warning("warning:"));
        }
    }
    if none {
        let has = |wanted| tasks.iter().any(|(_, fate)| *fate == wanted);
        let filters = &session.options.selection.filters;
        let why =
            Unselected { elsewhere: has(TestState::Elsewhere), ignored: has(TestState::Ignored) };
        eprint_line!("{}", style::error(&why.describe(filters)));
        if let Some(meant) = suggestion(filters) {
            eprint_line!("{} {meant}", style::hint("hint:"));
        }
    }
    Ok(exit_code)
}

fn print_json(tasks: &[(Task, TestState)], tests: usize, exit_code: u8) {
    let lines = tasks.iter().map(|(task, fate)| ListLine::Test {
        package: &task.package,
        binary: &task.binary.id,
        test: task.name(),
        case: task.subject.case(),
        leg: task.leg.name(),
        fate: *fate,
        file: task.subject.file(),
        line: task.subject.line(),
        limits: &task.limits,
    });
    let mut text = String::new();
    for line in lines.chain([ListLine::Summary { tests, exit_code }]) {
        text += &json::text(&line);
        text.push('\n');
    }
    print_raw(&text);
}

fn device(task: &Task, fate: TestState) -> String {
    match fate {
        TestState::Run => task.leg.name(),
        TestState::Ignored => format!("{} (ignored)", task.leg.name()),
        TestState::Elsewhere => format!("not on {}", task.leg.name()),
    }
}

fn print_table(tasks: &[(Task, TestState)]) {
    if tasks.is_empty() {
        return;
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["binary", "test", "devices"]);
    for same in tasks.chunk_by(|(a, _), (b, _)| a.binary.id == b.binary.id && a.name() == b.name())
    {
        let (task, _) = &same[0];
        let devices: Vec<String> = same.iter().map(|(task, fate)| device(task, *fate)).collect();
        let row = [&task.binary.id, task.name(), &devices.join(", ")];
        table.add_row(row.map(escape::line));
    }
    print(&format!("{}\n", table.trim_fmt()));
}

/// The limits that all tests share come first and once, because most are built in.
fn print_limits(tasks: &[(Task, TestState)]) {
    let all: Vec<Vec<LimitRow>> = tasks.iter().map(|(task, _)| task.limits.rows()).collect();
    let shared = shared(&all);
    let mut text = String::new();
    if !shared.is_empty() {
        text += &format!("all tests\n{}\n\n", shown(&shared));
    }
    for ((task, fate), rows) in tasks.iter().zip(&all) {
        text += &format!(
            "{} {}  {}\n  {}:{}\n",
            escape::line(&task.binary.id),
            escape::line(task.name()),
            escape::line(&device(task, *fate)),
            escape::line(&task.subject.file().display().to_string()),
            task.subject.line(),
        );
        let own: Vec<LimitRow> = rows.iter().filter(|row| !shared.contains(row)).cloned().collect();
        if !own.is_empty() {
            text += &format!("{}\n", shown(&own));
        }
        text.push('\n');
    }
    print(&text);
}

/// The name of a limit, its value and the source of the value.
type LimitRow = (&'static str, String, String);

/// The rows that are the same in all tests; none for a single test.
fn shared(all: &[Vec<LimitRow>]) -> Vec<LimitRow> {
    let [first, others @ ..] = all else { return Vec::new() };
    let is_shared = |row: &&LimitRow| others.iter().all(|rows| rows.contains(row));
    first.iter().filter(|row| !others.is_empty() && is_shared(row)).cloned().collect()
}

fn shown(rows: &[LimitRow]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value, source) in rows {
        table.add_row([&format!("    {name}"), value, source]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_of_all_tests_with_one_value_and_one_source_are_shared() {
        let row = |name, value: &str, source: &str| (name, value.to_owned(), source.to_owned());
        let built_in = row("max_growth", "1.00 MiB", "built in");
        let attribute = row("max_growth", "1.00 MiB", "attribute");
        let same = row("iterations", "10", "built in");
        let other = row("timeout", "2s", "attribute");
        let tests = [vec![same.clone(), built_in], vec![same.clone(), attribute, other]];
        assert_eq!(shared(&tests), std::slice::from_ref(&same));
        assert!(shared(&tests[..1]).is_empty() && shared(&[]).is_empty());
        assert_eq!(shown(&[same]), "     iterations  10  built in");
    }
}
