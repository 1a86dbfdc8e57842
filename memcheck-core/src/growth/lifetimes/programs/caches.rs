//! Families of large caches, rings and pools: bounded memory that takes hundreds of iterations to
//! fill, or more iterations than a test has.

use super::{Maker, ProgramBlock, ProgramFamily};
use crate::growth::lifetimes::Rate;

/// The most keys of a map.
const MAX_KEYS: u32 = 16_384;

/// Families of bounded memory that fills slowly.
pub const CACHES: &[ProgramFamily] = &[
    family("map of 512 to 2,048 keys at random", |m| map(m, [512, 2_048], Keys::Even, 1, false)),
    family("map of 2,049 to 16,384 keys at random", |m| {
        map(m, [2_049, MAX_KEYS], Keys::Even, 1, false)
    }),
    family("map of 512 to 16,384 keys at random, 2 to 32 at a time", |m| {
        let fed = m.random.within(2, 32);
        map(m, [512, MAX_KEYS], Keys::Even, fed, false)
    }),
    family("map of 512 to 16,384 keys by Zipf", |m| {
        map(m, [512, MAX_KEYS], Keys::Skewed(1.0), 1, false)
    }),
    family("map of 512 to 16,384 keys, skewed", |m| {
        let power = m.random.between(0.5, 1.0);
        map(m, [512, MAX_KEYS], Keys::Skewed(power), 1, false)
    }),
    family("map of 512 to 16,384 keys, skewed, 2 to 32 at a time", |m| {
        let (power, fed) = (m.random.between(0.5, 1.0), m.random.within(2, 32));
        map(m, [512, MAX_KEYS], Keys::Skewed(power), fed, false)
    }),
    family("map of 512 to 16,384 keys, power 1.1", |m| {
        map(m, [512, MAX_KEYS], Keys::Skewed(1.1), 1, false)
    }),
    family("map of 512 to 16,384 keys, power 1.2", |m| {
        map(m, [512, MAX_KEYS], Keys::Skewed(1.2), 1, false)
    }),
    family("map of 512 to 16,384 keys, power 1.5", |m| {
        map(m, [512, MAX_KEYS], Keys::Skewed(1.5), 1, false)
    }),
    family("map of 512 to 16,384 keys, power 1.0 to 1.5", |m| {
        let power = m.random.between(1.0, 1.5);
        map(m, [512, MAX_KEYS], Keys::Skewed(power), 1, false)
    }),
    family("map of 512 to 16,384 keys, power 1.0 to 1.5, 2 to 32 at a time", |m| {
        let (power, fed) = (m.random.between(1.0, 1.5), m.random.within(2, 32));
        map(m, [512, MAX_KEYS], Keys::Skewed(power), fed, false)
    }),
    family("map of 512 to 16,384 keys at random, with its table", |m| {
        map(m, [512, MAX_KEYS], Keys::Even, 1, true)
    }),
    family("map of 512 to 16,384 keys by Zipf, with its table", |m| {
        map(m, [512, MAX_KEYS], Keys::Skewed(1.0), 1, true)
    }),
    family("map with its table at the same site", |m| map_at_one_site(m, 1)),
    family("map with its table at the same site, 2 to 8 keys at a time", |m| {
        let fed = m.random.within(2, 8);
        map_at_one_site(m, fed)
    }),
    family("map of tensors, small blocks of the CPU", |m| small_blocks(m, 1)),
    family("map of tensors, small blocks of the CPU, 2 to 8 at a time", |m| {
        let fed = m.random.within(2, 8);
        small_blocks(m, fed)
    }),
    family("LRU cache of 500 to 1,000, always another key", |m| lru(m, [500, 1_000], None, 1)),
    family("LRU cache of 500 to 8,192, keys at random", |m| lru(m, [500, 8_192], Some(2), 1)),
    family("LRU cache of 500 to 8,192, 32 other keys at a time", |m| {
        lru(m, [500, 8_192], None, 32)
    }),
    family("LRU cache of 500 to 8,192, 32 keys at random at a time", |m| {
        let factor = m.random.within(2, 4);
        lru(m, [500, 8_192], Some(factor), 32)
    }),
    family("ring of 129 to 500", |m| {
        let length = m.random.within(129, 500);
        (0..m.length).for_each(|at| m.block(at, at + length, m.size));
        clean()
    }),
    family("ring of 501 to 960", |m| {
        let length = m.random.within(501, 960);
        (0..m.length).for_each(|at| m.block(at, at + length, m.size));
        clean()
    }),
    family("pool by exact length, 64 to 512 lengths", |m| pool(m, 1)),
    family("pool by exact length, 2 to 8 at a time", |m| {
        let fed = m.random.within(2, 8);
        pool(m, fed)
    }),
    family("entries that expire after 100 to 500", |m| expiring(m, 1)),
    family("entries that expire, removed in every 2nd to 50th", |m| {
        let period = m.random.within(2, 50);
        expiring(m, period)
    }),
    family("list flushed every 129 to 500", |m| flushed(m, 1)),
    family("list of random shapes flushed every 129 to 500", |m| {
        let shapes = m.random.within(2, 32);
        flushed(m, shapes)
    }),
];

/// How often each key of a map is asked for.
#[derive(Clone, Copy)]
enum Keys {
    Even,
    /// Key `k` in proportion to `k` to the power of minus this.
    Skewed(f64),
}

