//! The columns of the operation table, and their cells.

use memcheck_core::presentation::profile::{
    By, Phase, Profile, Row, TensorShape, Totals, Window, percent,
};
use memcheck_core::size::{Size, counted, exact};
use memcheck_core::space::Space;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::presentation::presenters) enum Column {
    /// The operation, the call site or the scope.
    Name,
    Calls,
    Bytes,
    Peak,
    /// Percent of the peak.
    Share,
    /// The peak of a scope, including the scopes nested in it.
    InAll,
    Surviving,
    Retained,
    Shapes,
    /// The scopes of an operation's row, or the operations of any other row.
    Others,
}

/// Without `surviving` and `retained` if the total has no such bytes; [`legend`] then states that
/// fact. Without shapes, scopes or operations if no row has one.
pub(in crate::presentation::presenters) fn columns(profile: &Profile) -> Vec<Column> {
    let total = profile.table.total;
    let rows = rows(profile);
    let has = |column: Column| rows.iter().any(|row| !column.of_row(row, profile, true).is_empty());
    let all = [
        (Column::Name, true),
        (Column::Calls, true),
        (Column::Bytes, true),
        (Column::Peak, true),
        (Column::Share, true),
        (Column::InAll, profile.table.by == By::Scope),
        (Column::Surviving, total.surviving > 0),
        (Column::Retained, total.retained > 0),
        (Column::Shapes, has(Column::Shapes)),
        (Column::Others, has(Column::Others)),
    ];
    all.into_iter().filter(|(_, shown)| *shown).map(|(column, _)| column).collect()
}

/// The others are places that allocated only in earlier iterations and hold no memory.
pub(in crate::presentation::presenters) fn rows(profile: &Profile) -> Vec<&Row> {
    let says = |row: &&Row| row.in_all.unwrap_or_else(|| row.figures()) != Totals::default();
    profile.table.rows.iter().filter(says).collect()
}

/// The sum of the rows below the first `shown`, if there are any, and the total.
pub(in crate::presentation::presenters) fn sums(
    profile: &Profile,
    shown: usize,
) -> Vec<(String, Totals)> {
    let rows = rows(profile);
    let rest = &rows[shown..];
    let others = (!rest.is_empty()).then(|| (format!("(others: {})", rest.len()), sum_rows(rest)));
    others.into_iter().chain([("total".to_owned(), profile.table.total)]).collect()
}

/// Calls and bytes must count the same phases as those of the total.
fn sum_rows(rows: &[&Row]) -> Totals {
    let rows = || rows.iter().copied();
    let counted = Totals::of(rows().filter(|row| row.phase == Phase::Iteration));
    let Totals { calls, bytes, .. } = counted;
    Totals { calls, bytes, ..Totals::of(rows()) }
}

pub(in crate::presentation::presenters) fn legend(profile: &Profile) -> Vec<String> {
    let Totals { surviving, retained, .. } = profile.table.total;
    let mut lines = vec![match profile.window {
        Window::Whole => "calls and bytes are those of the whole run".to_owned(),
        Window::Iteration(last) => {
            format!("calls and bytes are those of iteration {last}, the last")
        }
    }];
    let has_iterations = matches!(profile.window, Window::Iteration(_));
    if has_iterations && rows(profile).into_iter().any(is_setup) {
        lines.push(format!(
            "rows marked (set-up) were allocated outside of the iterations ({} of {} in all), and \
             the total excludes them",
            counted(profile.table.setup.calls, "allocation", "allocations"),
            Size(profile.table.setup.bytes)
        ));
    }
    if profile.space == Space::HostSmall {
        lines.push("these are blocks below 1 KiB, of which each tensor has some".to_owned());
    }
    if profile.table.by == By::Scope {
        let what = "the figures of a scope exclude nested scopes; in all: its peak with nested \
                    scopes";
        lines.push(what.to_owned());
    }
    let end = match profile.window {
        Window::Whole => "at the end",
        Window::Iteration(_) => "after the body returned",
    };
    let born = "allocated in measured iterations and live after the last";
    let survives = match profile.window {
        // Without measured iterations no block can survive them.
        Window::Whole => None,
        Window::Iteration(_) if surviving > 0 => Some(format!("surviving: {born}")),
        Window::Iteration(_) => Some("no block survives the iterations".to_owned()),
    };
    let retains = match retained {
        0 => format!("no block is live {end}"),
        _ => format!("retained: live {end}"),
    };
    lines.push(survives.into_iter().chain([retains]).collect::<Vec<_>>().join("; "));
    lines
}

impl Column {
    /// Figures are aligned to the right and must not be cut.
    pub(in crate::presentation::presenters) fn is_figure(self) -> bool {
        !matches!(self, Self::Name | Self::Shapes | Self::Others)
    }

