//! `cargo memcheck bisect TEST`: finds the commit, or the update of a dependency, that changed a
//! figure of a test. Figures are exact, so that one run decides about each step.

mod commits;
mod search;
mod step;
mod updates;

use memcheck_core::wire::exit;

use crate::build::workspace::Places;
use crate::invocation::cli::BisectArgs;
use crate::invocation::values::{Format, Verbosity};
use crate::presentation::presenters::comparison::bisect as presenter;
use crate::presentation::presenters::style;
use crate::system::error::{CommandError, Failure};
use crate::system::printing::eprint_line;
use crate::system::process::{INTERRUPTED, Interrupt};

pub(super) use step::step;

#[derive(Debug, thiserror::Error)]
enum BisectError {
    #[error("no commit is between {0} and {1}")]
    NoCommits(String, String),
    #[error("{0} and {1} have the same dependencies in Cargo.lock")]
    NoUpdates(String, String),
    #[error("{0} has no Cargo.lock")]
    NoLock(String),
    #[error("the Cargo.lock of {0} cannot be read: {1}")]
    Lock(String, String),
    #[error("{0} is good: no figure that counts differs from {1}")]
    NoChange(String, String),
    #[error("{0} cannot be measured: {1}")]
    Unmeasured(String, String),
    #[error("the test is not measured at {0}, so that its figures are not known")]
    NotMeasured(String),
    #[error("cargo cannot resolve the sources of {0} with the dependencies of {1}")]
    Unresolved(String, String),
    #[error("`git bisect` ended without a commit: exit code {0}")]
    Git(u8),
}

impl CommandError for BisectError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoCommits(..) | Self::NoUpdates(..) | Self::NoLock(_) | Self::Lock(..) => {
                exit::USAGE
            }
            Self::NoChange(..) => exit::USAGE,
            Self::Unmeasured(..) | Self::NotMeasured(_) => exit::NOT_MEASURED,
            Self::Unresolved(..) => exit::METADATA,
            Self::Git(_) => exit::INTERNAL,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoChange(..) => {
                "`--change` and `--figure` choose the change that counts, and `--tolerance 0%` \
                 counts every byte; without --lock the commits are searched, and with it the \
                 dependencies"
            }
            Self::NoCommits(..) => "`--good` must be an ancestor of `--bad`",
            Self::NoUpdates(..) => "without --lock the commits are searched",
            Self::NotMeasured(_) => "choose a revision at which the test passes",
            Self::Unresolved(..) => {
                "choose a newer revision for `--good`, at which the manifests are the same"
            }
            Self::Git(_) => "the lines above have git's reason",
            Self::NoLock(_) | Self::Lock(..) | Self::Unmeasured(..) => return None,
        };
        Some(hint.to_owned())
    }
}

pub(super) fn bisect(args: &BisectArgs) -> Result<u8, Failure> {
    let places = Places::find(&args.workspace.cargo())?;
    let bisection =
        if args.lock { updates::find(args, &places)? } else { commits::find(args, &places)? };
    // After a signal no result is complete.
    let Some(bisection) = bisection.filter(|_| !Interrupt::has_come()) else {
        return Ok(INTERRUPTED);
    };
    match args.output.form.message_format {
        Format::Json => presenter::print_json(&bisection),
        Format::Human => presenter::print(&bisection),
    }
    Ok(exit::OK)
}

/// Prints the begin of a part of the bisection.
fn announce(args: &BisectArgs, text: &str) {
    if args.output.verbosity() > Verbosity::Quiet {
        eprint_line!("{}", style::strong(text));
    }
}

/// The revision that is bad.
fn bad(args: &BisectArgs) -> &str {
    args.bad.as_deref().unwrap_or("HEAD")
}
