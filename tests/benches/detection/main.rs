//! Measures how well memcheck separates leaks from healthy programs, on the simulated GPU and on
//! the CPU. The programs are every leak of `memcheck_tests::scenarios`, its fixed twin, and random
//! clean programs. Before that, the judge alone is measured with random programs of many families.
//! Those programs consist of the births and deaths of blocks only.
//!
//! Each clean program runs a second time with a leak planted in it. The benchmark prints the
//! confusion matrix. For each leak it also prints whether the report has the exact bytes, the line
//! that allocates, the pattern and the cause. It exits with 1 if anything is wrong.
//!
//! The benchmark does not measure time:
//! `cargo bench -p memcheck-tests -F detection --bench detection --profile dev` saves a release build
//! of candle.

mod programs;
mod table;

use memcheck_core::growth::lifetimes::Budget;
use memcheck_core::growth::lifetimes::programs::matrix::{MatrixRow as Matrix, measure};
use memcheck_core::growth::lifetimes::programs::{self as judged, ProgramFamily};
use memcheck_tests::scenarios::{self, Agreement, Family, Scenario, clean};

use programs::{CLEAN, Command, PLANTED, Seed};

/// The number of clean programs, and of programs with a planted leak, on each leg.
const SEEDS: u64 = 200;

/// The number of random programs of each family that the judge sees: of clean families, and of
/// leaking ones.
const PROGRAMS: [u32; 2] = [10_000, 2_500];

/// The highest share of wrong decisions, in percent: clean programs called a leak, and leaking
/// programs called clean.
const MOST_WRONG: [f64; 2] = [0.02, 0.4];

/// The value of `--device` for each leg.
const LEGS: [(&str, Family); 2] = [("sim:h200", Family::Cuda), ("cpu", Family::Cpu)];

struct LegResults {
    device: &'static str,
    /// The results of each scenario that runs on this leg.
    rows: Vec<Row>,
    /// The clean programs with findings, which are false alarms.
    alarms: Vec<Seed>,
    /// The planted leaks that were not found.
    missed: Vec<Seed>,
    /// The planted leaks that were found with a wrong number of bytes.
    inexact: Vec<Seed>,
}

struct Row {
    scenario: &'static Scenario,
    agreement: Agreement,
    /// True if the fixed twin passed.
    twin_passed: bool,
}

/// Runs the judge on the programs of each family. The last row is the sum over all families.
fn judge(families: &'static [ProgramFamily], programs: u32) -> Vec<(&'static str, Matrix)> {
    let budget = Budget::of(402);
    let one =
        |family: &'static ProgramFamily| (family.name, measure(family, programs, 2026, &budget));
    let mut rows: Vec<_> = families.iter().map(one).collect();
    let mut all = Matrix::default();
    rows.iter().for_each(|(_, row)| all.merge(row.clone()));
    rows.push(("all", all));
    rows
}

/// Prints the decisions of the judge on clean and on leaking programs. Returns whether the shares
/// of wrong decisions are within [`MOST_WRONG`].
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
                let twin_passed = run.test(&scenario.fixed_test())?["status"] == "passed";
                rows.push(Row { scenario, agreement, twin_passed });
            }
        }
        let alarms = run.seeds(device, CLEAN, SEEDS)?;
        let alarms = alarms.into_iter().filter(|seed| !seed.findings.is_empty()).collect();
        let (seen, missed): (Vec<_>, _) =
            run.seeds(device, PLANTED, SEEDS)?.into_iter().partition(|seed| seed.leak.is_some());
        let exact = |seed: &Seed| seed.leak == Some(clean::planted(seed.seed).bytes());
        let inexact = seen.into_iter().filter(|seed| !exact(seed)).collect();
        found.push(LegResults { device, rows, alarms, missed, inexact });
    }
    print!("{}", table::markdown(&found, SEEDS));
    if !is_judge_right || !found.iter().all(LegResults::is_right) {
        std::process::exit(1);
    }
    Ok(())
}

impl LegResults {
    fn is_right(&self) -> bool {
        let right = |row: &Row| row.twin_passed && row.agreement.is_whole();
        let Self { device: _, rows, alarms, missed, inexact } = self;
        rows.iter().all(right) && [alarms, missed, inexact].into_iter().all(Vec::is_empty)
    }
}
