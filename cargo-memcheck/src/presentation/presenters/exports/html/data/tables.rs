//! The operation table by operation, call site and scope, as the profile prints it.

use memcheck_core::measurement::record::Record;
use memcheck_core::presentation::profile::{By, Profile, Sort};
use memcheck_core::space::Space;
use serde::Serialize;

use crate::presentation::presenters::profile::columns;

/// `cargo memcheck profile` can show all rows.
const MOST: usize = 30;

#[derive(Debug, Serialize)]
pub(super) struct TableData {
    by: By,
    legend: Vec<String>,
    columns: Vec<ColumnData>,
    rows: Vec<Vec<String>>,
    sums: Vec<Vec<String>>,
}

#[derive(Debug, Serialize)]
struct ColumnData {
    title: &'static str,
    figure: bool,
}

pub(super) fn tables(record: &Record, space: Space) -> Vec<TableData> {
    let all = [By::Op, By::Site, By::Scope].into_iter();
    all.filter_map(|by| table(&Profile::without_holders(record, space, by, Sort::Peak)?)).collect()
}

fn table(profile: &Profile) -> Option<TableData> {
    let by = profile.table.by;
    let has_scopes = profile.table.rows.iter().any(|row| !row.scopes.is_empty());
    if profile.peak_allocated == 0 || (by == By::Scope && !has_scopes) {
        return None;
    }
    let columns = columns::columns(profile);
    let rows = columns::rows(profile);
    let shown = rows.len().min(MOST);
    let cells = |row| columns.iter().map(|column| column.of_row(row, profile, false)).collect();
    Some(TableData {
        by,
        legend: columns::legend(profile),
        rows: rows[..shown].iter().map(|row| cells(row)).collect(),
        sums: columns::sums(profile, shown)
            .into_iter()
            .map(|(name, sums)| {
                columns.iter().map(|column| column.of_sums(&name, sums, profile)).collect()
            })
            .collect(),
        columns: columns
            .iter()
            .map(|column| ColumnData { title: column.title(by), figure: column.is_figure() })
            .collect(),
    })
}
