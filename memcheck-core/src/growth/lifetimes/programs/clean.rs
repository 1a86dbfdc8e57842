//! Families of programs whose memory is bounded.

use super::{Maker, ProgramFamily};
use crate::growth::lifetimes::Rate;

/// The clean families of random programs.
pub const CLEAN: &[ProgramFamily] = &[
    family("ring of 1 to 64", |m| ring(m, 1, 64)),
    family("ring of 65 to 128", |m| ring(m, 65, 128)),
    family("cache of up to 16 keys at random, one size", |m| {
        let keys = m.random.within(2, 16);
        cache(m, keys, true, 1.0)
    }),
    family("cache of up to 16 keys at random, many sizes", |m| {
        let keys = m.random.within(2, 16);
        cache(m, keys, false, 1.0)
    }),
    family("cache of 17 to 64 keys at random", |m| {
        let keys = m.random.within(17, 64);
        let alike = m.random.chance(0.5);
        cache(m, keys, alike, 1.0)
    }),
    family("cache of 65 to 128 keys at random", |m| {
        let keys = m.random.within(65, 128);
        let alike = m.random.chance(0.5);
        cache(m, keys, alike, 1.0)
    }),
    family("cache of up to 32 keys, hit at times", |m| {
        let (keys, p) = (m.random.within(2, 32), m.random.between(0.1, 0.6));
        let alike = m.random.chance(0.5);
        cache(m, keys, alike, p)
    }),
    family("cache of 64 keys by Zipf", zipf),
    family("cache of up to 128 keys, round robin", |m| {
        let keys = m.random.within(2, 128);
        (0..keys).for_each(|at| m.keep(at, m.size));
        clean()
    }),
    family("LRU cache", lru),
    family("once, 1 to 3 blocks in 2 to 60", |m| {
        for _ in 0..m.random.within(1, 3) {
            let at = m.random.within(2, 60);
            m.keep(at, m.size);
        }
        clean()
    }),
    family("once, two blocks in 2 to 11", |m| {
        let (a, b) = (m.random.within(2, 11), m.random.within(2, 11));
        m.keep(a, m.size);
        m.keep(b, m.size);
        clean()
    }),
    family("double buffer and temporaries", |m| {
        for at in 0..m.length {
            m.block(at, at + 1, m.size);
            for _ in 0..m.random.within(0, 3) {
                m.block(at, at + 1, m.size);
            }
        }
        clean()
    }),
    family("Vec that doubles up to a bound", |m| {
        let bound = u64::from(m.random.within(4, 100));
        let sizes: Vec<u64> = (0..m.length)
            .map(|at| m.size * (u64::from(at) + 1).min(bound).next_power_of_two())
            .collect();
        m.buffer(&sizes);
        clean()
    }),
    family("pool of doubling chunks up to a bound", |m| {
        let bound = m.random.within(4, 100);
        let (mut capacity, mut chunk) = (0, 1);
        for at in 0..bound {
            if at >= capacity {
                m.keep(at, m.size * u64::from(chunk));
                capacity += chunk;
                chunk *= 2;
            }
        }
        clean()
    }),
    family("largest of up to 64 lengths so far", |m| {
        let lengths = m.random.within(2, 64);
        largest(m, lengths)
    }),
    family("largest of up to 4,096 lengths so far", |m| {
        let lengths = m.random.within(2, 4_096);
        largest(m, lengths)
    }),
    family("largest of 64 lengths so far", |m| largest(m, 64)),
    family("largest of 4,096 lengths so far", |m| largest(m, 4_096)),
    family("random shapes: outputs", |m| {
        let shapes = m.random.within(2, 64);
        let sizes = m.sizes(shapes);
        for at in 0..m.length {
            let size = sizes[m.random.within(0, shapes - 1) as usize];
            m.block(at, at + 1, size);
        }
        clean()
    }),
    family("random shapes: ring of 1 to 64", |m| {
        let (length, shapes) = (m.random.within(1, 64), m.random.within(2, 64));
        let sizes = m.sizes(shapes);
        for at in 0..m.length {
            let size = sizes[m.random.within(0, shapes - 1) as usize];
            m.block(at, at + length, size);
        }
        clean()
    }),
    family("list flushed every 2 to 64", |m| flushed(m, 2, 64, 1)),
    family("list flushed every 65 to 128", |m| flushed(m, 65, 128, 1)),
    family("list of random shapes flushed every 2 to 64", |m| {
        let shapes = m.random.within(2, 32);
        flushed(m, 2, 64, shapes)
    }),
    family("list flushed at random, p = 1/20", |m| {
        let flushes: Vec<u32> = (0..m.length).filter(|_| m.random.chance(0.05)).collect();
        let mut next = flushes.into_iter().peekable();
        for at in 0..m.length {
            while next.next_if(|&flush| flush <= at).is_some() {}
            let died = next.peek().copied().unwrap_or(u32::MAX);
            m.block(at, died, m.size);
        }
        clean()
    }),
    family("freed 1 to 16 later", |m| freed_later(m, 16)),
    family("freed 1 to n later, n up to 64", |m| {
        let most = m.random.within(1, 64);
        freed_later(m, most)
    }),
    family("freed 1 to 64 later", |m| freed_later(m, 64)),
    family("bounded queue of up to 8", |m| queue(m, 8)),
    family("bounded queue of up to 32", |m| queue(m, 32)),
    family("random eviction, up to 32", |m| {
        let capacity = m.random.within(2, 32) as usize;
        let mut held: Vec<u32> = Vec::new();
        for at in 0..m.length {
            if held.len() == capacity {
                let out = m.random.within(0, capacity as u32 - 1) as usize;
                let born = held.swap_remove(out);
                m.block(born, at, m.size);
            }
            held.push(at);
        }
        held.into_iter().for_each(|born| m.keep(born, m.size));
        clean()
    }),
    family("last 1 to 5 of rare events", |m| {
        let (kept, p) = (m.random.within(1, 5), m.random.between(0.05, 0.5));
        last_of(m, kept, p)
    }),
    family("ring filled at times", |m| {
        let (kept, p) = (m.random.within(1, 32), m.random.between(0.3, 0.9));
        last_of(m, kept, p)
    }),
    family("statics of up to 32 shapes at random", |m| {
        let shapes = m.random.within(2, 32);
        let sizes = m.sizes(shapes);
        let mut seen = vec![false; shapes as usize];
        for at in 0..m.length {
            let shape = m.random.within(0, shapes - 1) as usize;
            if !std::mem::replace(&mut seen[shape], true) {
                m.keep(at, sizes[shape]);
            }
            m.block(at, at + 1, sizes[shape]);
        }
        clean()
    }),
    family("phases of 8 and 2", |m| {
        let other = m.random.size();
        for at in 0..m.length {
            m.block(at, at + 1, if at % 10 < 8 { m.size } else { other });
        }
        clean()
    }),
    family("pattern of period 2 to 20", |m| {
        let period = m.random.within(2, 20);
        let counts: Vec<u32> = (0..period).map(|_| m.random.within(0, 3)).collect();
        for at in 0..m.length {
            for _ in 0..counts[(at % period) as usize] {
                m.block(at, at + 1, m.size);
            }
        }
        clean()
    }),
    family("rebuilt every 5 to 40", |m| {
        let (period, blocks) = (m.random.within(5, 40), m.random.within(1, 8));
        for at in (0..m.length).step_by(period as usize) {
            (0..blocks).for_each(|_| m.block(at, at + period, m.size));
        }
        clean()
    }),
    family("blocks that halve", |m| {
        let mut size = m.size;
        for at in 0..20 {
            m.keep(at, size);
            size = (size / 8 * 4).max(4);
        }
        clean()
    }),
    family("lazy tables at 1, 2, 4 to 64", |m| {
        (0..=6).for_each(|power| m.keep(1 << power, m.size));
        clean()
    }),
];

