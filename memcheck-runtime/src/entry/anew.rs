//! A run with attribution of a body that installs a `tracing` subscriber of its
//! own. Ours is there before it, for the scopes of every span, and a process has
//! one: the body fails. Then the process begins anew, without ours.
//!
//! A program that is profiled gets ours late instead (`scope::Install`), and so
//! has no scopes for spans that were made before its first tensor.

use std::os::unix::process::CommandExt;
use std::process::Command;

use memcheck_core::protocol::Job;
use memcheck_core::record::Outcome;
use memcheck_core::variables;

/// What `tracing` says where a subscriber is there already.
const REFUSED: &str = "a global default trace dispatcher has already been set";

/// What a report without scopes says.
pub(super) const NO_SCOPES: &str = "the test installs a `tracing` subscriber of its own: with the \
                                    layer `memcheck_runtime::Scopes` in it there are scopes";

/// Whether the body has failed because our subscriber was there before its own.
pub(super) fn is_wanted(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { error: text } | Outcome::Panicked { message: text } => {
            text.contains(REFUSED)
        }
        Outcome::Returned => false,
    }
}

/// Replaces this process by one that does the same job without our subscriber:
/// of the same id, in the same group, with the same output. Returns where the
/// system refuses.
pub(super) fn begin(job: &Job) -> std::io::Error {
    eprintln!("memcheck: the test installs a `tracing` subscriber of its own: it is run anew");
    let job = Job { own_subscriber: true, ..job.clone() };
    let (Ok(executable), Ok(job)) = (std::env::current_exe(), serde_json::to_string(&job)) else {
        return std::io::ErrorKind::NotFound.into();
    };
    Command::new(executable).args(std::env::args_os().skip(1)).env(variables::JOB, job).exec()
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::NoSubscriber;

    use super::*;

    #[test]
    fn what_tracing_says_of_a_second_subscriber_is_known() {
        let install = || tracing::subscriber::set_global_default(NoSubscriber::default());
        let _ = install();
        let refused = install().unwrap_err();
        assert!(is_wanted(&Outcome::Panicked { message: format!("no subscriber: {refused:?}") }));
        assert!(is_wanted(&Outcome::Failed { error: refused.to_string() }));
        assert!(!is_wanted(&Outcome::Panicked { message: "another".to_owned() }));
        assert!(!is_wanted(&Outcome::Returned));
    }
}
