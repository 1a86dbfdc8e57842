//! The call sites that hold more or less at a peak than in the baseline, as rows of a table: before,
//! after and change of each line, then the other call sites, so that the rows add up to the rise.

use memcheck_core::judgement::finding::{Code, Finding, GrownHolder};
use memcheck_core::presentation::by_line::by_line;
use memcheck_core::size::{both, exact};
use serde::Serialize;

/// Lines of the program with a row; the last row has the others.
const MOST_ROWS: usize = 8;
/// Holders of one line that are named.
const MOST_NAMED: usize = 3;

/// The rows of one finding. All figures have the same unit and the same number of decimals.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Changes {
    pub(super) rows: Vec<ChangeRow>,
    /// The figure itself, which the rows add up to.
    pub(super) sum: Option<ChangeRow>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ChangeRow {
    /// `src/model.rs:20`
    pub(super) place: Option<String>,
    pub(super) name: String,
    /// `new at the peak`, or empty.
    pub(super) remark: &'static str,
    pub(super) before: Option<ChangeCell>,
    pub(super) after: ChangeCell,
    pub(super) change: Option<ChangeCell>,
    /// The class of the change: more, less or neither.
    pub(super) class: Option<&'static str>,
}

/// A figure, and its exact bytes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ChangeCell {
    pub(super) text: String,
    pub(super) title: String,
}

/// A row as numbers. The bytes before are not known of a holder that the baseline does not list.
#[derive(Debug, Clone, Default)]
struct Amounts {
    before: Option<i128>,
    after: i128,
    change: Option<i128>,
}

impl Amounts {
    fn of(holders: &[&GrownHolder]) -> Self {
        let sum = |bytes: fn(&GrownHolder) -> u64| {
            holders.iter().map(|holder| i128::from(bytes(holder))).sum::<i128>()
        };
        let (then, after) = (sum(|it| it.then), sum(|it| it.now));
        let before = holders.iter().all(|it| !it.is_unlisted).then_some(then);
        Self { before, after, change: before.map(|before| after - before) }
    }

    fn values(&self) -> impl Iterator<Item = i128> {
        [self.before, Some(self.after), self.change].into_iter().flatten()
    }
}

impl Changes {
    /// `None` if the finding has no holders that changed.
    pub(super) fn new(finding: &Finding) -> Option<Self> {
        let all: Vec<GrownHolder> = finding.grown.iter().chain(&finding.shrunk).cloned().collect();
        let lines = lines(&all);
        if lines.is_empty() {
            return None;
        }
        let shown = &lines[..lines.len().min(MOST_ROWS)];
        let amounts: Vec<Amounts> = shown.iter().map(|holders| Amounts::of(holders)).collect();
        let total = total(finding);
        let rest = total.as_ref().and_then(|total| rest(total, &amounts));
        let form = ChangeUnit::fitting(amounts.iter().chain(&total).chain(&rest));
        let mut rows: Vec<ChangeRow> =
            shown.iter().zip(&amounts).map(|(of, amounts)| row(of, amounts, form)).collect();
        rows.extend(rest.as_ref().map(|rest| ChangeRow {
            name: "other call sites".to_owned(),
            ..ChangeRow::new(rest, form)
        }));
        let sum = total
            .as_ref()
            .map(|total| ChangeRow { name: "peak".to_owned(), ..ChangeRow::new(total, form) });
        Some(Self { rows, sum })
    }
}

/// The holders of each line, the line with the largest change first.
pub(super) fn lines(holders: &[GrownHolder]) -> Vec<Vec<&GrownHolder>> {
    let mut lines = by_line(holders, |holder| holder.place.as_deref());
    let change = |of: &[&GrownHolder]| {
        let changes = of.iter().map(|it| i128::from(it.now) - i128::from(it.then));
        changes.sum::<i128>().unsigned_abs()
    };
    lines.sort_by_key(|of| std::cmp::Reverse(change(of)));
    lines
}

/// The peak before and after, if the finding has both.
fn total(finding: &Finding) -> Option<Amounts> {
    let is_peak = finding.code == Code::PeakRegression;
    let (before, after) = (finding.baseline.filter(|_| is_peak)?, finding.figure?);
    let (before, after) = (i128::from(before), i128::from(after));
    Some(Amounts { before: Some(before), after, change: Some(after - before) })
}

/// The call sites without a row; `None` if the rows are all of it.
fn rest(total: &Amounts, rows: &[Amounts]) -> Option<Amounts> {
    let left = |whole: Option<i128>, of: fn(&Amounts) -> Option<i128>| {
        Some(whole? - rows.iter().filter_map(of).sum::<i128>())
    };
    let before = left(total.before, |row| row.before);
    let after = left(Some(total.after), |row| Some(row.after))?;
    let change = left(total.change, |row| row.change);
    let is_empty = [before, Some(after), change].into_iter().flatten().all(|bytes| bytes == 0);
    (!is_empty).then_some(Amounts { before, after, change })
}

