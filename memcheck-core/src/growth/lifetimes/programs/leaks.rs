//! Families of programs that grow without bound.

use super::{Maker, ProgramFamily};
use crate::growth::lifetimes::{Certainty, Rate};

/// The leaking families of random programs.
pub const LEAKS: &[ProgramFamily] = &[
    family("steady", |m| periodic(m, 1, 1, 0)),
    family("steady but not in the last of ten", |m| {
        (0..m.length).filter(|at| at % 10 != 1).for_each(|at| m.keep(at, m.size));
        exact(9 * m.size, 10)
    }),
    family("every 2nd to 10th", |m| periodic(m, 2, 10, 0)),
    family("every 11th to 25th", |m| periodic(m, 11, 25, 0)),
    family("every 26th to 50th", |m| periodic(m, 26, 50, 0)),
    family("starts in 3 to 10", |m| {
        let start = m.random.within(3, 10);
        periodic(m, 1, 1, start)
    }),
    family("starts in 11 to 60", |m| {
        let start = m.random.within(11, 60);
        periodic(m, 1, 1, start)
    }),
    family("starts in 11 to 60, every 2nd to 10th", |m| {
        let start = m.random.within(11, 60);
        periodic(m, 2, 10, start)
    }),
    family("irregular, p = 0.5 to 0.99", |m| irregular(m, 0.5, 0.99)),
    family("irregular, p = 0.2 to 0.5", |m| irregular(m, 0.2, 0.5)),
    family("irregular, p = 0.1 to 0.2", |m| irregular(m, 0.1, 0.2)),
    family("irregular, p = 0.05 to 0.1", |m| irregular(m, 0.05, 0.1)),
    family("concatenated in every iteration", |m| concatenated(m, 1, 1)),
    family("concatenated in every 2nd to 10th", |m| concatenated(m, 2, 10)),
    family("concatenated in every 11th to 50th", |m| concatenated(m, 11, 50)),
    family("quadratic", |m| {
        let (unit, start) = (4 * u64::from(m.random.within(1, 1_024)), m.random.within(1, 32));
        (0..m.length).for_each(|at| m.keep(at, unit * u64::from(start + at)));
        None
    }),
    family("concatenated, random lengths", |m| {
        let unit = 4 * u64::from(m.random.within(1, 1_024));
        let mut length = 0;
        let sizes: Vec<u64> = (0..m.length)
            .map(|_| {
                length += u64::from(m.random.within(1, 64));
                unit * length
            })
            .collect();
        m.buffer(&sizes);
        None
    }),
    family("Vec by 2 for ever", |m| vec(m, 2, 1)),
    family("Vec by 1.5 for ever", |m| vec(m, 3, 2)),
    family("pool of doubling chunks for ever", |m| {
        let (mut capacity, mut chunk) = (0, 1);
        for at in 0..m.length {
            if at >= capacity {
                m.keep(at, m.size * u64::from(chunk));
                capacity += chunk;
                chunk *= 2;
            }
        }
        None
    }),
    family("backlog", |m| {
        // Block i is freed in iteration i + i/(k - 1) + 1, so (k - 1)/k are freed and one in k
        // stays.
        let period = m.random.within(2, 10);
        for at in 0..m.length {
            let later = at / (period - 1) + 1;
            m.block(at, at + later, m.size);
        }
        exact(m.size, u64::from(period))
    }),
    family("ring that gets longer", |m| {
        let period = m.random.within(2, 10);
        let mut held = std::collections::VecDeque::new();
        for at in 0..m.length {
            held.push_back(at);
            while held.len() > 4 + (at / period) as usize {
                if let Some(born) = held.pop_front() {
                    m.block(born, at, m.size);
                }
            }
        }
        held.into_iter().for_each(|born| m.keep(born, m.size));
        exact(m.size, u64::from(period))
    }),
    family("backlog at random", |m| {
        let p = m.random.between(0.3, 0.8);
        let mut held = std::collections::VecDeque::new();
        for at in 0..m.length {
            held.push_back(at);
            if m.random.chance(p)
                && let Some(born) = held.pop_front()
            {
                m.block(born, at, m.size);
            }
        }
        held.into_iter().for_each(|born| m.keep(born, m.size));
        None
    }),
    family("two sizes in turn", |m| {
        let sizes = [m.size, m.random.size()];
        (0..m.length).for_each(|at| m.keep(at, sizes[(at % 2) as usize]));
        exact(sizes[0] + sizes[1], 2)
    }),
    family("two sites, one size", |m| {
        let first = periodic(m, 1, 10, 0)?;
        m.site += 1;
        let second = periodic(m, 1, 10, 0)?;
        m.site -= 1;
        Some(first.plus(&second))
    }),
    family("two periods, one size", |m| Some(periodic(m, 1, 10, 0)?.plus(&periodic(m, 1, 10, 0)?))),
    family("one of three sizes in each iteration", |m| {
        let sizes = m.sizes(3);
        for at in 0..m.length {
            let size = sizes[m.random.within(0, 2) as usize];
            m.keep(at, size);
        }
        None
    }),
    family("no two sizes alike, in each iteration", |m| {
        for at in 0..m.length {
            let size = m.random.size();
            m.keep(at, size);
        }
        None
    }),
    family("no two sizes alike, p = 0.3 to 0.9", |m| {
        let p = m.random.between(0.3, 0.9);
        for at in 0..m.length {
            if m.random.chance(p) {
                let size = m.random.size();
                m.keep(at, size);
            }
        }
        None
    }),
    family("only in 2 of 10 phases", |m| {
        (0..m.length).filter(|at| at % 10 >= 8).for_each(|at| m.keep(at, m.size));
        exact(2 * m.size, 10)
    }),
    family("bursts every 6th to 20th", |m| {
        let (period, blocks) = (m.random.within(6, 20), m.random.within(2, 8));
        let phase = m.random.within(0, period - 1);
        for at in (phase..m.length).step_by(period as usize) {
            (0..blocks).for_each(|_| m.keep(at, m.size));
        }
        exact(m.size * u64::from(blocks), u64::from(period))
    }),
    // The bands of `irregular`, because the rates depend on p alone.
    family("bursts at random, p = 0.2 to 0.5", |m| bursts(m, 0.2, 0.5)),
    family("bursts at random, p = 0.1 to 0.2", |m| bursts(m, 0.1, 0.2)),
    family("statics of ever new shapes beside outputs", |m| {
        for at in 0..m.length {
            let size = m.random.size();
            m.keep(at, size);
            m.block(at, at + 1, size);
        }
        None
    }),
];

