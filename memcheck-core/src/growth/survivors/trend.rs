//! Growth of series with totals but no blocks: reserved bytes of a pool, used bytes of NVML. The
//! robust slope and its test are evidence and not a proof; known blocks decide.

/// Longer series, and series with ties, take the normal approximation (Kendall 1975).
const LONGEST_EXACT: usize = 10;

/// The most points that a slope is computed from: they have half a million pairs.
const MOST_POINTS: usize = 1_000;

/// The slope of a series of totals, and the evidence that it rises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Theil–Sen slope, in bytes per iteration.
    pub slope: f64,
    /// Kendall's tau-b against time: 1 if each value is above the value before.
    pub tau: f64,
    /// Mann–Kendall S: pairs that rise minus pairs that fall.
    pub s: i64,
    /// Probability of this S or a larger one without a trend.
    pub p: f64,
    /// `1 - p`: the confidence that the series rises.
    pub confidence: f64,
}

/// Slope and Mann–Kendall test of a series; `None` for fewer than two points.
pub fn trend(series: &[u64]) -> Option<Trend> {
    let slope = theil_sen(series)?;
    let ties = ties(series);
    let s = mann_kendall(series, &ties);
    let p = if ties.is_empty() && series.len() <= LONGEST_EXACT {
        exact_p(series.len(), s)
    } else {
        normal_p(s, variance(series.len(), &ties))
    };
    Some(Trend { slope, tau: tau(series.len(), s, &ties), s, p, confidence: 1.0 - p })
}

/// Theil–Sen slope in bytes per iteration: the median slope of all pairs of at most [`MOST_POINTS`]
/// points at even distances. `None` for fewer than two points.
pub fn theil_sen(series: &[u64]) -> Option<f64> {
    let points: Vec<(usize, u64)> = match series.len() {
        few @ ..=MOST_POINTS => (0..few).map(|at| (at, series[at])).collect(),
        many => (0..MOST_POINTS)
            .map(|point| point * (many - 1) / (MOST_POINTS - 1))
            .map(|at| (at, series[at]))
            .collect(),
    };
    let mut slopes: Vec<f64> = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, &(earlier, a)) in points.iter().enumerate() {
        for &(later, b) in &points[i + 1..] {
            slopes.push((b as f64 - a as f64) / (later - earlier) as f64);
        }
    }
    median(&mut slopes)
}

/// The line with this slope at the first point: the median of the points without the slope.
pub fn intercept(series: &[u64], slope: f64) -> Option<f64> {
    let mut rest: Vec<f64> =
        series.iter().enumerate().map(|(at, &value)| value as f64 - slope * at as f64).collect();
    median(&mut rest)
}

fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let (middle, is_odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd);
    Some(lower.map_or(upper, |lower| f64::midpoint(lower, upper)))
}

/// All pairs, minus those of equal values, minus twice those that fall.
fn mann_kendall(series: &[u64], ties: &[u64]) -> i64 {
    let pairs = |points: u64| (points * points.saturating_sub(1) / 2) as i64;
    let tied: i64 = ties.iter().map(|&size| pairs(size)).sum();
    let (mut sorted, mut spare) = (series.to_vec(), series.to_vec());
    pairs(series.len() as u64) - tied - 2 * falling(&mut sorted, &mut spare) as i64
}

fn falling(values: &mut [u64], spare: &mut [u64]) -> u64 {
    if values.len() < 2 {
        return 0;
    }
    let middle = values.len() / 2;
    let (left, right) = values.split_at_mut(middle);
    let (of_left, of_right) = spare.split_at_mut(middle);
    let mut count = falling(left, of_left) + falling(right, of_right);
    let (mut i, mut j) = (0, 0);
    for merged in spare.iter_mut() {
        let takes_left =
            i < middle && (middle + j >= values.len() || values[i] <= values[middle + j]);
        if takes_left {
            *merged = values[i];
            i += 1;
        } else {
            *merged = values[middle + j];
            count += (middle - i) as u64;
            j += 1;
        }
    }
    values.copy_from_slice(spare);
    count
}

fn ties(series: &[u64]) -> Vec<u64> {
    let mut sorted = series.to_vec();
    sorted.sort_unstable();
    let sizes = sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as u64);
    sizes.filter(|&size| size > 1).collect()
}

fn pairs(points: u64) -> f64 {
    (points * (points - 1)) as f64 / 2.0
}