fn row(holders: &[&GrownHolder], amounts: &Amounts, form: ChangeUnit) -> ChangeRow {
    let names: Vec<String> = holders.iter().take(MOST_NAMED).map(|it| it.description()).collect();
    let more = holders.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let all = |is: fn(&GrownHolder) -> bool| holders.iter().all(|holder| is(holder));
    let remark = match () {
        () if all(GrownHolder::is_new) => "new at the peak",
        () if all(|it| it.now == 0) => "gone",
        () if all(|it| it.is_unlisted) => "not among the largest of the baseline",
        () => "",
    };
    ChangeRow {
        place: holders.first().and_then(|holder| holder.place.clone()),
        name: format!("{}{more}", names.join(", ")),
        remark,
        ..ChangeRow::new(amounts, form)
    }
}

impl ChangeRow {
    fn new(amounts: &Amounts, form: ChangeUnit) -> Self {
        let Amounts { before, after, change } = amounts;
        Self {
            place: None,
            name: String::new(),
            remark: "",
            before: before.map(|bytes| form.cell(bytes, "")),
            after: form.cell(*after, ""),
            change: change.map(|bytes| form.cell(bytes, "+")),
            class: change
                .filter(|change| *change != 0)
                .map(|it| if it > 0 { "more" } else { "less" }),
        }
    }
}

/// The unit and the decimals of all figures of a table, so that its digits are aligned.
#[derive(Debug, Clone, Copy)]
struct ChangeUnit {
    unit: usize,
    decimals: usize,
}

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

