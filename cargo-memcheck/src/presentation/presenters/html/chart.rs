//! Plots as inline SVG, so that the page needs neither scripts nor further files.

use maud::{Markup, html};
use memcheck_core::growth::survivors::intercept;
use memcheck_core::measurement::record::SpaceRecord;
use memcheck_core::presentation::profile::{Profile, Timeline};
use memcheck_core::size::{Size, both, exact};
use memcheck_core::space::Space;

use crate::presentation::presenters::profile::when;

const PLOT: (f64, f64) = (640.0, 120.0);

fn coordinates(place: usize, points: usize, bytes: u64, highest: u64) -> (f64, f64) {
    let step = PLOT.0 / points.saturating_sub(1).max(1) as f64;
    (place as f64 * step, PLOT.1 - bytes as f64 / highest.max(1) as f64 * PLOT.1)
}

fn line(series: &[u64], highest: u64) -> String {
    let point = |(place, &bytes): (usize, &u64)| {
        let (x, y) = coordinates(place, series.len(), bytes, highest);
        format!("{x:.1},{y:.1}")
    };
    series.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
}

fn plot(title: &str, lines: &Markup, caption: &str) -> Markup {
    let around = format!("-4 -4 {} {}", PLOT.0 + 8.0, PLOT.1 + 8.0);
    html! {
        figure {
            svg viewBox=(around) width=(PLOT.0) role="img" {
                title { (title) }
                (lines)
            }
            figcaption { (caption) }
        }
    }
}

/// From the first position to the last, clamped to the edges of the plot.
fn trend(series: &[u64], slope: f64, highest: u64) -> Option<Markup> {
    let last = series.len().checked_sub(1).filter(|&last| last > 0)?;
    let start = intercept(series, slope)?;
    let edge = |place: usize| {
        let bytes = (start + slope * place as f64).clamp(0.0, highest as f64);
        coordinates(place, series.len(), bytes.round() as u64, highest)
    };
    let ((x1, y1), (x2, y2)) = (edge(0), edge(last));
    let shown = |at: f64| format!("{at:.1}");
    Some(html! {
        line x1=(shown(x1)) y1=(shown(y1)) x2=(shown(x2)) y2=(shown(y2)) stroke="#c22" stroke-dasharray="6 4" {
            title { (format!("trend: {slope:+.1} B per iteration")) }
        }
    })
}

/// The vertical axis goes from zero to the highest peak.
pub(super) fn iterations(space: Space, measured: &SpaceRecord) -> Markup {
    let SpaceRecord { allocated, peak, metrics, slope, .. } = measured;
    let highest = peak.iter().chain(allocated).copied().max().unwrap_or(0);
    let lines = html! {
        polyline points=(line(peak, highest)) fill="none" stroke="#999" stroke-dasharray="4 3" {}
        polyline points=(line(allocated, highest)) fill="none" stroke="#27c" stroke-width="2" {}
        @if let Some(trend) = trend(allocated, *slope, highest) { (trend) }
    };
    plot(
        &format!("live and peak bytes of {space} over the measured iterations"),
        &lines,
        &format!(
            "{space}: live bytes (blue), peak (gray) and trend (red) of {} iterations, up to {}; \
             growth {} per iteration, trend {slope:+.1} B per iteration",
            allocated.len(),
            both(highest),
            both(metrics.growth),
        ),
    )
}

/// Empty if the test allocated no memory.
pub(super) fn events(profile: &Profile) -> Markup {
    let Timeline { stretch, points, peak_at, .. } = &profile.timeline;
    let highest = profile.peak_allocated;
    if highest == 0 || points.is_empty() {
        return Markup::default();
    }
    let (x, y) = coordinates(*peak_at, points.len(), highest, highest);
    let area = format!("0,{1:.1} {0} {2:.1},{1:.1}", line(points, highest), PLOT.1, PLOT.0);
    let lines = html! {
        polygon points=(area) fill="#27c4" stroke="#27c" {}
        line x1=(format!("{x:.1}")) x2=(format!("{x:.1}")) y1="0" y2=(PLOT.1) stroke="#c22" stroke-dasharray="2 3" {}
        circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="3" fill="#c22" {}
    };
    let about = if *stretch > 1 { "about " } else { "" };
    plot(
        &format!("live bytes of {} over allocations and frees", profile.space),
        &lines,
        &format!(
            "{}: live bytes over {about}{} allocations and frees, from 0 to the peak of {}{}",
            profile.space,
            exact(stretch * points.len() as u64),
            Size(highest),
            when(profile),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_fills_the_plot() {
        assert_eq!(line(&[0, 50, 100], 100), "0.0,120.0 320.0,60.0 640.0,0.0");
        assert_eq!(line(&[7], 7), "0.0,0.0");
        assert_eq!(line(&[0, 0], 0), "0.0,120.0 640.0,120.0");
    }

    #[test]
    fn a_trend_goes_through_the_points_and_stays_in_the_plot() {
        let of = |series: &[u64], slope| trend(series, slope, 100).map(Markup::into_string);
        let rising = of(&[0, 25, 50], 25.0).unwrap();
        assert!(rising.contains(r#"x1="0.0" y1="120.0" x2="640.0" y2="60.0""#), "{rising}");
        assert!(rising.contains("<title>trend: +25.0 B per iteration</title>"), "{rising}");
        let falling = of(&[60, 0, 0, 0], -20.0).unwrap();
        assert!(falling.contains(r#"y2="120.0""#), "{falling}");
        assert_eq!(of(&[50], 0.0), None);
    }
}
