//! Measures of a level: windows, a trend, and how often it passes its median.

pub(super) const WINDOWS: usize = 8;

pub(super) fn windows(level: &[i64], count: usize) -> impl Iterator<Item = &[i64]> {
    let length = (level.len() / count).max(1);
    level[level.len().saturating_sub(length * count)..].chunks(length)
}

/// The lowest level of each window.
pub(super) fn floors(level: &[i64], count: usize) -> Vec<i64> {
    windows(level, count).map(|window| range(window).0).collect()
}

pub(super) fn range(window: &[i64]) -> (i64, i64) {
    window.iter().fold((i64::MAX, i64::MIN), |(low, high), &live| (low.min(live), high.max(live)))
}

pub(super) fn mean(window: &[i64]) -> f64 {
    window.iter().map(|&live| live as f64).sum::<f64>() / window.len().max(1) as f64
}

pub(super) fn is_above(first: &[i64], second: &[i64]) -> bool {
    let (first, second) = (range(first), range(second));
    first.0 < second.0 && first.1 < second.1
}

/// The slope in standard errors, corrected for the lag-1 correlation of neighboring levels.
pub(super) fn trend(level: &[i64]) -> f64 {
    let count = level.len() as f64;
    if level.len() < 4 {
        return 0.0;
    }
    let (middle, mean) = ((count - 1.0) / 2.0, mean(level));
    let (mut product, mut square) = (0.0, 0.0);
    for (at, &live) in level.iter().enumerate() {
        let distance = at as f64 - middle;
        product += distance * (live as f64 - mean);
        square += distance * distance;
    }
    let slope = product / square;
    let (mut residues, mut lagged, mut before) = (0.0, 0.0, 0.0);
    for (at, &live) in level.iter().enumerate() {
        let residue = live as f64 - mean - slope * (at as f64 - middle);
        residues += residue * residue;
        lagged += residue * before;
        before = residue;
    }
    if residues <= 0.0 {
        return if slope > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let correlation = (lagged / residues).clamp(0.0, 0.99);
    let error = (residues / (count - 2.0) / square).sqrt();
    slope / error * ((1.0 - correlation) / (1.0 + correlation)).sqrt()
}

pub(super) fn crossings(level: &[i64]) -> usize {
    let mut sorted = level.to_vec();
    sorted.sort_unstable();
    let Some(&median) = sorted.get(sorted.len() / 2) else { return 0 };
    let sides = level.iter().map(|live| live.cmp(&median)).filter(|side| side.is_ne());
    let (crossings, _) = sides.fold((0, None), |(crossings, before), side| {
        (crossings + usize::from(before.is_some_and(|before| before != side)), Some(side))
    });
    crossings
}

#[cfg(test)]
mod tests;
