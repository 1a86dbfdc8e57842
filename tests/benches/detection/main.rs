//! How well leaks are told from what is none: every leak of
//! `memcheck_tests::scenarios` beside its fixed twin, and clean programs at
//! random, on the simulated GPU and on the CPU. Before them the judge alone is shown
//! random programs of many families, of which only the births and deaths of blocks exist.
//!
//! Each clean program runs a second time with a leak planted in it. Prints the
//! confusion matrix, then for each leak whether the report has its
//! exact bytes, the line that allocates, the pattern and the cause. Ends with 1
//! if anything is wrong.
//!
//! Nothing here is timed: `cargo bench -p memcheck-tests -F benches --bench detection
//! --profile dev` spares building candle once more.

mod programs;
mod table;

use memcheck_core::lifetimes::Budget;
use memcheck_core::lifetimes::programs::matrix::{Row as Matrix, measure};
use memcheck_core::lifetimes::programs::{self as judged, Family};
use memcheck_tests::scenarios::{self, Agreement, Leg, Scenario, clean};

use programs::{CLEAN, Command, PLANTED, Seed};

/// Clean programs on each leg, and planted ones.
const SEEDS: u64 = 200;

/// Random programs of each family that the judge alone is shown, if they are clean and if
/// they leak.
const PROGRAMS: [u32; 2] = [10_000, 2_500];

/// The most of them, in percent, that may be called a leak or clean by mistake.
const MOST_WRONG: [f64; 2] = [0.02, 0.4];

/// The legs, by the device that the command is given.
const LEGS: [(&str, Leg); 2] = [("sim:h200", Leg::Device), ("cpu", Leg::Host)];

/// What was found on one leg.
struct Found {
    device: &'static str,
    /// Each scenario that runs there.
    rows: Vec<Row>,
    /// The clean programs that something was found in.
    alarms: Vec<Seed>,
    /// The planted leaks that were not found.
    missed: Vec<Seed>,
    /// Those that were found with other bytes.
    inexact: Vec<Seed>,
}

/// What was found of one scenario.
struct Row {
    scenario: &'static Scenario,
    agreement: Agreement,
    /// Nothing was found in the fixed twin.
    silent: bool,
}

/// What the judge makes of the programs of each family, and of all of them.
fn judge(families: &'static [Family], programs: u32) -> Vec<(&'static str, Matrix)> {
    let budget = Budget::of(402);
    let one = |family: &'static Family| (family.name, measure(family, programs, 2026, &budget));
    let mut rows: Vec<_> = families.iter().map(one).collect();
    let mut all = Matrix::default();
    rows.iter().for_each(|(_, row)| all.merge(row.clone()));
    rows.push(("all", all));
    rows
}

/// Prints what the judge makes of clean and of leaking programs. Whether it is right often
/// enough.
fn judge_all() -> bool {
    let clean = judge(judged::CLEAN, PROGRAMS[0]);
    let leaks = judge(judged::LEAKS, PROGRAMS[1]);
    let share = |rows: &[(&str, Matrix)], wrong: fn(&Matrix) -> u32| {
        rows.last().map_or(100.0, |(_, all)| all.percent(wrong(all)))
    };
    let wrong = [share(&clean, |all| all.leak), share(&leaks, |all| all.clean)];
    print!("{}", table::families("Clean families, in percent", clean));
    print!("{}", table::families("Leaking families, in percent", leaks));
    wrong.iter().zip(MOST_WRONG).all(|(wrong, most)| *wrong <= most)
}

fn main() -> anyhow::Result<()> {
    let is_judge_right = judge_all();
    let command = Command::build()?;
    let mut found = Vec::new();
    for (device, leg) in LEGS {
        let run = command.run(device)?;
        let mut rows = Vec::new();
        for scenario in scenarios::all() {
            if let Some(judged) = scenario.judged_on(leg) {
                let agreement = scenario.compare(judged, run.test(&scenario.leaky_test())?);
                let silent = run.test(&scenario.fixed_test())?["status"] == "passed";
                rows.push(Row { scenario, agreement, silent });
            }
        }
        let alarms = run.seeds(device, CLEAN, SEEDS)?;
        let alarms = alarms.into_iter().filter(|seed| !seed.findings.is_empty()).collect();
        let (seen, missed): (Vec<_>, _) =
            run.seeds(device, PLANTED, SEEDS)?.into_iter().partition(|seed| seed.leak.is_some());
        let exact = |seed: &Seed| seed.leak == Some(clean::planted(seed.seed).bytes());
        let inexact = seen.into_iter().filter(|seed| !exact(seed)).collect();
        found.push(Found { device, rows, alarms, missed, inexact });
    }
    print!("{}", table::markdown(&found, SEEDS));
    if !is_judge_right || !found.iter().all(Found::is_right) {
        std::process::exit(1);
    }
    Ok(())
}

impl Found {
    fn is_right(&self) -> bool {
        let right = |row: &Row| row.silent && row.agreement.is_whole();
        let Self { device: _, rows, alarms, missed, inexact } = self;
        rows.iter().all(right) && [alarms, missed, inexact].into_iter().all(Vec::is_empty)
    }
}
