//! The history of figures as a page: a plot of each series, and the runs in which it changed.

use maud::{Markup, html};
use memcheck_core::size::{Size, counted, exact};

use super::{described, is_bytes, steps};
use crate::comparison::history::FigureSeries;
use crate::presentation::presenters::exports::plain_page::plain_page;

const STYLE: &str = "svg{width:100%;height:auto;max-height:18rem}\
svg text{font-size:12px;fill:var(--muted)}.line{fill:none;stroke:var(--live);stroke-width:2}\
.series{border-left-color:var(--live)}.axis{stroke:var(--line);fill:none}circle{fill:var(--live)}circle.worse{fill:var(--bad)}";

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// For the labels of the axes.
const LEFT: f64 = 100.0;
const BOTTOM: f64 = 30.0;
const MARGIN: f64 = 12.0;

pub(crate) fn page(all: &[FigureSeries<'_>], figure: &str) -> String {
    let body = html! { @for series in all { (self::series(series, figure)) } };
    plain_page(&format!("History of {figure}"), STYLE, &body)
}

fn series(series: &FigureSeries<'_>, figure: &str) -> Markup {
    let id = series.id;
    let runs = counted(series.points.len() as u64, "run", "runs");
    html! {
        section.finding.series {
            h2 { (id.test) }
            p.facts { (id.binary) " on " (id.device) ": " (figure) " of " (series.space) ", " (runs) }
            (plot(series, figure))
            div.wide {
                table {
                    thead { tr { th scope="col" { "Run" } th.n scope="col" { (figure) } th.n scope="col" { "Change" } } }
                    tbody {
                        @for step in steps(series) {
                            tr {
                                th scope="row" { (described(step.entry)) }
                                td.n { (value(step.value, figure)) }
                                td.n {
                                    @let class = if step.is_higher() { "more" } else { "less" };
                                    @if step.before.is_some() { span.(class) { (step.change(figure)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn value(value: u64, figure: &str) -> String {
    if is_bytes(figure) { Size(value).to_string() } else { exact(value) }
}

fn plot(series: &FigureSeries<'_>, figure: &str) -> Markup {
    let values = || series.points.iter().map(|(_, value)| *value);
    let (least, most) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
    let count = series.points.len();
    let x = |number: usize| {
        let share = if count < 2 { 0.5 } else { number as f64 / (count - 1) as f64 };
        LEFT + share * (WIDTH - LEFT - MARGIN)
    };
    let y = |value: u64| {
        let share = match most - least {
            0 => 0.5,
            range => (value - least) as f64 / range as f64,
        };
        MARGIN + (1.0 - share) * (HEIGHT - BOTTOM - MARGIN)
    };
    let line: Vec<String> = values()
        .enumerate()
        .map(|(number, value)| format!("{:.1},{:.1}", x(number), y(value)))
        .collect();
    let labels = if least == most { vec![most] } else { vec![most, least] };
    let ends = [series.points.first(), series.points.last()].into_iter().flatten();
    let days: Vec<&str> = ends.map(|(entry, _)| entry.time.get(..10).unwrap_or_default()).collect();
    let bottom = HEIGHT - BOTTOM;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label=(format!("{figure} from {} to {}", value(least, figure), value(most, figure))) {
            path.axis d=(format!("M{LEFT},{MARGIN} V{bottom} H{WIDTH}")) {}
            @for label in labels {
                text x=(LEFT - 8.0) y=(format!("{:.1}", y(label) + 4.0)) text-anchor="end" { (value(label, figure)) }
            }
            @if let [first, last] = days.as_slice() {
                text x=(LEFT) y=(HEIGHT - 8.0) { (first) }
                @if first != last { text x=(WIDTH - MARGIN) y=(HEIGHT - 8.0) text-anchor="end" { (last) } }
            }
            polyline.line points=(line.join(" ")) {}
            @for step in steps(series) {
                circle.worse[step.is_higher()] cx=(format!("{:.1}", x(step.number))) cy=(format!("{:.1}", y(step.value))) r="4" {
                    title { (described(step.entry)) ": " (value(step.value, figure)) }
                }
            }
        }
    }
}