const fn family(name: &'static str, make: fn(&mut Maker) -> Option<Rate>) -> ProgramFamily {
    ProgramFamily { name, make }
}

fn exact(bytes: u64, iterations: u64) -> Option<Rate> {
    Some(Rate::new(u128::from(bytes), u128::from(iterations), Certainty::Exact))
}

fn bursts(m: &mut Maker, low: f64, high: f64) -> Option<Rate> {
    let p = m.random.between(low, high);
    for at in 0..m.length {
        if m.random.chance(p) {
            (0..m.random.within(1, 8)).for_each(|_| m.keep(at, m.size));
        }
    }
    None
}

fn periodic(m: &mut Maker, low: u32, high: u32, start: u32) -> Option<Rate> {
    let period = m.random.within(low, high);
    let phase = if start > 0 { 0 } else { m.random.within(0, period - 1) };
    for at in (start + phase..m.length).step_by(period as usize) {
        m.keep(at, m.size);
    }
    exact(m.size, u64::from(period))
}

fn irregular(m: &mut Maker, low: f64, high: f64) -> Option<Rate> {
    let p = m.random.between(low, high);
    for at in 0..m.length {
        if m.random.chance(p) {
            m.keep(at, m.size);
        }
    }
    None
}

fn concatenated(m: &mut Maker, low: u32, high: u32) -> Option<Rate> {
    let period = m.random.within(low, high);
    let (start, unit) = (m.random.size(), 4 * u64::from(m.random.within(1, 1 << 12)));
    let sizes: Vec<u64> = (0..m.length).map(|at| start + unit * u64::from(at / period)).collect();
    m.buffer(&sizes);
    exact(unit, u64::from(period))
}

fn vec(m: &mut Maker, up: u64, down: u64) -> Option<Rate> {
    let mut capacity = 4;
    let push = u64::from(m.random.within(1, 4));
    let sizes: Vec<u64> = (0..u64::from(m.length))
        .map(|at| {
            while capacity < push * (at + 1) {
                capacity = capacity * up / down;
            }
            m.size * capacity
        })
        .collect();
    m.buffer(&sizes);
    None
}
