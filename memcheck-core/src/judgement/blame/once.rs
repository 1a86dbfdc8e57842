//! Notes about memory that stays because it was allocated once in the process.

use super::lines::Lines;
use super::retained;
use crate::judgement::finding::Site;
use crate::measurement::record::Record;
use crate::size::both;
use crate::space::Space;

/// Memory of one space that stays after the body.
struct Staying {
    space: Space,
    retained: u64,
    /// The bytes that the last further round added.
    added: u64,
    rounds: Option<u32>,
    lines: Lines,
    /// Bytes of small host blocks in addition.
    small: u64,
}

/// Notes the lines that allocated memory once in the process, if call sites are known.
pub fn note_once(record: &mut Record) {
    let spaces = record.spaces.keys();
    let mut staying: Vec<Staying> = spaces.filter_map(|&space| staying(record, space)).collect();
    join_small(&mut staying);
    record.remarks.extend(staying.into_iter().map(note));
}

fn staying(record: &Record, space: Space) -> Option<Staying> {
    let added = record.added_by_second_round(space)?;
    let mut lines = Lines::default();
    for site in retained(record, space) {
        if let Some(line) = line_or_static(&site) {
            lines.add(line, site.bytes);
        }
    }
    let measured = record.spaces.get(&space)?;
    let (retained, rounds) = (measured.metrics.retained, measured.rounds);
    (!lines.is_empty()).then_some(Staying { space, retained, added, rounds, lines, small: 0 })
}

/// One static mostly has blocks of both spaces of the host, so both have one note.
fn join_small(staying: &mut Vec<Staying>) {
    let at = |space| staying.iter().position(|it| it.space == space);
    let (Some(host), Some(small)) = (at(Space::Host), at(Space::HostSmall)) else { return };
    if (staying[host].added == 0) != (staying[small].added == 0) {
        return;
    }
    let small = staying.remove(small);
    if let Some(host) = staying.iter_mut().find(|it| it.space == Space::Host) {
        host.small = small.retained;
        host.added += small.added;
        host.lines.join(small.lines);
    }
}

fn note(staying: Staying) -> String {
    let stays = match (staying.added, staying.rounds) {
        (0, None) => {
            "were allocated once in this process (a second round of the body retained no more)"
                .to_owned()
        }
        (0, Some(rounds)) => format!(
            "stay after the first round of the body, as in a pool that threads fill (the last of \
             {rounds} further rounds retained no more)"
        ),
        (added, None) => format!(
            "stay after the body returned, and a second round of the body added {}",
            both(added)
        ),
        (added, Some(rounds)) => format!(
            "stay after the body returned, and the last of {rounds} further rounds of the body \
             added {}",
            both(added)
        ),
    };
    let small = match staying.small {
        0 => String::new(),
        small => format!(" and {} in {}", both(small), Space::HostSmall),
    };
    let Staying { space, retained, lines, .. } = staying;
    format!("{} in {space}{small} {stays}: {}", both(retained), lines.listed())
}