impl ChangeUnit {
    /// The largest unit of which every figure is at least a tenth, with one decimal if that is exact.
    fn fitting<'a>(rows: impl Iterator<Item = &'a Amounts>) -> Self {
        let values: Vec<u128> = rows.flat_map(Amounts::values).map(i128::unsigned_abs).collect();
        let bytes = |unit: usize| 1_u128 << (10 * unit);
        let largest = values.iter().copied().max().unwrap_or(0);
        let is_shown = |unit: usize| {
            largest >= bytes(unit)
                && values.iter().all(|value| *value == 0 || value * 10 >= bytes(unit))
        };
        let unit = (1..UNITS.len()).rev().find(|unit| is_shown(*unit)).unwrap_or(0);
        let is_exact = values.iter().all(|value| (value * 10).is_multiple_of(bytes(unit)));
        Self {
            unit,
            decimals: if unit == 0 {
                0
            } else if is_exact {
                1
            } else {
                2
            },
        }
    }

    fn cell(self, bytes: i128, plus: &str) -> ChangeCell {
        let sign = match bytes {
            0 => "",
            1.. => plus,
            _ => "\u{2212}",
        };
        let unit = 1_u128 << (10 * self.unit);
        let scale = 10_u128.pow(u32::try_from(self.decimals).unwrap_or(0));
        // To the nearest, as in all other sizes.
        let scaled = (bytes.unsigned_abs() * scale + unit / 2) / unit;
        let whole = exact(u64::try_from(scaled / scale).unwrap_or(u64::MAX));
        let part = match self.decimals {
            0 => String::new(),
            decimals => format!(".{:0decimals$}", scaled % scale),
        };
        let exact = u64::try_from(bytes.unsigned_abs()).unwrap_or(u64::MAX);
        ChangeCell {
            text: format!("{sign}{whole}{part} {}", UNITS[self.unit]),
            title: format!("{sign}{}", both(exact)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str, line: u32, then: u64, now: u64) -> GrownHolder {
        let place = (line > 0).then(|| format!("a.rs:{line}"));
        GrownHolder { holder: name.to_owned(), place, then, now, ..GrownHolder::default() }
    }

    fn finding(grown: Vec<GrownHolder>, shrunk: Vec<GrownHolder>) -> Finding {
        Finding {
            grown,
            shrunk,
            baseline: Some(1 << 20),
            figure: Some(1 << 21),
            ..Finding::new(Code::PeakRegression, "")
        }
    }

    fn texts(changes: &Changes) -> Vec<String> {
        let text =
            |cell: &Option<ChangeCell>| cell.as_ref().map_or("-", |cell| &cell.text).to_owned();
        changes
            .rows
            .iter()
            .chain(&changes.sum)
            .map(|row| {
                let ChangeRow { name, remark, before, after, change, .. } = row;
                [name, *remark, &text(before), &after.text, &text(change)].join("|")
            })
            .collect()
    }

    #[test]
    fn the_rows_of_a_peak_add_up_to_its_rise_in_one_unit() {
        let mib = 1 << 20;
        let grown = vec![holder("randn", 3, mib / 2, mib), holder("add", 2, 0, mib / 2)];
        let all = finding(grown, vec![holder("relu", 0, mib / 4, 0)]);
        let expected = [
            "randn||0.50 MiB|1.00 MiB|+0.50 MiB",
            "add|new at the peak|0.00 MiB|0.50 MiB|+0.50 MiB",
            "relu|gone|0.25 MiB|0.00 MiB|\u{2212}0.25 MiB",
            "other call sites||0.25 MiB|0.50 MiB|+0.25 MiB",
            "peak||1.00 MiB|2.00 MiB|+1.00 MiB",
        ];
        assert_eq!(texts(&Changes::new(&all).unwrap()), expected);
        assert_eq!(Changes::new(&finding(Vec::new(), Vec::new())), None);
    }

    #[test]
    fn rows_that_are_all_of_a_rise_have_no_others() {
        let all = finding(vec![holder("randn", 3, 1 << 20, 1 << 21)], Vec::new());
        let expected = ["randn||1.0 MiB|2.0 MiB|+1.0 MiB", "peak||1.0 MiB|2.0 MiB|+1.0 MiB"];
        assert_eq!(texts(&Changes::new(&all).unwrap()), expected);
    }

    #[test]
    fn a_small_change_of_a_large_peak_is_shown_with_its_digits() {
        let small = Finding {
            baseline: Some(4_329_520),
            figure: Some(4_395_056),
            ..finding(vec![holder("copy", 3, 0, 65_536)], Vec::new())
        };
        let expected = [
            "copy|new at the peak|0.00 KiB|64.00 KiB|+64.00 KiB",
            "other call sites||4,228.05 KiB|4,228.05 KiB|0.00 KiB",
            "peak||4,228.05 KiB|4,292.05 KiB|+64.00 KiB",
        ];
        assert_eq!(texts(&Changes::new(&small).unwrap()), expected);
    }

    /// The baseline names its largest holders only.
    #[test]
    fn bytes_before_are_not_claimed_of_a_holder_that_the_baseline_does_not_list() {
        let unlisted = GrownHolder { is_unlisted: true, ..holder("mul", 4, 0, 3 << 18) };
        let expected = [
            "mul|not among the largest of the baseline|-|0.75 MiB|-",
            "other call sites||1.00 MiB|1.25 MiB|+1.00 MiB",
            "peak||1.00 MiB|2.00 MiB|+1.00 MiB",
        ];
        assert_eq!(texts(&Changes::new(&finding(vec![unlisted], Vec::new())).unwrap()), expected);
    }

    #[test]
    fn holders_of_one_line_are_one_row_and_those_beyond_the_first_lines_are_in_the_last() {
        let all = [holder("add", 2, 0, 16), holder("ones", 3, 0, 12), holder("relu", 2, 0, 16)];
        let of_growth = Finding { baseline: None, ..finding(all.to_vec(), Vec::new()) };
        let expected =
            ["add, relu|new at the peak|0 B|32 B|+32 B", "ones|new at the peak|0 B|12 B|+12 B"];
        assert_eq!(texts(&Changes::new(&of_growth).unwrap()), expected);
        let many = (1..=9).map(|line| holder("x", line, 0, 1 << 10)).collect();
        let all = texts(&Changes::new(&finding(many, Vec::new())).unwrap());
        assert_eq!(all.len(), MOST_ROWS + 2, "{all:?}");
        assert!(all[MOST_ROWS].starts_with("other call sites|"), "{all:?}");
    }

    /// Bytes that differ from row to row, of which some are lost in the decimals.
    #[test]
    fn rows_add_up_exactly_whatever_their_bytes_are() {
        for seed in 1_u64..200 {
            let bytes = |number: u64| seed.wrapping_mul(number * 7_919 + 104_729) % (3 << 20);
            let grown =
                (1..=12).map(|line| holder("x", line as u32, bytes(line), bytes(line + 20)));
            let changed = finding(grown.collect(), Vec::new());
            let all = Changes::new(&changed).unwrap();
            let number = |cell: &ChangeCell| -> i128 {
                let digits = cell.title.split(" B").next().unwrap_or_default();
                let digits: String = digits.chars().filter(|of| *of != ',' && *of != '+').collect();
                digits.replace('\u{2212}', "-").parse().unwrap()
            };
            let sum = |of: fn(&ChangeRow) -> Option<&ChangeCell>| {
                all.rows.iter().filter_map(of).map(number).sum::<i128>()
            };
            assert_eq!(sum(|row| row.before.as_ref()), 1 << 20, "{seed}");
            assert_eq!(sum(|row| Some(&row.after)), 1 << 21, "{seed}");
            assert_eq!(sum(|row| row.change.as_ref()), 1 << 20, "{seed}");
        }
    }
}
