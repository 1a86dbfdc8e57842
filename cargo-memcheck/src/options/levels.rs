//! What is done about each bookkeeping finding, from all that say so.

use std::collections::BTreeMap;

use memcheck_core::finding::{Code, CodeError, Level};

use super::{Mode, OptionsError};
use crate::cli::LevelFlags;

/// Levels: what was said, and what holds where nothing was.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    said: BTreeMap<Code, Level>,
    mode: Mode,
}

impl Levels {
    /// Puts together what was said and the mode that decides the rest.
    pub(crate) fn new(said: BTreeMap<Code, Level>, mode: Mode) -> Self {
        Self { said, mode }
    }

    /// What is done about `code`.
    pub(crate) fn of(&self, code: Code) -> Level {
        self.said.get(&code).copied().unwrap_or(code.default_level(self.mode == Mode::Ci))
    }

    /// What was said, for the test process.
    pub(crate) fn said(&self) -> &BTreeMap<Code, Level> {
        &self.said
    }
}

/// The levels that `-D`, `-W` and `-A` say; the last word on a code counts.
pub(super) fn from_flags(flags: &LevelFlags) -> Result<BTreeMap<Code, Level>, OptionsError> {
    let mut levels = BTreeMap::new();
    for (code, level) in &flags.0 {
        let code: Code = code.parse().map_err(|error: CodeError| error)?;
        code.check_level(*level)?;
        levels.insert(code, *level);
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_denies_what_nobody_spoke_of_and_respects_what_somebody_did() {
        let said = BTreeMap::from([(Code::MissingBaseline, Level::Warn)]);
        let levels = Levels::new(said, Mode::Ci);
        assert_eq!(levels.of(Code::MissingBaseline), Level::Warn);
        assert_eq!(levels.of(Code::NotBuilt), Level::Deny);
        assert_eq!(Levels::new(BTreeMap::new(), Mode::Local).of(Code::NotBuilt), Level::Warn);
    }
}
