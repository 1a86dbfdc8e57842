//! Output that cannot be written, panics, and runs that are killed or cannot start. None of them
//! may look like success, lose the tests that have ended, or leave the output of an earlier run.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::fixture::{
    FOLDER, Programs, Project, Run, command, memcheck_signaled, started_by, workspace,
};
use crate::reads::product_sources;

const RUN: [&str; 6] = ["run", "--device", "cpu", "--no-ci", "--test-threads", "1"];

fn json(arguments: &[&'static str]) -> Vec<&'static str> {
    [&RUN[..], &["--message-format", "json"], arguments].concat()
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("/dev/full exists").into()
}

/// A pipe that no process reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

const TWO: [&str; 2] = ["unwritten::first", "unwritten::second"];

/// A run of the two tests, with JSON on stdout.
fn two(programs: &Programs, arguments: &[&'static str]) -> Command {
    programs.command(&[&json(arguments)[..], &TWO].concat())
}

fn exit_code(mut command: Command, stdout: Stdio, stderr: Stdio) -> Option<i32> {
    command.stdout(stdout).stderr(stderr).status().expect("cargo-memcheck runs").code()
}

/// The tests in a file of results.
fn stored(results: &str) -> Vec<String> {
    let lines = results.lines().map(|line| serde_json::from_str(line).expect("a whole line"));
    let names = lines.filter_map(|line: serde_json::Value| {
        Some(line["test"]["task"]["subject"]["test"]["name"].as_str()?.to_owned())
    });
    names.collect()
}

#[test]
#[ignore = "slow: just all"]
fn lost_output_is_not_success_but_the_end_of_its_reader_is() {
    let folder = workspace();
    for arguments in [
        &["completions", "bash"][..],
        &["explain"],
        &["explain", "leak"],
        &["--help"],
        &["--version"],
    ] {
        let code = |stdout| exit_code(command(&folder, arguments), stdout, Stdio::null());
        assert_eq!(code(full()), Some(110), "{arguments:?}");
        assert_eq!(code(closed()), Some(0), "{arguments:?}");
        assert_eq!(code(Stdio::null()), Some(0), "{arguments:?}");
    }
    let programs = Programs::of("unwritten");
    Run::from_output(&two(&programs, &[]).output().unwrap()).exits(0);
    let commands = || {
        [
            two(&programs, &[]),
            programs.command(&["list", "unwritten::"]),
            command(programs.path(), &["doctor", "--no-run"]),
            command(programs.path(), &["env"]),
        ]
    };
    for (stdout, code) in [(full as fn() -> Stdio, 110), (closed, 0)] {
        for own in commands() {
            let shown = format!("{own:?}");
            assert_eq!(exit_code(own, stdout(), Stdio::null()), Some(code), "{shown}");
        }
    }
    let human = || programs.command(&[&RUN[..], &TWO].concat());
    let code = |stderr| exit_code(human(), Stdio::null(), stderr);
    assert_eq!((code(full()), code(closed())), (Some(110), Some(0)));
    // The message is on the stream that still works.
    let mut lost = two(&programs, &[]);
    let lost = lost.stdout(full()).stderr(Stdio::piped()).output().expect("cargo-memcheck runs");
    let stderr = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(stderr.contains("error: stdout could not be written: No space left"), "{stderr}");
    let results = stored(&programs.read("results/results.jsonl"));
    assert_eq!(results, TWO);
    panics_keep_finished_tests(&programs);
    full_disks(&programs);
}

/// Makes the start of one thread of the command fail, as on a machine that has no thread left. The
/// number of the thread is in a file, because another environment would start cargo again.
const NO_THREAD: &str = "
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int started;
static int refused(void) {
    const char *name = getenv(\"REFUSED_THREAD\");
    FILE *file = name ? fopen(name, \"r\") : NULL;
    int number = 0;
    if (!file || strcmp(program_invocation_short_name, \"cargo-memcheck\")) return 0;
    if (fscanf(file, \"%d\", &number) != 1) number = 0;
    fclose(file);
    return __sync_add_and_fetch(&started, 1) == number;
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *with) {
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, \"pthread_create\");
    return refused() ? EAGAIN : next(thread, attributes, run, with);
}
";

fn panics_keep_finished_tests(programs: &Programs) {
    programs.write("thread.c", NO_THREAD);
    let library = programs.path().join("thread.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(programs.path().join("thread.c"));
    assert!(compiler.status().expect("a C compiler").success());
    let mut panics = 0;
    let mut kept = 0;
    // The command can do without some threads, such as that of the signals.
    let mut successes = 0;
    for thread in 1..100 {
        programs.write("number", &thread.to_string());
        let mut command = two(programs, &["--report", "json=report.json"]);
        command.env("LD_PRELOAD", &library).env("REFUSED_THREAD", programs.path().join("number"));
        let run = Run::from_output(&command.output().expect("cargo-memcheck runs"));
        let finished = |lines: &[serde_json::Value]| -> Vec<String> {
            let ended = lines.iter().filter(|line| line["type"] == "test-finished");
            ended.map(|line| line["test"].as_str().unwrap().to_owned()).collect()
        };
        let summary = run.summary();
        assert_eq!(summary["exit_code"], run.code, "{}", run.stderr);
        let report = programs.read("report.json");
        assert_eq!(report, run.stdout, "{}", run.stderr);
        successes = if run.code == 0 { successes + 1 } else { 0 };
        if successes == 4 {
            break;
        }
        assert!(![100, 101, 104].contains(&run.code), "{}", run.stderr);
        if run.code == 70 {
            panics += 1;
            kept += finished(&run.json()).len();
            let error = summary["error"]["message"].as_str().unwrap();
            assert!(error.starts_with("cargo-memcheck panicked at "), "{error}");
            assert!(run.stderr.contains("hint: this is a bug of cargo-memcheck"), "{}", run.stderr);
        }
    }
    eprintln!("{panics} panics, {kept} tests kept");
    assert!(panics > 1 && kept > 0, "{panics} panics, {kept} tests kept");
}

/// A JUnit report, results and a list of leftovers, for different amounts of room on the disk.
fn full_disks(programs: &Programs) {
    let script = "mkdir -p disk && mount -t tmpfs -o size=64k none disk || exit 99
        echo old > disk/junit.xml
        dd if=/dev/zero of=disk/filled bs=1k count=$1 2>/dev/null
        shift
        \"$@\" >out 2>err
        code=$?
        cp disk/junit.xml junit.xml
        rm -f results.jsonl
        cp disk/results/results.jsonl . 2>/dev/null
        ls -A disk disk/results >left 2>/dev/null
        exit $code";
    let arguments = ["--results", "disk/results", "--report", "junit=disk/junit.xml"];
    let mut codes = Vec::new();
    // With still more room there is nothing that can fail.
    let has_room = |codes: &[i32]| codes.ends_with(&[0, 0]);
    for filled in (0..64).rev().step_by(4) {
        if has_room(&codes) {
            break;
        }
        let filled = filled.to_string();
        let small = ["--mount", "--map-root-user", "sh", "-c", script, "sh", &filled];
        let mut command = started_by(("unshare", &small), &two(programs, &arguments));
        let code = command.status().ok().and_then(|status| status.code());
        if code.is_none_or(|code| code == 99 || code == 1) && codes.is_empty() {
            eprintln!("skipped: this machine does not allow a small disk to be mounted");
            return;
        }
        let (code, junit, err) = (code.unwrap(), programs.read("junit.xml"), programs.read("err"));
        let is_whole = junit.starts_with("<?xml") && junit.ends_with("</testsuites>\n");
        assert!(junit == "old\n" || is_whole, "{junit}");
        assert!(!programs.read("left").contains(".part"), "{}", programs.read("left"));
        let results = std::fs::read_to_string(programs.path().join("results.jsonl"));
        let results = results.unwrap_or_default();
        let is_complete = stored(&results).len() == 2 && results.contains("{\"end\":");
        let has_both = junit.contains("first") && junit.contains("second");
        assert_eq!(code == 0, is_complete && has_both, "{filled} KiB filled: {code}\n{err}");
        assert!(code == 0 || code == 110, "{filled} KiB filled: {code}\n{err}");
        codes.push(code);
    }
    assert!(codes.contains(&110) && codes.contains(&0), "{codes:?}");
}

const KILLED: &str = "
#[mem_test(baseline = false)]
fn a_first() {}

#[mem_test]
fn b_second() {}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn c_third() {
    std::fs::write(\"child\", std::process::id().to_string()).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}
";

/// Each test leaves a file, so that those that have run can be compared with the results. The moments
/// are numbers of files and not times, so that each is between two tests, however busy the machine.
#[test]
#[ignore = "slow: just all"]
fn a_run_that_is_killed_at_any_moment_loses_one_test() {
    const TESTS: usize = 20;
    let programs = Programs::of("unwritten");
    // A folder for each run, because a test can outlive a command that is killed.
    let ran_in = |moment: usize| programs.path().join(format!("ran-{moment}"));
    let ran = |moment: usize| std::fs::read_dir(ran_in(moment)).expect("a folder").count();
    let start = |moment: usize| {
        std::fs::create_dir(ran_in(moment)).expect("a new folder");
        let mut command = programs.command(&json(&["unwritten::leaves_a_file"]));
        command.env(FOLDER, ran_in(moment)).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("cargo-memcheck starts")
    };
    assert!(start(TESTS).wait().expect("the command ends").success());
    assert_eq!(ran(TESTS), TESTS);
    let mut partial = 0;
    for moment in (0..TESTS).step_by(2) {
        let mut child = start(moment);
        while ran(moment) < moment && child.try_wait().expect("the state of the child").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // Another part of the time of a test in each run.
        std::thread::sleep(std::time::Duration::from_millis(moment as u64));
        // The run may have ended.
        let _ = child.kill();
        child.wait().expect("the process ends");
        let ran = ran(moment);
        let results = std::fs::read_to_string(programs.path().join("results/results.jsonl"));
        let results = results.unwrap_or_default();
        let whole_lines = results.rfind('\n').map_or("", |end| &results[..end]);
        let kept = stored(whole_lines).len();
        // The first moment can be before the command has removed the results of the earlier run.
        assert!(ran <= kept + 1, "{ran} tests have run, but {kept} are kept");
        partial += usize::from((1..TESTS).contains(&kept));
    }
    eprintln!("{partial} runs were killed between their first and their last test");
    assert!(partial > 0, "no run was killed while its tests ran");
}

#[test]
fn a_killed_run_keeps_its_finished_tests_and_leaves_no_output_of_an_earlier_one() {
    let project = Project::new(KILLED);
    let reports = ["--report", "junit=junit.xml", "--report", "markdown=report.md"];
    let ci = ["run", "--device", "cpu", "--ci", "--message-format", "json", "--test-threads", "1"];
    let ci = |more: &[&'static str]| [&ci[..], &reports, more].concat();
    let earlier = Run::from_output(&command(project.path(), &ci(&["b_second"])).output().unwrap());
    let earlier = earlier.exits(5);
    assert!(project.read("junit.xml").contains("b_second"));
    let pending =
        PathBuf::from(earlier.summary()["pending"][0].as_str().expect("a pending snapshot"));
    let own = pending.ancestors().find(|folder| folder.ends_with("memcheck")).expect("a folder");

    let killed = memcheck_signaled(project.path(), &ci(&[]), "child", "-KILL");
    let _ = Command::new("kill").args(["-9", &project.read("child")]).status();
    assert_eq!(killed.code, -1);
    assert_eq!(killed.test("a_first")["status"], "passed");
    assert!(pending.exists(), "two runs of one commit add up");
    for file in ["junit.xml", "report.md"] {
        let report = project.read(file);
        assert!(report.contains("the run has not ended"), "{report}");
        assert!(!report.contains("b_second"), "{report}");
    }
    let again = ["report", "--message-format", "json", "--report", "junit=junit.xml"];
    let again = project.memcheck(&again).exits(104);
    let again = again
        .prints("error: the run was killed: 2 of 3 tests have results; `c_third` was running (");
    again.test("b_second");
    let killed = again.test("c_third");
    assert_eq!(killed["findings"][0]["code"], "not-measured");
    let message = killed["findings"][0]["message"].as_str().expect("a message");
    assert!(message.starts_with("killed while running"), "{message}");
    let summary = again.summary();
    let counts = ["passed", "not_measured", "not_run"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(0)]);
    assert!(project.read("junit.xml").contains("b_second"), "{}", project.read("junit.xml"));
    assert!(project.read("junit.xml").contains("incomplete-run"), "{}", project.read("junit.xml"));

    // Another commit, whose build fails.
    std::fs::write(own.join("pending-commit"), "abc").expect("the file is written");
    project.write("tests/mem.rs", "this is not Rust\n");
    let failed = Run::from_output(&command(project.path(), &ci(&[])).output().unwrap()).exits(101);
    assert!(!pending.exists(), "{}", failed.stderr);
    failed
        .prints("note: 1 pending snapshot of another commit moved to ")
        .prints("pending-earlier/abc");
    for file in ["junit.xml", "report.md"] {
        let report = project.read(file);
        assert!(!report.contains("b_second") && report.contains("build"), "{report}");
    }
    let results = own.join("results/results.jsonl");
    assert!(!results.exists(), "the results of the earlier run are left");

    // Neither a usage error nor a broken workspace leaves them.
    let unknown = "MEMCHECK_MAX_PEEK";
    for (breaks, code) in
        [("--no-such-flag", 2), ("--partition=x", 2), ("--config-file=none", 96), (unknown, 2)]
    {
        project.write("junit.xml", "of an earlier run");
        std::fs::create_dir_all(pending.parent().unwrap()).unwrap();
        std::fs::write(&pending, "---\nsource: tests/me").unwrap();
        std::fs::write(own.join("pending-commit"), "abc").unwrap();
        let (flags, variables): (&[_], &[_]) = match breaks == unknown {
            true => (&[], &[(unknown, "1 GB")]),
            false => (&[breaks], &[]),
        };
        let mut run = command(project.path(), &ci(flags));
        run.envs(variables.iter().copied());
        Run::from_output(&run.output().unwrap()).exits(code);
        assert!(project.read("junit.xml").contains("incomplete-run"), "{breaks}");
        let is_run = breaks != "--no-such-flag";
        assert!(!is_run || !pending.exists(), "{breaks}: a pending snapshot is left");
    }
    drop(File::open(own.join("pending-earlier/abc-2")).expect("the second folder is kept too"));
}

/// Files of the command may only be written as a whole, and its output only by functions that keep
/// the errors.
#[test]
fn only_the_layers_for_files_and_for_output_write() {
    // A device or a pipe cannot be replaced, and the file of a launcher is empty and temporary.
    // `large_inputs` is a test.
    let direct = [
        "cargo-memcheck/src/presentation/presenters/reports.rs",
        "cargo-memcheck/src/execution/run/program.rs",
        "cargo-memcheck/src/execution/run/test.rs",
        "cargo-memcheck/src/large_inputs.rs",
    ];
    let mut found = Vec::new();
    for (name, own) in product_sources("cargo-memcheck") {
        if !direct.contains(&name.as_str()) {
            let writes = ["fs::write(", "println!(", "eprintln!(", "io::stdout().write"];
            let writes = writes.iter().filter(|write| own.contains(**write));
            found.extend(writes.map(|write| format!("{name}: {write}")));
        }
    }
    found.retain(|write| write != "cargo-memcheck/src/system/printing.rs: io::stdout().write");
    assert!(found.is_empty(), "use system/files.rs and system/printing.rs instead of {found:#?}");
}
