//! The level of each bookkeeping finding, combined from flags, configuration and mode.

use std::collections::BTreeMap;

use memcheck_core::judgement::finding::{Code, Level};

use super::Mode;

/// The mode decides the default level.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    explicit: BTreeMap<Code, Level>,
    mode: Mode,
}

impl Levels {
    pub(crate) fn new(explicit: BTreeMap<Code, Level>, mode: Mode) -> Self {
        Self { explicit, mode }
    }

    pub(crate) fn of(&self, code: Code) -> Level {
        self.explicit.get(&code).copied().unwrap_or(code.default_level(self.mode == Mode::Ci))
    }

    /// The test process needs these.
    pub(crate) fn explicit(&self) -> &BTreeMap<Code, Level> {
        &self.explicit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_denies_findings_without_an_explicit_level() {
        let explicit = BTreeMap::from([(Code::MissingBaseline, Level::Warn)]);
        let levels = Levels::new(explicit, Mode::Ci);
        assert_eq!(levels.of(Code::MissingBaseline), Level::Warn);
        assert_eq!(levels.of(Code::NotBuilt), Level::Deny);
        assert_eq!(Levels::new(BTreeMap::new(), Mode::Local).of(Code::NotBuilt), Level::Warn);
    }
}
