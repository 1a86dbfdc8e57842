//! A trace for Perfetto and `chrome://tracing`. It has a process for each test, a counter for each space,
//! and for a test with attribution a process for the events of each space, whose threads show iterations,
//! spans and operations, and in which each block is a slice. It has no clock times, so that
//! two runs of the same code give the same file: a millisecond stands for an iteration, and in a
//! process of events a microsecond for an allocation or a free of its space.

mod lanes;

use std::cell::RefCell;
use std::io::{self, Seek, Write};

use memcheck_core::measurement::record::Record;
use memcheck_core::presentation::profile::{By, HeldRow, Profile, Row, Sort};
use serde_json::{Map, Value, json};
use tempfile::SpooledTempFile;

use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::profile::kind_name;
use crate::presentation::presenters::{json, summary};
use crate::presentation::tally::Tally;

/// Microseconds that stand for an iteration.
const ITERATION: usize = 1_000;
/// Holders, and scopes, in the mark of a peak.
const MOST: usize = 20;

/// The bytes of events that are kept in memory.
const IN_MEMORY: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct ChromeTrace {
    /// As text. A run can have millions of events, which are written to a temporary file.
    events: RefCell<SpooledTempFile>,
    /// The first error of that file.
    error: Option<io::Error>,
    processes: usize,
    cut_short: Vec<String>,
}

impl Default for ChromeTrace {
    fn default() -> Self {
        Self {
            events: RefCell::new(SpooledTempFile::new(IN_MEMORY)),
            error: None,
            processes: 0,
            cut_short: Vec::new(),
        }
    }
}

impl ChromeTrace {
    /// The first event is always the name of a process.
    fn push(&mut self, event: &Value) {
        let is_first = self.processes == 1 && event["name"] == "process_name";
        let separator = if is_first { "" } else { "," };
        let text = format!("{separator}{}", json::text(event));
        if let (None, Err(error)) = (&self.error, self.events.get_mut().write_all(text.as_bytes()))
        {
            self.error = Some(error);
        }
    }

    fn process(&mut self, name: &str) -> usize {
        self.processes += 1;
        self.push(&json!({
            "ph": "M", "name": "process_name", "pid": self.processes, "args": {"name": name},
        }));
        self.processes
    }

    fn iterations(&mut self, process: usize, record: &Record) {
        for (space, measured) in &record.spaces {
            let series = measured.allocated.iter().zip(&measured.peak).enumerate();
            for (iteration, (allocated, peak)) in series {
                self.push(&json!({
                    "ph": "C", "name": space, "pid": process, "ts": iteration * ITERATION,
                    "args": {"allocated": allocated, "peak": peak},
                }));
            }
        }
        for event in lanes::thread_name(process, 1, "iterations") {
            self.push(&event);
        }
        let judged = record.judged.first();
        let iterations = judged.and_then(|space| record.spaces.get(space));
        for index in 0..iterations.map_or(0, |measured| measured.allocated.len()) {
            // Numbers count the warm-up, as everywhere else.
            let iteration = record.facts.warmup as usize + index + 1;
            self.push(&json!({
                "ph": "X", "name": format!("iteration {iteration}"), "pid": process, "tid": 1,
                "ts": index * ITERATION, "dur": ITERATION, "args": {"iteration": iteration},
            }));
        }
    }

    fn followed(&mut self, process: usize, profile: &Profile) {
        let (space, timeline) = (profile.space, &profile.timeline);
        let time = |point: usize| point as u64 * timeline.stretch;
        for (point, live) in timeline.points.iter().enumerate() {
            self.push(&json!({
                "ph": "C", "name": space, "pid": process, "ts": time(point), "args": {"live": live},
            }));
        }
        self.push(&json!({
            "ph": "i", "s": "p", "name": format!("peak of {space}"), "pid": process, "tid": 1,
            "ts": time(timeline.peak_at), "args": at_peak(profile),
        }));
    }
}

