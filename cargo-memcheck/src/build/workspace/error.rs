//! The errors of loading a workspace, with hints.

use std::process::ExitStatus;

use memcheck_core::measurement::cargo_lock::RUNTIME;
use memcheck_core::wire::exit;

use super::OtherCandle;
use crate::system::error::CommandError;
use crate::system::process;

#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error("`cargo metadata` failed\n{0}")]
    Metadata(String),
    #[error("`cargo metadata` failed: {0}\n{1}")]
    Killed(ExitStatus, String),
    #[error("`cargo metadata`: {0}")]
    NoCargo(std::io::Error),
    #[error("package `{0}` is not a member of this workspace: {1}")]
    NoMember(String, String),
    #[error("no memory tests: none of the selected packages depends on {RUNTIME} ({0})")]
    NoRuntime(String),
    #[error("{}", .0.message())]
    OtherCandle(Box<OtherCandle>),
}

impl CommandError for WorkspaceError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Metadata(_) | Self::Killed(..) | Self::NoCargo(_) => exit::METADATA,
            Self::NoMember(..) => exit::USAGE,
            Self::NoRuntime(_) => exit::NO_TESTS,
            Self::OtherCandle(_) => exit::BUILD,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoRuntime(_) => Some(format!(
                "`cargo add --dev {RUNTIME} --git URL` with the URL of memcheck's repository (or \
                 `--path` to it in a clone), and write a test with #[mem_test]"
            )),
            Self::NoCargo(_) => Some(
                "`cargo memcheck archive` packs tests for machines without cargo: --archive-file"
                    .to_owned(),
            ),
            Self::OtherCandle(other) => Some(other.hint()),
            Self::Killed(status, _) => process::advice(*status),
            Self::Metadata(stderr) => refused_version(stderr),
            Self::NoMember(..) => None,
        }
    }
}

/// The step after cargo has refused the version of insta that memcheck-runtime needs, because a
/// package requires an older one. An older one in Cargo.lock is updated by cargo.
fn refused_version(stderr: &str) -> Option<String> {
    let is_refused = stderr.contains("failed to select a version for `insta`");
    (is_refused && stderr.contains(RUNTIME)).then(|| {
        format!(
            "{RUNTIME} needs no insta without its feature `insta`: `default-features = false, \
             features = [\"candle\", \"global-allocator\"]`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::refused_version;

    #[test]
    fn an_insta_that_cargo_refuses_has_the_next_step() {
        let refused = "error: failed to select a version for `insta`.\n    ... required by package \
                       `memcheck-runtime v0.1.0 (/m/memcheck-runtime)`\n\n  previously selected \
                       package `insta v1.39.0`\n    ... which satisfies dependency `insta = \
                       \"=1.39.0\"` of package `app v0.1.0`";
        assert!(refused_version(refused).unwrap().contains("default-features = false"));
        // Another conflict than that of memcheck.
        assert_eq!(refused_version(&refused.replace("memcheck-runtime", "other")), None);
        assert_eq!(refused_version(&refused.replace("`insta`", "`serde`")), None);
    }
}
