//! Launches of kernels that the simulated device did not compute, as notes about a test.

use crate::size::{counted, exact};

/// The launches of one kernel, or of one launcher in C.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsimulatedLaunches {
    /// The name of the kernel or of the launcher.
    pub name: String,
    /// Its package with the version, after the file if that is known; empty if neither is.
    pub source: String,
    /// The functions by which a launcher allocates memory; empty if its source shows none.
    pub allocations: String,
    /// True if it belongs to candle, in a version whose sources the device does not know.
    pub is_of_candle: bool,
    /// True if it has the name of a launcher of candle, which it replaces.
    pub replaces_candle: bool,
    /// The number of launches, without those of iterations beyond the measured ones.
    pub launches: u64,
}

/// The number of kernels that a note names.
const SHOWN: usize = 3;

/// Returns the notes about all launches of a test, whatever their order.
pub fn notes(launches: &[UnsimulatedLaunches]) -> Vec<String> {
    let mut sorted: Vec<&UnsimulatedLaunches> = launches.iter().collect();
    sorted.sort_by_key(|it| (std::cmp::Reverse(it.launches), &it.name, &it.source));
    let (candle, own): (Vec<_>, Vec<_>) = sorted.iter().partition(|it| it.is_of_candle);
    let mut notes = Vec::new();
    notes.extend(
        note(&own, "your own kernels", "")
            .map(|note| format!("{note}; `register_kernel` can give them host functions")),
    );
    notes.extend(note(
        &candle,
        "candle's kernels",
        "because memcheck does not know the sources of this version, ",
    ));
    let each = |notes: &mut Vec<String>,
                all: Vec<&&UnsimulatedLaunches>,
                what: &dyn Fn(&UnsimulatedLaunches) -> String| {
        let more = all.len().saturating_sub(SHOWN);
        notes.extend(
            all.into_iter().take(SHOWN).map(|it| format!("{} {}", described(it), what(it))),
        );
        if more > 0 {
            let others = counted(more as u64, "other launcher", "other launchers");
            notes.push(format!("the same is true of {others}"));
        }
    };
    each(&mut notes, sorted.iter().filter(|it| !it.allocations.is_empty()).collect(), &|it| {
        format!("calls {}: the simulated device does not count this memory", it.allocations)
    });
    each(&mut notes, sorted.iter().filter(|it| it.replaces_candle).collect(), &|_| {
        "has the name of a launcher of candle: candle calls it, too, and its results are unknown"
            .to_owned()
    });
    notes
}

fn note(launches: &[&UnsimulatedLaunches], what: &str, why: &str) -> Option<String> {
    if launches.is_empty() {
        return None;
    }
    let number = launches.iter().fold(0_u64, |sum, it| sum.saturating_add(it.launches));
    let number = match number {
        0 => format!("launches of {what} in iterations beyond the measured ones"),
        number => format!("{} of {what}", counted(number, "launch", "launches")),
    };
    let mut names: Vec<String> = launches.iter().take(SHOWN).map(|it| described(it)).collect();
    let more = launches.len().saturating_sub(SHOWN) as u64;
    if more > 0 {
        names.push(format!("{} more", exact(more)));
    }
    Some(format!(
        "{number}: not simulated, {why}so that the memory behind their arguments is unknown: {}",
        names.join(", ")
    ))
}

fn described(launches: &UnsimulatedLaunches) -> String {
    match launches.source.as_str() {
        "" => launches.name.clone(),
        source => format!("{} ({source})", launches.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(name: &str, launches: u64) -> UnsimulatedLaunches {
        let (name, source) = (name.to_owned(), "src/a.cu of app 0.1.0".to_owned());
        UnsimulatedLaunches { name, source, launches, ..UnsimulatedLaunches::default() }
    }

    #[test]
    fn the_number_and_the_most_frequent_names_are_in_a_note() {
        assert!(notes(&[]).is_empty());
        let one = UnsimulatedLaunches { source: String::new(), ..launcher("add", 1) };
        assert_eq!(
            notes(&[one]),
            ["1 launch of your own kernels: not simulated, so that the memory behind their \
              arguments is unknown: add; `register_kernel` can give them host functions"]
        );
        let several: Vec<_> = (1..=5).map(|n| launcher(&format!("k{n}"), n * 1000)).collect();
        let found = notes(&several);
        let start = "15,000 launches of your own kernels: not simulated, ";
        assert!(found[0].starts_with(start), "{found:?}");
        let names = "k5 (src/a.cu of app 0.1.0), k4 (src/a.cu of app 0.1.0), \
                     k3 (src/a.cu of app 0.1.0), 2 more;";
        assert!(found[0].contains(names), "{found:?}");
        assert_eq!(found.len(), 1);
        let further = notes(&[launcher("add", 0)]);
        assert!(further[0].starts_with("launches of your own kernels in iterations beyond"));
    }

    #[test]
    fn allocations_clashes_and_unknown_versions_have_notes() {
        let allocating =
            UnsimulatedLaunches { allocations: "cudaMalloc".to_owned(), ..launcher("scan", 2) };
        let clashing = UnsimulatedLaunches { replaces_candle: true, ..launcher("launch_mmq", 1) };
        let candle = UnsimulatedLaunches {
            source: "candle-kernels 0.12.0".to_owned(),
            is_of_candle: true,
            ..launcher("uexp_f32", 4)
        };
        let found = notes(&[clashing, candle, allocating]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("3 launches of your own kernels: not simulated"));
        assert_eq!(
            found[1],
            "4 launches of candle's kernels: not simulated, because memcheck does not know the \
             sources of this version, so that the memory behind their arguments is unknown: \
             uexp_f32 (candle-kernels 0.12.0)"
        );
        assert!(found[2].starts_with("scan (src/a.cu of app 0.1.0) calls cudaMalloc: "));
        assert!(
            found[3].starts_with("launch_mmq (src/a.cu of app 0.1.0) has the name of a launcher")
        );
    }
}
