//! A second start of a process whose body installs a `tracing` subscriber.
//!
//! A run with attribution installs memcheck's subscriber before the body, so that all spans have
//! scopes. A process can have only one global subscriber, so the body fails if it installs another.
//! The process then starts again without memcheck's subscriber.
//!
//! A profiled program gets memcheck's subscriber late instead (`scope::Install`). It therefore has
//! no scopes for spans that were created before its first tensor.

use memcheck_core::measurement::record::Outcome;
use memcheck_core::request::variables;
use memcheck_core::wire::protocol::Job;

use crate::{os, progress};

/// The error of `tracing` if a global subscriber is already installed.
const REFUSED: &str = "a global default trace dispatcher has already been set";

/// The note in a report without scopes.
pub(super) const NO_SCOPES: &str = "the report has no scopes, because the test installs its own \
                                    `tracing` subscriber: add the layer \
                                    `memcheck_runtime::Scopes` to it";

/// True if the body has failed because memcheck's subscriber was installed before its own.
pub(super) fn is_needed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { error: text } | Outcome::Panicked { message: text } => {
            text.contains(REFUSED)
        }
        Outcome::Returned => false,
    }
}

/// Replaces this process by one that does the same job without memcheck's subscriber. The new
/// process has the same id, group and output. Returns only if the system refuses.
pub(super) fn exec_again(job: &Job) -> std::io::Error {
    eprintln!("memcheck: the test installs its own `tracing` subscriber, so it is run again");
    // The descriptor of the listener can be one of the body's files now.
    let progress = job.progress.clone().filter(|path| progress::is_listener(path));
    let job = Job { own_subscriber: true, progress, ..job.clone() };
    match serde_json::to_string(&job) {
        Ok(job) => {
            let mut command = os::own_executable();
            // `own_executable` has set argument 0.
            command.args(std::env::args_os().skip(1)).env(variables::JOB, job);
            os::exec(command)
        }
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::NoSubscriber;

    use super::*;

    #[test]
    fn the_error_of_a_second_subscriber_is_recognized() {
        let install = || tracing::subscriber::set_global_default(NoSubscriber::default());
        let _ = install();
        let refused = install().unwrap_err();
        assert!(is_needed(&Outcome::Panicked { message: format!("no subscriber: {refused:?}") }));
        assert!(is_needed(&Outcome::Failed { error: refused.to_string() }));
        assert!(!is_needed(&Outcome::Panicked { message: "another".to_owned() }));
        assert!(!is_needed(&Outcome::Returned));
    }
}