/// Kendall's tau-b against time, which has no ties; 0 for a series of one value.
fn tau(n: usize, s: i64, ties: &[u64]) -> f64 {
    let all = pairs(n as u64);
    let untied = all - ties.iter().map(|&size| pairs(size)).sum::<f64>();
    if untied > 0.0 { s as f64 / (all * untied).sqrt() } else { 0.0 }
}

fn variance(n: usize, ties: &[u64]) -> f64 {
    let term = |size: f64| size * (size - 1.0) * (2.0 * size + 5.0);
    (term(n as f64) - ties.iter().map(|&size| term(size as f64)).sum::<f64>()) / 18.0
}

/// P(S >= s) over all orders of `n` values: S is the number of pairs minus twice the inversions.
fn exact_p(n: usize, s: i64) -> f64 {
    let most = n * (n - 1) / 2;
    let mut orders = vec![0u64; most + 1];
    orders[0] = 1;
    for values in 2..=n {
        for inversions in (0..=most).rev() {
            let lowest = inversions.saturating_sub(values - 1);
            orders[inversions] = orders[lowest..=inversions].iter().sum();
        }
    }
    let as_large: u64 = orders
        .iter()
        .enumerate()
        .filter(|&(inversions, _)| most as i64 - 2 * inversions as i64 >= s)
        .map(|(_, &count)| count)
        .sum();
    as_large as f64 / orders.iter().sum::<u64>() as f64
}

