//! Remarks on memory that a test keeps from a few measured iterations and that does not grow.

use super::{alike, surviving};
use crate::growth::survivors::{Growth, Pattern};
use crate::judgement::diagnosis::{Evidence, Suspect};
use crate::measurement::record::Record;
use crate::size::{blocks, both};
use crate::space::Space;

const MOST_PLACES: usize = 3;

/// Notes blocks that stay from measured iterations although the space is quiet, if they are more
/// than `max_growth` allows in these iterations. Such a test would fail if it were not followed.
pub fn note_events(record: &mut Record) {
    let judged = record.judged.iter();
    let mut notes: Vec<(Space, String)> =
        judged.filter_map(|&space| Some((space, of_space(record, space)?))).collect();
    if notes.iter().any(|(space, _)| *space == Space::Host) {
        // The overhead of the larger blocks.
        notes.retain(|(space, _)| *space != Space::HostSmall);
    }
    record.notes.extend(notes.into_iter().map(|(_, note)| note));
}

fn of_space(record: &Record, space: Space) -> Option<String> {
    let evidence = Evidence::of(record, space)?;
    let Growth::Quiet { iterations } = evidence.measured.growth else { return None };
    let stays =
        |suspect: &&Suspect<'_>| matches!(suspect.reading.pattern, Pattern::Once | Pattern::Filled);
    let mut places = alike(evidence.suspects.iter().filter(stays));
    places.sort_by_key(|place| std::cmp::Reverse(place.bytes()));
    let bytes: u64 = places.iter().map(|place| place.bytes()).sum();
    let count: u64 = places.iter().map(|place| place.count()).sum();
    let allowed = record.limits.max_growth.value.saturating_mul(evidence.iterations.into());
    if bytes <= allowed {
        return None;
    }
    let shown = places.iter().take(MOST_PLACES).filter_map(|place| {
        let site = surviving(place);
        Some(format!("{} at {}", both(site.bytes), site.place()?))
    });
    let shown: Vec<String> = shown.collect();
    let shown = if shown.is_empty() { String::new() } else { format!(": {}", shown.join(", ")) };
    Some(format!(
        "{} in {} of {space} stay from measured iterations, but this is not growth, because the \
         last {iterations} iterations added none{shown}",
        both(bytes),
        blocks(count)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Layer;
    use crate::measurement::attribution::builder::{Run, once, steady};
    use crate::measurement::record::example::limits;
    use crate::size::Size;

    fn notes(run: Run, growth: Growth, max_growth: u64) -> Vec<String> {
        let mut record = run.record();
        record.limits = limits(Layer { max_growth: Some(Size(max_growth)), ..Layer::default() });
        record.spaces.values_mut().for_each(|measured| measured.growth = growth);
        note_events(&mut record);
        record.notes
    }

    const QUIET: Growth = Growth::Quiet { iterations: 62 };

    #[test]
    fn events_above_the_limit_are_noted_with_their_lines() {
        let run = || Run::default().place(&[], once(4_000, 3)).place(&[], once(6_000, 7));
        let note = "10,000 B (9.8 KiB) in 2 blocks of cuda:0 stay from measured iterations, but \
                    this is not growth, because the last 62 iterations added none: 6,000 B (5.9 \
                    KiB) at src/step.rs:2, 4,000 B (3.9 KiB) at src/step.rs:1";
        assert_eq!(notes(run(), QUIET, 0), [note]);
        assert_eq!(notes(run(), QUIET, 999).len(), 1);
        assert_eq!(notes(run(), QUIET, 1_000), [""; 0]);
    }

    #[test]
    fn growth_is_a_finding_and_not_a_remark() {
        let found = Growth::Found { whole: true, exact: true, iterations: 167 };
        assert_eq!(notes(Run::default().place(&[], steady(4_000)), found, 0), [""; 0]);
        assert_eq!(notes(Run::default(), QUIET, 0), [""; 0]);
    }
}
