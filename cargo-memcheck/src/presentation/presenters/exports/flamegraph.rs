//! A flame graph of the holders of memory at the peak, from the test down to the operation. The
//! width of a frame is its bytes, so that the frames of a space add up to its `peak_allocated`.
//! Only tests with attribution have call stacks to draw.

use anyhow::Context;
use inferno::flamegraph::{self, Options};
use maud::html;
use memcheck_core::measurement::attribution::{Attribution, Holder, HolderKind};
use memcheck_core::measurement::stack::Frame;
use memcheck_core::size::Size;
use memcheck_core::space::Space;

use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::summary;
use crate::presentation::tally::Tally;
use crate::system::escape;

const NOTHING: &str = "no test was run with call stacks: use --explain always";

/// In the folded form: the frames from the outermost one on, and the bytes.
#[derive(Debug, Default)]
pub(crate) struct FlameGraph {
    folded: Vec<String>,
    cut_short: Vec<String>,
}

impl FlameGraph {
    fn space(&mut self, test: &str, space: Space, attribution: &Attribution) {
        let Some(peak) = attribution.peaks.get(&space) else { return };
        let root = format!("{space} at its peak of {}", Size(peak.bytes));
        for holder in peak.holders.iter().filter(|holder| holder.bytes > 0) {
            let frames =
                [test.to_owned(), root.clone()].into_iter().chain(stack(attribution, holder));
            let frames: Vec<String> =
                frames.map(|frame| escape::line(&frame).replace(';', ",")).collect();
            self.folded.push(format!("{} {}", frames.join(";"), holder.bytes));
        }
    }
}

fn stack(attribution: &Attribution, holder: &Holder) -> Vec<String> {
    let Some(place) = attribution.places.get(holder.place) else {
        return vec!["(the record has no such place)".to_owned()];
    };
    let stack = attribution.stack_of(place);
    let mut frames: Vec<String> = stack.frames.iter().rev().map(Frame::shown).collect();
    let mut held: Vec<String> = Vec::new();
    held.extend(place.operation.clone());
    held.extend(place.tensor.as_ref().map(ToString::to_string));
    if !place.scope.is_empty() {
        held.push(format!("in {}", place.scope));
    }
    if holder.kind != HolderKind::Activations {
        held.push(format!("({})", holder.kind.name()));
    }
    if !held.is_empty() {
        frames.push(held.join(" "));
    }
    frames
}

impl Presenter for FlameGraph {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let attribution =
            outcome.report.as_ref().and_then(|report| report.record.attribution.as_ref());
        let Some(attribution) = attribution else { return };
        let test = format!("{} {} on {}", task.binary.id, task.name(), task.leg.name());
        for space in attribution.peaks.keys() {
            self.space(&test, *space, attribution);
        }
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

/// A picture of lines of text.
fn picture(lines: &[String]) -> String {
    let height = 24 * (lines.len() + 1);
    let rows = (1..).zip(lines).map(|(number, line)| {
        let y = 24 * number + 6;
        html! { text x="16" y=(y) font-family="monospace" { (escape::line(line)) } }.into_string()
    });
    let rows: String = rows.collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"{height}\">{rows}</svg>\n"
    )
}

impl ReportWriter for FlameGraph {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        if self.folded.is_empty() {
            let nothing = [NOTHING.to_owned()];
            let lines = if self.cut_short.is_empty() { &nothing[..] } else { &self.cut_short };
            return Ok(picture(lines).into_bytes());
        }
        let mut options = Options::default();
        options.title = "Memory at the peak".to_owned();
        if !self.cut_short.is_empty() {
            options.subtitle = Some(escape::line(&self.cut_short.join("; ")));
        }
        options.count_name = "bytes".to_owned();
        options.name_type = "Place:".to_owned();
        // The colors must be the same in every run.
        options.deterministic = true;
        let mut svg = Vec::new();
        let lines = self.folded.iter().map(String::as_str);
        flamegraph::from_lines(&mut options, lines, &mut svg).context("drawing the flame graph")?;
        Ok(svg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn the_bytes_of_a_space_add_up_to_its_peak() {
        let mut graph = FlameGraph::default();
        graph.test_finished(&task(), &leaky());
        let bytes = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(graph.folded.iter().map(bytes).sum::<u64>(), 26 << 20);
        assert_eq!(
            graph.folded[0],
            "app::mem a::b on cpu;host at its peak of 26.0 MiB;Model::forward (src/model.rs:20);\
             candle_core::tensor::Tensor::matmul;matmul [512,1024] f32 in model.head (kept from earlier iterations) 23068672"
        );
        let svg = String::from_utf8(graph.text().unwrap()).unwrap();
        assert!(svg.contains("Memory at the peak") && svg.contains("src/model.rs:20"), "{svg}");
        assert_eq!(svg.as_bytes(), graph.text().unwrap(), "the same every time");
    }

    #[test]
    fn a_holder_of_an_unknown_place_is_drawn_and_does_not_panic() {
        let mut damaged = leaky();
        let record = &mut damaged.report.as_mut().unwrap().record;
        record.attribution.as_mut().unwrap().places.clear();
        let mut graph = FlameGraph::default();
        graph.test_finished(&task(), &damaged);
        let svg = String::from_utf8(graph.text().unwrap()).unwrap();
        assert!(svg.contains("the record has no such place"), "{svg}");
    }

    #[test]
    fn without_call_stacks_the_flame_graph_names_the_flag() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let mut graph = FlameGraph::default();
        graph.test_finished(&task(), &counted);
        let svg = String::from_utf8(graph.text().unwrap()).unwrap();
        assert!(svg.contains("--explain always"), "{svg}");
    }
}
