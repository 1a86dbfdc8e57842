//! Programs of containers that are composed at random: when each is fed, with blocks of which sizes,
//! and how it is emptied. They share no code with the families, so that they measure the judge anew.

use super::{Program, ProgramBlock, Random, Rate};
use crate::growth::lifetimes::Certainty;

/// Bounded containers fill within this number of iterations.
const MAX_FILL: u32 = 128;

#[derive(Debug, Clone, Copy)]
enum Feed {
    Always,
    Every(u32),
    AtRandom(f64),
    Bursts { period: u32, blocks: u32 },
}

#[derive(Debug)]
enum Emptied {
    Never,
    /// The first block is evicted.
    First(usize),
    /// Any block is evicted.
    Any(usize),
    WhenFull(usize),
    /// Each block is freed this number of iterations after its birth.
    Expired(u32),
    Every(u32),
    AtRandom(f64),
    /// A memo of this number of keys: each keeps one block.
    Memo(u32),
}

impl Feed {
    fn random(random: &mut Random) -> Self {
        match random.within(0, 3) {
            0 => Self::Always,
            1 => Self::Every(random.within(2, 16)),
            2 => Self::AtRandom(random.between(0.2, 0.9)),
            _ => Self::Bursts { period: random.within(2, 20), blocks: random.within(2, 6) },
        }
    }

    fn blocks(self, at: u32, random: &mut Random) -> u32 {
        match self {
            Self::Always => 1,
            Self::Every(period) => u32::from(at.is_multiple_of(period)),
            Self::AtRandom(p) => u32::from(random.chance(p)),
            Self::Bursts { period, blocks } => blocks * u32::from(at.is_multiple_of(period)),
        }
    }

    /// Blocks and iterations, if the feed is regular.
    fn rate(self) -> Option<(u32, u32)> {
        match self {
            Self::Always => Some((1, 1)),
            Self::Every(period) => Some((1, period)),
            Self::AtRandom(_) => None,
            Self::Bursts { period, blocks } => Some((blocks, period)),
        }
    }

    /// Iterations to a block, in the mean.
    fn distance(self) -> f64 {
        match self {
            Self::AtRandom(p) => 1.0 / p,
            _ => self.rate().map_or(1.0, |(blocks, period)| f64::from(period) / f64::from(blocks)),
        }
    }
}

impl Emptied {
    fn random(random: &mut Random, feed: Feed) -> Self {
        let most = (f64::from(MAX_FILL) / feed.distance()).clamp(1.0, f64::from(MAX_FILL)) as u32;
        match random.within(0, 6) {
            0 => Self::First(random.within(1, most) as usize),
            1 => Self::Any(random.within(1, most.min(32)) as usize),
            2 => Self::WhenFull(random.within(1, most) as usize),
            3 => Self::Expired(random.within(1, 64)),
            4 => Self::Every(random.within(2, 64)),
            5 => Self::AtRandom(random.between(0.05, 0.5)),
            _ => Self::Memo(random.within(1, keys(most).min(16))),
        }
    }
}

/// The most keys of a memo that has them all after so many blocks, in the mean. The last of `n` keys
/// comes after `n (1 + 1/2 + ... + 1/n)` blocks: this is the coupon collector's problem.
fn keys(blocks: u32) -> u32 {
    let mut sum = 0.0;
    let has_all = |&keys: &u32| {
        sum += 1.0 / f64::from(keys);
        f64::from(keys) * sum <= f64::from(blocks)
    };
    (1..=blocks).take_while(has_all).last().unwrap_or(1)
}

/// A program of one to five bounded containers and of `leaks` others that are never emptied.
pub fn containers(random: &mut Random, length: u32, leaks: u32) -> Program {
    let bounded = random.within(1, 5);
    let (sites, shared) = (random.within(1, 3), random.size());
    let mut program = Program::new(length);
    for at in 0..bounded + leaks {
        let feed = Feed::random(random);
        let emptied = if at < bounded { Emptied::random(random, feed) } else { Emptied::Never };
        let count = [1, random.within(2, 5), 64][random.within(0, 2) as usize];
        let sizes: Vec<u64> =
            (0..count).map(|_| if random.chance(0.3) { shared } else { random.size() }).collect();
        let site = random.within(0, sites - 1);
        program = program.and(&container(random, length, feed, &emptied, &sizes, site));
    }
    program
}

fn container(
    random: &mut Random,
    length: u32,
    feed: Feed,
    emptied: &Emptied,
    sizes: &[u64],
    site: u32,
) -> Program {
    let begin = if random.chance(0.25) { random.within(1, 40) } else { 0 };
    let mut blocks = Vec::new();
    let mut live: Vec<ProgramBlock> = Vec::new();
    let mut keys = std::collections::BTreeSet::new();
    for at in begin..length {
        let mut free = |block: ProgramBlock| blocks.push(ProgramBlock { died: at, ..block });
        match *emptied {
            Emptied::Every(period) if at.is_multiple_of(period) => {
                live.drain(..).for_each(&mut free);
            }
            Emptied::AtRandom(p) if random.chance(p) => live.drain(..).for_each(&mut free),
            Emptied::Expired(after) => live
                .extract_if(.., |block| block.born.is_some_and(|born| born + after <= at))
                .for_each(&mut free),
            _ => {}
        }
        for _ in 0..feed.blocks(at, random) {
            let mut size = sizes[random.within(0, sizes.len() as u32 - 1) as usize];
            if let Emptied::Memo(most) = *emptied {
                let key = random.within(0, most - 1);
                if !keys.insert(key) {
                    continue;
                }
                size = sizes[key as usize % sizes.len()];
            }
            live.push(ProgramBlock { site, size, born: Some(at), died: u32::MAX });
            match *emptied {
                Emptied::First(capacity) if live.len() > capacity => free(live.remove(0)),
                Emptied::Any(capacity) if live.len() > capacity => {
                    free(live.swap_remove(random.within(0, capacity as u32) as usize));
                }
                Emptied::WhenFull(capacity) if live.len() > capacity => {
                    live.drain(..).for_each(&mut free);
                }
                _ => {}
            }
        }
    }
    blocks.append(&mut live);
    let truth = match (emptied, feed.rate(), sizes) {
        (Emptied::Never, Some((count, period)), [size]) => {
            Some(Rate::new(u128::from(count) * u128::from(*size), period.into(), Certainty::Exact))
        }
        (Emptied::Never, ..) => None,
        _ => Some(Rate::ZERO),
    };
    Program { length, blocks, truth }
}
