//! Whether the measurement of a test process can be trusted. A pass needs a complete record of this
//! test, from a process that then ended without an error. Everything else is a finding.

mod timeout;

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde::Deserialize;

use crate::device::Family;
use crate::input;
use crate::judgement::fault;
use crate::judgement::finding::{Code, Finding, HeadLine};
use crate::limits::Setting;
use crate::measurement::record;
use crate::measurement::stack::{Frame, Sources, program_calls};
use crate::os;
use crate::wire::exit;
use crate::wire::last_state::{LastState, STACK_SIGNAL, SignalStack};
use crate::wire::protocol::{self, Measurement, Refusal, VERSION};

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It ended by itself, or by a signal that its parent did not send.
    Exited(ExitStatus),
    /// Its parent killed it after this time.
    TimedOut(Duration),
}

/// The content of the file in which the parent expects a measurement.
#[derive(Debug, PartialEq)]
pub enum Written {
    /// There is no file, and no reason.
    Nothing,
    /// There is no file, for this reason.
    Refused(Refusal),
    /// A text that is not a measurement, for this reason.
    Unsound(String),
    /// A measurement.
    Complete(Box<Measurement>),
}

impl Written {
    /// Reads the file in which a measurement is expected. A test can write anything there.
    ///
    /// # Errors
    /// If the system cannot read the file.
    pub fn read(report: &Path) -> io::Result<Self> {
        let read = |path: &Path| input::read(path, input::REPORT);
        match read(report) {
            Err(error) if input::is_refusal(&error) => {
                Ok(Self::Unsound(format!("the record of the test cannot be read: {error}")))
            }
            result => Self::from_files(result, || read(&protocol::refusal(report))),
        }
    }

    /// Parses the measurement or, without one, the refusal. An existing file must be readable.
    pub fn from_files(
        report: io::Result<Vec<u8>>,
        refusal: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Self> {
        match report {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let refusal = refusal().ok();
                let refusal = refusal.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Ok(refusal.map_or(Self::Nothing, Self::Refused))
            }
            Err(error) => Err(error),
        }
    }

    fn parse(bytes: &[u8]) -> Self {
        /// The version alone, because a file of another version may have other fields.
        #[derive(Deserialize)]
        struct FileVersion {
            version: u32,
        }
        match serde_json::from_slice::<FileVersion>(bytes) {
            Ok(FileVersion { version }) if version != VERSION => Self::Unsound(format!(
                "the record of the test is of version {version}, cargo-memcheck reads version {VERSION}"
            )),
            Ok(_) => match serde_json::from_slice(bytes) {
                Ok(measurement) => Self::Complete(Box::new(measurement)),
                Err(error) => Self::Unsound(unsound(&error)),
            },
            Err(error) => Self::Unsound(unsound(&error)),
        }
    }
}

/// A field can be invalid in a text that is complete.
fn unsound(error: &serde_json::Error) -> String {
    let state = if error.is_eof() { "incomplete" } else { "not valid" };
    format!("the record of the test is {state}: {error}")
}

/// The test that the process was started for.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedTest<'a> {
    /// Its path in the binary.
    pub test: &'a str,
    /// The family of the device that it runs on.
    pub family: Family,
    /// Its time-out; `None` if it has none.
    pub timeout: Option<&'a Setting<Duration>>,
}

/// The end of a process, judged: what it measured, if that can be trusted, and a finding, if it did
/// not end as a process that has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The measurement.
    pub measurement: Option<Box<Measurement>>,
    /// The finding. There is one if there is no measurement.
    pub finding: Option<Finding>,
    /// The call stack of the thread that the finding is about, if the process did not end by itself
    /// and the thread could store it.
    pub stack: Option<LastStack>,
    /// The line of the test's file that called the iterations, if the process ended in one of them.
    pub iterates: Option<u32>,
}

impl From<Finding> for Ended {
    fn from(finding: Finding) -> Self {
        Self { measurement: None, finding: Some(finding), stack: None, iterates: None }
    }
}

/// The last call stack of a thread in a process that was ended. Its calls have no names yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastStack {
    /// The calls as addresses in the executable, innermost first.
    pub calls: Vec<u64>,
    /// The folders of source files in the executable's line tables.
    pub sources: Sources,
}

/// The callers that the message of a finding names, so that a terminal shows all of them.
const MOST_CALLERS: usize = 6;

