//! Whether the command may write to the source tree.

use memcheck_core::request::variables;
use serde::{Deserialize, Serialize};

use super::OptionsError;
use crate::invocation::cli::CiFlags;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Pending snapshots are written next to the tests.
    Local,
    /// The command must not write to the source tree.
    Ci,
}

impl Mode {
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Local => "--no-ci",
            Self::Ci => "--ci",
        }
    }

    /// For a command that ended before it had options.
    pub(crate) fn is_ci(flags: &CiFlags, get: &dyn Fn(&str) -> Option<String>) -> bool {
        matches!(Self::read(flags, get, is_ci::cached()), Ok(Self::Ci))
    }

    /// If flags and variable are unset, the detection of CI decides.
    pub(super) fn read(
        CiFlags { ci, no_ci }: &CiFlags,
        get: &dyn Fn(&str) -> Option<String>,
        in_ci: bool,
    ) -> Result<Self, OptionsError> {
        let on = match (ci, no_ci) {
            (true, _) => true,
            (_, true) => false,
            _ => variables::ci(get)?.unwrap_or(in_ci),
        };
        Ok(if on { Self::Ci } else { Self::Local })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_is_detected_and_flags_override_the_detection() {
        let none = |_: &str| None;
        let read = |ci, no_ci, get: &dyn Fn(&str) -> Option<String>, in_ci| {
            Mode::read(&CiFlags { ci, no_ci }, get, in_ci)
        };
        let variable = |text: &'static str| move |_: &str| Some(text.to_owned());
        assert_eq!(read(false, false, &none, true).unwrap(), Mode::Ci);
        assert_eq!(read(false, true, &variable("true"), true).unwrap(), Mode::Local);
        assert_eq!(read(true, false, &variable("false"), false).unwrap(), Mode::Ci);
        assert_eq!(read(false, false, &variable("true"), false).unwrap(), Mode::Ci);
        assert!(read(false, false, &variable("maybe"), false).is_err());
    }
}
