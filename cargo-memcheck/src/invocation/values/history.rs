//! The place of a history: a file, or the notes of the repository.

use std::path::PathBuf;

use crate::invocation::features::COMPARISON;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryPlace {
    File(PathBuf),
    /// A note of each commit.
    Git,
}

impl std::str::FromStr for HistoryPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            _ if !COMPARISON.is_built => Err(COMPARISON.refusal("the history")),
            "" => Err("write the path of a file, or `git`".to_owned()),
            "git" => Ok(Self::Git),
            path => Ok(Self::File(path.into())),
        }
    }
}

impl std::fmt::Display for HistoryPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Git => f.write_str("git"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_named_git_needs_a_folder() {
        let read = |text: &str| text.parse::<HistoryPlace>();
        assert_eq!(read("git"), Ok(HistoryPlace::Git));
        assert_eq!(read("./git"), Ok(HistoryPlace::File("./git".into())));
        assert!(read("").is_err());
    }
}
