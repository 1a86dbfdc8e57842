//! A comparison for the terminal.

use comfy_table::{CellAlignment, Table, presets};

use super::{ComparedRuns, ListedTest, UpdateReport, difference, reasons, title, value};
use crate::comparison::runs::ChangedTest;
use crate::presentation::presenters::style;
use crate::system::escape;
use crate::system::printing::print_lines;

pub(crate) fn print(compared: &ComparedRuns) {
    print_lines(&lines(compared));
}

pub(super) fn lines(compared: &ComparedRuns) -> Vec<String> {
    let ComparedRuns { update, comparison, .. } = compared;
    let sides = compared.sides().into_iter().map(|(word, side)| format!("{word}: {side}"));
    let packages = update.iter().flat_map(UpdateReport::lines);
    let packages = packages.map(|(word, change)| format!("{word}: {change}"));
    let mut lines: Vec<String> = sides.chain(packages).map(|line| escape::line(&line)).collect();
    for test in &comparison.changed {
        lines.push(String::new());
        lines.extend(changed(test));
    }
    if !comparison.changed.is_empty() {
        lines.push(String::new());
    }
    for (word, tests) in compared.listed() {
        for ListedTest { id, failure } in tests {
            let line = format!("{word}: {}", escape::line(&title(id)));
            let failure = failure.map(|failure| format!(": {}", escape::line(&failure)));
            lines.push(match failure {
                Some(failure) => style::error(&(line + &failure)),
                None => line,
            });
        }
    }
    lines.push(style::strong(&compared.counts()));
    lines
}

/// A changed test: its name, its figures and the reasons.
pub(crate) fn changed(test: &ChangedTest) -> Vec<String> {
    let name = escape::line(&title(&test.id));
    let mut lines = vec![if test.is_worse() { style::error(&name) } else { style::strong(&name) }];
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for change in &test.figures {
        table.add_row([
            format!(" {} {}", change.space, change.figure),
            value(change, change.base),
            "->".to_owned(),
            value(change, change.head),
            difference(change),
        ]);
    }
    for column in [1, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let table = table.trim_fmt();
    lines.extend(table.lines().zip(&test.figures).map(|(line, change)| {
        match (change.is_worse(), change.head < change.base) {
            (true, _) => style::warning(line),
            (false, true) => style::good(line),
            (false, false) => line.to_owned(),
        }
    }));
    lines.extend(reasons(test).iter().map(|line| format!("  {}", escape::line(line))));
    lines
}
