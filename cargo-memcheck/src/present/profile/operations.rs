//! The operation table, as the guide's profiler prints it: the largest rows, a
//! row for the others, and a total.

use comfy_table::{CellAlignment, Table, presets};
use memcheck_core::profile::{By, Phase, Profile, Row, Shape, Totals, Window, percent};
use memcheck_core::size::{Size, exact};

use super::{Layout, cut, style};
use crate::options::Verbosity;

/// Columns of figures: calls, bytes, peak, share.
const FIGURES: std::ops::RangeInclusive<usize> = 1..=4;
/// Space between columns.
const GAP: usize = 2;
/// The least that a column of text is cut to.
const LEAST: usize = 12;

/// The table and what it counts.
pub(super) fn lines(
    profile: &Profile,
    layout: &Layout,
    width: Option<usize>,
    verbosity: Verbosity,
) -> Vec<String> {
    let all = verbosity == Verbosity::Verbose || layout.top == 0;
    let rows = &profile.table.rows;
    let shown = if all { rows.len() } else { layout.top.min(rows.len()) };
    let mut cells = vec![header(profile.table.by)];
    cells.extend(rows[..shown].iter().map(|row| self::row(row, profile, all)));
    if shown < rows.len() {
        let name = format!("(others: {})", rows.len() - shown);
        cells.push(sums(name, others(&rows[shown..]), profile));
    }
    cells.push(sums("total".to_owned(), profile.table.total, profile));
    if let Some(width) = width {
        fit(&mut cells, width);
    }
    let mut lines = vec![style::dim(&counted(profile))];
    lines.extend(table(&cells));
    lines
}

/// The same phases as the total counts.
fn others(rows: &[Row]) -> Totals {
    let counted = Totals::of(rows.iter().filter(|row| row.phase == Phase::Iteration));
    Totals { peak: Totals::of(rows).peak, ..counted }
}

fn counted(profile: &Profile) -> String {
    match profile.window {
        Window::Whole => "calls and bytes: of the whole run".to_owned(),
        Window::Iteration(last) => format!(
            "calls and bytes: of iteration {last}, the last; rows marked (set-up): outside the \
             iterations, {} allocations of {} in all, not part of the total",
            exact(profile.table.setup.calls),
            Size(profile.table.setup.bytes)
        ),
    }
}

type Cells = Vec<String>;

fn header(by: By) -> Cells {
    let (name, last) = match by {
        By::Op => ("operation", "scope"),
        By::Site => ("site", "operation"),
        By::Scope => ("scope", "operation"),
    };
    [name, "calls", "bytes", "peak", "share", "shapes", last].map(str::to_owned).into()
}

fn row(row: &Row, profile: &Profile, all: bool) -> Cells {
    let is_setup = row.phase == Phase::Setup && row.total_calls > 0;
    let name = format!("{}{}", row.name, if is_setup { " (set-up)" } else { "" });
    let last = match profile.table.by {
        By::Op => &row.scopes,
        By::Site | By::Scope => &row.operations,
    };
    let figures = Totals { calls: row.calls, bytes: row.bytes, peak: row.peak };
    let mut cells = sums(name, figures, profile);
    cells[5] = shapes(&row.shapes, all);
    cells[6] = listed(last, if all { usize::MAX } else { 1 });
    cells
}

fn sums(name: String, totals: Totals, profile: &Profile) -> Cells {
    vec![
        name,
        exact(totals.calls),
        Size(totals.bytes).to_string(),
        Size(totals.peak).to_string(),
        format!("{:.1} %", percent(totals.peak, profile.peak_allocated)),
        String::new(),
        String::new(),
    ]
}

/// The most common shape, the largest where that is another, and how many more.
fn shapes(shapes: &[Shape], all: bool) -> String {
    let names: Vec<String> = shapes.iter().map(|shape| shape.tensor.to_string()).collect();
    let largest = shapes
        .iter()
        .enumerate()
        .max_by_key(|(number, shape)| (shape.bytes, std::cmp::Reverse(*number)));
    match largest {
        Some((number, _)) if !all && number > 0 => {
            let more = names.len() - 2;
            let more = if more > 0 { format!(" +{more}") } else { String::new() };
            format!("{} / {}{more}", names[0], names[number])
        }
        _ => listed(&names, if all { usize::MAX } else { 1 }),
    }
}

fn listed(names: &[String], most: usize) -> String {
    let shown = names.len().min(most);
    let mut text = names[..shown].join(" / ");
    if shown < names.len() {
        text.push_str(&format!(" +{}", names.len() - shown));
    }
    text
}

/// Cuts the columns of text, the last ones first, until the table fits.
fn fit(cells: &mut [Cells], width: usize) {
    let columns = cells[0].len();
    let widest = |cells: &[Cells], column: usize| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    for column in [6, 5, 0] {
        let used: usize = (0..columns).map(|column| widest(cells, column) + GAP).sum();
        let excess = used.saturating_sub(width);
        let room = widest(cells, column).saturating_sub(excess).max(LEAST);
        for row in cells.iter_mut() {
            row[column] = cut(&row[column], room);
        }
    }
}

/// Aligned lines: the first and the last stand out.
fn table(cells: &[Cells]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for row in cells {
        table.add_row(row);
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP as u16));
        if FIGURES.contains(&number) {
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
    use memcheck_core::attribution::Tensor;

    fn shape(dims: &[u64], bytes: u64) -> Shape {
        let tensor = Tensor { shape: dims.to_vec(), dtype: "f32".to_owned() };
        Shape { tensor, calls: 1, bytes }
    }

    #[test]
    fn the_most_common_shape_and_the_largest_are_shown() {
        let all = [shape(&[2], 8), shape(&[3], 12), shape(&[9], 36)];
        assert_eq!(shapes(&all, false), "[2] f32 / [9] f32 +1");
        assert_eq!(shapes(&all[..2], false), "[2] f32 / [3] f32");
        assert_eq!(shapes(&[shape(&[9], 36), shape(&[2], 8)], false), "[9] f32 +1");
        assert_eq!(shapes(&all, true), "[2] f32 / [3] f32 / [9] f32");
        assert_eq!(shapes(&[], false), "");
    }

    #[test]
    fn a_table_that_is_too_wide_loses_the_ends_of_its_texts_and_no_figure() {
        let text = "x".repeat(60);
        let mut cells = vec![header(By::Op), vec![text.clone(); 7]];
        cells[1][1..=4].fill("1,234,567".to_owned());
        fit(&mut cells, 100);
        assert!(table(&cells).iter().all(|line| console::measure_text_width(line) <= 100));
        assert!(cells[1][1..=4].iter().all(|figure| figure == "1,234,567"));
        assert!(cells[1][6].ends_with('…'));
    }
}
