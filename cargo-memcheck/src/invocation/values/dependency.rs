//! The dependency that `compare --update` updates.

/// `NAME`, or `NAME@VERSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DependencyUpdate {
    pub(crate) name: String,
    /// The exact version, or the commit of a git dependency. `None` for the latest version that the
    /// requirements allow.
    pub(crate) version: Option<String>,
}

impl std::str::FromStr for DependencyUpdate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text, None),
        };
        // Both become arguments of cargo, which must not be flags.
        let is_word = |word: &str, more: &str| {
            word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && word.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        if !is_word(name, "-_") || version.is_some_and(|version| !is_word(version, ".+-_")) {
            return Err("write NAME, or NAME@VERSION with an exact version: pool@0.2.1".into());
        }
        Ok(Self { name: name.to_owned(), version: version.map(str::to_owned) })
    }
}

impl std::fmt::Display for DependencyUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_a_name_with_or_without_a_version() {
        for text in ["candle-core@0.10.2", "serde", "a_b@1.0.0-rc.1+x", "dep@0a1b2c3d"] {
            assert_eq!(text.parse::<DependencyUpdate>().unwrap().to_string(), text);
        }
        let exact: DependencyUpdate = "candle-core@0.10.2".parse().unwrap();
        assert_eq!(
            (exact.name.as_str(), exact.version.as_deref()),
            ("candle-core", Some("0.10.2"))
        );
    }

    #[test]
    fn a_requirement_and_a_flag_are_not_updates() {
        for text in ["", "@1.0.0", "serde@", "serde@^1", "serde=1", "--precise", "serde@-1", "a b"]
        {
            assert!(text.parse::<DependencyUpdate>().is_err(), "{text}");
        }
    }
}
