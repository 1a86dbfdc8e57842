//! The ways in which a process ends, and the findings about them.
#![cfg(unix)]

use super::*;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;

use crate::wire::example;

fn report(change: impl FnOnce(&mut Value)) -> Written {
    let mut json = example::measurement();
    change(&mut json);
    Written::parse(json.to_string().as_bytes())
}

/// True if there is a measurement, and the finding.
fn codes(end: End, written: Written) -> (bool, Option<Code>) {
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu };
    let ended = judge(&end, written, expected);
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
    unsound("cannot be read: it has 1.0 GiB, and the most is 512.0 MiB");
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
    let finding = crashed(ExitStatus::from_raw(11), "here");
    assert!(finding.message.contains("SIGSEGV (signal 11)"), "{}", finding.message);
    assert!(crashed(ExitStatus::from_raw(9), "here").hint.unwrap().contains("out-of-memory"));
}

#[test]
fn a_record_with_an_impossible_figure_is_not_measured_and_the_field_is_named() {
    let huge = report(|json| {
        json["record"]["spaces"]["host"]["metrics"]["retained"] = json!(u64::MAX);
    });
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu };
    let ended = judge(&exited(0), huge, expected);
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
