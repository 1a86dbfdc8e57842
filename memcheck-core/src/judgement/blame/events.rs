//! Remarks on memory that a test keeps from a few measured iterations and that does not grow.

use super::lines::Lines;
use super::{alike, retained, surviving};
use crate::growth::survivors::{Growth, Pattern};
use crate::judgement::diagnosis::{Evidence, Suspect};
use crate::judgement::finding::Site;
use crate::measurement::record::Record;
use crate::size::{blocks, both};
use crate::space::Space;

/// Blocks of a space that earlier iterations have left behind.
struct StayingBlocks {
    space: Space,
    note: String,
    lines: Lines,
    /// False if the line of a block is not known.
    has_every_line: bool,
}

/// Notes blocks that earlier iterations have left behind although the space is quiet, if they are
/// more than `max_growth` allows in these iterations. Such a test would fail if it were not followed.
pub fn note_events(record: &mut Record) {
    let events = events(record).into_iter().filter(|events| !is_held_once(record, events));
    let notes: Vec<String> = events.map(|events| events.note).collect();
    record.remarks.extend(notes);
}

/// The notes of events of `record` about memory that `explained`, a record of the same test with
/// call sites, notes as allocated once in the process.
pub fn notes_of_events_held_once(record: &Record, explained: &Record) -> Vec<String> {
    let events = events(record).into_iter().filter(|events| is_held_once(explained, events));
    events.map(|events| events.note).collect()
}

fn events(record: &Record) -> Vec<StayingBlocks> {
    let judged = record.judged.iter();
    let mut events: Vec<StayingBlocks> =
        judged.filter_map(|&space| of_space(record, space)).collect();
    if events.iter().any(|events| events.space == Space::Host) {
        // The overhead of the larger blocks.
        events.retain(|events| events.space != Space::HostSmall);
    }
    events
}

/// True if all these blocks are live after the body, and a second round does not add them.
fn is_held_once(record: &Record, events: &StayingBlocks) -> bool {
    record.added_by_second_round(events.space).is_some()
        && events.has_every_line
        && events.lines.are_within(&lines(&retained(record, events.space)))
}

fn lines(sites: &[Site]) -> Lines {
    let mut lines = Lines::default();
    for site in sites {
        if let Some(place) = site.place() {
            lines.add(format!("at {place}"), site.bytes);
        }
    }
    lines
}

fn of_space(record: &Record, space: Space) -> Option<StayingBlocks> {
    let evidence = Evidence::of(record, space)?;
    let Growth::Quiet { iterations } = evidence.measured.growth else { return None };
    let stays =
        |suspect: &&Suspect<'_>| matches!(suspect.reading.pattern, Pattern::Once | Pattern::Filled);
    let places = alike(evidence.suspects.iter().filter(stays));
    let bytes: u64 = places.iter().map(|place| place.bytes()).sum();
    let count: u64 = places.iter().map(|place| place.count()).sum();
    let allowed = record.limits.max_growth.value.saturating_mul(evidence.iterations.into());
    if bytes <= allowed {
        return None;
    }
    let sites: Vec<Site> = places.iter().map(surviving).collect();
    let has_every_line = sites.iter().all(|site| site.place().is_some());
    let lines = lines(&sites);
    let shown = if lines.is_empty() { String::new() } else { format!(": {}", lines.listed()) };
    let note = format!(
        "{space} holds {} in {} of earlier iterations{shown}. This is not growth: in the last \
         {iterations} iterations no such block was added",
        both(bytes),
        blocks(count)
    );
    Some(StayingBlocks { space, note, lines, has_every_line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Layer;
    use crate::measurement::attribution::builder::{Run, once, steady};
    use crate::measurement::record::example::limits;
    use crate::size::Size;

    fn notes(run: Run, growth: Growth, max_growth: u64) -> Vec<String> {
        of_record(run.record(), growth, max_growth)
    }

    fn of_record(mut record: Record, growth: Growth, max_growth: u64) -> Vec<String> {
        record.limits = limits(Layer { max_growth: Some(Size(max_growth)), ..Layer::default() });
        record.spaces.values_mut().for_each(|measured| measured.growth = growth);
        note_events(&mut record);
        record.remarks
    }

    const QUIET: Growth = Growth::Quiet { iterations: 62 };

    #[test]
    fn events_above_the_limit_are_noted_with_their_lines() {
        let run = || Run::default().place(&[], once(4_000, 3)).place(&[], once(6_000, 7));
        let note = "cuda:0 holds 10,000 B (9.77 KiB) in 2 blocks of earlier iterations: 6,000 B \
                    (5.86 KiB) at src/step.rs:2, 4,000 B (3.91 KiB) at src/step.rs:1. This is not \
                    growth: in the last 62 iterations no such block was added";
        assert_eq!(notes(run(), QUIET, 0), [note]);
        assert_eq!(notes(run(), QUIET, 999).len(), 1);
        assert_eq!(notes(run(), QUIET, 1_000), [""; 0]);
    }

    #[test]
    fn each_line_is_named_once_and_those_beyond_the_third_are_counted() {
        let run = (1..7).fold(Run::default(), |run, iteration| {
            run.place(&[], once(1_000 * iteration as u64, iteration))
        });
        let mut record = run.record();
        // One line that two callers reach.
        record.attribution.as_mut().unwrap().stacks[1].frames.last_mut().unwrap().line = Some(6);
        let [note] = &of_record(record, QUIET, 0)[..] else { panic!("one note") };
        let lines = "iterations: 8,000 B (7.81 KiB) at src/step.rs:6, 5,000 B (4.88 KiB) at \
                     src/step.rs:5, 4,000 B (3.91 KiB) at src/step.rs:4, 4,000 B (3.91 KiB) at 2 \
                     other places. This";
        assert!(note.contains(lines), "{note}");
    }

    #[test]
    fn growth_is_a_finding_and_not_a_remark() {
        let found = Growth::Found { whole: true, exact: true, iterations: 167 };
        assert_eq!(notes(Run::default().place(&[], steady(4_000)), found, 0), [""; 0]);
        assert_eq!(notes(Run::default(), QUIET, 0), [""; 0]);
    }

    #[test]
    fn blocks_that_a_note_about_the_process_contains_are_noted_once() {
        let noted = |retained_bytes: u64, retained_again: Option<u64>| {
            let run = Run::default().place(&[], once(4_000, 3)).retained(1, retained_bytes);
            let mut record = run.record();
            record.limits = limits(Layer { max_growth: Some(Size(0)), ..Layer::default() });
            for measured in record.spaces.values_mut() {
                measured.growth = QUIET;
                measured.retained_again = retained_again;
            }
            // The run that decides the growth is not the one with the retained memory.
            let first = Record { attribution: None, ..record.clone() };
            let first = Record { longer: record.attribution.clone(), ..first };
            let contained = notes_of_events_held_once(&first, &record).len();
            let mut decided = first;
            note_events(&mut decided);
            note_events(&mut record);
            assert_eq!((decided.remarks.len(), record.remarks.len()), (1, 1 - contained));
            contained
        };
        assert_eq!(noted(4_000, Some(0)), 1);
        assert_eq!(noted(3_999, Some(0)), 0, "a part of them is freed with the body");
        assert_eq!(noted(4_000, None), 0, "no second round showed that they stay");
    }
}
