//! The versions of candle that memcheck-runtime accepts, before cargo has resolved anything.

use cargo_metadata::semver::{Version, VersionReq};

/// The requirement of memcheck-runtime.
pub(super) const ACCEPTED: &str = ">=0.9.2, <0.12";
const LOWEST: Version = Version::new(0, 9, 2);

/// True if a version can satisfy both requirements: one of them begins inside the other.
pub(super) fn can_accept(required: &VersionReq) -> bool {
    let accepted: VersionReq = ACCEPTED.parse().unwrap_or_default();
    let begins = |at: &cargo_metadata::semver::Comparator| {
        Version::new(at.major, at.minor.unwrap_or(0), at.patch.unwrap_or(0))
    };
    required.matches(&LOWEST) || required.comparators.iter().any(|at| accepted.matches(&begins(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_those_of_the_workspace() {
        let manifest: toml::Table = include_str!("../../../../Cargo.toml").parse().unwrap();
        let dependencies = &manifest["workspace"]["dependencies"];
        assert_eq!(dependencies["candle-core"].as_str(), Some(ACCEPTED));
        let accepted: VersionReq = ACCEPTED.parse().unwrap();
        assert!(accepted.matches(&LOWEST) && !accepted.matches(&Version::new(0, 9, 1)));
    }

    #[test]
    fn a_requirement_is_accepted_if_one_version_satisfies_both() {
        for (required, expected) in [
            ("^0.11.1", true),
            ("^0.9.1", true),
            ("^0.9", true),
            ("^0.11.9", true),
            (">=0.8.4, <0.11", true),
            ("*", true),
            ("=0.9.1", false),
            ("^0.8.3", false),
            ("^0.12.0", false),
        ] {
            assert_eq!(can_accept(&required.parse().unwrap()), expected, "{required}");
        }
    }
}
