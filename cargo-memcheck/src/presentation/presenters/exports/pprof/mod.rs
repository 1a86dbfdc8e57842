//! A profile for pprof: the allocations of the body and the memory at the peak, by call stack. Only
//! tests with attribution have call stacks. A profile adds up the samples of all its tests and
//! spaces, so that each is the outermost function of its stacks.

mod message;

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use memcheck_core::measurement::attribution::{Attribution, Place};
use memcheck_core::measurement::stack::Frame;
use memcheck_core::space::Space;

use self::message::{Message, function, location, profile, sample, value_type};
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::summary;
use crate::presentation::tally::Tally;
use crate::system::escape;

const NOTHING: &str = "no test was run with call stacks: use --explain always";
/// Those of Go's heap profiles; `inuse` is the moment of the peak of each space.
const TYPES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

#[derive(Debug, Default)]
pub(crate) struct Pprof {
    strings: Table<String>,
    /// By name and file.
    functions: Table<(u64, u64)>,
    /// By function and line.
    locations: Table<(u64, u64)>,
    samples: Vec<Sample>,
    cut_short: Vec<String>,
}

#[derive(Debug)]
struct Sample {
    locations: Vec<u64>,
    values: [u64; 4],
    labels: Vec<(u64, u64)>,
}

/// Distinct values with numbers from 1.
#[derive(Debug)]
struct Table<T> {
    known: HashMap<T, u64>,
    all: Vec<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), all: Vec::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    fn number(&mut self, value: T) -> u64 {
        *self.known.entry(value).or_insert_with_key(|value| {
            self.all.push(value.clone());
            self.all.len() as u64
        })
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, &T)> {
        (1..).zip(&self.all)
    }
}

impl Pprof {
    /// The empty string has the number 0.
    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() { 0 } else { self.strings.number(escape::line(text)) }
    }

    fn location(&mut self, name: &str, file: &str, line: u64) -> u64 {
        let of = (self.string(name), self.string(file));
        let function = self.functions.number(of);
        self.locations.number((function, line))
    }

    fn space(&mut self, task: &Task, space: Space, attribution: &Attribution) {
        let test = format!("{} {} on {}", task.binary.id, task.name(), task.leg.name());
        let file = task.subject.file().display().to_string();
        let roots = [
            self.location(&space.to_string(), "", 0),
            self.location(&test, &file, task.subject.line().into()),
        ];
        let peak = attribution.peaks.get(&space).map_or(&[][..], |peak| &peak.holders);
        let mut holders_of = vec![Vec::new(); attribution.places.len()];
        for holder in peak {
            holders_of[holder.place].push(holder);
        }
        let places = attribution.places.iter().zip(holders_of);
        for (place, holders) in places.filter(|(place, _)| place.space == space) {
            let stack = attribution.stack_of(place).frames.iter();
            let mut locations: Vec<u64> = stack.map(|frame| self.frame(frame)).collect();
            locations.extend(roots);
            let labels = self.labels(&test, place);
            let allocated = [place.calls, place.bytes, 0, 0];
            self.samples.push(Sample {
                locations: locations.clone(),
                values: allocated,
                labels: labels.clone(),
            });
            for holder in holders {
                let kind = (self.string("kind"), self.string(holder.kind.name()));
                self.samples.push(Sample {
                    locations: locations.clone(),
                    values: [0, 0, holder.count, holder.bytes],
                    labels: labels.iter().copied().chain([kind]).collect(),
                });
            }
        }
    }

    fn frame(&mut self, frame: &Frame) -> u64 {
        let file = frame.short_file().unwrap_or_default();
        self.location(&frame.path(), file, frame.line.unwrap_or(0).into())
    }

    fn labels(&mut self, test: &str, place: &Place) -> Vec<(u64, u64)> {
        let tensor = place.tensor.as_ref().map(ToString::to_string).unwrap_or_default();
        let operation = place.operation.clone().unwrap_or_default();
        let space = place.space.to_string();
        let labels = [
            ("test", test),
            ("space", &space),
            ("operation", &operation),
            ("tensor", &tensor),
            ("scope", &place.scope),
        ];
        let known = labels.into_iter().filter(|(_, text)| !text.is_empty());
        known.map(|(key, text)| (self.string(key), self.string(text))).collect()
    }
}