impl Ended {
    /// Adds the place to the finding of a process that crashed or took too long: the innermost line
    /// of the program on that thread, and the lines that called it. If they are not known, the
    /// place is the line that calls the iterations, or that of `test`, its file and its line.
    #[must_use]
    pub fn located(
        mut self,
        frames: impl FnMut(u64) -> Vec<Frame>,
        test: Option<(&Path, u32)>,
    ) -> Self {
        let (stack, iterates) = (self.stack.take(), self.iterates.take());
        let Some(finding) = self.finding.as_mut().filter(|it| it.code.ended_process()) else {
            return self;
        };
        let calls = stack.map(|LastStack { calls, sources }| {
            let named = calls.into_iter().flat_map(frames);
            program_calls(named.map(|frame| sources.qualify(frame)))
        });
        let mut lines = calls.into_iter().flatten().filter_map(|frame| {
            Some(HeadLine { function: Some(frame.path()), file: frame.file?, line: frame.line? })
        });
        finding.keeps_at = lines.next();
        for HeadLine { file, line, function } in lines.take(MOST_CALLERS) {
            let function = function.unwrap_or_default();
            finding.message.push_str(&format!("\ncalled from {file}:{line} ({function})"));
        }
        if finding.keeps_at.is_none() {
            finding.keeps_at = test.map(|(file, line)| HeadLine {
                file: file.to_string_lossy().into_owned(),
                line: iterates.unwrap_or(line),
                function: None,
            });
            finding.iterates = iterates.is_some() && test.is_some();
        }
        self
    }
}

/// Judges the end of the process of a test, the file that it left, and the state that it kept while
/// it ran.
pub fn judge(
    end: &End,
    written: Written,
    last: Option<LastState>,
    expected: ExpectedTest<'_>,
) -> Ended {
    let written = match written {
        Written::Complete(measurement) => match doubt(&measurement, expected) {
            Some(why) => Written::Unsound(why),
            None => Written::Complete(measurement),
        },
        other => other,
    };
    let iterates = last.as_ref().and_then(LastState::iterates_at);
    let status = match end {
        End::Exited(status) => *status,
        End::TimedOut(after) => {
            let (how, measurement) = match written {
                Written::Complete(measurement) => {
                    (", its record complete".to_owned(), Some(measurement))
                }
                _ => {
                    let moment = last.as_ref().map(LastState::moment_text);
                    (moment.map(|moment| format!(", {moment}")).unwrap_or_default(), None)
                }
            };
            let finding = Some(timed_out(*after, expected.timeout, &how));
            let stack = last_stack(last, Some(STACK_SIGNAL));
            return Ended { measurement, finding, stack, iterates };
        }
    };
    let signal = os::signal(status);
    let died = signal.is_some();
    match written {
        Written::Nothing if status.success() => no_record(expected.test).into(),
        Written::Nothing if status.code() == Some(exit::NOT_MEASURED.into()) => {
            Finding::new(Code::NotMeasured, NO_REASON).into()
        }
        Written::Refused(refusal) if !died => refused(refusal).into(),
        Written::Unsound(why) if !died => Finding::new(Code::NotMeasured, why).into(),
        Written::Nothing | Written::Refused(_) | Written::Unsound(_) => {
            let finding = crashed(status, last.as_ref(), "before its record was complete");
            Ended { stack: last_stack(last, signal), iterates, ..finding.into() }
        }
        Written::Complete(mut measurement) => {
            let record = &mut measurement.record;
            if !matches!(record.outcome, record::Outcome::Returned) {
                record.ended_at = last.as_ref().map(LastState::moment_text);
            }
            let crashed = || crashed(status, None, "after its record was complete");
            let finding = (!status.success()).then(crashed);
            let stack = last_stack(last, signal);
            Ended { measurement: Some(measurement), finding, stack, iterates: None }
        }
    }
}

fn doubt(measurement: &Measurement, expected: ExpectedTest<'_>) -> Option<String> {
    let record = &measurement.record;
    if record.version != record::VERSION {
        return Some(format!("the record of the test is of version {}", record.version));
    }
    if record.test != expected.test {
        return Some(format!("the record of the test is that of another test, `{}`", record.test));
    }
    (record.family != expected.family)
        .then(|| format!("the record of the test is that of another device, {}", record.device))
}

fn timed_out(after: Duration, limit: Option<&Setting<Duration>>, how: &str) -> Finding {
    let after = humantime::format_duration(after);
    let limit = limit.map(|limit| format!(" ({})", timeout::origin(limit))).unwrap_or_default();
    Finding::new(Code::TimedOut, format!("the test was still running after {after}{limit}{how}")).hint(
        "look at the line for a loop or a wait that does not end; a test that needs more time gets \
             it with `timeout = \"…\"` in the attribute, or with `--timeout TIME`",
    )
}

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

