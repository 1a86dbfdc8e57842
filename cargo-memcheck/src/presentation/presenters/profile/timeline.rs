//! A chart of live bytes over the events of the run, drawn with block characters. Existing crates
//! for charts in a terminal label their axes with plain numbers. This one has binary sizes, columns
//! that start at zero, and a mark at the peak.

use memcheck_core::presentation::profile::{Profile, ProfileTimeline};
use memcheck_core::size::{Size, exact};

use super::style;

/// Columns.
const SPARKS: usize = 40;
const HEIGHT: usize = 6;
/// The blocks for 0 to 8 eighths of a row.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Empty if the process allocated no memory.
pub(super) fn lines(profile: &Profile, width: usize) -> Vec<String> {
    if profile.peak_allocated == 0 {
        return Vec::new();
    }
    let mut lines = vec![String::new(), style::strong("live bytes over allocations and frees")];
    lines.extend(chart(&profile.timeline, profile.peak_allocated, width));
    lines
}

fn chart(timeline: &ProfileTimeline, peak: u64, width: usize) -> Vec<String> {
    let labels: Vec<String> = (0..HEIGHT).map(|row| label(row, peak)).collect();
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 2).clamp(8, 512);
    let heights: Vec<usize> =
        resampled(&timeline.points, columns).iter().map(|&live| height(live, peak)).collect();
    let mut lines: Vec<String> = labels
        .iter()
        .enumerate()
        .map(|(row, label)| {
            let below = (HEIGHT - 1 - row) * 8;
            let blocks: String =
                heights.iter().map(|height| BLOCKS[height.saturating_sub(below).min(8)]).collect();
            let axis = if label.is_empty() { '│' } else { '┤' };
            format!("{label:>margin$} {axis}{}", blocks.trim_end())
        })
        .collect();
    // The peak's mark must be in the column into which its point was resampled.
    let end_of = |column: usize| (column + 1) * timeline.points.len() / columns;
    let at = (0..columns).find(|&column| end_of(column) > timeline.peak_at).unwrap_or(0);
    let dashes: String = (0..columns).map(|column| if column == at { '▲' } else { '─' }).collect();
    lines.push(format!("{:>margin$} ┼{dashes}", "0 B"));
    for below in [ticks(timeline, columns), below_peak(at, peak, columns)] {
        lines.push(format!("{:margin$}  {below}", ""));
    }
    lines
}

/// Only the top and the middle row have a label.
fn label(row: usize, peak: u64) -> String {
    match row {
        0 => Size(peak).to_string(),
        _ if row == HEIGHT / 2 => Size(peak / 2).to_string(),
        _ => String::new(),
    }
}

/// For each column the highest of its points.
fn resampled(points: &[u64], columns: usize) -> Vec<u64> {
    let of = |column: usize| {
        let first = column * points.len() / columns;
        let end = ((column + 1) * points.len() / columns).max(first + 1);
        points.get(first..end.min(points.len())).into_iter().flatten().copied().max().unwrap_or(0)
    };
    (0..columns).map(of).collect()
}

/// The row starts at the lowest value instead of zero.
pub(super) fn sparkline(values: &[u64]) -> String {
    let lowest = values.iter().copied().min().unwrap_or(0);
    let range = values.iter().copied().max().unwrap_or(0) - lowest;
    let columns = values.len().min(SPARKS);
    let block = |value: u64| {
        let eighths = u128::from(value.saturating_sub(lowest)) * 7 / u128::from(range.max(1));
        BLOCKS[1 + usize::try_from(eighths).unwrap_or(0)]
    };
    resampled(values, columns).into_iter().map(block).collect()
}

/// In eighths of a row. Every value above zero has at least one, so that it is visible.
fn height(live: u64, peak: u64) -> usize {
    let full = HEIGHT as u128 * 8;
    let eighths = u128::from(live) * full / u128::from(peak.max(1));
    let least = usize::from(live > 0);
    usize::try_from(eighths).unwrap_or(0).max(least)
}

/// The first event, the one in the middle and the last. A narrow terminal has less.
fn ticks(timeline: &ProfileTimeline, columns: usize) -> String {
    let events = timeline.stretch * timeline.points.len() as u64;
    // The number is not exact because the last point may stand for fewer events than the others.
    let about = if timeline.stretch > 1 { "about " } else { "" };
    let (middle, end) = (exact(events / 2), format!("{about}{} events", exact(events)));
    let mut row = "0".to_owned();
    let at = (columns / 2).saturating_sub(middle.len() / 2);
    let room = columns.saturating_sub(end.len());
    if at > 2 && at + middle.len() + 2 <= room {
        row = format!("{row:<at$}{middle}");
    }
    if row.len() + 2 <= room { format!("{row:<room$}{end}") } else { row }
}

fn below_peak(at: usize, peak: u64, columns: usize) -> String {
    let peak = format!("peak {}", Size(peak));
    let start = at.saturating_sub(peak.len() / 2).min(columns.saturating_sub(peak.len()));
    format!("{:start$}{peak}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(points: Vec<u64>, peak_at: usize) -> ProfileTimeline {
        ProfileTimeline { stretch: 4, points, peak_at, peak_iteration: 0 }
    }

    #[test]
    fn a_chart_has_an_axis_with_ticks_and_marks_the_peak() {
        let points: Vec<u64> = (0..512).map(|i| if i == 300 { 8 << 20 } else { i << 10 }).collect();
        for width in [40, 80, 200] {
            let chart = chart(&timeline(points.clone(), 300), 8 << 20, width);
            assert_eq!(chart.len(), 9);
            assert!(chart.iter().all(|line| line.chars().count() <= width), "{chart:#?}");
            assert!(chart[0].starts_with("8.00 MiB ┤") && chart[0].ends_with('█'), "{chart:#?}");
            let column = |line: &str, mark| line.chars().position(|c| c == mark);
            assert_eq!(column(&chart[0], '█'), column(&chart[6], '▲'));
            assert!(chart[7].ends_with("about 2,048 events"), "{chart:#?}");
            assert_eq!(chart[7].contains(" 1,024 "), width > 40, "{chart:#?}");
            assert!(chart[8].contains("peak 8.00 MiB"), "{chart:#?}");
        }
    }

    #[test]
    fn few_points_fill_the_width_and_small_values_are_visible() {
        let few = chart(&timeline(vec![1, 1 << 20], 1), 1 << 20, 60);
        assert!(few[5].contains('▁') && few[5].contains('█'), "{few:#?}");
        assert!(few[0].chars().filter(|c| *c == '█').count() > 20, "{few:#?}");
        assert_eq!(chart(&timeline(Vec::new(), 0), 1, 60).len(), 9);
    }
}