impl Presenter for Pprof {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let record = outcome.report.as_ref().map(|report| &report.record);
        let Some(attribution) = record.and_then(|record| record.attribution.as_ref()) else {
            return;
        };
        for space in attribution.peaks.keys() {
            self.space(task, *space, attribution);
        }
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

impl ReportWriter for Pprof {
    /// The reason why a run is incomplete is a comment, which `pprof -comments` prints.
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut strings =
            Table { known: self.strings.known.clone(), all: self.strings.all.clone() };
        let types = TYPES
            .map(|(name, unit)| (strings.number(name.to_owned()), strings.number(unit.to_owned())));
        let [.., in_use] = types;
        let mut comments: Vec<String> =
            self.cut_short.iter().map(|line| escape::line(line)).collect();
        if comments.is_empty() {
            let none = if self.samples.is_empty() {
                NOTHING
            } else {
                "inuse_* is at the peak of each space"
            };
            comments.push(none.to_owned());
        }
        let comments: Vec<u64> = comments.into_iter().map(|text| strings.number(text)).collect();
        let samples = self.samples.iter().map(|Sample { locations, values, labels }| {
            sample(locations.clone(), *values, labels.clone())
        });
        let locations = self.locations.numbered();
        let functions = self.functions.numbered();
        let message = Message::new()
            .messages(profile::SAMPLE_TYPE, types.map(|(name, unit)| value_type(name, unit)))
            .messages(profile::SAMPLE, samples)
            .messages(profile::LOCATION, locations.map(|(id, (of, line))| location(id, *of, *line)))
            .messages(
                profile::FUNCTION,
                functions.map(|(id, (name, file))| function(id, *name, *file)),
            )
            .message(profile::PERIOD_TYPE, value_type(in_use.0, in_use.1))
            .number(profile::PERIOD, 1)
            .numbers(profile::COMMENT, comments)
            .number(profile::DEFAULT_SAMPLE_TYPE, in_use.0)
            .bytes(profile::STRING_TABLE, b"");
        let message = strings
            .all
            .iter()
            .fold(message, |message, text| message.bytes(profile::STRING_TABLE, text.as_bytes()));
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&message.finish())?;
        Ok(packed.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    /// pprof's own parser; `None` with a printed reason if this machine has no Go.
    fn pprof(arguments: &[&str], bytes: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.pb.gz");
        std::fs::write(&file, bytes).unwrap();
        let mut go = Command::new("go");
        go.args(["tool", "pprof"]).args(arguments).arg(&file).env("PPROF_TMPDIR", folder.path());
        let Ok(output) = go.output() else {
            eprintln!("skipped: this machine has no Go");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    }

    fn written(outcome: &TestOutcome) -> Vec<u8> {
        let mut writer = Pprof::default();
        writer.test_finished(&task(), outcome);
        let bytes = writer.text().unwrap();
        assert_eq!(bytes, writer.text().unwrap(), "the same every time");
        bytes
    }

    #[test]
    fn pprof_reads_the_allocations_and_the_peak() {
        let bytes = written(&leaky());
        let Some(raw) = pprof(&["-raw"], &bytes) else { return };
        assert!(raw.contains("alloc_objects/count alloc_space/bytes inuse_objects/count"), "{raw}");
        assert!(raw.contains("candle_core::tensor::Tensor::matmul"), "{raw}");
        let top = |index: &str| {
            let index = format!("-sample_index={index}");
            pprof(&["-top", "-unit=B", &index], &bytes).unwrap()
        };
        // Twelve outputs and the weights.
        let peak = top("inuse_space");
        assert!(peak.contains("27262976B total"), "{peak}");
        assert!(peak.contains("25165824B") && peak.contains("Model::forward"), "{peak}");
        assert!(top("alloc_objects").contains("13B total"), "{}", top("alloc_objects"));
        let tags = pprof(&["-tags"], &bytes).unwrap();
        for tag in
            ["kept from earlier iterations", "[512,1024] f32", "model.head", "matmul", "host"]
        {
            assert!(tags.contains(tag), "{tag}: {tags}");
        }
    }

    #[test]
    fn without_call_stacks_a_comment_names_the_flag() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let Some(comments) = pprof(&["-comments"], &written(&counted)) else { return };
        assert!(comments.contains("--explain always"), "{comments}");
    }
}
