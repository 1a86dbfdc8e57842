//! The slowest tests of a run.

use std::time::Duration;

use crate::presentation::presenters::style;

/// Fewer tests than this have their times in their lines.
const SLOWEST: usize = 5;

/// `slowest: 12.300s app::mem llama::kv_cache on sim:h200`.
pub(super) fn lines(mut times: Vec<(Duration, String)>) -> Vec<String> {
    if times.len() <= SLOWEST {
        return Vec::new();
    }
    times.sort_by(|one, other| other.cmp(one));
    let line = |(time, test): &(Duration, String)| {
        format!("slowest: {} {test}", style::amount(&format!("{:.3}s", time.as_secs_f64())))
    };
    times[..SLOWEST].iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_many_tests_are_named() {
        let tests = |count: u64| -> Vec<(Duration, String)> {
            (1..=count).map(|time| (Duration::from_secs(time), format!("t{time}"))).collect()
        };
        assert!(lines(tests(5)).is_empty(), "their times are in their lines");
        let named = lines(tests(7));
        let plain: Vec<_> = named.iter().map(|line| console::strip_ansi_codes(line)).collect();
        assert_eq!((plain.len(), plain[0].as_ref()), (5, "slowest: 7.000s t7"));
        assert_eq!(plain[4], "slowest: 3.000s t3");
    }
}
