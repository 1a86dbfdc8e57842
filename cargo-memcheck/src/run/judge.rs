//! Decides whether the report of a test process can be trusted.
//!
//! The test process reaches its own verdict. A pass also needs a complete record of this very test, from a process that then ended as a
//! passing test does. In all other cases the command adds a finding.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use anyhow::Context;
use memcheck_core::exit;
use memcheck_core::fault;
use memcheck_core::finding::{Code, Finding};
use memcheck_core::protocol::{self, Refusal, Report, Status, VERSION, Verdict};
use memcheck_core::record;
use memcheck_core::verdict::conclude;
use serde::Deserialize;

use crate::options::Levels;
use crate::process::{End, Ended};
use crate::task::{Across, Outcome, Task};

/// The contents of the report's file.
#[derive(Debug, PartialEq)]
pub(super) enum Written {
    /// The file does not exist.
    Nothing,
    /// The file does not exist, and the process has stated the reason.
    Refused(Refusal),
    /// The file is not a valid report, for this reason.
    Unsound(String),
    /// A report.
    Report(Box<Report>),
}

impl Written {
    /// Reads the file of a report.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::from_bytes(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = std::fs::read(protocol::refusal(path)).ok();
                let refusal = why.and_then(|why| serde_json::from_slice(&why).ok());
                Ok(refusal.map_or(Self::Nothing, Self::Refused))
            }
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        /// The version must be read first, because the report of another version can have other fields.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        match serde_json::from_slice::<Versioned>(bytes) {
            Ok(Versioned { version }) if version != VERSION => Self::Unsound(format!(
                "its record is of version {version}, cargo-memcheck reads version {VERSION}"
            )),
            Ok(_) => match serde_json::from_slice(bytes) {
                Ok(report) => Self::Report(Box::new(report)),
                Err(error) => Self::Unsound(format!("its record is incomplete: {error}")),
            },
            Err(error) => Self::Unsound(format!("its record is incomplete: {error}")),
        }
    }
}

/// A verdict, and the report if it can be trusted.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) report: Option<Report>,
}

impl Judged {
    /// Makes the verdict from a finding of the command.
    pub(super) fn own(finding: Finding, levels: &Levels) -> Self {
        Self { verdict: conclude(vec![finding], |code| levels.of(code)), report: None }
    }

    /// Adds the output and the duration of the process.
    pub(super) fn outcome(self, ended: Ended) -> Outcome {
        let Self { verdict, report } = self;
        let (output, duration) = (ended.output, ended.duration);
        Outcome { verdict, report, output, duration, gpu: None, across: Across::default() }
    }
}

/// Judges the end of the process of `task`, and the report that it wrote.
pub(super) fn judge(end: &End, written: Written, task: &Task, levels: &Levels) -> Judged {
    let own = |finding| Judged::own(finding, levels);
    let beside = |report: Box<Report>, finding| {
        let findings = [vec![finding], report.verdict.findings.clone()].concat();
        let verdict = conclude(findings, |code| levels.of(code));
        Judged { verdict, report: Some(*report) }
    };
    let (status, written) = match (end, written) {
        (End::TimedOut(after), Written::Report(report)) if doubt(&report, task).is_none() => {
            return beside(report, timed_out(*after, ", its record complete"));
        }
        (End::TimedOut(after), _) => return own(timed_out(*after, "")),
        (End::Exited(status), written) => (*status, written),
    };
    let died = status.signal().is_some();
    match written {
        Written::Nothing if status.success() => own(no_record(task)),
        Written::Nothing if status.code() == Some(exit::NOT_MEASURED.into()) => {
            own(Finding::new(Code::NotMeasured, UNSAID))
        }
        Written::Refused(refusal) if !died => own(refused(refusal)),
        Written::Unsound(why) if !died => own(Finding::new(Code::NotMeasured, why)),
        Written::Nothing | Written::Refused(_) | Written::Unsound(_) => {
            own(crashed(status, "before its record was complete"))
        }
        Written::Report(report) => match doubt(&report, task) {
            Some(why) => own(Finding::new(Code::NotMeasured, why)),
            // Only a pass restricts the exit status: a test that needs review may pass or fail in its harness, and a failed one should fail
            // there.
            None if died || (!status.success() && report.verdict.status == Status::Passed) => {
                beside(report, crashed(status, "after its record was complete"))
            }
            None => Judged { verdict: report.verdict.clone(), report: Some(*report) },
        },
    }
}

/// Returns the reason why a complete report does not apply to this test.
fn doubt(report: &Report, task: &Task) -> Option<String> {
    let Report { record, verdict, .. } = report;
    if record.version != record::VERSION {
        return Some(format!("its record is of version {}", record.version));
    }
    if record.test != task.entry.name {
        return Some(format!("its record is that of another test, `{}`", record.test));
    }
    if record.family != task.entry.family_on(task.leg.family()) {
        return Some(format!("its record is that of another device, {}", record.device));
    }
    let armed = |space| record.spaces.get(space).is_some_and(|measured| measured.armed);
    let unarmed = record.judged.is_empty() || !record.judged.iter().all(armed);
    let passing = matches!(verdict.status, Status::Passed | Status::NeedsReview);
    (passing && unarmed).then(|| "it passed without an armed instrument".to_owned())
}

fn timed_out(after: std::time::Duration, how: &str) -> Finding {
    let after = humantime::format_duration(after);
    Finding::new(Code::TimedOut, format!("it was still running after {after}{how}"))
        .hint("`timeout = \"…\"` in the attribute, or --timeout")
}