fn at_peak(profile: &Profile) -> Value {
    let kind = |kind| kind_name(profile.window, kind);
    let kinds: Map<String, Value> =
        profile.kinds.iter().map(|sum| (kind(sum.kind).to_owned(), sum.bytes.into())).collect();
    let holder = |held: &HeldRow| {
        let HeldRow { label, site, kind: of, bytes, count, stack: _ } = held;
        json!({"holder": label, "site": site, "for": kind(*of), "bytes": bytes, "blocks": count})
    };
    let scope = |row: &Row| {
        let in_all = row.in_all.filter(|in_all| in_all.peak > 0)?;
        Some(
            json!({"scope": row.name, "phase": row.phase, "bytes": row.peak, "in_all": in_all.peak}),
        )
    };
    json!({
        "bytes": profile.peak_allocated,
        "iteration": profile.timeline.peak_iteration,
        "kinds": kinds,
        "holders": profile.holders.iter().take(MOST).map(holder).collect::<Vec<_>>(),
        "scopes": profile.table.rows.iter().filter_map(scope).take(MOST).collect::<Vec<_>>(),
    })
}

impl Presenter for ChromeTrace {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let Some(report) = &outcome.report else { return };
        let record = &report.record;
        let name = format!("{} {} on {}", task.binary.id, task.name(), task.leg.name());
        let process = self.process(&name);
        self.iterations(process, record);
        let Some(attribution) = &record.attribution else { return };
        for (index, (space, peak)) in attribution.peaks.iter().enumerate() {
            // Each space has its own clock, so that it must not share a process with another one.
            let process = self.process(&format!("{name}, {space} (events)"));
            if let Some(profile) = Profile::of(record, *space, By::Scope, Sort::Peak) {
                self.followed(process, &profile);
            }
            let lifetimes = peak.lifetimes.as_ref();
            let of = |lifetimes| lanes::lanes(process, (index, *space), attribution, lifetimes);
            for event in lifetimes.map(of).unwrap_or_default() {
                self.push(&event);
            }
        }
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

impl ReportWriter for ChromeTrace {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.write_to(&mut text)?;
        Ok(text)
    }

