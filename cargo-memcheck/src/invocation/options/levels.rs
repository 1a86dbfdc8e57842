//! The level of each bookkeeping finding, combined from flags, configuration and mode.

use std::collections::BTreeMap;

use memcheck_core::judgement::finding::{Code, Level};

use super::Mode;

/// The explicit levels of findings, and the mode that decides the default level of all others.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    said: BTreeMap<Code, Level>,
    mode: Mode,
}

impl Levels {
    /// Combines the explicit levels with the mode that decides the default levels.
    pub(crate) fn new(said: BTreeMap<Code, Level>, mode: Mode) -> Self {
        Self { said, mode }
    }

    pub(crate) fn of(&self, code: Code) -> Level {
        self.said.get(&code).copied().unwrap_or(code.default_level(self.mode == Mode::Ci))
    }

    /// Returns the explicit levels, which the test process needs.
    pub(crate) fn said(&self) -> &BTreeMap<Code, Level> {
        &self.said
    }
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
