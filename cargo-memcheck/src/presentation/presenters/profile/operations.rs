//! Prints the operation table in the format of the guide's profiler: the largest rows, one row for
//! the sum of the others, and a total.

use comfy_table::{CellAlignment, Table, presets};
use memcheck_core::presentation::profile::Profile;

use super::columns::{self, Column};
use super::style;
use crate::invocation::values::{ProfileLayout, Verbosity};
use crate::presentation::presenters::cut::{self, cut};
use crate::system::escape;

const GAP: usize = 2;
/// The smallest width to which a text column is cut.
const LEAST: usize = 12;

type Cells = Vec<String>;

pub(super) fn lines(
    profile: &Profile,
    layout: &ProfileLayout,
    width: Option<usize>,
    verbosity: Verbosity,
) -> Vec<String> {
    let all = verbosity == Verbosity::Verbose || layout.top == 0;
    let rows = columns::rows(profile);
    let shown = if all { rows.len() } else { layout.top.min(rows.len()) };
    let columns = columns::columns(profile);
    let cells = |of: &dyn Fn(&Column) -> String| {
        columns.iter().map(|column| escape::line(&of(column))).collect::<Cells>()
    };
    let mut table = vec![cells(&|column| column.title(profile.table.by).to_owned())];
    table.extend(rows[..shown].iter().map(|row| cells(&|column| column.of_row(row, profile, all))));
    for (name, sums) in columns::sums(profile, shown) {
        table.push(cells(&|column| column.of_sums(&name, sums, profile)));
    }
    if let Some(width) = width {
        fit(&columns, &mut table, width);
    }
    let width = width.unwrap_or(usize::MAX);
    let legend = columns::legend(profile);
    let legend = legend.iter().flat_map(|line| textwrap::wrap(line, cut::lines(width)));
    let mut lines: Vec<String> = legend.map(|line| style::dim(&line)).collect();
    lines.extend(self::table(&columns, &table));
    lines
}

fn fit(columns: &[Column], cells: &mut [Cells], width: usize) {
    let widest = |cells: &[Cells], column: usize| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    for of_text in [Column::Others, Column::Shapes, Column::Name] {
        let Some(column) = columns.iter().position(|column| *column == of_text) else { continue };
        let used: usize = (0..columns.len()).map(|column| widest(cells, column) + GAP).sum();
        let excess = used.saturating_sub(width);
        let room = widest(cells, column).saturating_sub(excess).max(LEAST);
        for row in cells.iter_mut() {
            row[column] = cut(&row[column], room);
        }
    }
}

fn table(columns: &[Column], cells: &[Cells]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for row in cells {
        table.add_row(row);
    }
    for (column, is) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, GAP as u16));
        if is.is_figure() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.trim_fmt();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(1);
    let shown = |(number, line): (usize, &&str)| match number {
        0 => style::strong(line),
        _ if number == last => style::strong(line),
        _ => (*line).to_owned(),
    };
    lines.iter().enumerate().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_truncates_texts_and_keeps_figures() {
        let columns = [
            Column::Name,
            Column::Calls,
            Column::Bytes,
            Column::Peak,
            Column::Share,
            Column::Shapes,
            Column::Others,
        ];
        let text = "x".repeat(60);
        let mut cells = vec![vec!["title".to_owned(); 7], vec![text; 7]];
        cells[1][1..=4].fill("1,234,567".to_owned());
        fit(&columns, &mut cells, 100);
        let lines = table(&columns, &cells);
        assert!(lines.iter().all(|line| console::measure_text_width(line) <= 100));
        assert!(cells[1][1..=4].iter().all(|figure| figure == "1,234,567"));
        assert!(cells[1][6].ends_with('…'));
    }
}
