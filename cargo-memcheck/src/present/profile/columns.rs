//! The columns of the operation table, and what stands in them.

use memcheck_core::profile::{By, Phase, Profile, Row, Shape, Totals, Window, percent};
use memcheck_core::size::{Size, exact};

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::present) enum Column {
    /// The operation, the site or the scope.
    Name,
    Calls,
    Bytes,
    Peak,
    /// The share of the peak.
    Share,
    /// The peak of a scope with those nested in it.
    InAll,
    Surviving,
    Retained,
    Shapes,
    /// What the rows are not: scopes of operations, operations of the others.
    Others,
}

/// The columns of a profile. Those of what is left behind stand where anything
/// is; that nothing is, [`legend`] says.
pub(in crate::present) fn columns(profile: &Profile) -> Vec<Column> {
    let total = profile.table.total;
    let all = [
        (Column::Name, true),
        (Column::Calls, true),
        (Column::Bytes, true),
        (Column::Peak, true),
        (Column::Share, true),
        (Column::InAll, profile.table.by == By::Scope),
        (Column::Surviving, total.surviving > 0),
        (Column::Retained, total.retained > 0),
        (Column::Shapes, true),
        (Column::Others, true),
    ];
    all.into_iter().filter(|(_, shown)| *shown).map(|(column, _)| column).collect()
}

/// The rows that have a figure: not those of places that allocated in earlier
/// iterations only and hold nothing.
pub(in crate::present) fn rows(profile: &Profile) -> Vec<&Row> {
    let says = |row: &&Row| row.in_all.unwrap_or_else(|| row.figures()) != Totals::default();
    profile.table.rows.iter().filter(says).collect()
}

/// The rows below the first `shown`: the sums of those that are not shown, where
/// there are any, and of all.
pub(in crate::present) fn sums(profile: &Profile, shown: usize) -> Vec<(String, Totals)> {
    let rows = rows(profile);
    let rest = &rows[shown..];
    let others = (!rest.is_empty()).then(|| (format!("(others: {})", rest.len()), others(rest)));
    others.into_iter().chain([("total".to_owned(), profile.table.total)]).collect()
}

/// The same phases as the total counts.
fn others(rows: &[&Row]) -> Totals {
    let rows = || rows.iter().copied();
    let counted = Totals::of(rows().filter(|row| row.phase == Phase::Iteration));
    let Totals { calls, bytes, .. } = counted;
    Totals { calls, bytes, ..Totals::of(rows()) }
}

/// What the columns mean, a line each.
pub(in crate::present) fn legend(profile: &Profile) -> Vec<String> {
    let Totals { surviving, retained, .. } = profile.table.total;
    let mut lines = vec![match profile.window {
        Window::Whole => "calls and bytes: of the whole run".to_owned(),
        Window::Iteration(last) => format!(
            "calls and bytes: of iteration {last}, the last; rows marked (set-up): outside the \
             iterations, {} allocations of {} in all, not part of the total",
            exact(profile.table.setup.calls),
            Size(profile.table.setup.bytes)
        ),
    }];
    if profile.table.by == By::Scope {
        let what = "a scope's figures are without those of scopes nested in it; in all: its peak \
                    with them";
        lines.push(what.to_owned());
    }
    let end = match profile.window {
        Window::Whole => "at the end",
        Window::Iteration(_) => "when the body had returned",
    };
    let born = "allocated in measured iterations and live after the last";
    let survives = match profile.window {
        // Nothing is measured that it could be born in.
        Window::Whole => None,
        Window::Iteration(_) if surviving > 0 => Some(format!("surviving: {born}")),
        Window::Iteration(_) => Some("nothing survives the iterations".to_owned()),
    };
    let retains = match retained {
        0 => format!("nothing is live {end}"),
        _ => format!("retained: live {end}"),
    };
    lines.push(survives.into_iter().chain([retains]).collect::<Vec<_>>().join("; "));
    lines
}

impl Column {
    /// Whether figures stand in it, which are to the right and never cut.
    pub(in crate::present) fn is_figure(self) -> bool {
        !matches!(self, Self::Name | Self::Shapes | Self::Others)
    }

    pub(in crate::present) fn title(self, by: By) -> &'static str {
        match (self, by) {
            (Self::Name, By::Op) | (Self::Others, By::Site | By::Scope) => "operation",
            (Self::Name, By::Site) => "site",
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

    /// What stands in a row of its own; everything, where all is wanted.
    pub(in crate::present) fn of_row(self, row: &Row, profile: &Profile, all: bool) -> String {
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

    /// What stands in a row that sums up others.
    pub(in crate::present) fn of_sums(self, name: &str, sums: Totals, profile: &Profile) -> String {
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

/// A scope around others allocates nothing itself, but is of a phase too.
fn name(row: &Row) -> String {
    let is_setup = row.phase == Phase::Setup && (row.total_calls > 0 || row.in_all.is_some());
    format!("{}{}", row.name, if is_setup { " (set-up)" } else { "" })
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

#[cfg(test)]
mod tests {
    use super::super::super::example::leaky;
    use super::*;
    use memcheck_core::attribution::{Place, Tensor};
    use memcheck_core::profile::Sort;
    use memcheck_core::space::Space;

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
    fn rows_of_nothing_are_left_out() {
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
    fn what_is_left_behind_has_columns_where_anything_is() {
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
        assert_eq!(cells("(none)")[5..8], ["", "0 B", "2.0 MiB"]);
        assert!(legend(&leaves).last().unwrap().contains("; retained: live when the body"));

        let clean = profile(By::Op, false);
        assert_eq!(titles(&clean).join(" "), "operation calls bytes peak share shapes scope");
        let nothing = "nothing survives the iterations; nothing is live when the body \
                       had returned";
        assert_eq!(legend(&clean).last().unwrap(), nothing);
    }
}
