//! PyTorch's memory snapshot, for its viewer (<https://pytorch.org/memory_viz>) and for other tools
//! that read snapshots. Only tests with attribution have blocks to show.
//!
//! A device of the viewer is one space of one test. Each block is a segment, because memcheck does
//! not know in which order the driver's pool places blocks. For the same reason the addresses are
//! invented: each block has one of its own.

mod device;
mod form;

use std::marker::PhantomData;

use memcheck_core::measurement::stack::Frame;

use self::device::{Action, DeviceTrace, SNAPSHOT, StackList, TraceEvent};
use self::form::SnapshotForm;
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::summary;
use crate::presentation::tally::Tally;

pub(crate) type Pickle = TorchSnapshot<form::Pickle>;
pub(crate) type Json = TorchSnapshot<form::Json>;

const NOTHING: &str = "no test was run with call stacks: use --explain always";
/// PyTorch calls a segment of its allocator small up to this size.
const LARGEST_SMALL: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct TorchSnapshot<F> {
    stacks: StackList,
    devices: Vec<DeviceTrace>,
    cut_short: Vec<String>,
    form: PhantomData<F>,
}

impl<F> Default for TorchSnapshot<F> {
    fn default() -> Self {
        let (stacks, devices, cut_short) = Default::default();
        Self { stacks, devices, cut_short, form: PhantomData }
    }
}

impl<F: SnapshotForm> Presenter for TorchSnapshot<F> {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let Some(report) = &outcome.report else { return };
        let Some(attribution) = &report.record.attribution else { return };
        // The viewer numbers its devices, so that the judged spaces of a test have the first numbers.
        let judged = &report.record.judged;
        let others = attribution.peaks.keys().filter(|space| !judged.contains(space));
        for space in judged.iter().chain(others) {
            let number = self.devices.len() as u64;
            let device = DeviceTrace::new(number, task, &report.record, *space, &mut self.stacks);
            self.devices.extend(device);
        }
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

impl<F: SnapshotForm> ReportWriter for TorchSnapshot<F> {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut to = F::default();
        to.open_dict();
        to.key("segments");
        to.open_list();
        for (number, device) in self.devices.iter().enumerate() {
            for event in device.live() {
                to.item();
                self.segment(&mut to, number as u64, event);
            }
        }
        to.close_list();
        to.key("device_traces");
        to.open_list();
        for device in &self.devices {
            to.item();
            to.open_list();
            for event in &device.events {
                to.item();
                self.event(&mut to, event);
            }
            to.close_list();
        }
        to.close_list();
        to.key("allocator_settings");
        to.open_dict();
        to.close_dict();
        // Viewers ignore this key.
        to.key("memcheck");
        self.about(&mut to);
        to.close_dict();
        Ok(to.finish())
    }
}

impl<F: SnapshotForm> TorchSnapshot<F> {
    fn segment(&self, to: &mut F, device: u64, event: &TraceEvent) {
        to.open_dict();
        for (key, value) in [
            ("device", device),
            ("address", event.address),
            ("total_size", event.size),
            ("allocated_size", event.size),
            ("active_size", event.size),
            ("requested_size", event.size),
            ("stream", 0),
        ] {
            to.key(key);
            to.number(value);
        }
        to.key("segment_type");
        to.text(if event.size > LARGEST_SMALL { "large" } else { "small" });
        self.frames(to, event.stack);
        to.key("blocks");
        to.open_list();
        to.item();
        to.open_dict();
        for (key, value) in
            [("address", event.address), ("size", event.size), ("requested_size", event.size)]
        {
            to.key(key);
            to.number(value);
        }
        to.key("state");
        to.text("active_allocated");
        self.frames(to, event.stack);
        to.key("user_metadata");
        to.text(&event.about);
        to.close_dict();
        to.close_list();
        to.close_dict();
    }

    /// An allocation or a free is one event of the record, and two or three of the viewer.
    fn event(&self, to: &mut F, event: &TraceEvent) {
        let actions: &[&str] = match event.action {
            Action::Allocated => &["segment_alloc", "alloc"],
            Action::Freed => &["free_requested", "free_completed", "segment_free"],
            Action::Refused { .. } => &["oom"],
            Action::Snapshot => &[SNAPSHOT],
        };
        for (number, action) in actions.iter().enumerate() {
            if number > 0 {
                to.item();
            }
            to.open_dict();
            to.key("action");
            to.text(action);
            for (key, value) in [("addr", event.address), ("size", event.size), ("stream", 0)] {
                to.key(key);
                to.number(value);
            }
            if let Action::Refused { free } = event.action {
                to.key("device_free");
                to.number(free);
            }
            self.frames(to, event.stack);
            if !event.about.is_empty() {
                to.key("user_metadata");
                to.text(&event.about);
            }
            to.close_dict();
        }
    }

