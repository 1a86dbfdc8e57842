//! The ways in which a process ends, and the findings about them.
#![cfg(unix)]

use super::*;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;

use crate::limits::Source;
use crate::wire::example;
use crate::wire::last_state::{Moment, STACK_SIGNAL};

fn report(change: impl FnOnce(&mut Value)) -> Written {
    let mut json = example::measurement();
    change(&mut json);
    Written::parse(json.to_string().as_bytes())
}

/// True if there is a measurement, and the finding.
fn codes(end: End, written: Written) -> (bool, Option<Code>) {
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    let ended = judge(&end, written, None, expected);
    (ended.measurement.is_some(), ended.finding.map(|finding| finding.code))
}

fn refusal(why: &str, device: bool) -> Written {
    Written::Refused(Refusal { why: why.to_owned(), device, hint: None })
}

fn exited(code: i32) -> End {
    End::Exited(ExitStatus::from_raw(code << 8))
}

fn signal(number: i32) -> End {
    End::Exited(ExitStatus::from_raw(number))
}

#[test]
fn a_whole_record_of_this_test_is_believed() {
    assert_eq!(codes(exited(0), report(|_| {})), (true, None));
}

#[test]
fn no_record_is_never_a_pass() {
    assert_eq!(codes(exited(0), Written::Nothing), (false, Some(Code::NotMeasured)));
    assert_eq!(codes(exited(104), Written::Nothing), (false, Some(Code::NotMeasured)));
    assert_eq!(codes(exited(104), refusal("no memory", false)), (false, Some(Code::NotMeasured)));
    assert_eq!(codes(exited(104), refusal("no such device", true)), (false, Some(Code::NoDevice)));
    assert_eq!(codes(signal(6), refusal("no such device", true)), (false, Some(Code::Crashed)));
    assert_eq!(codes(exited(101), Written::Nothing), (false, Some(Code::Crashed)));
    assert_eq!(codes(signal(9), Written::Nothing), (false, Some(Code::Crashed)));
    let late = End::TimedOut(Duration::from_secs(1));
    assert_eq!(codes(late, report(|_| {})), (true, Some(Code::TimedOut)));
    assert_eq!(codes(late, Written::Nothing), (false, Some(Code::TimedOut)));
}

#[test]
fn a_record_that_is_cut_off_or_of_another_test_or_version_is_not_measured() {
    let not_measured = (false, Some(Code::NotMeasured));
    assert_eq!(codes(exited(0), Written::parse(b"{\"version\": 1, \"rec")), not_measured);
    assert_eq!(codes(exited(0), report(|json| json["version"] = 9.into())), not_measured);
    assert_eq!(codes(exited(0), report(|json| json["record"]["version"] = 9.into())), not_measured);
    assert_eq!(codes(exited(0), report(|json| json["record"]["test"] = "c".into())), not_measured);
    assert_eq!(
        codes(exited(0), report(|json| json["record"]["family"] = "cuda".into())),
        not_measured
    );
}

#[test]
fn a_process_that_dies_after_a_good_record_has_crashed() {
    assert_eq!(codes(exited(101), report(|_| {})), (true, Some(Code::Crashed)));
    assert_eq!(codes(signal(11), report(|_| {})), (true, Some(Code::Crashed)));
}

#[test]
fn a_reason_takes_the_place_of_the_report() {
    let absent = || Err(io::Error::from(io::ErrorKind::NotFound));
    let read =
        |refusal: &dyn Fn() -> io::Result<Vec<u8>>| Written::from_files(absent(), refusal).unwrap();
    assert_eq!(read(&absent), Written::Nothing);
    let text = br#"{"why": "no such device", "device": true}"#;
    assert_eq!(read(&|| Ok(text.to_vec())), refusal("no such device", true));
    assert_eq!(read(&|| Ok(b"{".to_vec())), Written::Nothing);
    assert!(matches!(Written::parse(b"{"), Written::Unsound(_)));
}

