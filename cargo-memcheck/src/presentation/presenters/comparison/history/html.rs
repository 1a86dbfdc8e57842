//! The history of figures as a page: a plot of each series, and the runs in which it changed.

use maud::{Markup, html};
use memcheck_core::size::{Size, counted, exact};

use super::{described, is_bytes, steps};
use crate::comparison::history::FigureSeries;
use crate::presentation::presenters::exports::plain_page::plain_page;

const STYLE: &str = "\
.series{border-left-color:var(--live)}\
.plot{display:grid;grid-template-columns:auto 1fr;gap:.3rem .6rem;margin:.8rem 0;color:var(--muted);font-size:.88rem}\
.plot svg{width:100%;height:12rem;overflow:visible}\
.plot path,.plot polyline{fill:none;stroke:var(--live);stroke-width:2;vector-effect:non-scaling-stroke}\
.plot .axis{stroke:var(--line)}.plot .step{stroke-width:9;stroke-linecap:round}.plot .worse{stroke:var(--bad)}\
.highest-and-lowest,.days{display:flex;justify-content:space-between}\
.highest-and-lowest{flex-direction:column;text-align:right;line-height:1}.days{grid-column:2}\
.highest-and-lowest>:only-child,.days>:only-child{margin:auto}";

/// The size of a drawing, which the page stretches to its own width. Only labels must keep their size,
/// so they are outside.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;

pub(crate) fn page(all: &[FigureSeries<'_>], figure: &str) -> String {
    let body = html! { @for series in all { (self::series(series, figure)) } };
    plain_page(&format!("History of {figure}"), STYLE, &body)
}

fn series(series: &FigureSeries<'_>, figure: &str) -> Markup {
    let id = series.id;
    let runs = counted(series.points.len() as u64, "run", "runs");
    html! {
        section.finding.series {
            h2 { (id.test) " on " (id.device) }
            p.facts { (id.binary) ": " (figure) " of " (series.space) ", " (runs) }
            (plot(series, figure))
            div.wide tabindex="0" role="region" aria-label=(format!("Runs that changed {}", id.test)) {
                table {
                    caption.hidden { "The runs that changed the figure" }
                    thead { tr { th scope="col" { "Run" } th.n scope="col" { (figure) } th.n scope="col" { "Change" } } }
                    tbody {
                        @for step in steps(series) {
                            tr {
                                th scope="row" { (described(step.entry)) }
                                td.n data-label=(figure) { (value(step.value, figure)) }
                                td.n data-label="Change" data-empty[step.before.is_none()] {
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
        share * WIDTH
    };
    let y = |value: u64| {
        let share = match most - least {
            0 => 0.5,
            range => (value - least) as f64 / range as f64,
        };
        (1.0 - share) * HEIGHT
    };
    // A figure has its value until the next run, so that the line has corners.
    let mut line: Vec<String> = Vec::new();
    let mut before = None;
    for (number, value) in values().enumerate() {
        let corner = before.map(|before| format!("{:.1},{:.1}", x(number), y(before)));
        line.extend(corner.into_iter().chain([format!("{:.1},{:.1}", x(number), y(value))]));
        before = Some(value);
    }
    let labels = if least == most { vec![most] } else { vec![most, least] };
    let ends = [series.points.first(), series.points.last()].into_iter().flatten();
    let days: Vec<&str> = ends.map(|(entry, _)| entry.time.get(..10).unwrap_or_default()).collect();
    html! {
        div.plot {
            div.highest-and-lowest { @for label in labels { span { (value(label, figure)) } } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                aria-label=(format!("{figure} from {} to {}", value(least, figure), value(most, figure))) {
                path.axis d=(format!("M0,0 V{HEIGHT} H{WIDTH}")) {}
                polyline points=(line.join(" ")) {}
                // A line without a length is a round dot, which the stretched drawing does not distort.
                @for step in steps(series) {
                    path.step.worse[step.is_higher()]
                        d=(format!("M{:.1},{:.1} h0", x(step.number), y(step.value))) {
                        title { (described(step.entry)) ": " (value(step.value, figure)) }
                    }
                }
            }
            @if let [first, last] = days.as_slice() {
                div.days { span { (first) } @if first != last { span { (last) } } }
            }
        }
    }
}
