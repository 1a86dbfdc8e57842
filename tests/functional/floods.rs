//! Tests that write more than fits in memory: output, progress, a record. The memory of the command
//! must stay bounded. `just floods` writes 10 GiB of each.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use memcheck_core::size::Size;

use crate::fixture::{Project, Run, command, target};

const MOST: u64 = 256 << 20;

const TESTS: &str = r#"
use std::io::Write;

fn mebibytes() -> usize {
    std::fs::read_to_string("mebibytes").unwrap().parse().unwrap()
}

fn flood(mebibytes: usize, mut to: impl Write, piece: &[u8]) {
    let piece = piece.repeat((1 << 20) / piece.len());
    (0..mebibytes).for_each(|_| to.write_all(&piece).unwrap());
    to.flush().unwrap();
}

fn progress() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap()
}

#[mem_test(baseline = false, iterations = 1, warmup = 0, max_allocations = 0)]
fn output(_trial: &mut Trial) {
    print!("first");
    flood(mebibytes(), std::io::stdout().lock(), b"x");
    flood(20, std::io::stderr().lock(), b"\xff\x00");
    println!("last");
    std::process::exit(3);
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn one_line_of_progress(_trial: &mut Trial) {
    flood(mebibytes(), progress(), b"x");
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn many_lines_of_progress(_trial: &mut Trial) {
    flood(mebibytes(), progress(), b"\xff{}\n{\"iteration\":1,\"of\":2,\"live\":3456789}\n");
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn record(_trial: &mut Trial) {
    // The initial environment of the process, because the runtime has removed the variable.
    let environment = std::fs::read_to_string("/proc/self/environ").unwrap();
    let (_, report) = environment.split_once("\"report\":\"").unwrap();
    let report = report.split('"').next().unwrap();
    std::fs::File::create(report).unwrap().set_len(1 << 30).unwrap();
    std::process::exit(0);
}
"#;

/// The peak of its resident memory, as the kernel counts it.
fn peak(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

fn measured(folder: &Path, test: &str) -> (Run, u64, Duration) {
    let report = ["--report", "junit=junit.xml", "--explain", "never"];
    let run = ["run", "--device", "cpu", "--no-ci", "--message-format", "json", "--exact", test];
    let mut command = command(folder, &[&run[..], &report].concat());
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
    let project = Project::new(TESTS);
    project.write("mebibytes", &mebibytes.to_string());
    project.memcheck(&["list", "--device", "cpu"]).exits(0);
    let run = |test: &str, code: i32| {
        let (run, most, took) = measured(project.path(), test);
        println!("{test}: {} of memory, {:.1} s", Size(most), took.as_secs_f64());
        assert!(most < MOST, "{test}: {}", Size(most));
        // The output is too long to be printed on a failure.
        assert_eq!(run.code, code, "{test}");
        run
    };
    run("output", 100);
    let results = target().join("functional/targets").join(project.name()).join("memcheck/results");
    let files = std::fs::read_dir(results).expect("results").flatten();
    let size: u64 = files.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum();
    println!("results: {}", Size(size));
    assert!(size < 100 << 20, "{}", Size(size));
    let junit = project.read("junit.xml");
    let left_out = format!("… {} left out …", Size((mebibytes << 20) - (8 << 20)));
    assert!(junit.contains("first") && junit.contains("xlast"), "the head or the tail is missing");
    assert!(junit.contains(&left_out), "{left_out} is missing");
    run("one_line_of_progress", 0);
    run("many_lines_of_progress", 0);
    let refused = run("record", 104);
    let message = refused.test("record")["findings"][0]["message"].to_string();
    assert!(message.contains("it has 1.0 GiB, and the most is 512.0 MiB"), "{message}");
}

#[test]
fn output_progress_and_a_record_that_never_end_need_little_memory() {
    assert_bounded(50);
}

#[test]
#[ignore = "takes 10 minutes: just floods"]
fn ten_gibibytes_need_little_memory() {
    assert_bounded(10 << 10);
}