/// Makes a finding from the reason that a process has stated. A missing device has a code of its own because the measurement has not begun.
fn refused(refusal: Refusal) -> Finding {
    let Refusal { why, device, hint } = refusal;
    if !device {
        return Finding { hint, ..Finding::new(Code::NotMeasured, why) };
    }
    match fault::of(&why) {
        Some((fault, error)) => {
            Finding::new(Code::NoDevice, format!("{} ({error}); {why}", fault.title))
                .hint(fault.remedy)
        }
        None => Finding::new(Code::NoDevice, why)
            .hint("`--device sim` needs no GPU, no driver and no CUDA toolkit"),
    }
}

const UNSAID: &str = "the process could not measure; what it printed may say why";

fn no_record(task: &Task) -> Finding {
    Finding::new(
        Code::NotMeasured,
        format!(
            "the process of `{}` ended without a record, and with exit status 0",
            task.entry.name
        ),
    )
    .hint("does the body call std::process::exit, or does a harness of its own not know the test?")
}

fn crashed(status: ExitStatus, when: &str) -> Finding {
    let Some(number) = status.signal() else {
        let code = status.code().unwrap_or(-1);
        return Finding::new(Code::Crashed, format!("it ended with exit status {code} {when}"));
    };
    let name = nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| "an unknown signal".to_owned(), |signal| signal.as_str().to_owned());
    let finding = Finding::new(Code::Crashed, format!("{name} (signal {number}) ended it {when}"));
    match number {
        9 => finding.hint("nobody here sent it: the kernel's out-of-memory killer? see `dmesg`"),
        6 | 11 => finding.hint("its output may end with the reason; --no-capture shows all of it"),
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Mode;
    use crate::task::example::{self, task};
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn report(change: impl FnOnce(&mut serde_json::Value)) -> Written {
        let mut json = example::report();
        change(&mut json);
        Written::from_bytes(json.to_string().as_bytes())
    }

    fn codes(end: End, written: Written) -> (Status, Vec<Code>) {
        let levels = Levels::new(BTreeMap::new(), Mode::Local);
        let judged = judge(&end, written, &task(), &levels);
        (judged.verdict.status, judged.verdict.findings.iter().map(|f| f.code).collect())
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
        assert_eq!(codes(exited(0), report(|_| {})), (Status::Passed, vec![]));
        let failed = report(|json| {
            json["verdict"] = serde_json::json!({"status": "failed", "findings": [{"code": "leak", "message": "m"}]});
        });
        assert_eq!(codes(exited(101), failed), (Status::Failed, vec![Code::Leak]));
    }

    #[test]
    fn no_record_is_never_a_pass() {
        assert_eq!(
            codes(exited(0), Written::Nothing),
            (Status::NotMeasured, vec![Code::NotMeasured])
        );
        assert_eq!(
            codes(exited(104), Written::Nothing),
            (Status::NotMeasured, vec![Code::NotMeasured])
        );
        assert_eq!(
            codes(exited(104), refusal("no memory", false)),
            (Status::NotMeasured, vec![Code::NotMeasured])
        );
        assert_eq!(
            codes(exited(104), refusal("no such device", true)),
            (Status::NotMeasured, vec![Code::NoDevice])
        );
        assert_eq!(
            codes(signal(6), refusal("no such device", true)),
            (Status::Failed, vec![Code::Crashed])
        );
        assert_eq!(codes(exited(101), Written::Nothing), (Status::Failed, vec![Code::Crashed]));
        assert_eq!(codes(signal(9), Written::Nothing), (Status::Failed, vec![Code::Crashed]));
        let late = End::TimedOut(Duration::from_secs(1));
        assert_eq!(codes(late, report(|_| {})), (Status::Failed, vec![Code::TimedOut]));
    }

    #[test]
    fn a_record_that_is_cut_off_or_of_another_test_or_version_is_not_measured() {
        let not_measured = (Status::NotMeasured, vec![Code::NotMeasured]);
        assert_eq!(codes(exited(0), Written::from_bytes(b"{\"version\": 1, \"rec")), not_measured);
        assert_eq!(codes(exited(0), report(|json| json["version"] = 9.into())), not_measured);
        assert_eq!(
            codes(exited(0), report(|json| json["record"]["version"] = 9.into())),
            not_measured
        );
        assert_eq!(
            codes(exited(0), report(|json| json["record"]["test"] = "c".into())),
            not_measured
        );
        assert_eq!(
            codes(exited(0), report(|json| json["record"]["family"] = "cuda".into())),
            not_measured
        );
        let unarmed = report(|json| json["record"]["spaces"]["host"]["armed"] = false.into());
        assert_eq!(codes(exited(0), unarmed), not_measured);
    }

    #[test]
    fn a_process_that_dies_after_a_good_record_has_crashed() {
        assert_eq!(codes(exited(101), report(|_| {})), (Status::Failed, vec![Code::Crashed]));
        assert_eq!(codes(signal(11), report(|_| {})), (Status::Failed, vec![Code::Crashed]));
    }

    #[test]
    fn why_there_is_no_record_lies_beside_where_it_would_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        assert_eq!(Written::read(&path).unwrap(), Written::Nothing);
        let text = br#"{"why": "no such device", "device": true}"#;
        std::fs::write(protocol::refusal(&path), text).unwrap();
        assert_eq!(Written::read(&path).unwrap(), refusal("no such device", true));
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(Written::read(&path).unwrap(), Written::Unsound(_)));
    }

    #[test]
    fn a_device_that_is_not_there_is_said_to_be_so_with_what_to_do() {
        let of = |why: &str| refused(Refusal { why: why.to_owned(), device: true, hint: None });
        let known = of("the device `cuda` cannot be opened: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
        let said = "two versions (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); the device `cuda` cannot";
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
}
