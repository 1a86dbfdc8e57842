//! The setting that decides how much memory of the simulated device has contents.

use crate::serialize_as_text;
use crate::size::{Size, SizeError};

/// How much device memory has contents, as a person writes it: `"auto"`, `"never"`, `"256 MiB"`.
///
/// The setting has an effect on the simulated device only, and never on a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contents {
    /// The built-in limits of bytes and of work.
    #[default]
    Auto,
    /// No value is stored or computed: all device memory is unknown.
    Never,
    /// At most so many bytes, at least one.
    AtMost(Size),
}

/// The error of a text that is not such a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// The text is neither a word nor a size.
    #[error("`{0}` is neither `auto`, `never` nor a size such as `256 MiB`")]
    Neither(String),
    /// The size has more bytes than a `u64` can count.
    #[error(transparent)]
    TooLarge(SizeError),
    /// The size is zero.
    #[error("`{0}` leaves no contents: write `never`")]
    Zero(String),
}

impl std::str::FromStr for Contents {
    type Err = ContentsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text.trim(), text.parse::<Size>()) {
            ("auto", _) => Ok(Self::Auto),
            ("never", _) => Ok(Self::Never),
            (_, Ok(Size(0))) => Err(ContentsError::Zero(text.to_owned())),
            (_, Ok(size)) => Ok(Self::AtMost(size)),
            (_, Err(error)) if error.is_too_large() => Err(ContentsError::TooLarge(error)),
            (_, Err(_)) => Err(ContentsError::Neither(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Never => f.pad("never"),
            // Exact, because the text is parsed again.
            Self::AtMost(Size(bytes)) => write!(f, "{bytes} B"),
        }
    }
}

serialize_as_text!(Contents);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_word_or_a_size_above_zero() {
        for (text, contents) in [
            ("auto", Contents::Auto),
            ("never", Contents::Never),
            ("256 MiB", Contents::AtMost(Size(256 << 20))),
            ("1", Contents::AtMost(Size(1))),
        ] {
            assert_eq!(text.parse(), Ok(contents));
            assert_eq!(contents.to_string().parse(), Ok(contents));
            let json = serde_json::to_string(&contents).unwrap();
            assert_eq!(serde_json::from_str::<Contents>(&json).unwrap(), contents);
        }
        for (text, part) in [
            ("always", "neither `auto`, `never` nor a size such as `256 MiB`"),
            ("", "neither"),
            ("256 M", "neither"),
            ("0 B", "write `never`"),
            ("99999999999 TiB", "64 bits"),
        ] {
            let error = text.parse::<Contents>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
