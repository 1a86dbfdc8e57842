//! Tells a cache that fills from growth at a steady rate: the first keys that a cache is asked for are
//! all misses, and later ones get rarer.

use super::events::{Look, positive};

/// Fewer events show no fall.
const MIN_EVENTS: usize = 16;

/// By how much more likely than by a cache, as a logarithm, a steady rate must explain the events.
const MIN_EVIDENCE: f64 = 0.5;

/// The same for keys that are asked for by Zipf's law, whose misses have no further parameter.
const MIN_EVIDENCE_BY_ZIPF: f64 = 1.0;

/// The numbers of keys that are compared.
const KEYS: [f64; 6] = [512.0, 1_024.0, 2_048.0, 4_096.0, 8_192.0, 16_384.0];

/// The numbers of keys of caches that have filled in the first quarter.
const SMALL_KEYS: [f64; 4] = [16.0, 32.0, 64.0, 128.0];

/// The powers of the rank that are compared.
const POWERS: [f64; 5] = [1.0, 1.1, 1.2, 1.35, 1.5];

/// No entry is a proof by itself, because the warm-up has asked for keys too.
const LEAST_SHARE: f64 = 1e-3;

/// A fall of so many standard deviations is no chance, whatever the first events were.
const MIN_FALL: f64 = 4.0;

/// Blocks of different sizes can have a common divisor too, but they are more than so many of it.
const MAX_ASKED: i64 = 64;

/// The share of the keys that are misses, by entries and by the number of keys, as logarithms: all keys
/// are asked for alike, or some more often than others.
const SHARES: [fn(f64) -> f64; 3] =
    [|age| (-age.exp()).exp(), |age| (-(0.7 * age).exp()).exp(), |age| (-(0.4 * age).exp()).exp()];

/// True if the numbers of events can be the misses of a cache that still fills, or get rarer. Before
/// the last look there is no need to know, because further iterations can show it.
pub(super) fn may_be_misses(events: &[i64], look: &Look) -> bool {
    if !look.is_last || positive(events).count() < MIN_EVENTS {
        return false;
    }
    let events = CountedMisses::new(events);
    if has_filled(&events.numbers) {
        // What goes on after a cache has filled has another reason, unless its keys are skewed.
        return events.is_by_zipf(events.likelihood_of_filled());
    }
    fall(&events.numbers) > MIN_FALL || events.is_like_a_cache()
}

/// True if the first quarter has three times as many events as later ones, which do not get rarer.
fn has_filled(events: &[i64]) -> bool {
    let (first, rest) = events.split_at(events.len() / 4);
    3.0 * mean(rest) <= mean(first) && fall(rest) <= 1.0
}

/// Bytes as numbers of blocks, if all have the same size, else 1 for each entry with events.
fn counted(events: &[i64]) -> Vec<i64> {
    let size = events.iter().fold(0, |size, &events| greatest_common_divisor(size, events)).max(1);
    let is_alike = events.iter().all(|events| events / size <= MAX_ASKED);
    let count = |&events: &i64| if is_alike { events / size } else { i64::from(events > 0) };
    events.iter().map(count).collect()
}

fn greatest_common_divisor(mut a: i64, mut b: i64) -> i64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn mean(events: &[i64]) -> f64 {
    events.iter().map(|&events| events as f64).sum::<f64>() / events.len().max(1) as f64
}

/// By how many standard deviations independent events get rarer.
fn fall(events: &[i64]) -> f64 {
    let (mean, middle) = (mean(events), (events.len() as f64 - 1.0) / 2.0);
    let (mut sum, mut places, mut squares) = (0.0, 0.0, 0.0);
    for (at, &events) in events.iter().enumerate() {
        let (place, events) = (at as f64 - middle, events as f64 - mean);
        sum -= place * events;
        places += place * place;
        squares += events * events;
    }
    if squares > 0.0 { sum / (places * squares / events.len() as f64).sqrt() } else { 0.0 }
}

/// The events of each entry, as the misses among `asked` keys.
struct CountedMisses {
    numbers: Vec<i64>,
    asked: f64,
}

impl CountedMisses {
    fn new(events: &[i64]) -> Self {
        let numbers = counted(events);
        let asked = numbers.iter().copied().max().unwrap_or(0) as f64;
        Self { numbers, asked }
    }

    fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The logarithm of the likelihood of a share of misses in each entry.
    fn likelihood(&self, share: impl Fn(usize) -> f64) -> f64 {
        let of_entry = |(at, &events): (usize, &i64)| {
            let share = share(at).clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
            events as f64 * share.ln() + (self.asked - events as f64) * (1.0 - share).ln()
        };
        self.numbers.iter().enumerate().map(of_entry).sum()
    }

    /// The likelihood of a small cache that has filled beside something at a steady rate, which is
    /// that after the first quarter.
    fn likelihood_of_filled(&self) -> f64 {
        let quarter = self.len() / 4;
        let (first, rest) = self.numbers.split_at(quarter);
        let [early, steady] = [mean(first) / self.asked, mean(rest) / self.asked];
        let two_rates = self.likelihood(|at| if at < quarter { early } else { steady });
        let beside = |keys: f64| {
            let misses = |at: usize| (-(at as f64) * self.asked / keys).exp();
            self.likelihood(|at| 1.0 - (1.0 - misses(at)) * (1.0 - steady))
        };
        SMALL_KEYS.into_iter().map(beside).fold(two_rates, f64::max)
    }

    /// True if a cache that is asked for equally many keys in each entry explains the events nearly
    /// as well as a steady rate does.
    fn is_like_a_cache(&self) -> bool {
        let share = mean(&self.numbers) / self.asked;
        if share >= 1.0 {
            return false;
        }
        let steady = self.likelihood(|_| share);
        SHARES.into_iter().any(|law| steady < self.likelihood_of(law) + MIN_EVIDENCE)
            || self.is_by_zipf(steady)
    }

    /// The likelihood of a cache whose share of misses falls by a law, with so many keys that it has
    /// as many misses.
    fn likelihood_of(&self, law: fn(f64) -> f64) -> f64 {
        let share = |keys: f64, at: usize| law((at as f64 + 0.5).ln() - keys);
        let (mut low, mut high) = (-20.0_f64, 60.0_f64);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            let expected: f64 = (0..self.len()).map(|at| share(middle, at)).sum();
            if expected < mean(&self.numbers) / self.asked * self.len() as f64 {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.likelihood(|at| share(low, at))
    }

    /// True if a cache that is asked for keys by Zipf's law explains the events nearly as well as
    /// something else of this likelihood does.
    fn is_by_zipf(&self, other: f64) -> bool {
        let mut laws = POWERS.into_iter().flat_map(|power| KEYS.map(|keys| (power, keys)));
        laws.any(|(power, keys)| {
            let misses = Zipf::new(keys, power).misses(self.asked, self.len());
            other < self.likelihood(|at| misses[at]) + MIN_EVIDENCE_BY_ZIPF
        })
    }
}

/// Keys that are asked for by Zipf's law: each in inverse proportion to a power of its rank.
struct Zipf {
    /// Probabilities of ranks, each with the number of keys that it stands for.
    ranks: Vec<(f64, f64)>,
}

impl Zipf {
    /// Ranks that are evaluated. The first are evaluated singly.
    const POINTS: u32 = 48;

    fn new(keys: f64, power: f64) -> Self {
        let place = |point: u32| keys.powf(f64::from(point) / f64::from(Self::POINTS)).round();
        let ranks = (0..=Self::POINTS).filter_map(|point| {
            let (from, to) = (place(point), place(point + 1).min(keys + 1.0));
            // The rank in the middle stands for all.
            let middle = ((from - 0.5) * (to - 0.5)).sqrt().max(1.0);
            (to > from).then(|| (middle.powf(-power), to - from))
        });
        let ranks: Vec<(f64, f64)> = ranks.collect();
        let sum: f64 = ranks.iter().map(|(weight, keys)| weight * keys).sum();
        Self { ranks: ranks.into_iter().map(|(weight, keys)| (weight / sum, keys)).collect() }
    }

    /// The share of misses in each of so many entries, which ask for `asked` keys each.
    fn misses(&self, asked: f64, entries: usize) -> Vec<f64> {
        let mut misses = vec![0.0; entries];
        for &(p, keys) in &self.ranks {
            // The warm-up has asked for keys before the first entry.
            let left = (-p * asked).exp();
            let mut share = p * keys * left;
            for misses in &mut misses {
                *misses += share;
                share *= left;
            }
        }
        misses
    }
}
