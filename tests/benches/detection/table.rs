//! Prints the results as Markdown.

use comfy_table::{Row as Header, Table, presets};
use memcheck_core::growth::lifetimes::programs::matrix::{HEADER, MatrixRow as Matrix};
use memcheck_tests::scenarios::{Agreement, Scenario, clean};

use crate::programs::Seed;
use crate::{LegResults, Row};

/// The confusion matrix, a row for each leak, and every false alarm.
pub(crate) fn markdown(found: &[LegResults], seeds: u64) -> String {
    let mut text = format!("# Detection\n\n{}\n", confusion(found, seeds));
    text += "\nFor each leak, by leg: whether the report has the exact bytes per iteration, the line \
             that allocates, the pattern of the growth and the cause.\n";
    for leg in found {
        text += &format!("\n## {}\n\n{}\n", leg.device, leaks(leg));
        for Row { scenario, twin_passed, .. } in &leg.rows {
            if !twin_passed {
                text += &format!("\nFalse alarm: the fixed twin of `{}`.\n", scenario.name);
            }
        }
        for seed in &leg.alarms {
            text += &format!("\nFalse alarm: {}", program(seed));
        }
        for seed in &leg.missed {
            text += &format!("\nMissed: {:?} in {}", clean::planted(seed.seed), program(seed));
        }
        for seed in &leg.inexact {
            let expected = clean::planted(seed.seed).bytes();
            text +=
                &format!("\nInexact, {expected} B per iteration are expected: {}", program(seed));
        }
    }
    text
}

/// The facts about one random program, for a false alarm or a missed leak.
fn program(seed: &Seed) -> String {
    format!(
        "seed {} ({} iterations): {}\n  patterns: {}\n  live bytes: {:?}\n",
        seed.seed,
        clean::iterations(seed.seed),
        seed.findings.join("; "),
        clean::describe(seed.seed).join(", "),
        seed.series
    )
}

/// The decisions of the judge on the random programs of each family.
pub(crate) fn families(title: &str, rows: Vec<(&'static str, Matrix)>) -> String {
    let mut table = new(["family"].into_iter().chain(HEADER).collect::<Vec<_>>());
    for (name, mut row) in rows {
        table.add_row([name.to_owned()].into_iter().chain(row.cells()));
    }
    format!("\n# {title}\n\n{table}\n")
}

fn confusion(found: &[LegResults], seeds: u64) -> String {
    let mut table = new(["device", "programs", "number", "right", "wrong"]);
    for LegResults { device, rows, alarms, missed, inexact } in found {
        let wrong = |is_wrong: fn(&Row) -> bool| rows.iter().filter(|row| is_wrong(row)).count();
        let seeds = seeds as usize;
        for (programs, number, wrong) in [
            ("leaks: found", rows.len(), wrong(|row| !row.agreement.found)),
            ("leaks: exact bytes", rows.len(), wrong(|row| !row.agreement.bytes)),
            ("fixed twins: no finding", rows.len(), wrong(|row| !row.twin_passed)),
            ("random clean programs: no finding", seeds, alarms.len()),
            ("planted leaks: found", seeds, missed.len()),
            ("planted leaks: exact bytes", seeds, missed.len() + inexact.len()),
        ] {
            let figures = [number, number - wrong, wrong].map(|figure| figure.to_string());
            table.add_row([(*device).to_owned(), programs.to_owned()].into_iter().chain(figures));
        }
    }
    table.to_string()
}

fn leaks(leg: &LegResults) -> String {
    let mut table = new(["leak", "cause", "found", "bytes", "line", "pattern", "cause found"]);
    let mut right = [0; 5];
    for Row { scenario, agreement, .. } in &leg.rows {
        let Scenario { name, cause, .. } = **scenario;
        let Agreement { found, bytes, line, pattern, cause: named } = *agreement;
        let marks = [Some(found), Some(bytes), Some(line), pattern, Some(named)];
        for (right, mark) in right.iter_mut().zip(marks) {
            *right += usize::from(mark != Some(false));
        }
        let cells = [name.to_owned(), cause.to_owned()];
        table.add_row(cells.into_iter().chain(marks.map(|mark| check_mark(mark).to_owned())));
    }
    let count = leg.rows.len();
    let sums = right.map(|right| format!("{right} of {count}"));
    table.add_row(["all".to_owned(), String::new()].into_iter().chain(sums));
    table.to_string()
}

fn check_mark(mark: Option<bool>) -> &'static str {
    match mark {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "–",
    }
}

fn new(header: impl Into<Header>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header);
    table
}
