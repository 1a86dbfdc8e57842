//! The confusion matrix: how often each family is called a leak, clean or open.

use super::super::programs::matrix::{HEADER, MatrixRow, alone};
use super::super::programs::{CACHES, CLEAN, LEAKS, Program, ProgramFamily, Random, containers};
use super::super::{Budget, Decision};

fn header(title: &str) {
    println!();
    line(title, HEADER.map(str::to_owned));
}

fn line(name: &str, cells: [String; 9]) {
    let cells: String = cells.iter().map(|cell| format!(" {cell:>8}")).collect();
    println!("{name:46}{cells}");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    Both,
    Site,
    Size,
    Nothing,
}

impl Shared {
    pub(super) const ALL: [Self; 4] = [Self::Both, Self::Site, Self::Size, Self::Nothing];
}

pub(super) fn combine(
    families: &[&ProgramFamily],
    random: &mut Random,
    length: u32,
    alike: Shared,
) -> Program {
    let shared = random.size();
    families.iter().enumerate().fold(Program::new(length), |sum, (at, family)| {
        let has_site = matches!(alike, Shared::Both | Shared::Site);
        let has_size = matches!(alike, Shared::Both | Shared::Size);
        let site = if has_site { 0 } else { 10 * at as u32 };
        let size = if has_size { shared } else { random.size() };
        sum.and(&family.program(random, length, site, size))
    })
}

pub(super) fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Prints the matrix. `PROGRAMS`, `SEED` and `FAMILY` (a part of the name) select the programs.
#[test]
#[ignore = "takes minutes: the confusion matrix of all families"]
fn matrix() {
    let (programs, seed) = (variable("PROGRAMS", 100), variable("SEED", 1));
    let name = std::env::var("FAMILY").unwrap_or_default();
    let budget = Budget::of(variable("MOST", 402) as u32).to_the_end();
    for (title, families) in [("clean", CLEAN), ("caches", CACHES), ("leaks", LEAKS)] {
        header(title);
        let mut all = MatrixRow::default();
        for family in families.iter().filter(|family| family.name.contains(&name)) {
            let mut random = Random(seed);
            let mut row = MatrixRow::default();
            for number in 0..programs {
                let before = random.0;
                let program = alone(family, &mut random, budget.most);
                let decision = row.add(&program, &budget);
                if std::env::var("SHOW").is_ok() {
                    println!("  {number} (random {before}): {:?} {decision:?}", program.truth);
                }
            }
            line(family.name, row.cells());
            all.merge(row);
        }
        line("all", all.cells());
    }
}

fn alike(number: u64) -> Shared {
    Shared::ALL[number as usize % Shared::ALL.len()]
}

#[test]
#[ignore = "takes minutes: the confusion matrix of sums"]
fn sums() {
    let (programs, seed) = (variable("PROGRAMS", 20), variable("SEED", 1));
    let show = std::env::var("SHOW").is_ok();
    let budget = Budget::default();
    let mut random = Random(seed);
    header("sums");
    let mut clean = MatrixRow::default();
    for number in 0..programs * CLEAN.len() as u64 {
        let count = random.within(2, 4);
        let families: Vec<&ProgramFamily> = (0..count).map(|_| pick(CLEAN, &mut random)).collect();
        let program = combine(&families, &mut random, budget.most, alike(number));
        let decision = clean.add(&program, &budget);
        if show && matches!(decision, Decision::Leak(_)) {
            println!("  {:?} {decision:?}", names(&families));
        }
    }
    line("2 to 4 clean ones", clean.cells());
    for leak in LEAKS {
        let mut row = MatrixRow::default();
        for number in 0..programs {
            for family in CLEAN {
                let families = [leak, family];
                let program = combine(&families, &mut random, budget.most, alike(number));
                let (wrong, decision) = (row.wrong, row.add(&program, &budget));
                let is_leak = matches!(decision, Decision::Leak(_));
                if show && (!is_leak || row.wrong > wrong) {
                    println!("  {:?} {:?} {decision:?}", names(&families), program.truth);
                }
            }
        }
        line(&format!("{} with clean", leak.name), row.cells());
    }
    let mut row = MatrixRow::default();
    for number in 0..programs * LEAKS.len() as u64 {
        let count = random.within(1, 4);
        let mut families = vec![pick(LEAKS, &mut random)];
        families.extend((0..count).map(|_| pick(CLEAN, &mut random)));
        row.add(&combine(&families, &mut random, budget.most, alike(number)), &budget);
    }
    line("a leak with 1 to 4 clean ones", row.cells());
    let mut row = MatrixRow::default();
    for number in 0..programs * LEAKS.len() as u64 {
        let families = [pick(LEAKS, &mut random), pick(LEAKS, &mut random)];
        let program = combine(&families, &mut random, budget.most, alike(number));
        let (wrong, decision) = (row.wrong, row.add(&program, &budget));
        if show && (row.wrong > wrong || matches!(decision, Decision::Clean { .. })) {
            println!("  {:?} {:?} {decision:?}", names(&families), program.truth);
        }
    }
    line("two leaks", row.cells());
}

fn pick(families: &'static [ProgramFamily], random: &mut Random) -> &'static ProgramFamily {
    &families[random.within(0, families.len() as u32 - 1) as usize]
}

fn names(families: &[&ProgramFamily]) -> Vec<&'static str> {
    families.iter().map(|family| family.name).collect()
}

#[test]
#[ignore = "takes minutes: the confusion matrix of containers at random"]
fn containers_at_random() {
    let budget = Budget::of(variable("MOST", 402) as u32);
    header("containers");
    for (name, leaks) in [("clean", 0), ("with one leak", 1), ("with two leaks", 2)] {
        let mut random = Random(variable("SEED", 1));
        let mut row = MatrixRow::default();
        for number in 0..variable("PROGRAMS", 100) {
            let before = random.0;
            let program = containers(&mut random, budget.most, leaks);
            let (wrong, decision) = (row.wrong, row.add(&program, &budget));
            let is_leak = matches!(decision, Decision::Leak(_));
            if std::env::var("SHOW").is_ok() && (is_leak != (leaks > 0) || row.wrong > wrong) {
                println!("  {number} (random {before}): {:?} {decision:?}", program.truth);
            }
        }
        line(name, row.cells());
    }
}

#[test]
#[ignore = "a measurement"]
fn times() {
    let (mut looks, mut spent) = (0, std::time::Duration::ZERO);
    let mut slowest = (std::time::Duration::ZERO, "");
    let mut random = Random(1);
    for family in CLEAN.iter().chain(LEAKS) {
        for _ in 0..variable("PROGRAMS", 3) {
            let program = alone(family, &mut random, 402);
            for iterations in [12, 67, 100, 165, 218, 402] {
                let history = program.history(iterations);
                let begin = std::time::Instant::now();
                let _ = super::super::step(&history, &Budget::default());
                let took = begin.elapsed();
                looks += 1;
                spent += took;
                slowest = slowest.max((took, family.name));
            }
        }
    }
    println!("{looks} looks, {:?} on average, {slowest:?} the slowest", spent / looks);
}