const fn family(name: &'static str, make: fn(&mut Maker) -> Option<Rate>) -> ProgramFamily {
    ProgramFamily { name, make }
}

fn clean() -> Option<Rate> {
    Some(Rate::ZERO)
}

fn ring(m: &mut Maker, low: u32, high: u32) -> Option<Rate> {
    let length = m.random.within(low, high);
    (0..m.length).for_each(|at| m.block(at, at + length, m.size));
    clean()
}

fn cache(m: &mut Maker, keys: u32, alike: bool, p: f64) -> Option<Rate> {
    let sizes = if alike { vec![m.size; keys as usize] } else { m.sizes(keys) };
    let mut seen = vec![false; keys as usize];
    for at in 0..m.length {
        if !m.random.chance(p) {
            continue;
        }
        let key = m.random.within(0, keys - 1) as usize;
        if !std::mem::replace(&mut seen[key], true) {
            m.keep(at, sizes[key]);
        }
    }
    clean()
}

fn zipf(m: &mut Maker) -> Option<Rate> {
    let weights: Vec<f64> = (1..=64).map(|rank| 1.0 / f64::from(rank)).collect();
    let total: f64 = weights.iter().sum();
    let mut seen = [false; 64];
    for at in 0..m.length {
        let mut left = m.random.unit() * total;
        let key = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        let key = key.unwrap_or(63);
        if !std::mem::replace(&mut seen[key], true) {
            m.keep(at, m.size);
        }
    }
    clean()
}

