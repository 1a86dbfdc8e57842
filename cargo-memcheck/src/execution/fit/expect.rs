//! Predicts the largest value that has room from the peaks of earlier attempts. The prediction only
//! chooses the next attempt: the answer of a search always comes from real runs.

use std::collections::BTreeSet;

use memcheck_core::law::{self, Largest, Law, Point, Sizes};
use memcheck_core::space::Space;
use serde::Serialize;

use super::{Attempt, Capacities};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Prediction {
    pub(crate) space: Space,
    pub(crate) law: Law,
    pub(crate) attempts: usize,
    pub(crate) largest: u64,
    /// Bytes.
    #[serde(rename = "peak_allocated")]
    pub(crate) peak: u64,
}

pub(super) struct ExpectedValue {
    pub(super) value: u64,
    pub(super) by_law: Option<Prediction>,
}

/// By the law of the peaks of the device that runs out of memory first, or else a straight line
/// through the last two.
pub(super) fn expected(
    param: &str,
    attempts: &[Attempt],
    rooms: &Capacities,
) -> Option<ExpectedValue> {
    let spaces: BTreeSet<Space> =
        attempts.iter().flat_map(|tried| tried.peaks.keys().copied()).collect();
    let of_space = |space: Space| {
        let (_, usable) = rooms.of_space(space)?;
        match by_law(param, &peaks(attempts, space, |tried| tried.refused.is_none()), usable) {
            Some((law, largest, peak)) => {
                let attempts = attempts.len();
                let prediction = Prediction { space, law, attempts, largest, peak };
                Some(ExpectedValue { value: largest, by_law: Some(prediction) })
            }
            None => {
                // Without attempts above the limit, because nothing is left to extrapolate from
                // there.
                let value = extrapolate_line(&peaks(attempts, space, Attempt::has_room), usable)?;
                Some(ExpectedValue { value, by_law: None })
            }
        }
    };
    spaces.into_iter().filter_map(of_space).min_by_key(|expected| expected.value)
}

/// Peaks in bytes, in the order of the values.
fn peaks(attempts: &[Attempt], space: Space, of: impl Fn(&Attempt) -> bool) -> Vec<(u64, u64)> {
    let peak = |tried: &Attempt| Some((tried.value, *tried.peaks.get(&space)?));
    let mut peaks: Vec<(u64, u64)> =
        attempts.iter().filter(|tried| of(tried)).filter_map(peak).collect();
    peaks.sort_unstable();
    peaks
}

/// Attempts that were refused memory must be left out, because their peaks are too small.
fn by_law(param: &str, peaks: &[(u64, u64)], usable: u64) -> Option<(Law, u64, u64)> {
    let at = |value| Sizes::from([(param.to_owned(), value)]);
    let point = |&(value, peak): &(u64, u64)| Point { at: at(value), value: peak };
    let points: Vec<Point> = peaks.iter().map(point).collect();
    let law = law::find(&points).ok()?;
    match law::largest(&law, param, &Sizes::new(), usable) {
        Largest::Upto(largest) => {
            let peak = law.at(&at(largest))?;
            Some((law, largest, peak))
        }
        Largest::Any | Largest::None => None,
    }
}

/// Without a law: a peak that rises faster than the value would make the step far too long.
const LONGEST_STEP: u64 = 8;