    pub(in crate::presentation::presenters) fn title(self, by: By) -> &'static str {
        match (self, by) {
            (Self::Name, By::Op) | (Self::Others, By::Site | By::Scope) => "operation",
            (Self::Name, By::Site) => "call site",
            (Self::Name, By::Scope) | (Self::Others, By::Op) => "scope",
            (Self::Calls, _) => "calls",
            (Self::Bytes, _) => "bytes",
            (Self::Peak, _) => "peak",
            (Self::Share, _) => "share",
            (Self::InAll, _) => "in all",
            (Self::Surviving, _) => "surviving",
            (Self::Retained, _) => "retained",
            (Self::Shapes, _) => "shapes",
        }
    }

    /// Lists are complete if `all` is set.
    pub(in crate::presentation::presenters) fn of_row(
        self,
        row: &Row,
        profile: &Profile,
        all: bool,
    ) -> String {
        let most = if all { usize::MAX } else { 1 };
        match (self, profile.table.by) {
            (Self::Name, _) => name(row),
            (Self::InAll, _) => {
                row.in_all.map(|sum| Size(sum.peak).to_string()).unwrap_or_default()
            }
            (Self::Shapes, _) => shapes(&row.shapes, all),
            (Self::Others, By::Op) => listed(&row.scopes, most),
            (Self::Others, By::Site | By::Scope) => listed(&row.operations, most),
            _ => self.of_sums("", row.figures(), profile),
        }
    }

    pub(in crate::presentation::presenters) fn of_sums(
        self,
        name: &str,
        sums: Totals,
        profile: &Profile,
    ) -> String {
        match self {
            Self::Name => name.to_owned(),
            Self::Calls => exact(sums.calls),
            Self::Bytes => Size(sums.bytes).to_string(),
            Self::Peak => Size(sums.peak).to_string(),
            Self::Share => format!("{:.1} %", percent(sums.peak, profile.peak_allocated)),
            Self::Surviving => Size(sums.surviving).to_string(),
            Self::Retained => Size(sums.retained).to_string(),
            Self::InAll | Self::Shapes | Self::Others => String::new(),
        }
    }
}

fn name(row: &Row) -> String {
    format!("{}{}", row.name, if is_setup(row) { " (set-up)" } else { "" })
}

/// A scope that contains other scopes belongs to a phase even if it does not allocate itself.
fn is_setup(row: &Row) -> bool {
    row.phase == Phase::Setup && (row.total_calls > 0 || row.in_all.is_some())
}

/// The most common shape, the largest one if it is a different one, and the number of the others.
fn shapes(shapes: &[TensorShape], all: bool) -> String {
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

#[cfg(test)]
mod tests {
    use super::super::super::example::leaky;
    use super::*;
    use memcheck_core::measurement::attribution::{Place, Tensor};
    use memcheck_core::presentation::profile::Sort;

    fn shape(dims: &[u64], bytes: u64) -> TensorShape {
        let tensor = Tensor { shape: dims.to_vec(), dtype: "f32".to_owned() };
        TensorShape { tensor, calls: 1, bytes }
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

    fn profile(by: By, leaves_something: bool) -> Profile {
        let mut record = leaky().report.unwrap().record;
        if !leaves_something {
            let host = record.spaces.get_mut(&Space::Host).unwrap();
            host.metrics.retained = 0;
            let attribution = record.attribution.as_mut().unwrap();
            attribution.survivors.clear();
            attribution.retained.clear();
        }
        Profile::of(&record, Space::Host, by, Sort::Peak).unwrap()
    }

    #[test]
    fn rows_without_figures_are_omitted() {
        let mut record = leaky().report.unwrap().record;
        let attribution = record.attribution.as_mut().unwrap();
        let earlier = Place { last: 3, ..attribution.places[1].clone() };
        attribution.places.push(Place { operation: Some("cat".to_owned()), ..earlier });
        let profile = Profile::of(&record, Space::Host, By::Op, Sort::Peak).unwrap();
        let names = |rows: Vec<&Row>| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(profile.table.rows.iter().collect()), ["matmul", "zeros", "cat"]);
        assert_eq!(names(rows(&profile)), ["matmul", "zeros"]);
        assert_eq!(sums(&profile, 2).len(), 1, "no others");
    }

    #[test]
    fn columns_of_surviving_and_retained_bytes_appear_if_there_are_any() {
        let titles = |profile: &Profile| -> Vec<&str> {
            columns(profile).iter().map(|column| column.title(profile.table.by)).collect()
        };
        let leaves = profile(By::Scope, true);
        let all = "scope calls bytes peak share in_all surviving retained shapes operation";
        assert_eq!(titles(&leaves).join(" ").replace("in all", "in_all"), all);
        let cells = |name: &str| -> Vec<String> {
            let row = leaves.table.rows.iter().find(|row| row.name == name).unwrap();
            columns(&leaves).iter().map(|column| column.of_row(row, &leaves, false)).collect()
        };
        let figures = ["0", "0 B", "0 B", "0.0 %", "24.0 MiB", "0 B", "0 B"];
        assert_eq!(cells("model")[1..8], figures, "its scope has them");
        assert_eq!(cells("model.head")[5..8], ["24.0 MiB", "20.0 MiB", "0 B"]);
        assert_eq!(cells("(none)")[..1], ["(none) (set-up)"]);
        assert_eq!(cells("(none)")[5..8], ["", "0 B", "2.00 MiB"]);
        assert!(legend(&leaves).last().unwrap().contains("; retained: live after the body"));
        assert!(legend(&leaves)[1].starts_with("rows marked (set-up) were allocated"));
        let without = Profile { space: Space::HostSmall, ..profile(By::Op, true) };
        assert!(legend(&without).iter().any(|line| line.contains("blocks below 1 KiB")));

        let clean = profile(By::Op, false);
        assert_eq!(titles(&clean).join(" "), "operation calls bytes peak share shapes scope");
        let nothing = "no block survives the iterations; no block is live after the body returned";
        assert_eq!(legend(&clean).last().unwrap(), nothing);
    }
}
