//! A flame graph of the holders of memory at the peak, from the test's space down to the operation, for
//! each test. The width of a frame is its bytes, so that the frames of a space add up to its
//! `peak_allocated`. Only tests with attribution have call stacks to draw.

mod drawing;

use memcheck_core::measurement::attribution::{Attribution, Holder, HolderKind};
use memcheck_core::size::Size;

use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::{frames, summary};
use crate::presentation::tally::Tally;
use crate::system::escape;

const NOTHING: &str = "no test was run with call stacks: use --explain always";

#[derive(Debug, Default)]
pub(crate) struct FlameGraph {
    graphs: Vec<PeakGraph>,
    cut_short: Vec<String>,
}

/// The peak of one space of one test.
#[derive(Debug)]
struct PeakGraph {
    title: String,
    root: Tile,
}

/// A frame with those that it called.
#[derive(Debug, Default)]
struct Tile {
    label: String,
    bytes: u64,
    /// Bytes by the purpose of their holders.
    kinds: Vec<(HolderKind, u64)>,
    calls: Vec<Tile>,
}

impl Tile {
    fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    fn add(&mut self, frames: &[String], holder: &Holder) {
        self.bytes = self.bytes.saturating_add(holder.bytes);
        match self.kinds.iter_mut().find(|(kind, _)| *kind == holder.kind) {
            Some((_, bytes)) => *bytes = bytes.saturating_add(holder.bytes),
            None => self.kinds.push((holder.kind, holder.bytes)),
        }
        let Some((first, rest)) = frames.split_first() else { return };
        let place = self.calls.iter().position(|call| call.label == *first).unwrap_or_else(|| {
            self.calls.push(Self::new(first.clone()));
            self.calls.len() - 1
        });
        self.calls[place].add(rest, holder);
    }

    /// The largest first, so that the picture is the same in every run.
    fn sort(&mut self) {
        self.kinds.sort_by_key(|(kind, _)| *kind);
        let by_size =
            |a: &Self, b: &Self| b.bytes.cmp(&a.bytes).then_with(|| a.label.cmp(&b.label));
        self.calls.sort_by(by_size);
        self.calls.iter_mut().for_each(Self::sort);
    }
}

/// The frames from the outermost one on. A deeper stack than any program has is cut, because each frame
/// is drawn by a call of its own.
const DEEPEST: usize = 256;

fn stack(attribution: &Attribution, holder: &Holder, test: &str) -> Vec<String> {
    let Some(place) = attribution.places.get(holder.place) else {
        return vec!["(the record has no such place)".to_owned()];
    };
    let stack = attribution.stack_of(place);
    let outermost = stack.frames.iter().rev().take(DEEPEST);
    let mut frames: Vec<String> = outermost.map(|frame| frames::shown(frame, test)).collect();
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
    frames.iter().map(|frame| escape::line(frame)).collect()
}

impl Presenter for FlameGraph {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let attribution =
            outcome.report.as_ref().and_then(|report| report.record.attribution.as_ref());
        let Some(attribution) = attribution else { return };
        for (space, peak) in &attribution.peaks {
            let mut root = Tile::new(format!("{space} at its peak of {}", Size(peak.bytes)));
            for holder in peak.holders.iter().filter(|holder| holder.bytes > 0) {
                root.add(&stack(attribution, holder, task.name()), holder);
            }
            if root.bytes == 0 {
                continue;
            }
            root.sort();
            let (binary, leg) = (&task.binary.id, task.leg.name());
            let title = escape::line(&format!("{binary} {} on {leg}, {space}", task.name()));
            self.graphs.push(PeakGraph { title, root });
        }
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

impl ReportWriter for FlameGraph {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut lines: Vec<String> = self.cut_short.iter().map(|line| escape::line(line)).collect();
        if self.graphs.is_empty() && lines.is_empty() {
            lines.push(NOTHING.to_owned());
        }
        Ok(drawing::picture(&lines, &self.graphs).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn graph(outcome: &TestOutcome) -> (FlameGraph, String) {
        let mut graph = FlameGraph::default();
        graph.test_finished(&task(), outcome);
        let svg = String::from_utf8(graph.text().unwrap()).unwrap();
        (graph, svg)
    }

    #[test]
    fn the_bytes_of_a_space_add_up_to_its_peak() {
        let (graph, svg) = graph(&leaky());
        let [PeakGraph { title, root }] = graph.graphs.as_slice() else { panic!("{graph:?}") };
        assert_eq!(
            (title.as_str(), root.label.as_str()),
            ("app::mem a::b on cpu, host", "host at its peak of 26.0 MiB")
        );
        assert_eq!(root.bytes, 26 << 20);
        assert_eq!(root.kinds.iter().map(|(_, bytes)| bytes).sum::<u64>(), 26 << 20);
        assert_eq!(root.calls.iter().map(|call| call.bytes).sum::<u64>(), 26 << 20);
        let largest = &root.calls[0].calls[0].calls[0];
        assert_eq!(
            (largest.label.as_str(), largest.bytes),
            ("matmul [512,1024] f32 in model.head (kept from earlier iterations)", 22 << 20)
        );
        assert!(svg.contains("src/model.rs:20"), "{svg}");
        assert_eq!(svg.as_bytes(), graph.text().unwrap(), "the same every time");
    }

    #[test]
    fn each_test_has_a_graph() {
        let mut graph = FlameGraph::default();
        graph.test_finished(&task(), &leaky());
        graph.test_finished(&task(), &leaky());
        let svg = String::from_utf8(graph.text().unwrap()).unwrap();
        assert_eq!(svg.matches(">app::mem a::b on cpu, host</text>").count(), 2, "{svg}");
    }

    #[test]
    fn a_holder_of_an_unknown_place_is_drawn_and_does_not_panic() {
        let mut damaged = leaky();
        let record = &mut damaged.report.as_mut().unwrap().record;
        record.attribution.as_mut().unwrap().places.clear();
        let (_, svg) = graph(&damaged);
        assert!(svg.contains("the record has no such place"), "{svg}");
    }

    #[test]
    fn without_call_stacks_the_flame_graph_names_the_flag() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let (_, svg) = graph(&counted);
        assert!(svg.contains("--explain always"), "{svg}");
    }
}
