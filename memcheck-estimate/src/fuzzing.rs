//! Mutates the configurations of published models. candle takes minutes to compile for the fuzzer, so that this target
//! is a loop in a test: `just fuzz configuration`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use memcheck_core::wire::estimate::{Question, VERSION};

use crate::question;

#[path = "../../fuzz/src/json.rs"]
mod json;

/// A run takes microseconds.
const LONGEST: Duration = Duration::from_secs(30);

fn configurations() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/configs");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    paths.sort();
    paths
}

fn check(text: &[u8]) -> bool {
    let Ok(config) = serde_json::from_slice(text) else { return false };
    let question = Question {
        version: VERSION,
        config,
        gguf: None,
        weights: None,
        batch: 2,
        seq: 64,
        generate: 8,
        train: false,
        flash_attn: false,
        dtype: None,
    };
    question::check(&question).is_ok_and(|checked| {
        let _ = (checked.kernel_overflow(), checked.largest_countable_batch());
        true
    })
}

/// Returns the number of mutated configurations that were accepted.
fn run(mutations: u32) -> u32 {
    let seeds: Vec<Vec<u8>> =
        configurations().iter().map(|path| std::fs::read(path).unwrap()).map(one_line).collect();
    let mut accepted = 0;
    for number in 0..mutations {
        let mut random = json::Random::new(number);
        let seed = &seeds[random.below(seeds.len())];
        let Some(text) = json::mutated(seed, &mut random) else { continue };
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| check(&text));
        let text = || String::from_utf8_lossy(&text).into_owned();
        accepted += u32::from(outcome.unwrap_or_else(|_| panic!("{number}: {}", text())));
        assert!(start.elapsed() < LONGEST, "{number} took {:?}: {}", start.elapsed(), text());
    }
    accepted
}

fn one_line(text: Vec<u8>) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    value.to_string().into_bytes()
}

#[test]
fn mutated_configurations_are_checked_without_a_panic() {
    let accepted = run(300);
    assert!((30..270).contains(&accepted), "{accepted} of 300");
}

#[test]
#[ignore = "it takes an hour: just fuzz configuration"]
fn configurations_are_mutated_for_an_hour() {
    let mutations = std::env::var("MUTATIONS").ok().and_then(|count| count.parse().ok());
    let mutations = mutations.unwrap_or(10_000_000);
    let start = Instant::now();
    let accepted = run(mutations);
    println!("{mutations} mutations in {:?}, {accepted} accepted", start.elapsed());
}
