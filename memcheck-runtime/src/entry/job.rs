//! The job that this process was started for. It is read before `main` and then removed from the
//! environment, because a process that the test starts must not write the test's report and must
//! not be tied to the harness. A child that the test forks has a copy of the job, and ends when it
//! would report something.

use std::sync::OnceLock;

use memcheck_core::request::variables;
use memcheck_core::wire::protocol::{self, Job};

use crate::{forked, os};

/// The reason why this process was started.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Not for a memory test: started by a harness, a person or another program.
    None,
    /// By memcheck, for one test.
    Job(Box<Job>),
    /// By another version of memcheck.
    Foreign,
}

static PURPOSE: OnceLock<Purpose> = OnceLock::new();

/// Reads the job and removes it from the environment. Must be called before `main`.
pub(super) fn take() -> &'static Purpose {
    let purpose = purpose();
    // SAFETY: this runs before `main`, so that the program has no other thread that could read the
    // environment at the same time.
    unsafe { std::env::remove_var(variables::JOB) };
    purpose
}

/// The purpose of this process, read at the first call.
pub(super) fn purpose() -> &'static Purpose {
    PURPOSE.get_or_init(|| std::env::var(variables::JOB).map_or(Purpose::None, |text| parse(&text)))
}

/// The exit code of a forked child that has returned from the body. It is not a verdict, and none
/// of [`memcheck_core::wire::exit`].
const FORKED: i32 = 3;

/// Ends this process if it is a forked child, because only the process that was started for the job
/// may write a measurement or a refusal. A body returns to this
/// function, and the functions that write a report or a refusal call it first.
pub(super) fn end_if_forked() {
    if !forked::is_child() {
        return;
    }
    let test = match PURPOSE.get() {
        Some(Purpose::Job(job)) => format!("`{}`", job.test),
        _ => "the program".to_owned(),
    };
    eprintln!(
        "memcheck: {test} forked process {}, which ends here with exit code {FORKED} and without a \
         record, because only the process that was started is measured: end a forked child with \
         `libc::_exit` or exec",
        std::process::id()
    );
    // Handlers of an exit must not run, because they belong to the process that was forked.
    os::exit_at_once(FORKED)
}

fn parse(text: &str) -> Purpose {
    match serde_json::from_str::<Job>(text) {
        Ok(job) if job.version == protocol::VERSION => Purpose::Job(Box::new(job)),
        // A job of another version can have other fields, so that an error means the same.
        Ok(_) | Err(_) => Purpose::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::device::Family;
    use memcheck_core::limits::Limits;

    use super::*;

    #[test]
    fn a_job_of_another_version_is_foreign() {
        let job = Job {
            version: protocol::VERSION,
            test: "a".to_owned(),
            report: "report.json".into(),
            progress: None,
            device: "cpu".parse().unwrap(),
            limits: Limits::resolve(Family::Cpu, []),
            workspace: "/".into(),
            compiled_in: None,
            candle: "0".to_owned(),
            features: None,
            follow: Default::default(),
            reach: Default::default(),
            case: Default::default(),
            live: false,
            own_subscriber: false,
        };
        let text = |job: &Job| serde_json::to_string(job).unwrap();
        assert!(matches!(parse(&text(&job)), Purpose::Job(read) if *read == job));
        let newer = Job { version: protocol::VERSION + 1, ..job };
        assert!(matches!(parse(&text(&newer)), Purpose::Foreign));
        assert!(matches!(parse("{}"), Purpose::Foreign));
    }
}