fn lru(m: &mut Maker) -> Option<Rate> {
    let (capacity, factor) = (m.random.within(2, 32), m.random.within(2, 4));
    let keys = capacity * factor;
    let mut held: Vec<(u32, u32)> = Vec::new();
    for at in 0..m.length {
        let key = m.random.within(0, keys - 1);
        let entry = match held.iter().position(|&(held, _)| held == key) {
            Some(place) => held.remove(place),
            None => {
                if held.len() == capacity as usize {
                    let (_, born) = held.remove(0);
                    m.block(born, at, m.size);
                }
                (key, at)
            }
        };
        held.push(entry);
    }
    held.into_iter().for_each(|(_, born)| m.keep(born, m.size));
    clean()
}

fn largest(m: &mut Maker, lengths: u32) -> Option<Rate> {
    let unit = 4 * u64::from(m.random.within(1, 1_024));
    let mut most = 0;
    let sizes: Vec<u64> = (0..m.length)
        .map(|_| {
            most = most.max(m.random.within(1, lengths));
            unit * u64::from(most)
        })
        .collect();
    m.buffer(&sizes);
    clean()
}

fn flushed(m: &mut Maker, low: u32, high: u32, shapes: u32) -> Option<Rate> {
    let period = m.random.within(low, high);
    let phase = m.random.within(0, period - 1);
    let sizes = if shapes == 1 { vec![m.size] } else { m.sizes(shapes) };
    for at in 0..m.length {
        let size = sizes[m.random.within(0, shapes - 1) as usize];
        m.block(at, at + period - (at + phase) % period, size);
    }
    clean()
}

fn freed_later(m: &mut Maker, most: u32) -> Option<Rate> {
    for at in 0..m.length {
        let later = m.random.within(1, most);
        m.block(at, at + later, m.size);
    }
    clean()
}

/// A queue with a capacity: a block that does not fit is not added, and the oldest leaves first.
fn queue(m: &mut Maker, most: u32) -> Option<Rate> {
    let capacity = m.random.within(2, most) as usize;
    let mut held = std::collections::VecDeque::new();
    for at in 0..m.length {
        for _ in 0..m.random.within(0, 3) {
            if held.len() < capacity {
                held.push_back(at);
            }
        }
        for _ in 0..m.random.within(0, 3) {
            if let Some(born) = held.pop_front() {
                m.block(born, at, m.size);
            }
        }
    }
    held.into_iter().for_each(|born| m.keep(born, m.size));
    clean()
}

fn last_of(m: &mut Maker, kept: u32, p: f64) -> Option<Rate> {
    let events: Vec<u32> = (0..m.length).filter(|_| m.random.chance(p)).collect();
    for (place, &born) in events.iter().enumerate() {
        let died = events.get(place + kept as usize).copied().unwrap_or(u32::MAX);
        m.block(born, died, m.size);
    }
    clean()
}