fn extrapolate_line(peaks: &[(u64, u64)], usable: u64) -> Option<u64> {
    let &[.., (before, earlier), (last, peak)] = peaks else { return None };
    let rise = u128::from(peak.checked_sub(earlier).filter(|&rise| rise > 0)?);
    let left = u128::from(usable.saturating_sub(peak));
    let more = left * u128::from(last - before) / rise;
    let value = last.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
    Some(value.min(last.saturating_mul(LONGEST_STEP)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use memcheck_core::measurement::record::RefusedAllocation;
    use memcheck_core::search::{Search, Start};

    use super::*;

    const SPACE: Space = Space::Cuda(0);
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn rooms(usable: u64) -> Capacities {
        Capacities::stated(usable, usable)
    }

    /// The device refuses every peak above `usable`.
    fn attempt(value: u64, peak: u64, usable: u64) -> Attempt {
        let refusal = RefusedAllocation { requested: peak, live: 0, host: 0, last: true };
        Attempt {
            value,
            peaks: BTreeMap::from([(SPACE, if peak > usable { 7 } else { peak })]),
            refused: (peak > usable).then_some((SPACE, refusal)),
            above: None,
            other_findings: Vec::new(),
        }
    }

    fn search(
        peak: impl Fn(u64) -> u64,
        usable: u64,
        expect: impl Fn(&[Attempt]) -> Option<u64>,
    ) -> (Vec<u64>, Option<u64>) {
        let mut search = Search::new(1..=1 << 20, Start::Lowest).unwrap();
        let mut attempts = Vec::new();
        while let Some(value) = search.next() {
            let tried = attempt(value, peak(value), usable);
            search.tried(value, tried.has_room());
            attempts.push(tried);
            if let Some(value) = expect(&attempts) {
                search.expect(value);
            }
        }
        (attempts.iter().map(|tried| tried.value).collect(), search.largest())
    }

    fn with_laws(peak: impl Fn(u64) -> u64, usable: u64) -> (Vec<u64>, Option<u64>) {
        let by = |attempts: &[Attempt]| expected("seq", attempts, &rooms(usable));
        search(peak, usable, |attempts| Some(by(attempts)?.value))
    }

    fn on_a_line(peak: impl Fn(u64) -> u64, usable: u64) -> (Vec<u64>, Option<u64>) {
        let line =
            |tried: &[Attempt]| extrapolate_line(&peaks(tried, SPACE, Attempt::has_room), usable);
        search(peak, usable, line)
    }

    #[test]
    fn a_quadratic_peak_is_predicted_from_four_values() {
        // 66,560 + 512 s + 32 s² <= 8 MiB: s <= 502.
        let peak = |seq: u64| 66_560 + 512 * seq + 32 * seq * seq;
        assert!(peak(502) <= 8 * MIB && 8 * MIB < peak(503));
        let (tried, largest) = with_laws(peak, 8 * MIB);
        assert_eq!((tried.as_slice(), largest), ([1, 2, 16, 128, 502, 503].as_slice(), Some(502)));
        let (tried, largest) = on_a_line(peak, 8 * MIB);
        assert_eq!((tried.len(), largest), (14, Some(502)), "{tried:?}");
        // Three values determine the law of a linear peak, so the next attempt jumps to the value
        // that the law predicts.
        let peak = |batch: u64| 400 * MIB + 100 * KIB * batch;
        let (tried, largest) = with_laws(peak, 16 << 30);
        assert_eq!((tried, largest), (vec![1, 2, 16, 163_676, 163_677], Some(163_676)));
    }

    #[test]
    fn a_polynomial_takes_no_more_attempts_than_a_straight_line() {
        for usable in [8 * MIB, 300 * MIB, 11 << 30, 79 << 30] {
            for weights in [0, 5 * MIB] {
                for linear in [KIB, 48 * KIB, 3 * MIB] {
                    for square in [0, 16, 4_096] {
                        for cube in [0, 1] {
                            let peak = |seq: u64| {
                                weights + linear * seq + square * seq * seq + cube * seq.pow(3)
                            };
                            let (tried, largest) = with_laws(peak, usable);
                            let (line, also) = on_a_line(peak, usable);
                            assert_eq!(largest, also);
                            assert!(tried.len() <= line.len(), "{tried:?} {line:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_search_finds_a_peak_that_is_not_a_polynomial() {
        let doubled = |seq: u64| MIB + 4 * KIB * seq.next_power_of_two();
        let granule = |seq: u64| (3 * seq * seq * KIB).next_multiple_of(2 * MIB);
        let later = |seq: u64| (50 * KIB + seq * KIB).max(40 * seq * seq);
        let peaks: [&dyn Fn(u64) -> u64; 3] = [&doubled, &granule, &later];
        for (number, peak) in peaks.into_iter().enumerate() {
            for usable in [9 * MIB, 100 * MIB, 3 << 30] {
                let (_, largest) = with_laws(peak, usable);
                let largest = largest.unwrap();
                assert!(peak(largest) <= usable, "{number}: {largest}");
                assert!(usable < peak(largest + 1), "{number}: {largest}");
            }
        }
    }

    #[test]
    fn a_prediction_is_the_law_of_the_device_that_is_full_first() {
        let two = |value: u64| Attempt {
            peaks: BTreeMap::from([(SPACE, 100 * value), (Space::Cuda(1), 7 + value * value)]),
            ..attempt(value, 0, 1)
        };
        let attempts: Vec<Attempt> = [1, 2, 4, 8].map(two).into();
        let stated =
            |attempts: &[Attempt], usable| expected("seq", attempts, &rooms(usable)).unwrap();
        // 100 s <= 20,000: s <= 200. 7 + s² <= 20,000: s <= 141.
        let ExpectedValue { value, by_law } = stated(&attempts, 20_000);
        let prediction = by_law.unwrap();
        assert_eq!((value, prediction.largest, prediction.peak), (141, 141, 7 + 141 * 141));
        assert_eq!((prediction.space, prediction.attempts), (Space::Cuda(1), 4));
        assert_eq!(prediction.law.to_string(), "7 + 1*seq^2");
        // Three attempts do not show the parabola of the second device. The prediction must use the
        // first device: 100 s <= 700, against 8 + 3 (s - 1) on a straight line for the second.
        assert_eq!(stated(&attempts[..3], 700).by_law.unwrap().space, SPACE);
        // A refused attempt is not a point of the law. An attempt above the usable capacity is one,
        // because its peak is complete.
        let mut refused = attempts.clone();
        refused[3].refused = attempt(8, 2, 1).refused;
        let without = stated(&refused, 20_000);
        assert_eq!((without.value, without.by_law), (4 * LONGEST_STEP, None));
        refused[3] = Attempt { above: Some(SPACE), refused: None, ..attempts[3].clone() };
        assert_eq!(stated(&refused, 20_000).by_law, Some(prediction));
        // A peak that does not grow gives no prediction.
        let flat: Vec<Attempt> = [1, 2, 4].map(|value| attempt(value, 9, 10)).into();
        assert!(expected("seq", &flat, &rooms(10)).is_none());
    }
}