/// `at src/model.rs:42` or, if no line of the program is known, the static that was initialized.
fn line_or_static(site: &Site) -> Option<String> {
    let initialized = site.stack.iter().find_map(|frame| {
        Some(format!("in the static `{}` ({})", frame.initialized_static()?, frame.short_place()?))
    });
    let initialized = initialized.filter(|_| site.file.is_none());
    initialized.or_else(|| Some(format!("at {}", site.place()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::attribution::Holder;
    use crate::measurement::attribution::builder::{Run, once};
    use crate::measurement::record::example::{GPU, armed};
    use crate::measurement::record::{Metrics, SpaceRecord};

    const VOCABULARY: &str = "tokenizers-0.22.2/src/tokenizer/added_vocabulary.rs";
    const STATIC: &str = "tokenizers::tokenizer::added_vocabulary::STARTS_WITH_WORD::{{closure}}";

    fn notes(run: Run, retained_again: Option<u64>) -> Vec<String> {
        let mut record = run.record();
        record.limits.max_retained.value = 64;
        record.spaces.get_mut(&GPU).unwrap().retained_again = retained_again;
        note_once(&mut record);
        record.remarks
    }

    #[test]
    fn memory_that_a_second_round_does_not_add_has_a_note_with_its_lines() {
        let run = || Run::default().place(&[], once(8, 1)).retained(1, 100);
        let once = "100 B in cuda:0 were allocated once in this process (a second round of the \
                    body retained no more): 100 B at src/step.rs:1";
        assert_eq!(notes(run(), Some(0)), [once]);
        let added = "100 B in cuda:0 stay after the body returned, and a second round of the body \
                     added 64 B: 100 B at src/step.rs:1";
        assert_eq!(notes(run(), Some(64)), [added]);
        assert!(notes(run(), Some(65)).is_empty(), "this is a finding");
        assert!(notes(run(), None).is_empty());
    }

    #[test]
    fn places_beyond_the_third_are_counted() {
        let run =
            (1..6).fold(Run::default(), |run, bytes| run.place(&[], once(8, 1)).retained(1, bytes));
        let [note] = &notes(run, Some(0))[..] else { panic!("one note") };
        assert!(note.ends_with(", 3 B at src/step.rs:3, 3 B at 2 other places"), "{note}");
    }

    #[test]
    fn a_static_that_another_thread_initialized_is_one_place() {
        let in_thread = |run: Run, file: &str, bytes| {
            let run = run.place(&[], once(8, 1)).via("regex_automata::build", file, 7);
            run.via(STATIC, VOCABULARY, 98).without_program().retained(1, bytes)
        };
        let run = in_thread(Run::default(), "regex-automata-0.4.19/src/nfa.rs", 30);
        let run = in_thread(run, "regex-automata-0.4.19/src/dfa.rs", 40);
        let run = run.place(&[], once(8, 1)).retained(1, 50);
        let expected = format!(
            "120 B in cuda:0 were allocated once in this process (a second round of the body \
             retained no more): 70 B in the static \
             `tokenizers::tokenizer::added_vocabulary::STARTS_WITH_WORD` ({VOCABULARY}:98), 50 B \
             at src/step.rs:3"
        );
        assert_eq!(notes(run, Some(0)), [expected]);
    }

    #[test]
    fn blocks_of_both_spaces_of_the_host_have_one_note() {
        let noted = |added: [u64; 2]| {
            let mut record = Run::default()
                .place(&[], once(8, 1))
                .place(&[], once(8, 1))
                .retained(1, 30)
                .record();
            let attribution = record.attribution.as_mut().unwrap();
            let first = attribution.retained[0].clone();
            attribution.retained = [(0, 4_096), (1, 30)]
                .map(|(place, bytes)| Holder { place, bytes, ..first.clone() })
                .to_vec();
            record.judged = vec![Space::Host, Space::HostSmall];
            record.spaces.clear();
            for (number, space) in record.judged.clone().into_iter().enumerate() {
                let attribution = record.attribution.as_mut().unwrap();
                attribution.places[number].space = space;
                let retained = attribution.retained[number].bytes;
                let measured = armed(Metrics { retained, ..Metrics::default() });
                let retained_again = Some(added[number]);
                record.spaces.insert(space, SpaceRecord { retained_again, ..measured });
            }
            record.limits.max_retained.value = 64;
            note_once(&mut record);
            record.remarks
        };
        let one = "4,096 B (4.00 KiB) in host and 30 B in host/small were allocated once in this \
                   process (a second round of the body retained no more): 4,096 B (4.00 KiB) at \
                   src/step.rs:1, 30 B at src/step.rs:2";
        assert_eq!(noted([0, 0]), [one]);
        assert!(noted([3, 2])[0].contains("30 B in host/small stay"), "{:?}", noted([3, 2]));
        assert!(noted([3, 2])[0].contains("added 5 B: "), "{:?}", noted([3, 2]));
        assert_eq!(noted([0, 2]).len(), 2, "only the larger blocks were allocated once");
    }
}