const NO_REASON: &str = "the process could not measure; its output may contain the reason";

fn no_record(test: &str) -> Finding {
    Finding::new(
        Code::NotMeasured,
        format!("the process of `{test}` ended without a record, and with exit status 0"),
    )
    .hint(
        "does the body call std::process::exit, or does a custom harness not know the test? The \
         body is called more often than `iterations` says, unless `max_iterations` is as low",
    )
}

/// The stack that a thread stored at `signal`. The program can have handled another one before.
fn last_stack(last: Option<LastState>, signal: Option<i32>) -> Option<LastStack> {
    let LastState { stack, sources, .. } = last?;
    let SignalStack { signal: stored, calls } = stack?;
    (signal == Some(stored)).then_some(LastStack { calls, sources })
}

/// The moment is that of the process's last state or, without one, `otherwise`.
fn crashed(status: ExitStatus, last: Option<&LastState>, otherwise: &str) -> Finding {
    let when = last.map_or_else(|| otherwise.to_owned(), LastState::moment_text);
    let Some(number) = os::signal(status) else {
        let code = status.code().unwrap_or(-1);
        return Finding::new(
            Code::Crashed,
            format!("the process ended with exit status {code} {when}"),
        );
    };
    let mut message = format!("{} ended the process {when}", signal(status, number));
    // Memory is the most frequent reason for this signal only.
    if let Some(live) = last.and_then(LastState::live_text).filter(|_| number == KILL) {
        message.push_str(&format!("; {live}"));
    }
    let finding = Finding::new(Code::Crashed, message);
    match number {
        ABORT => finding.hint(
            "the end of the output mostly has the reason: a call of `abort`, a panic while another \
             panic unwinds, a stack overflow, or a failed check of a C library",
        ),
        BUS | SEGMENTATION => finding.hint(
            "look for a wrong pointer in `unsafe` code and in the arguments of C functions on the \
             lines above",
        ),
        KILL => {
            let why = match last.and_then(LastState::live) {
                Some(live) if live < LITTLE => SENT_BY_ANOTHER,
                _ => SENT_FOR_MEMORY,
            };
            let line = last.and_then(LastState::iterates_at).map_or("", |_| ITERATES_THERE);
            finding.hint(format!("{line}{why}"))
        }
        _ => finding,
    }
}

/// Fewer live bytes are no reason for the kernel to choose this process: it ends the one with the most
/// memory.
const LITTLE: u64 = 256 << 20;

/// The line of a killed process is not that of a call.
const ITERATES_THERE: &str =
    "the line calls the iterations, because a killed process leaves no call stack. ";

const SENT_FOR_MEMORY: &str = "memcheck did not send this signal. If `sudo dmesg | grep -i \"out of memory\"` prints a line, the \
     kernel's out-of-memory killer did: then let the test use less memory, or give the machine or the \
     container more";

const SENT_BY_ANOTHER: &str = "memcheck did not send this signal. The body can have sent it itself, or something outside, such as \
     a time limit of the CI job. If `sudo dmesg | grep -i \"out of memory\"` prints a line, the \
     kernel's out-of-memory killer did, because that iteration or another process took the memory";

/// True if the finding is about a process that SIGKILL ended.
pub fn is_killed(finding: &Finding) -> bool {
    finding.code == Code::Crashed && finding.message.starts_with(KILLED)
}

/// True if the system can have killed the process because it held much memory.
pub fn can_lack_memory(finding: &Finding) -> bool {
    let held_little = |hint: &String| hint.ends_with(SENT_BY_ANOTHER);
    is_killed(finding) && !finding.hint.as_ref().is_some_and(held_little)
}

/// The beginning of a message about SIGKILL.
const KILLED: &str = "SIGKILL (signal 9)";

/// The numbers of signals on Linux.
const ABORT: i32 = 6;
const BUS: i32 = 7;
const KILL: i32 = 9;
const SEGMENTATION: i32 = 11;

/// A signal by name and number. The standard library prints `signal: 11 (SIGSEGV)`.
fn signal(status: ExitStatus, number: i32) -> String {
    let text = status.to_string();
    let name = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    format!("{} (signal {number})", name.map_or("an unknown signal", |(name, _)| name))
}

#[cfg(test)]
mod tests;
