//! The confusion matrix: how often each family is called a leak, clean or open.

use super::super::programs::{CLEAN, Family, LEAKS, Program, Random};
use super::super::{Budget, Certainty, Decision, Open};

/// What became of the programs of one family.
#[derive(Debug, Default, Clone)]
pub(super) struct Row {
    pub(super) leak: u32,
    pub(super) at_least: u32,
    pub(super) clean: u32,
    pub(super) goes_on: u32,
    pub(super) slows: u32,
    pub(super) moves: u32,
    /// Called exact and whole, with a rate that is not the true one.
    pub(super) wrong: u32,
    /// The program has an exact rate, and the leak that was found has not.
    pub(super) inexact: u32,
    pub(super) looks: u32,
    pub(super) iterations: Vec<u32>,
}

impl Row {
    pub(super) fn add(&mut self, program: &Program, budget: &Budget) -> Decision {
        let (decision, iterations, looks) = program.run(budget);
        self.iterations.push(iterations);
        self.looks = self.looks.max(looks);
        match &decision {
            Decision::Clean { .. } => self.clean += 1,
            Decision::Leak(leak) => {
                self.leak += 1;
                self.at_least += u32::from(!leak.whole);
                let is_exact = leak.whole && leak.rate.certainty == Certainty::Exact;
                let is_true = program.truth.is_none_or(|truth| truth == leak.rate);
                self.wrong += u32::from(is_exact && !is_true);
                self.inexact += u32::from(!is_exact && program.truth.is_some());
            }
            Decision::Open(undecided) => match undecided.open {
                Open::GoesOn => self.goes_on += 1,
                Open::Slows => self.slows += 1,
                Open::Moves => self.moves += 1,
            },
            Decision::More(_) => unreachable!("a program runs until it is decided"),
        }
        decision
    }

    pub(super) fn print(&mut self, name: &str) {
        self.iterations.sort_unstable();
        let count = self.iterations.len();
        if count == 0 {
            return;
        }
        let percent = |part: u32| match part {
            0 => "-".to_owned(),
            part => format!("{:.2}", 100.0 * f64::from(part) / count as f64),
        };
        let mean = self.iterations.iter().map(|&i| f64::from(i)).sum::<f64>() / count as f64;
        println!(
            "{name:46} {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>6} {:>6} | {mean:>4.0} / {} / {} ({} looks)",
            percent(self.leak),
            percent(self.at_least),
            percent(self.clean),
            percent(self.goes_on),
            percent(self.slows),
            percent(self.moves),
            percent(self.wrong),
            percent(self.inexact),
            self.iterations[count * 95 / 100],
            self.iterations[count - 1],
            self.looks,
        );
    }
}

pub(super) fn header(title: &str) {
    println!(
        "\n{title:46} {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>6} {:>6} | iterations",
        "leak", "least", "clean", "goes", "slows", "moves", "wrong", "inex."
    );
}

/// A program of one family, at site 0.
pub(super) fn alone(family: &Family, random: &mut Random, length: u32) -> Program {
    let size = random.size();
    family.program(random, length, 0, size)
}

