//! The report: ratios to the bare allocator and their limits, as Markdown.

use std::fmt::Write;

use memcheck_tests::overhead::Workload;

use crate::alternating::{Row, time};
use crate::programs::Allocator;
use crate::rounds::Measured;

/// The most that a run may cost in addition if it counts the C heap too.
const C_HEAP: f64 = 1.05;

/// The limit of a program's time, as a multiple of the bare program's. The loop over tensor-sized
/// blocks has no limit, because it isolates a cost that the limits of the two models already cover.
/// Attribution has limits for the models only, because call stacks are meant for models.
fn limit(allocator: Allocator, workload: Workload) -> Option<f64> {
    match (allocator, workload) {
        (Allocator::Memcheck, Workload::Gemm) => Some(1.01),
        (Allocator::Memcheck, Workload::Allocations) => Some(1.05),
        (Allocator::Memcheck, Workload::Small) => Some(1.5),
        (Allocator::Memcheck, Workload::SmallTwice) => Some(2.0),
        (Allocator::CHeap, Workload::Gemm) => Some(1.01 * C_HEAP),
        (Allocator::CHeap, Workload::Allocations) => Some(1.05 * C_HEAP),
        (Allocator::Attributed, Workload::Gemm) => Some(1.03),
        (Allocator::Attributed, Workload::Allocations) => Some(2.0),
        _ => None,
    }
}

pub(crate) fn markdown(measured: &[Measured]) -> String {
    let mut text = String::from("# Cost of counting\n\n");
    text += "Time of an iteration, divided by that of the bare allocator: the ratio of the fastest \
             rounds, and in brackets the median over all rounds. `bare again` is the bare program in \
             another layout: its distance from 1 is noise.\n\n";
    let limits: [Column; 3] = [
        ("limit of memcheck", |one| result(Allocator::Memcheck, one)),
        ("limit of c_heap", |one| result(Allocator::CHeap, one)),
        ("limit of attributed", |one| result(Allocator::Attributed, one)),
    ];
    table(&mut text, measured, &limits, |row| format!("{:.3} ({:.3})", row.fastest, row.median));
    text += "\nMedian time of an iteration:\n\n";
    table(&mut text, measured, &[], |row| time(row.nanoseconds));
    text
}

/// The header of an additional column after the programs, and the function that formats its cell.
type Column = (&'static str, fn(&Measured) -> String);

fn table(text: &mut String, measured: &[Measured], last: &[Column], cell: impl Fn(&Row) -> String) {
    let names = measured.first().map_or(&[][..], |first| &first.rows).iter().map(|row| row.name);
    let header: Vec<&str> = std::iter::once("workload")
        .chain(names)
        .chain(last.iter().map(|(name, _)| *name))
        .collect();
    line(text, header.iter().map(|name| (*name).to_owned()));
    line(text, header.iter().map(|_| "---".to_owned()));
    for one in measured {
        let cells = std::iter::once(one.workload.name().to_owned())
            .chain(one.rows.iter().map(&cell))
            .chain(last.iter().map(|(_, format_cell)| format_cell(one)));
        line(text, cells);
    }
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    for cell in cells {
        write!(text, "| {cell} ").expect("a string takes any text");
    }
    text.push_str("|\n");
}

/// Formats a limit and whether the ratio meets it. A ratio above the limit counts as `within noise`
/// if it exceeds the limit by no more than the two bare programs differ.
fn result(allocator: Allocator, measured: &Measured) -> String {
    let noise = measured
        .seated()
        .filter(|(allocator, _)| *allocator == Allocator::Bare)
        .map(|(_, row)| (row.fastest - 1.0).abs())
        .fold(0.0, f64::max);
    let row = measured.seated().find(|(of, _)| *of == allocator).map(|(_, row)| row);
    match (limit(allocator, measured.workload), row) {
        (Some(limit), Some(row)) if row.fastest <= limit => format!("{limit:.2}, met"),
        (Some(limit), Some(row)) if row.fastest <= limit + noise => {
            format!("{limit:.2}, within noise")
        }
        (Some(limit), Some(_)) => format!("{limit:.2}, **exceeded**"),
        _ => "none".to_owned(),
    }
}
