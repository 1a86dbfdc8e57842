//! Runs a test process through a launcher, and interprets the end of the launcher. A record of the
//! process decides. Without one, a test that was seen to begin has died, and any other test has not
//! run: then the launcher's own exit code counts.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::runs::process_end::{End, Written};
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Progress;

use super::{EndedProcess, Runner};
use crate::discovery::task::Task;
use crate::system::launcher::shown;
use crate::system::process::{self, ProcessResult, Watch};

/// A shell and most launchers add this to the number of the signal that ended a process.
const SIGNALED: i32 = 128;

/// If the process left its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitCode {
    Silent,
    OfProgram,
}

impl Runner<'_> {
    /// `None` if the launcher was interrupted.
    pub(super) fn launch(
        &self,
        task: &Task,
        command: Command,
        watch: Watch<'_>,
        (report, exit_code): (&Path, ExitCode),
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<EndedProcess>> {
        let line = shown(&command);
        let ended = match process::run(command, watch, on_progress) {
            Ok(ended) => ended,
            Err(error) => return Ok(Some(EndedProcess::unstarted(not_started(&error, &line)))),
        };
        let ProcessResult { end: Some(end), began, .. } = ended else { return Ok(None) };
        let written = Self::written(report)?;
        let end = match (exit_code, &written) {
            (ExitCode::OfProgram, Written::Complete(_)) => Ok(end),
            _ => end_of_test(end, &written, began, &line),
        };
        let judged = match end {
            Ok(end) => Self::judge(&end, written, report, task),
            Err(finding) => (*finding).into(),
        };
        let (output, duration) = (ended.output, ended.duration);
        Ok(Some(EndedProcess { ended: judged, output, duration }))
    }
}

fn end_of_test(end: End, written: &Written, began: bool, line: &str) -> Result<End, Box<Finding>> {
    let status = match end {
        End::Exited(status) => status,
        // The test ended in time. Only the launcher took longer, to clean up.
        End::TimedOut(_) if matches!(written, Written::Complete(_)) => return Ok(success()),
        End::TimedOut(_) => return Ok(end),
    };
    Ok(match written {
        Written::Complete(_) if status.code().is_some() => success(),
        Written::Complete(_) | Written::Refused(_) | Written::Unsound(_) => end,
        Written::Nothing if !began => return Err(Box::new(not_begun(status, line))),
        Written::Nothing => match status.code() {
            // Linux has the signals 1 to 64.
            Some(code @ 129..=192) => End::Exited(ExitStatus::from_raw(code - SIGNALED)),
            _ => end,
        },
    })
}

fn success() -> End {
    End::Exited(ExitStatus::from_raw(exit::OK.into()))
}

fn not_begun(status: ExitStatus, line: &str) -> Finding {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit status {code}"),
        (None, signal) => format!("by signal {}", signal.unwrap_or_default()),
    };
    let why = if status.success() {
        "does it pass on the environment (MEMCHECK_JOB), and does it see the same target \
         directory? "
    } else {
        ""
    };
    let message = format!("the launcher ended {how} before the test began");
    Finding::new(Code::NotMeasured, message).hint(format!("{why}its command line: {line}"))
}

fn not_started(error: &std::io::Error, line: &str) -> Finding {
    Finding::new(Code::NotMeasured, format!("the launcher could not be started: {error}"))
        .hint(format!("check --runner; its command line: {line}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::discovery::task::example;

    fn exited(raw: i32) -> End {
        End::Exited(ExitStatus::from_raw(raw))
    }

    fn test_of(end: End, written: &Written, began: bool) -> Result<End, Box<Finding>> {
        end_of_test(end, written, began, "srun --x /mem a::b")
    }

    fn report() -> Written {
        Written::Complete(Box::new(serde_json::from_value(example::report()).unwrap()))
    }

    #[test]
    fn a_record_takes_precedence_over_the_exit_code_of_the_launcher() {
        for code in [0, 1, 101, 137] {
            assert_eq!(test_of(exited(code << 8), &report(), true), Ok(exited(0)));
        }
        // A launcher that replaces itself with the test ends by the test's signal.
        assert_eq!(test_of(exited(11), &report(), true), Ok(exited(11)));
        let late = End::TimedOut(Duration::from_secs(1));
        assert_eq!(test_of(late, &report(), true), Ok(exited(0)), "it clears up");
    }

    #[test]
    fn a_test_that_never_began_was_not_measured() {
        for (end, expected) in [
            (exited(3 << 8), "ended with exit status 3"),
            (exited(139 << 8), "ended with exit status 139"),
            (exited(9), "ended by signal 9"),
            (exited(0), "ended with exit status 0"),
        ] {
            let finding = test_of(end, &Written::Nothing, false).unwrap_err();
            assert_eq!(finding.code, Code::NotMeasured);
            assert!(finding.message.contains(expected), "{}", finding.message);
            let hint = finding.hint.unwrap();
            assert!(hint.contains("srun --x /mem a::b"), "{hint}");
            assert_eq!(hint.contains("MEMCHECK_JOB"), end == exited(0), "{hint}");
        }
    }

    #[test]
    fn a_test_without_a_record_has_the_exit_status_of_its_launcher() {
        assert_eq!(test_of(exited(139 << 8), &Written::Nothing, true), Ok(exited(11)));
        assert_eq!(test_of(exited(3 << 8), &Written::Nothing, true), Ok(exited(3 << 8)));
        assert_eq!(test_of(exited(0), &Written::Nothing, true), Ok(exited(0)));
        let late = End::TimedOut(Duration::from_secs(1));
        assert_eq!(test_of(late, &Written::Nothing, false), Ok(late));
    }
}
