//! Notes about memory that stays because it was allocated once in the process.

use std::cmp::Reverse;

use super::retained;
use crate::judgement::finding::Site;
use crate::measurement::record::Record;
use crate::size::both;

/// Notes the lines that allocated memory once in the process, if call sites are known.
pub fn note_once(record: &mut Record) {
    let mut notes = Vec::new();
    for (&space, measured) in &record.spaces {
        let Some(added) = record.added_by_second_round(space) else { continue };
        let mut places: Vec<(String, u64)> = Vec::new();
        for site in retained(record, space) {
            let Some(place) = place_or_static(&site) else { continue };
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, bytes)) => *bytes += site.bytes,
                None => places.push((place, site.bytes)),
            }
        }
        places.sort_by_key(|&(_, bytes)| Reverse(bytes));
        let places: Vec<String> = places
            .iter()
            .take(3)
            .map(|(place, bytes)| format!("{} {place}", both(*bytes)))
            .collect();
        if places.is_empty() {
            continue;
        }
        let stays = match added {
            0 => {
                "were allocated once in this process (a second round of the body retained no more)"
                    .to_owned()
            }
            _ => format!(
                "stay after the body returned, and a second round of the body added {}",
                both(added)
            ),
        };
        let retained = both(measured.metrics.retained);
        notes.push(format!("{retained} in {space} {stays}: {}", places.join(", ")));
    }
    record.notes.extend(notes);
}

/// `at src/model.rs:42` or, if no line of the program is known, the static that was initialized.
fn place_or_static(site: &Site) -> Option<String> {
    let initialized = site.stack.iter().find_map(|frame| {
        Some(format!("in the static `{}` ({})", frame.initialized_static()?, frame.short_place()?))
    });
    let initialized = initialized.filter(|_| site.file.is_none());
    initialized.or_else(|| Some(format!("at {}", site.place()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::attribution::builder::{Run, once};
    use crate::measurement::record::example::GPU;

    const VOCABULARY: &str = "tokenizers-0.22.2/src/tokenizer/added_vocabulary.rs";
    const STATIC: &str = "tokenizers::tokenizer::added_vocabulary::STARTS_WITH_WORD::{{closure}}";

    fn notes(run: Run, retained_again: Option<u64>) -> Vec<String> {
        let mut record = run.record();
        record.limits.max_retained.value = 64;
        record.spaces.get_mut(&GPU).unwrap().retained_again = retained_again;
        note_once(&mut record);
        record.notes
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
}