    fn write_to(&self, to: &mut dyn Write) -> anyhow::Result<()> {
        if let Some(error) = &self.error {
            anyhow::bail!("its temporary file: {error}");
        }
        write!(to, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        let mut events = self.events.borrow_mut();
        events.rewind()?;
        io::copy(&mut *events, to)?;
        write!(to, "]")?;
        if !self.cut_short.is_empty() {
            // Both viewers show these fields as information about the trace.
            let run = json::text(&json!({"run": self.cut_short.join("\n")}));
            write!(to, ",\"otherData\":{run}")?;
        }
        Ok(write!(to, "}}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn events(outcome: &TestOutcome) -> Vec<Value> {
        let mut trace = ChromeTrace::default();
        trace.test_finished(&task(), outcome);
        let json: Value = serde_json::from_slice(&trace.text().unwrap()).unwrap();
        json["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn an_attributed_test_has_its_events_and_the_holders_of_the_peak() {
        let events = events(&leaky());
        let of_events: Vec<&Value> = events.iter().filter(|event| event["pid"] == 2).collect();
        assert_eq!(of_events[0]["args"]["name"], "app::mem a::b on cpu, host (events)");
        let live: Vec<(u64, u64)> = of_events
            .iter()
            .filter(|event| event["ph"] == "C")
            .map(|event| {
                (event["ts"].as_u64().unwrap(), event["args"]["live"].as_u64().unwrap() >> 20)
            })
            .collect();
        assert_eq!((live.len(), live[0], live[12]), (13, (0, 2), (24, 26)));
        let marks: Vec<_> = of_events.iter().filter(|event| event["ph"] == "i").collect();
        let [mark] = marks.as_slice() else { panic!("{marks:#?}") };
        assert_eq!((&mark["name"], &mark["ts"]), (&"peak of host".into(), &24.into()));
        let args = &mark["args"];
        assert_eq!((&args["bytes"], &args["iteration"]), (&(26 << 20).into(), &12.into()));
        assert_eq!(args["kinds"]["set-up"], 2 << 20);
        assert_eq!(args["holders"][0]["holder"], "matmul [512,1024] f32 in model.head");
        assert_eq!(args["scopes"][0]["scope"], "model");
        assert_eq!(args["scopes"][0]["in_all"], 24 << 20);
        assert_eq!(args["scopes"][1]["bytes"], 24 << 20);
        let named = |name: &str| of_events.iter().filter(|event| event["name"] == name).count();
        assert_eq!((named("set-up"), named("iteration 12"), named("model")), (1, 1, 12));
        assert_eq!(named("matmul [512,1024] f32"), 2 * 12);
    }

    /// The rules of the format, without which viewers draw a trace wrongly.
    #[test]
    fn threads_have_names_and_their_slices_are_nested() {
        let events = events(&leaky());
        let number = |event: &Value, key: &str| event[key].as_u64().unwrap();
        let mut threads: std::collections::BTreeMap<(u64, u64), Vec<(u64, u64)>> = [].into();
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let start = number(event, "ts");
            let thread = (number(event, "pid"), number(event, "tid"));
            threads.entry(thread).or_default().push((start, start + number(event, "dur")));
        }
        assert_eq!(threads.len(), 4);
        for ((process, thread), slices) in threads {
            let is_name = |event: &&Value| {
                event["name"] == "thread_name"
                    && (number(event, "pid"), number(event, "tid")) == (process, thread)
            };
            assert_eq!(events.iter().filter(is_name).count(), 1, "{process} {thread}");
            for (one, first) in slices.iter().enumerate() {
                for second in &slices[one + 1..] {
                    let apart = first.1 <= second.0 || second.1 <= first.0;
                    let nested = (first.0 <= second.0 && second.1 <= first.1)
                        || (second.0 <= first.0 && first.1 <= second.1);
                    assert!(apart || nested, "{first:?} {second:?}");
                }
            }
        }
    }

    /// 20,000 tests, each with a timeline of 512 points, have 700 MB of events.
    #[test]
    fn a_trace_of_many_tests_is_not_kept_in_memory() {
        let tests = if cfg!(debug_assertions) { 300 } else { 20_000 };
        let mut outcome = leaky();
        let attribution = outcome.report.as_mut().unwrap().record.attribution.as_mut().unwrap();
        for peak in attribution.peaks.values_mut() {
            peak.timeline = (0..512).map(|point| peak.bytes - point).collect();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
        let status = || std::fs::read_to_string("/proc/self/status").expect("Linux");
        let kibibytes = |name: &str| -> u64 {
            let status = status();
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
        };
        let before = kibibytes("VmRSS:");
        let mut trace = ChromeTrace::default();
        (0..tests).for_each(|_| trace.test_finished(&task(), &outcome));
        crate::system::files::replace_with(&path, |to| trace.write_to(to)).unwrap();
        let most = kibibytes("VmHWM:").saturating_sub(before);
        let bytes = path.metadata().unwrap().len();
        println!("{tests} tests: {} MiB of events, {} MiB of memory", bytes >> 20, most >> 10);
        assert!(bytes > 30_000 * tests, "{bytes}");
        assert!(trace.events.borrow().is_rolled());
        // Other tests of this process allocate at the same time.
        assert!(cfg!(debug_assertions) || most < 128 << 10, "{most} KiB");
        if tests < 2_000 {
            let text = std::fs::read(&path).unwrap();
            let json: Value = serde_json::from_slice(&text).unwrap();
            assert!(json["traceEvents"].as_array().unwrap().len() as u64 > 512 * tests);
        }
    }

    #[test]
    fn a_test_without_call_stacks_has_its_iterations() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let events = events(&counted);
        assert!(events.iter().all(|event| event["pid"] == 1));
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 10);
        let first = events.iter().find(|event| event["ph"] == "X").unwrap();
        assert_eq!(
            (&first["name"], &first["args"]["iteration"]),
            (&"iteration 3".into(), &3.into())
        );
        assert_eq!(events.iter().filter(|event| event["ph"] == "C").count(), 10);
    }
}