    fn frames(&self, to: &mut F, stack: usize) {
        to.key("frames");
        to.shared(stack, |to| {
            to.open_list();
            for Frame { function, file, line } in self.stacks.frames(stack) {
                to.item();
                to.open_dict();
                to.key("name");
                to.text(function);
                to.key("filename");
                to.text(file.as_deref().unwrap_or_default());
                to.key("line");
                to.number(line.unwrap_or(0).into());
                to.close_dict();
            }
            to.close_list();
        });
    }

    fn about(&self, to: &mut F) {
        let texts = |to: &mut F, key: &str, texts: &mut dyn Iterator<Item = &str>| {
            to.key(key);
            to.open_list();
            for text in texts {
                to.item();
                to.text(text);
            }
            to.close_list();
        };
        to.open_dict();
        to.key("version");
        to.text(env!("CARGO_PKG_VERSION"));
        texts(to, "devices", &mut self.devices.iter().map(|device| device.name.as_str()));
        let nothing = self.devices.is_empty() && self.cut_short.is_empty();
        let notes = self.cut_short.iter().map(String::as_str);
        texts(to, "notes", &mut notes.chain(nothing.then_some(NOTHING)));
        to.close_dict();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn snapshot(outcome: &TestOutcome) -> Value {
        let mut json = Json::default();
        json.test_finished(&task(), outcome);
        serde_json::from_slice(&json.text().unwrap()).unwrap()
    }

    fn events<'a>(snapshot: &'a Value, action: &str) -> Vec<&'a Value> {
        let events = snapshot["device_traces"][0].as_array().unwrap();
        events.iter().filter(|event| event["action"] == action).collect()
    }

    #[test]
    fn the_blocks_that_are_live_at_the_end_are_segments_with_their_call_stacks() {
        let snapshot = snapshot(&leaky());
        let segments = snapshot["segments"].as_array().unwrap();
        assert_eq!((segments.len(), events(&snapshot, "alloc").len()), (13, 13));
        let block = &segments[1]["blocks"][0];
        assert_eq!(
            (&block["size"], &block["state"]),
            (&(2 << 20).into(), &"active_allocated".into())
        );
        let frames = block["frames"].as_array().unwrap();
        assert_eq!(frames[0]["name"], "candle_core::tensor::Tensor::matmul");
        assert_eq!(
            (&frames[1]["filename"], &frames[1]["line"]),
            (&"src/model.rs".into(), &20.into())
        );
        let about = block["user_metadata"].as_str().unwrap();
        assert_eq!(about, "matmul [512,1024] f32 in model.head, iteration 1");
        assert_eq!(snapshot["memcheck"]["devices"][0], "app::mem a::b on cpu: host");
    }

    #[test]
    fn a_freed_block_is_not_live_and_a_refused_allocation_is_out_of_memory() {
        use memcheck_core::measurement::attribution::Refused;
        use memcheck_core::measurement::record::RefusedAllocation;
        use memcheck_core::space::Space;
        let mut outcome = leaky();
        let record = &mut outcome.report.as_mut().unwrap().record;
        let attribution = record.attribution.as_mut().unwrap();
        let peak = attribution.peaks.get_mut(&Space::Host).unwrap();
        let lifetimes = peak.lifetimes.as_mut().unwrap();
        lifetimes.blocks[2].died = Some(14);
        lifetimes.events = 14;
        let scope = "model.head".to_owned();
        let refused = Refused { stack: 1, scope, requested: 99, holders: Vec::new() };
        attribution.refused.insert(Space::Host, refused);
        let host = record.spaces.get_mut(&Space::Host).unwrap();
        let live = 26 << 20;
        host.refused = Some(RefusedAllocation { requested: 99, live, host: 0, last: true });
        let snapshot = snapshot(&outcome);
        assert_eq!(snapshot["segments"].as_array().unwrap().len(), 12);
        let freed = events(&snapshot, "free_completed");
        assert_eq!(freed.len(), 1);
        assert_eq!(freed[0]["addr"], events(&snapshot, "alloc")[2]["addr"]);
        let trace = snapshot["device_traces"][0].as_array().unwrap();
        let at = |action: &str| trace.iter().position(|event| event["action"] == action).unwrap();
        assert!(at("oom") < at("free_requested"));
        assert_eq!(events(&snapshot, "oom")[0]["size"], 99);
    }

    #[test]
    fn without_call_stacks_the_snapshot_names_the_flag() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let snapshot = snapshot(&counted);
        assert_eq!(snapshot["segments"], serde_json::json!([]));
        assert!(snapshot["memcheck"]["notes"][0].as_str().unwrap().contains("--explain always"));
    }
}
