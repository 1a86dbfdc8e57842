//! The cost of call stacks, scopes and tensors on the simulated GPU, compared with the same test
//! with counters only.
//!
//! ```console
//! cargo bench -p memcheck-tests -F benches --bench attribution
//! ```
//!
//! The simulated device does not run kernels, so a forward pass of BERT-base is a millisecond of
//! candle's own work around 557 allocations. The cost of attribution is therefore easiest to see
//! here. The test runs under `cargo memcheck` with few iterations and with many. The difference of
//! the two times is the cost of the iterations alone, without the start of the process and without
//! the resolution of call sites at its end. Rounds alternate, and the fastest round of each kind
//! counts, because other load on the machine can only add time. The benchmark has no assertions.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

const TEST: &str = "bert::base_forward_b8_s128";
const ROUNDS: usize = 15;
const FEW: u32 = 10;
const MANY: u32 = 510;
/// The target for the ratio of the two times.
const LIMIT: f64 = 1.15;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` starts benchmarks without optimization, only to see that they run.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("run `cargo bench` to measure the cost of attribution");
        return Ok(());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the package has no parent directory")?;
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "cargo-memcheck"])
        .current_dir(workspace)
        .status()?;
    ensure!(built.success(), "cargo-memcheck does not build");
    run(workspace, "always", FEW)?;

    let mut fastest: BTreeMap<(&str, u32), Duration> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (explain, iterations) in
            [("never", FEW), ("always", FEW), ("never", MANY), ("always", MANY)]
        {
            let time = run(workspace, explain, iterations)?;
            let least = fastest.entry((explain, iterations)).or_insert(time);
            *least = time.min(*least);
        }
    }
    let iteration = |explain| {
        let whole = fastest[&(explain, MANY)].saturating_sub(fastest[&(explain, FEW)]);
        whole / (MANY - FEW)
    };
    let (counted, attributed) = (iteration("never"), iteration("always"));
    let ratio = attributed.as_secs_f64() / counted.as_secs_f64();
    let result = if ratio <= LIMIT { "met" } else { "exceeded" };
    println!("a forward pass of BERT-base on the simulated GPU, fastest of {ROUNDS} rounds");
    println!("  counters only     {:>10} µs", counted.as_micros());
    println!("  with attribution  {:>10} µs", attributed.as_micros());
    println!("  ratio             {ratio:>10.3} (limit {LIMIT}: {result})");
    Ok(())
}

/// The time that the test took, as the command reports it.
fn run(workspace: &Path, explain: &str, iterations: u32) -> anyhow::Result<Duration> {
    let output = Command::new(workspace.join("target/release/cargo-memcheck"))
        .args(["memcheck", "run", "--release", "--package", "memcheck-tests"])
        .args(["--test", "workloads", "--device", "sim", "--ci", "--exact", TEST])
        .args(["--explain", explain, "--iterations", &iterations.to_string()])
        .args(["--message-format", "json", "--quiet", "--allow", "uncomparable-baseline"])
        .current_dir(workspace)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    for line in String::from_utf8(output.stdout)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        if line["type"] == "test-finished" && line["test"] == TEST {
            let seconds = line["seconds"].as_f64().context("the line has no `seconds`")?;
            return Ok(Duration::from_secs_f64(seconds));
        }
    }
    anyhow::bail!("{TEST} did not run: {}", output.status)
}
