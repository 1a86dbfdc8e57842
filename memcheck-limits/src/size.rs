//! Sizes as people write and read them. The program itself only works with bytes.

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

/// A number of bytes as a person writes it: `"64 KiB"`, `"1.5 GB"`, `4096`.
///
/// B, KB (or kB), MB, GB and TB are powers of 1000; KiB, MiB, GiB and TiB are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Size(pub u64);

/// The error of a text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: {why}")]
pub struct SizeError {
    text: String,
    why: &'static str,
}

impl SizeError {
    /// True if the text is a size, but has more bytes than a `u64` can count.
    pub fn is_too_large(&self) -> bool {
        self.why == TOO_LARGE
    }
}

const TOO_LARGE: &str = "it has more bytes than 64 bits can count";

impl Size {
    /// Returns `mib` times 1024², rounded to the nearest byte; `None` if the product is negative,
    /// not finite or too large for a `u64`.
    pub fn from_mib(mib: f64) -> Option<Self> {
        let bytes = mib * 1024.0 * 1024.0;
        (bytes.is_finite() && bytes >= 0.0 && bytes < u64::MAX as f64)
            .then(|| Self(bytes.round() as u64))
    }
}

impl std::str::FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error_because = |why| SizeError { text: text.to_owned(), why };
        let error = || error_because("write a number with B, KB, MB, GB, KiB, MiB or GiB");
        let trimmed = text.trim();
        let unit =
            trimmed.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
        // `bytesize` also accepts "K", "Ki" and "k", but a user would have to guess the meaning of
        // "64 K". "kB" is the SI's own spelling of KB.
        let known = ["", "B", "KB", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"];
        if !known.contains(&unit) {
            return Err(error());
        }
        match trimmed.parse::<bytesize::ByteSize>().map_err(|_| error())?.as_u64() {
            // `bytesize` returns this value for every size that is too large.
            u64::MAX => Err(error_because(TOO_LARGE)),
            bytes => Ok(Self(bytes)),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = bytesize::ByteSize(self.0).display().iec();
        let precise = format!("{size:.2}");
        // Below ten units, so that figures next to each other add up: 1.75 MiB and 0.50 MiB are 2.25 MiB.
        match precise.find('.') {
            Some(1) => f.write_str(&precise),
            _ => size.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match BytesOrText::deserialize(deserializer)? {
            BytesOrText::Bytes(bytes) => Ok(Self(bytes)),
            BytesOrText::Text(text) => text.parse().map_err(D::Error::custom),
            BytesOrText::Other(_) => {
                Err(D::Error::custom("a number of bytes or a text such as \"64 KiB\""))
            }
        }
    }
}

/// A size in a file: a number or a text. Of any other value, the error states the forms of the type.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum BytesOrText {
    Bytes(u64),
    Text(String),
    Other(IgnoredAny),
}

/// Formats an exact figure with commas between the thousands.
pub fn exact(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats the exact figure followed by its binary size: `526,907,392 B (502.5 MiB)`.
pub fn both(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{} B", exact(bytes))
    } else {
        format!("{} B ({})", exact(bytes), Size(bytes))
    }
}

/// Formats a number of blocks: `1 block`, `1,024 blocks`.
pub fn blocks(count: u64) -> String {
    counted(count, "block", "blocks")
}

/// Formats a number followed by the singular or the plural of a word.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", exact(count), if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        for (text, bytes) in [
            ("0", 0),
            ("17 B", 17),
            ("64 KiB", 65_536),
            ("64 KB", 64_000),
            ("64 kB", 64_000),
            ("1.5 MiB", 1_572_864),
            ("24 GiB", 25_769_803_776),
            ("20GB", 20_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn an_invalid_size_is_an_error_that_lists_the_units() {
        for text in ["", "x", "64 K", "64 kib", "64 kb", "-1 B", "1 parsec", "1..2 MiB", "MiB"] {
            let error = text.parse::<Size>().expect_err(text).to_string();
            assert!(error.contains("KiB") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_size_above_64_bits_is_an_error_and_is_not_clamped() {
        assert_eq!("8388608 TiB".parse(), Ok(Size(1 << 63)));
        for text in ["16777216 TiB", "1e9 TiB", "99999999999999999999", "99999999999999999999 B"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        let error = "16777216.5 TiB".parse::<Size>().unwrap_err().to_string();
        assert!(error.ends_with("more bytes than 64 bits can count"), "{error}");
    }

    #[test]
    fn a_value_that_is_not_a_size_is_an_error_with_the_accepted_forms() {
        let error = |json| serde_json::from_str::<Size>(json).unwrap_err();
        for json in ["-1", "1.5", "[1]", "null"] {
            let error = error(json).to_string();
            assert_eq!(error, "a number of bytes or a text such as \"64 KiB\"", "{json}");
        }
        assert!(error("[1").is_eof());
    }

    #[test]
    fn mib_is_1024_squared_and_never_wraps() {
        assert_eq!(Size::from_mib(1.0), Some(Size(1 << 20)));
        assert_eq!(Size::from_mib(0.5), Some(Size(1 << 19)));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e30] {
            assert_eq!(Size::from_mib(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_size_below_ten_units_has_two_decimals_and_a_larger_one_has_one() {
        for (bytes, text) in [
            (1_023, "1023 B"),
            (1_024, "1.00 KiB"),
            (2_176, "2.12 KiB"),
            (1_835_008, "1.75 MiB"),
            (2_359_296, "2.25 MiB"),
            (10_234, "9.99 KiB"),
            (10_235, "10.0 KiB"),
            (11_010_048, "10.5 MiB"),
            (1_048_575, "1024.0 KiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    #[test]
    fn figures_are_shown_exactly_and_in_binary_units() {
        assert_eq!(both(12), "12 B");
        assert_eq!(both(526_907_392), "526,907,392 B (502.5 MiB)");
        assert_eq!(exact(1_000), "1,000");
        assert_eq!(exact(999), "999");
    }
}
