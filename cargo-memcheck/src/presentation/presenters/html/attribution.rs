//! The attribution of a space: its live bytes over the events, the holders of the peak, operations,
//! scopes, and the survivors of the iterations.

use maud::{Markup, html};
use memcheck_core::measurement::record::Record;
use memcheck_core::presentation::profile::{
    By, GrowthProfile, HeldRow, Profile, Sort, Survivor, percent,
};
use memcheck_core::size::{Size, both, counted};
use memcheck_core::space::Space;

use super::{chart, findings};
use crate::presentation::presenters::profile::{
    columns, explain_peak_difference, growth_title, kind_name, when,
};

/// `cargo memcheck profile` can show all rows.
const MOST: usize = 30;

/// Empty if the test has no attribution.
pub(super) fn space(record: &Record, space: Space) -> Markup {
    let of = |by| Profile::of(record, space, by, Sort::Peak);
    let (Some(operations), Some(scopes)) = (of(By::Op), of(By::Scope)) else {
        return Markup::default();
    };
    let has_scopes = scopes.table.rows.iter().any(|row| !row.scopes.is_empty());
    html! {
        (chart::events(&operations))
        @if let Some(doubt) = explain_peak_difference(&operations, record) { p { (doubt) } }
        @if operations.peak_allocated > 0 {
            details open { summary { (space) " at the peak" (when(&operations)) } (peak(&operations)) }
            details { summary { "operations of " (space) } (table(&operations)) }
            @if has_scopes { details { summary { "scopes of " (space) } (table(&scopes)) } }
        }
        @if let Some(growth) = &operations.growth {
            @if growth.survivors.is_empty() { p { (space) ": " (growth_title(growth)) } }
            @else { details open { summary { (space) ": " (growth_title(growth)) } (survivors(growth)) } }
        }
    }
}

fn peak(profile: &Profile) -> Markup {
    let share = |bytes| format!("{:.1} %", percent(bytes, profile.peak_allocated));
    let shown = profile.holders.len().min(MOST);
    let rest = &profile.holders[shown..];
    let left: u64 = rest.iter().map(|held| held.bytes).sum();
    html! {
        table {
            @for kind in &profile.kinds {
                tr {
                    td { (kind_name(profile.window, kind.kind)) }
                    td.n { (share(kind.bytes)) }
                    td.n { (both(kind.bytes)) }
                }
            }
        }
        table {
            tr { th { "holder" } th { "call site" } th { "for" } th { "blocks" } th { "bytes" } th { "share" } }
            @for HeldRow { label, site, kind, bytes, count, stack } in &profile.holders[..shown] {
                tr {
                    td { details { summary { (label) } pre { (stack.join("\n")) } } }
                    td { (site) }
                    td { (kind_name(profile.window, *kind)) }
                    td.n { (count) }
                    td.n { (Size(*bytes)) }
                    td.n { (share(*bytes)) }
                }
            }
            @if !rest.is_empty() {
                tr {
                    td colspan="4" { (counted(rest.len() as u64, "more holder", "more holders")) }
                    td.n { (Size(left)) }
                    td.n { (share(left)) }
                }
            }
        }
    }
}

fn table(profile: &Profile) -> Markup {
    let columns = columns::columns(profile);
    let rows = columns::rows(profile);
    let shown = rows.len().min(MOST);
    let class = |column: &columns::Column| column.is_figure().then_some("n");
    html! {
        p { @for line in columns::legend(profile) { (line) br; } }
        table {
            tr { @for column in &columns { th { (column.title(profile.table.by)) } } }
            @for row in &rows[..shown] {
                tr {
                    @for column in &columns {
                        td class=[class(column)] { (column.of_row(row, profile, false)) }
                    }
                }
            }
            @for (name, sums) in columns::sums(profile, shown) {
                tr {
                    @for column in &columns {
                        td class=[class(column)] { strong { (column.of_sums(&name, sums, profile)) } }
                    }
                }
            }
        }
    }
}

fn survivors(growth: &GrowthProfile) -> Markup {
    let shown = growth.survivors.len().min(MOST);
    let rest = growth.survivors.len() - shown;
    html! {
        table {
            tr { th { "survivor" } th { "call site" } th { "blocks" } th { "bytes" } th { "pattern" } }
            @for Survivor { label, site, note, bytes, count, remark, .. } in &growth.survivors[..shown] {
                tr {
                    td { (label) }
                    td { (site) }
                    td.n { (count) }
                    td.n { (Size(*bytes)) }
                    td { (note) @if let Some(remark) = remark { (findings::cause("note", remark)) } }
                }
            }
        }
        @if rest > 0 { p { "… " (rest) " more " (if rest == 1 { "call site" } else { "call sites" }) } }
        @if let Some(cause) = &growth.cause { (findings::cause("cause", cause)) }
    }
}