#[test]
fn a_record_that_is_too_large_or_not_a_regular_file_is_refused_without_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    assert_eq!(Written::read(&report).unwrap(), Written::Nothing);
    let unsound = |expected: &str| match Written::read(&report).unwrap() {
        Written::Unsound(why) => assert!(why.ends_with(expected), "{why}"),
        other => panic!("{other:?}"),
    };
    // A file with a hole takes no space, and reading it would take 1 GiB.
    std::fs::File::create(&report).unwrap().set_len(1 << 30).unwrap();
    unsound("cannot be read: it has 1.00 GiB, and the most is 512.0 MiB");
    std::fs::remove_file(&report).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &report).unwrap();
    unsound("it is a character device, and only a regular file of at most 512.0 MiB is read");
}

#[test]
fn a_device_that_is_not_there_is_said_to_be_so_with_what_to_do() {
    let of = |why: &str| refused(Refusal { why: why.to_owned(), device: true, hint: None });
    let known = of("the device `cuda` cannot be opened: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    let said = "different versions (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); the device `cuda` cannot";
    assert!(known.message.contains(said), "{}", known.message);
    assert!(known.hint.unwrap().contains("restart"));
    assert!(of("gone").hint.unwrap().contains("--device sim"));
}

#[test]
fn a_signal_is_named() {
    let of = |number| crashed(ExitStatus::from_raw(number), None, "here");
    assert_eq!(of(11).message, "SIGSEGV (signal 11) ended the process here");
    for (number, next) in [(6, "output"), (7, "pointer"), (9, "out-of-memory"), (11, "pointer")] {
        let hint = of(number).hint.unwrap();
        assert!(hint.contains(next) && !hint.contains("--no-capture"), "{hint}");
    }
    assert_eq!(of(8).hint, None);
}

fn state(moment: Moment, stack: Option<SignalStack>) -> LastState {
    let sources = Sources { workspace: "/w".to_owned(), ..Sources::default() };
    LastState {
        moment,
        live: 4_096,
        warmup: 2,
        measured: 10,
        stack,
        has_body: true,
        iterates: None,
        sources,
    }
}

/// The end of a process that left no record, by a signal, with this state.
fn killed(number: i32, last: Option<LastState>) -> Ended {
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    judge(&signal(number), Written::Nothing, last, expected)
}

fn message(ended: &Ended) -> &str {
    &ended.finding.as_ref().unwrap().message
}

#[test]
fn a_crash_names_the_iteration_and_a_kill_the_live_bytes_too() {
    let at = |moment| Some(state(moment, None));
    let live = "4,096 B (4.00 KiB) were live on the host when that iteration began";
    for (number, last, expected) in [
        (6, None, "SIGABRT (signal 6) ended the process before its record was complete".to_owned()),
        (
            6,
            at(Moment::BeforeIterations),
            "SIGABRT (signal 6) ended the process before the first iteration".to_owned(),
        ),
        (
            11,
            at(Moment::In(5)),
            "SIGSEGV (signal 11) ended the process in iteration 6 of 12".to_owned(),
        ),
        (
            9,
            at(Moment::In(5)),
            format!("SIGKILL (signal 9) ended the process in iteration 6 of 12; {live}"),
        ),
        (
            9,
            at(Moment::BeforeIterations),
            "SIGKILL (signal 9) ended the process before the first iteration".to_owned(),
        ),
    ] {
        assert_eq!(message(&killed(number, last)), expected);
    }
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    let exit = judge(&exited(3), Written::Nothing, at(Moment::In(0)), expected);
    let text = "the process ended with exit status 3 in iteration 1 of 12, in the warm-up";
    assert_eq!(message(&exit), text);
    let after = judge(&signal(6), report(|_| {}), at(Moment::After(11)), expected);
    assert_eq!(
        message(&after),
        "SIGABRT (signal 6) ended the process after its record was complete"
    );
}

#[test]
fn the_hint_of_a_kill_blames_memory_only_if_the_test_held_much() {
    let hint = |live: Option<u64>| {
        let moment = live.map_or(Moment::BeforeIterations, |_| Moment::In(5));
        let last = LastState { live: live.unwrap_or(0), ..state(moment, None) };
        let finding = killed(9, Some(last)).finding.unwrap();
        (can_lack_memory(&finding), finding.hint.unwrap())
    };
    for little in [0, 4_096, (256 << 20) - 1] {
        let (can_lack_memory, hint) = hint(Some(little));
        assert!(
            hint.contains("The body can have sent it itself") && !hint.contains("less memory"),
            "{hint}"
        );
        assert!(!can_lack_memory, "{little}");
    }
    // Before the first iteration the live bytes are not known.
    for much in [Some(256 << 20), None] {
        let (can_lack_memory, hint) = hint(much);
        assert!(hint.contains("less memory") && !hint.contains("outside"), "{hint}");
        assert!(can_lack_memory, "{much:?}");
    }
}

#[test]
fn only_the_stack_of_the_signal_that_ended_the_process_is_believed() {
    let fatal = |signal| Some(SignalStack { signal, calls: vec![1] });
    let stack = |number, stored| killed(number, Some(state(Moment::In(2), fatal(stored)))).stack;
    assert_eq!(stack(11, 11).unwrap().calls, [1]);
    assert_eq!((stack(6, 11), stack(9, 6)), (None, None));
    assert_eq!(killed(11, None).stack, None);
}

#[test]
fn a_crash_is_at_the_innermost_line_of_the_program_and_names_its_callers() {
    let frame = |function: &str, file: &str, line| Frame {
        function: function.to_owned(),
        file: Some(file.to_owned()),
        line: Some(line),
    };
    let frames = |call| match call {
        0 => vec![frame("std::process::abort", "/rustc/ab/library/std/src/process.rs", 5)],
        1 => vec![
            frame("mem::inner", "/w/tests/mem.rs", 3),
            frame("mem::outer", "/w/tests/mem.rs", 7),
        ],
        2 => vec![frame("mem::a::__MEM_TEST::{{closure}}", "/w/tests/mem.rs", 1)],
        _ => vec![frame("mem::main", "/w/tests/mem.rs", 9)],
    };
    let test = Some((Path::new("tests/mem.rs"), 20));
    let located = |calls| {
        let stack = SignalStack { signal: 6, calls };
        let ended = killed(6, Some(state(Moment::In(4), Some(stack)))).located(frames, test);
        assert_eq!(ended.stack, None);
        ended.finding.unwrap()
    };
    let finding = located(vec![0, 1, 2, 3]);
    let expected = "SIGABRT (signal 6) ended the process in iteration 5 of 12\n\
                    called from tests/mem.rs:7 (mem::outer)";
    assert_eq!(finding.message, expected);
    let at = |finding: &Finding| {
        let HeadLine { file, line, function } = finding.stopped_at().unwrap().clone();
        (format!("{file}:{line}"), function)
    };
    assert_eq!(at(&finding), ("tests/mem.rs:3".to_owned(), Some("mem::inner".to_owned())));
    // A stack without a line of the program says nothing about the place.
    let unknown = ("tests/mem.rs:20".to_owned(), None);
    assert_eq!(at(&located(vec![0])), unknown);
    assert_eq!(at(&killed(9, None).located(frames, test).finding.unwrap()), unknown);
    // The line that calls the iterations is nearer, as long as one is running.
    let iterating = |moment, iterates| {
        let last = LastState { iterates, ..state(moment, None) };
        let finding = killed(9, Some(last)).located(frames, test).finding.unwrap();
        let says = finding.hint.as_ref().unwrap().starts_with("the line calls the iterations");
        assert_eq!(says, finding.iterates);
        (at(&finding).0, finding.iterates)
    };
    let (called, of_test) = (("tests/mem.rs:41".to_owned(), true), (unknown.0.clone(), false));
    assert_eq!(iterating(Moment::In(4), Some(41)), called);
    assert_eq!(iterating(Moment::In(4), None), of_test);
    assert_eq!(iterating(Moment::After(11), Some(41)), of_test);
    assert_eq!(iterating(Moment::BeforeIterations, Some(41)), of_test);
    // A program has no line of a test, and a test that passed has no finding.
    assert_eq!(killed(9, None).located(frames, None).finding.unwrap().stopped_at(), None);
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    let passed = judge(&exited(0), report(|_| {}), None, expected).located(frames, test);
    assert_eq!(passed.finding, None);
    let late = judge(&End::TimedOut(Duration::from_secs(1)), Written::Nothing, None, expected);
    assert_eq!(at(&late.located(frames, test).finding.unwrap()), unknown);
    // Only the stack that the parent has asked for is that of a test that took too long.
    for (signal, place) in [(STACK_SIGNAL, "tests/mem.rs:3"), (11, "tests/mem.rs:20")] {
        let stack = SignalStack { signal, calls: vec![1] };
        let last = Some(state(Moment::In(4), Some(stack)));
        let late = judge(&End::TimedOut(Duration::from_secs(1)), Written::Nothing, last, expected);
        assert_eq!(at(&late.located(frames, test).finding.unwrap()).0, place, "{signal}");
    }
}

#[test]
fn a_record_with_an_impossible_figure_is_not_measured_and_the_field_is_named() {
    let huge = report(|json| {
        json["record"]["spaces"]["host"]["metrics"]["retained"] = json!(u64::MAX);
    });
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    let ended = judge(&exited(0), huge, None, expected);
    assert_eq!(ended.measurement, None);
    let finding = ended.finding.unwrap();
    assert_eq!(finding.code, Code::NotMeasured);
    let message = &finding.message;
    let field =
        "the record of the test is not valid: `spaces[host].metrics.retained` is more than 2^60";
    assert!(message.starts_with(field), "{message}");
    let text = example::measurement().to_string();
    let Written::Unsound(why) = Written::parse(&text.as_bytes()[..text.len() / 2]) else {
        panic!("half a report was accepted")
    };
    assert!(why.starts_with("the record of the test is incomplete: EOF"), "{why}");
}

#[test]
fn a_test_that_takes_too_long_names_its_iteration_unless_its_record_is_complete() {
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    let late = End::TimedOut(Duration::from_secs(2));
    let ended = |written, last| judge(&late, written, last, expected).finding.unwrap().message;
    let running = || Some(state(Moment::In(4), None));
    let text = "the test was still running after 2s";
    assert_eq!(ended(Written::Nothing, running()), format!("{text}, in iteration 5 of 12"));
    assert_eq!(ended(Written::Nothing, None), text);
    assert_eq!(ended(report(|_| {}), running()), format!("{text}, its record complete"));
    let timeout = Setting { value: Duration::from_secs(2), source: Source::Attribute };
    let expected = ExpectedTest { timeout: Some(&timeout), ..expected };
    let limited = judge(&late, Written::Nothing, running(), expected).finding.unwrap().message;
    let limit = "(`timeout = \"2s\"` in its attribute)";
    assert_eq!(limited, format!("{text} {limit}, in iteration 5 of 12"));
}

#[test]
fn a_body_that_failed_has_the_moment_in_its_record() {
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    let at = |outcome: Value| {
        let written = report(|json| json["record"]["outcome"] = outcome);
        let ended = judge(&exited(0), written, Some(state(Moment::In(4), None)), expected);
        ended.measurement.unwrap().record.ended_at
    };
    let panicked = json!({"kind": "panicked", "message": "why"});
    assert_eq!(at(panicked).as_deref(), Some("in iteration 5 of 12"));
    assert_eq!(at(json!({"kind": "returned"})), None);
}

#[test]
fn only_sigkill_counts_as_killed() {
    let of = |number| is_killed(&crashed(ExitStatus::from_raw(number), None, "here"));
    assert_eq!([of(9), of(6), of(11)], [true, false, false]);
    assert!(!is_killed(&crashed(ExitStatus::from_raw(9 << 8), None, "here")));
}