const fn family(name: &'static str, make: fn(&mut Maker) -> Option<Rate>) -> ProgramFamily {
    ProgramFamily { name, make }
}

fn clean() -> Option<Rate> {
    Some(Rate::ZERO)
}

/// A map that is asked for `fed` keys in each iteration, and keeps a block for each. Its own table is
/// a block that is replaced by one twice as large when seven of eight places are taken.
fn map(m: &mut Maker, [low, high]: [u32; 2], keys: Keys, fed: u32, table: bool) -> Option<Rate> {
    let number = m.random.within(low, high);
    let power = match keys {
        Keys::Even => 0.0,
        Keys::Skewed(power) => power,
    };
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=number)
        .map(|key| {
            sum += f64::from(key).powf(-power);
            sum
        })
        .collect();
    let mut seen = vec![false; number as usize];
    let (mut entries, mut places) = (0u64, 4u64);
    let mut tables = Vec::new();
    for at in 0..m.length {
        for _ in 0..fed {
            let asked = m.random.unit() * sum;
            let key = sums.partition_point(|&sum| sum <= asked).min(number as usize - 1);
            if !std::mem::replace(&mut seen[key], true) {
                m.keep(at, m.size);
                entries += 1;
            }
        }
        while entries * 8 > places * 7 {
            places *= 2;
        }
        tables.push(places * 25);
    }
    if table {
        m.site += 1;
        m.buffer(&tables);
        m.site -= 1;
    }
    clean()
}

/// A map whose table has the call site of its entries.
fn map_at_one_site(m: &mut Maker, fed: u32) -> Option<Rate> {
    let site = m.site;
    map(m, [512, MAX_KEYS], Keys::Even, fed, true);
    m.blocks.iter_mut().for_each(|block| block.site = site);
    clean()
}

/// The small blocks of a map of tensors on the CPU: four of an entry, and the table until it is larger.
/// One of the entry's sizes is one that the table had.
fn small_blocks(m: &mut Maker, fed: u32) -> Option<Rate> {
    map(m, [512, MAX_KEYS], Keys::Even, fed, true);
    let (table, entries): (Vec<_>, Vec<_>) = m.blocks.drain(..).partition(|it| it.site != m.site);
    let small = table.into_iter().filter(|block| block.size < 1_024);
    let sizes = [8, 32, 100 << m.random.within(0, 3), 152];
    let of_entry = |block: ProgramBlock| {
        (2..).zip(sizes).map(move |(site, size)| ProgramBlock {
            site: block.site + site,
            size,
            ..block
        })
    };
    m.blocks = small.chain(entries.into_iter().flat_map(of_entry)).collect();
    clean()
}

/// An LRU cache with `fed` keys in each iteration: at random of `factor` times as many as it can
/// keep, or else ever other ones.
fn lru(m: &mut Maker, [low, high]: [u32; 2], factor: Option<u32>, fed: u32) -> Option<Rate> {
    let capacity = m.random.within(low, high) as usize;
    let keys = factor.map_or(u32::MAX, |factor| factor * capacity as u32);
    let mut used: std::collections::BTreeMap<u64, u32> = std::collections::BTreeMap::new();
    let mut held: std::collections::HashMap<u32, (u32, u64)> = std::collections::HashMap::new();
    let mut clock = 0;
    for at in 0..m.length {
        for _ in 0..fed {
            clock += 1;
            let key = factor.map_or(clock as u32, |_| m.random.within(0, keys - 1));
            let born = match held.remove(&key) {
                Some((born, last)) => {
                    used.remove(&last);
                    born
                }
                None => {
                    if held.len() == capacity
                        && let Some((_, oldest)) = used.pop_first()
                        && let Some((born, _)) = held.remove(&oldest)
                    {
                        m.block(born, at, m.size);
                    }
                    at
                }
            };
            held.insert(key, (born, clock));
            used.insert(clock, key);
        }
    }
    for key in used.values() {
        m.keep(held[key].0, m.size);
    }
    clean()
}

/// A pool that keeps a buffer of each length that was asked for.
fn pool(m: &mut Maker, fed: u32) -> Option<Rate> {
    let (lengths, unit) = (m.random.within(64, 512), 4 * u64::from(m.random.within(1, 1_024)));
    let mut seen = vec![false; lengths as usize];
    for at in 0..m.length {
        for _ in 0..fed {
            let length = m.random.within(1, lengths);
            if !std::mem::replace(&mut seen[length as usize - 1], true) {
                m.keep(at, unit * u64::from(length));
            }
        }
    }
    clean()
}

/// Entries that live for a time in which a number of iterations pass that differs by a tenth.
fn expiring(m: &mut Maker, period: u32) -> Option<Rate> {
    let age = m.random.within(100, 500);
    for at in 0..m.length {
        let died = at + age + m.random.within(0, age / 10);
        m.block(at, died.next_multiple_of(period), m.size);
    }
    clean()
}

fn flushed(m: &mut Maker, shapes: u32) -> Option<Rate> {
    let period = m.random.within(129, 500);
    let phase = m.random.within(0, period - 1);
    let sizes = if shapes == 1 { vec![m.size] } else { m.sizes(shapes) };
    for at in 0..m.length {
        let size = sizes[m.random.within(0, shapes - 1) as usize];
        m.block(at, at + period - (at + phase) % period, size);
    }
    clean()
}
