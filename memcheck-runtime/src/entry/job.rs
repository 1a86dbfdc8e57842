//! What this process was started for. Read before `main` and then taken out of
//! the environment: a process that the test starts itself is not the test's own,
//! and must neither answer for it nor be tied to the harness.

use std::sync::OnceLock;

use memcheck_core::protocol::{self, Job};
use memcheck_core::variables;

/// Who started this process.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Anybody: a harness, a person, another program.
    None,
    /// Memcheck, for one test.
    Job(Box<Job>),
    /// Memcheck in another version.
    Foreign,
}

static PURPOSE: OnceLock<Purpose> = OnceLock::new();

/// Reads the job. Before `main`.
pub(super) fn take() -> &'static Purpose {
    let purpose = purpose();
    // SAFETY: this runs before `main`, when no thread of the program is there
    // that could read the environment meanwhile.
    unsafe { std::env::remove_var(variables::JOB) };
    purpose
}

/// What was read.
pub(super) fn purpose() -> &'static Purpose {
    PURPOSE.get_or_init(|| std::env::var(variables::JOB).map_or(Purpose::None, |text| read(&text)))
}

fn read(text: &str) -> Purpose {
    match serde_json::from_str::<Job>(text) {
        Ok(job) if job.version == protocol::VERSION => Purpose::Job(Box::new(job)),
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
            levels: Default::default(),
            ci: false,
            workspace: "/".into(),
            compiled_in: None,
            candle: "0".to_owned(),
            follow: Default::default(),
            reach: Default::default(),
            expected: None,
            case: Default::default(),
            parent: None,
            alone: false,
            own_subscriber: false,
        };
        let text = |job: &Job| serde_json::to_string(job).unwrap();
        assert!(matches!(read(&text(&job)), Purpose::Job(read) if *read == job));
        let newer = Job { version: protocol::VERSION + 1, ..job };
        assert!(matches!(read(&text(&newer)), Purpose::Foreign));
        assert!(matches!(read("{}"), Purpose::Foreign));
    }
}
