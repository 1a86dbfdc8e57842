//! The table of a peak that rose, on the first page of a report.

use maud::{Markup, html};

use super::changes::{ChangeCell, ChangeRow, Changes};
use super::data::Sources;
use super::markup::{linked, source};
use crate::presentation::presenters::places;

const COLUMNS: [&str; 4] = ["Call site", "Before", "After", "Change"];

/// The rows, and below them their sum.
pub(super) fn table(Changes { rows, sum }: &Changes, sources: &Sources) -> Markup {
    html! {
        div.wide {
            table.changes {
                caption.hidden { "Call sites that hold more or less than in the baseline" }
                thead {
                    tr {
                        @for (number, title) in COLUMNS.into_iter().enumerate() {
                            th.n[number > 0] scope="col" { (title) }
                        }
                    }
                }
                tbody {
                    @for row in rows { tr { (cells(row, sources)) } }
                    @if let Some(row) = sum { tr.sum { (cells(row, sources)) } }
                }
            }
        }
    }
}

fn cells(row: &ChangeRow, sources: &Sources) -> Markup {
    let at = row.place.as_deref().and_then(places::parse);
    html! {
        th scope="row" {
            @if let Some((file, line)) = at { (linked(sources, file, line)) " " }
            @else if let Some(place) = &row.place { code { (place) } " " }
            (row.name)
            @if !row.remark.is_empty() { " " span.muted { "(" (row.remark) ")" } }
            @if let Some(text) = at.and_then(|(file, line)| sources.line(file, line)) {
                " " (source(&text))
            }
        }
        (figure(COLUMNS[1], row.before.as_ref(), None))
        (figure(COLUMNS[2], Some(&row.after), None))
        (figure(COLUMNS[3], row.change.as_ref(), row.class))
    }
}

fn figure(title: &str, cell: Option<&ChangeCell>, class: Option<&str>) -> Markup {
    html! {
        td.n data-label=(title) data-empty[cell.is_none()] title=[cell.map(|cell| &cell.title)] {
            @match cell {
                Some(cell) => span class=[class] { (cell.text) },
                None => "\u{2014}",
            }
        }
    }
}