/// A program of each family, beside each other, with the same size and site or others.
pub(super) fn beside(
    families: &[&Family],
    random: &mut Random,
    length: u32,
    is_shared: bool,
) -> Program {
    let shared = random.size();
    families.iter().enumerate().fold(Program::new(length), |sum, (at, family)| {
        let (site, size) = if is_shared { (0, shared) } else { (10 * at as u32, random.size()) };
        sum.and(&family.program(random, length, site, size))
    })
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Prints the matrix. `PROGRAMS`, `SEED` and `FAMILY` (a part of its name) select the programs.
#[test]
#[ignore = "takes minutes: the confusion matrix of all families"]
fn matrix() {
    let (programs, seed) = (variable("PROGRAMS", 100), variable("SEED", 1));
    let name = std::env::var("FAMILY").unwrap_or_default();
    let budget = Budget::of(variable("MOST", 402) as u32);
    for (title, families) in [("clean", CLEAN), ("leaks", LEAKS)] {
        header(title);
        let mut all = Row::default();
        for family in families.iter().filter(|family| family.name.contains(&name)) {
            let mut random = Random(seed);
            let mut row = Row::default();
            for number in 0..programs {
                let before = random.0;
                let program = alone(family, &mut random, budget.most);
                let decision = row.add(&program, &budget);
                if std::env::var("SHOW").is_ok() {
                    println!("  {number} (random {before}): {:?} {decision:?}", program.truth);
                }
            }
            row.print(family.name);
            merge(&mut all, row);
        }
        all.print("all");
    }
}

/// Prints the matrix of sums of programs.
#[test]
#[ignore = "takes minutes: the confusion matrix of sums"]
fn sums() {
    let (programs, seed) = (variable("PROGRAMS", 20), variable("SEED", 1));
    let show = std::env::var("SHOW").is_ok();
    let budget = Budget::default();
    let mut random = Random(seed);
    header("sums");
    let mut clean = Row::default();
    for number in 0..programs * CLEAN.len() as u64 {
        let count = random.within(2, 4);
        let families: Vec<&Family> = (0..count).map(|_| pick(CLEAN, &mut random)).collect();
        let program = beside(&families, &mut random, budget.most, number % 2 == 0);
        let decision = clean.add(&program, &budget);
        if show && matches!(decision, Decision::Leak(_)) {
            println!("  {:?} {decision:?}", names(&families));
        }
    }
    clean.print("2 to 4 clean ones");
    for leak in LEAKS {
        let mut row = Row::default();
        for number in 0..programs {
            for family in CLEAN {
                let families = [leak, family];
                let program = beside(&families, &mut random, budget.most, number % 2 == 0);
                let (wrong, decision) = (row.wrong, row.add(&program, &budget));
                let is_leak = matches!(decision, Decision::Leak(_));
                if show && (!is_leak || row.wrong > wrong) {
                    println!("  {:?} {:?} {decision:?}", names(&families), program.truth);
                }
            }
        }
        row.print(&format!("{} beside clean", leak.name));
    }
    let mut row = Row::default();
    for number in 0..programs * LEAKS.len() as u64 {
        let count = random.within(1, 4);
        let mut families = vec![pick(LEAKS, &mut random)];
        families.extend((0..count).map(|_| pick(CLEAN, &mut random)));
        row.add(&beside(&families, &mut random, budget.most, number % 2 == 0), &budget);
    }
    row.print("a leak beside 1 to 4 clean ones");
    let mut row = Row::default();
    for number in 0..programs * LEAKS.len() as u64 {
        let families = [pick(LEAKS, &mut random), pick(LEAKS, &mut random)];
        let program = beside(&families, &mut random, budget.most, number % 2 == 0);
        let (wrong, decision) = (row.wrong, row.add(&program, &budget));
        if show && (row.wrong > wrong || matches!(decision, Decision::Clean { .. })) {
            println!("  {:?} {:?} {decision:?}", names(&families), program.truth);
        }
    }
    row.print("two leaks");
}

fn pick(families: &'static [Family], random: &mut Random) -> &'static Family {
    &families[random.within(0, families.len() as u32 - 1) as usize]
}

fn names(families: &[&Family]) -> Vec<&'static str> {
    families.iter().map(|family| family.name).collect()
}

fn merge(all: &mut Row, row: Row) {
    all.leak += row.leak;
    all.at_least += row.at_least;
    all.clean += row.clean;
    all.goes_on += row.goes_on;
    all.slows += row.slows;
    all.moves += row.moves;
    all.wrong += row.wrong;
    all.inexact += row.inexact;
    all.looks = all.looks.max(row.looks);
    all.iterations.extend(row.iterations);
}

/// Prints the time of a look and of an iteration, on average over all families.
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
