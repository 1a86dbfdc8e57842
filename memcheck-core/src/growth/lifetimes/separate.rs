//! Separates blocks that have the call site and the size of one kind by chance: a buffer that is
//! replaced by a larger one can have had the size of a block that stays.

use super::kind::{Kind, Tally};

/// The kinds that are separated have births in at most so many entries. Others have a rhythm that
/// separated blocks would not show.
const MOST_BIRTHS: usize = 4;

/// The blocks of a kind as several kinds: those of each birth that are live, those that have died, and
/// those of the set-up. Empty if they are one of these, or if there are too many births.
pub(super) fn separate(kind: &Kind) -> Vec<Kind> {
    let Tally { births, left, live, .. } = &kind.blocks;
    let is_rare =
        births.iter().filter(|&&births| births > 0).take(MOST_BIRTHS + 1).count() <= MOST_BIRTHS;
    let dead: Vec<u64> =
        births.iter().zip(left).map(|(births, left)| births.saturating_sub(*left)).collect();
    let has_dead = dead.iter().any(|&dead| dead > 0);
    let lives = left.iter().filter(|&&left| left > 0).count();
    if kind.bytes.is_some() || !is_rare || lives + usize::from(has_dead) < 2 {
        return Vec::new();
    }
    let mut separated = Vec::new();
    let mut others = live.clone();
    for (at, &left) in left.iter().enumerate().filter(|&(_, &left)| left > 0) {
        let mut births = vec![0; at + 1];
        births[at] = left;
        let level: Vec<u64> = (0..live.len()).map(|now| if now < at { 0 } else { left }).collect();
        for (others, level) in others.iter_mut().zip(&level) {
            *others = others.saturating_sub(*level);
        }
        separated.push(part(kind, births.clone(), births, level));
    }
    if has_dead {
        let older = kind.blocks.set_up();
        let level = others.iter().map(|level| level.saturating_sub(older)).collect();
        others.fill(older);
        let none = vec![0; dead.len()];
        let (rises, time_rises) = (kind.rises.clone(), kind.time_rises.clone());
        separated.push(Kind { rises, time_rises, ..part(kind, dead, none, level) });
    }
    if others.iter().any(|&level| level > 0) {
        separated.push(part(kind, Vec::new(), Vec::new(), others));
    }
    separated
}

fn part(kind: &Kind, births: Vec<u64>, left: Vec<u64>, live: Vec<u64>) -> Kind {
    let now = live.last().copied().unwrap_or(0);
    let blocks = Tally { births, left, live, now };
    Kind { blocks, ..Kind::new(kind.site, kind.size, kind.from) }
}

#[cfg(test)]
mod tests;
