//! SIGKILL, one signal and two signals at random moments of the phases of a command. No process may
//! survive, a signal must end the command in time with its exit code, and no temporary folder may
//! remain. `just faults` tries 100 moments of each fault and prints a table.

mod moment;
mod processes;

use std::collections::BTreeMap;
use std::time::Duration;

use moment::{Fault, Outcome, Phase, Scene};

/// The first test runs for a while with a process that has left its group and its session. The
/// second one needs further runs, and prints so much that results and reports take a while to be
/// written. The list takes a while too.
const TESTS: &str = r#"
fn sleep(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

extern "C" fn before_main() {
    if std::env::var_os("MEMCHECK_LIST").is_some() {
        sleep(300);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn daemon() {
    std::process::Command::new("setsid").args(["--fork", "sleep", "600"]).status().unwrap();
    sleep(400);
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaky(trial: &mut Trial) {
    let line = "x".repeat(100);
    (0..20_000).for_each(|_| println!("{line}"));
    let mut kept = Vec::new();
    trial.iterate(|_| { kept.push(vec![0u8; 4096]); sleep(10); Ok::<_, String>(()) }).unwrap();
}
"#;

/// Numbers that look random, and are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % most.max(1)
    }
}

#[derive(Default)]
struct Row {
    moments: u32,
    slowest_end: Duration,
    slowest_survivor: Duration,
    codes: BTreeMap<i32, u32>,
    folders: u32,
    faults: Vec<String>,
}

impl Row {
    fn add(&mut self, outcome: Outcome) {
        self.moments += 1;
        self.slowest_end = self.slowest_end.max(outcome.until_end);
        self.slowest_survivor = self.slowest_survivor.max(outcome.until_none);
        *self.codes.entry(outcome.code).or_default() += 1;
        self.folders += outcome.folders;
        self.faults.extend(outcome.problems);
    }
}

/// Tries `count` moments of each fault, and prints what was measured.
fn try_moments(scene: &Scene, phases: &[Phase], count: usize, seed: u64) {
    let mut numbers = Numbers(seed);
    let mut table: BTreeMap<(Phase, Fault), Row> = BTreeMap::new();
    for fault in Fault::ALL {
        for number in 0..count {
            let phase = phases[number % phases.len()];
            let outcome = scene.try_moment(phase, fault, &mut |most| numbers.below(most));
            table.entry((outcome.phase, fault)).or_default().add(outcome);
        }
    }
    println!("phase    fault        moments  end ms  none left ms  exit codes  folders left");
    for ((phase, fault), row) in &table {
        println!(
            "{:<8} {:<12} {:>7} {:>7} {:>13}  {:?} {}",
            format!("{phase:?}"),
            format!("{fault:?}"),
            row.moments,
            row.slowest_end.as_millis(),
            row.slowest_survivor.as_millis(),
            row.codes,
            row.folders,
        );
    }
    let faults: Vec<&String> = table.values().flat_map(|row| &row.faults).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    scene.assert_next_command_cleans();
}

#[test]
#[ignore = "slow: just all"]
fn no_process_survives_a_command_that_is_killed_or_receives_signals() {
    // Other tests can keep the machine busy. The long test measures the second that is promised.
    let scene = Scene::new(false, Duration::from_secs(10));
    try_moments(&scene, &[Phase::Build, Phase::Run, Phase::Explain], 3, 1);
}

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    #[test]
    #[ignore = "takes 6 minutes: just faults"]
    fn hundred_moments_of_each_fault() {
        let scene = Scene::new(true, Duration::from_secs(1));
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let (count, seed) = (number("FAULTS_MOMENTS"), number("FAULTS_SEED"));
        try_moments(&scene, &Phase::ALL, count.unwrap_or(100) as usize, seed.unwrap_or(1));
    }
}