/// P(S >= s) by the normal distribution. S changes in steps of two, so 1 is subtracted for
/// continuity. The sign of S does not matter, because the test is for an increase only.
fn normal_p(s: i64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (s - 1) as f64 / variance.sqrt();
    libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, published: f64) -> bool {
        (found - published).abs() < 0.0005
    }

    #[test]
    fn exact_probabilities_are_those_of_kendalls_table() {
        // Kendall, Rank Correlation Methods, table 1; Hollander and Wolfe, table A.21.
        for (n, s, p) in [
            (4, 0, 0.625),
            (4, 2, 0.375),
            (4, 4, 0.167),
            (4, 6, 0.042),
            (5, 6, 0.117),
            (5, 8, 0.042),
            (5, 10, 0.0083),
            (6, 11, 0.028),
            (7, 13, 0.035),
            (8, 16, 0.031),
            (9, 18, 0.038),
            (10, 21, 0.036),
            (10, 27, 0.0083),
            (10, 45, 0.000_000_28),
        ] {
            assert!(close(exact_p(n, s), p), "n={n} S={s}: {}", exact_p(n, s));
        }
    }

    #[test]
    fn the_normal_approximation_meets_the_exact_one_and_the_normal_table() {
        assert!(close(normal_p(1, 100.0), 0.5));
        // z = 1.96 and z = 2.5758, from the table of the normal distribution.
        assert!(close(normal_p(197, 10_000.0), 0.025));
        assert!((normal_p(25_759, 100_000_000.0) - 0.005).abs() < 1e-6);
        for s in (-45..=45).step_by(2) {
            let difference = (exact_p(10, s) - normal_p(s, variance(10, &[]))).abs();
            assert!(difference < 0.01, "S={s}: {difference}");
        }
        assert_eq!(variance(10, &[]), 125.0);
        // Gilbert 1987, p. 209: ties reduce the variance.
        assert_eq!(variance(10, &[3, 2]), 125.0 - (66.0 + 18.0) / 18.0);
    }

    #[test]
    fn a_rising_series_has_a_trend_with_high_confidence() {
        let rising = trend(&(0..10).map(|i| 1_000 + 64 * i).collect::<Vec<u64>>()).unwrap();
        assert_eq!((rising.slope, rising.tau, rising.s), (64.0, 1.0, 45));
        assert!(rising.confidence > 0.999_999);
        // A pool grows in steps of its granularity, so each value comes twice.
        let steps = trend(&[2, 2, 4, 4, 6, 6, 8, 8, 10, 10]).unwrap();
        assert_eq!(steps.s, 40);
        assert!(steps.confidence > 0.999 && steps.slope > 0.9, "{steps:?}");
        assert!(close(steps.tau, 40.0 / (45.0_f64 * 40.0).sqrt()));
    }

    #[test]
    fn a_series_that_does_not_rise_has_low_confidence() {
        let flat = trend(&[7; 10]).unwrap();
        assert_eq!((flat.slope, flat.tau, flat.s, flat.p), (0.0, 0.0, 0, 1.0));
        assert!(trend(&[9, 8, 7, 6, 5]).unwrap().confidence < 0.01);
        assert!(trend(&[5, 9, 5, 9, 5, 9, 5, 9]).unwrap().confidence < 0.99);
        // A single step is likely a trend, but its slope is zero.
        assert_eq!(trend(&[1, 1, 1, 9, 9, 9, 9, 9, 9, 9]).unwrap().slope, 0.0);
        // Three points can rise by chance.
        assert!(trend(&[1, 2, 3]).unwrap().confidence < 0.99);
        assert_eq!(trend(&[1]), None);
    }

    #[test]
    fn the_line_begins_where_the_points_are() {
        assert_eq!(intercept(&[100, 164, 228], 64.0), Some(100.0));
        assert_eq!(intercept(&[100, 9_000, 228, 292, 356], 64.0), Some(100.0));
        assert_eq!(intercept(&[7], 0.0), Some(7.0));
        assert_eq!(intercept(&[], 0.0), None);
    }

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        let median_of = |values: &[f64]| median(&mut values.to_vec());
        assert_eq!(median_of(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_of(&[11.0, 2.0, 9.0, 10.0, 1.0]), Some(9.0));
        assert_eq!(median_of(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median_of(&[4.0, 1.0, 90.0, 2.0]), Some(3.0));
        assert_eq!(median_of(&[]), None);
    }

    #[test]
    fn a_short_series_without_ties_is_judged_by_the_exact_distribution() {
        let rising = |length: u64| trend(&(0..length).collect::<Vec<_>>()).unwrap();
        assert_eq!(rising(10).p, exact_p(10, 45));
        assert_eq!(rising(11).p, normal_p(55, variance(11, &[])));
        assert_eq!(trend(&[1, 1, 2, 3]).unwrap().p, normal_p(5, variance(4, &[2])));
    }

    #[test]
    fn one_spike_does_not_change_the_slope() {
        assert_eq!(theil_sen(&[10, 20, 30, 900, 50, 60]), Some(10.0));
        assert_eq!(theil_sen(&[7, 7, 7]), Some(0.0));
        assert_eq!(theil_sen(&[7]), None);
    }

    #[test]
    fn the_fast_count_of_pairs_equals_the_slow_one() {
        let mixed = (0..33).map(|at| at * 37 % 31).collect();
        let falling = (0..9).rev().collect();
        let few = [vec![], vec![3], vec![2, 1], vec![1, 1, 2, 2, 1], vec![5, 9, 5, 9, 7, 1, 8, 8]];
        for series in few.into_iter().chain([falling, mixed]) {
            let signs = series.iter().enumerate().flat_map(|(i, earlier)| {
                series[i + 1..].iter().map(move |later: &u64| later.cmp(earlier) as i64)
            });
            assert_eq!(mann_kendall(&series, &ties(&series)), signs.sum::<i64>(), "{series:?}");
        }
    }

    #[test]
    fn a_long_series_is_sampled_at_even_distances() {
        let spike = |at: u64| if at % 7 == 3 { 1 << 30 } else { 0 };
        let series: Vec<u64> = (0..50_000).map(|at| 1_000 + 64 * at + spike(at)).collect();
        let found = trend(&series).unwrap();
        assert_eq!(found.slope, 64.0);
        assert!(found.confidence > 0.99, "{found:?}");
        assert_eq!(trend(&series), Some(found), "the same each time");
        let flat = trend(&vec![7; 50_000]).unwrap();
        assert_eq!((flat.slope, flat.s, flat.p), (0.0, 0, 1.0));
        // The points must not be the beginning of the series only.
        let late: Vec<u64> = (0..50_000).map(|at| at.max(1_000)).collect();
        assert_eq!(theil_sen(&late), Some(1.0));
        // This series has one point too many to take all of them. The last point must still count.
        let mut step = vec![0; MOST_POINTS + 1];
        step[MOST_POINTS] = 9;
        assert_eq!(theil_sen(&step), Some(0.0));
        assert_eq!(theil_sen(&(0..=MOST_POINTS as u64).collect::<Vec<_>>()), Some(1.0));
        // Slightly more than half of the pairs rise; with a low last point, slightly fewer.
        let mut half: Vec<u64> =
            (0..2 * MOST_POINTS - 1).map(|at| (at / MOST_POINTS) as u64).collect();
        assert!(theil_sen(&half) > Some(0.0));
        half[2 * MOST_POINTS - 2] = 0;
        assert_eq!(theil_sen(&half), Some(0.0));
    }
}
