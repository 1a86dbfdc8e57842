//! Tests that write more than fits in memory: output, progress, a record. The memory of the command
//! must stay bounded. `just floods` writes 10 GiB of each.

use std::process::Stdio;
use std::time::{Duration, Instant};

use memcheck_core::size::Size;

use crate::fixture::{Programs, Run};

const MOST: u64 = 256 << 20;

/// The peak of its resident memory, as the kernel counts it.
fn peak(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

fn measured(programs: &Programs, test: &str) -> (Run, u64, Duration) {
    let test = format!("floods::{test}");
    let report = ["--report", "junit=junit.xml", "--explain", "never"];
    let run = ["run", "--device", "cpu", "--no-ci", "--message-format", "json", "--exact", &test];
    let mut command = programs.command(&[&run[..], &report].concat());
    let started = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("cargo-memcheck starts");
    let id = child.id();
    let watching = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(peak) = peak(id) {
            most = most.max(peak);
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    });
    let output = child.wait_with_output().expect("cargo-memcheck ends");
    let most = watching.join().expect("the memory was read");
    (Run::from_output(&output), most, started.elapsed())
}

fn assert_bounded(mebibytes: u64) {
    let programs = Programs::of("floods");
    programs.write("mebibytes", &mebibytes.to_string());
    programs.memcheck(&["list", "--device", "cpu"]).exits(0);
    let run = |test: &str, code: i32| {
        let (run, most, took) = measured(&programs, test);
        println!("{test}: {} of memory, {:.1} s", Size(most), took.as_secs_f64());
        assert!(most < MOST, "{test}: {}", Size(most));
        // The output is too long to be printed on a failure.
        assert_eq!(run.code, code, "{test}");
        run
    };
    run("output", 100);
    let files = std::fs::read_dir(programs.path().join("results")).expect("results").flatten();
    let size: u64 = files.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum();
    println!("results: {}", Size(size));
    assert!(size < 100 << 20, "{}", Size(size));
    let junit = programs.read("junit.xml");
    let left_out = format!("… {} left out …", Size((mebibytes << 20) - (8 << 20)));
    assert!(junit.contains("first") && junit.contains("xlast"), "the head or the tail is missing");
    assert!(junit.contains(&left_out), "{left_out} is missing");
    run("one_line_of_progress", 0);
    run("many_lines_of_progress", 0);
    let refused = run("record", 104);
    let message = refused.test("record")["findings"][0]["message"].to_string();
    assert!(message.contains("it has 1.00 GiB, and the most is 512.0 MiB"), "{message}");
}

#[test]
#[ignore = "slow: just all"]
fn output_progress_and_a_record_that_never_end_need_little_memory() {
    assert_bounded(50);
}

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    #[test]
    #[ignore = "takes 10 minutes: just floods"]
    fn ten_gibibytes_need_little_memory() {
        assert_bounded(10 << 10);
    }
}
