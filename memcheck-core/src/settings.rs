//! Limits as they are written in the configuration, in the environment and on the command line. A
//! size has two spellings there (`max_peak`, `max_peak_mb`). They are checked here once, so that a
//! [`Layer`] is always valid.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::bound::Bound;
use crate::capacity::Capacity;
use crate::limits::{Layer, parse_evidence, parse_timeout};
use crate::size::Size;
use crate::tolerance::Tolerance;

/// Limits before the two spellings of a size are joined.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the fields are those of `Layer`, and their `_mb` spellings")]
pub struct Written {
    pub max_growth: Option<Size>,
    #[serde(deserialize_with = "mib")]
    pub max_growth_mb: Option<f64>,
    pub max_peak: Option<Bound>,
    #[serde(deserialize_with = "mib")]
    pub max_peak_mb: Option<f64>,
    pub max_retained: Option<Size>,
    #[serde(deserialize_with = "mib")]
    pub max_retained_mb: Option<f64>,
    pub max_allocations: Option<u64>,
    pub max_reserved_growth: Option<Size>,
    #[serde(deserialize_with = "mib")]
    pub max_reserved_growth_mb: Option<f64>,
    pub fits: Option<Capacity>,
    #[serde(deserialize_with = "iterations")]
    pub iterations: Option<u32>,
    pub warmup: Option<u32>,
    #[serde(deserialize_with = "max_iterations")]
    pub max_iterations: Option<u32>,
    #[serde(deserialize_with = "evidence")]
    pub evidence: Option<String>,
    pub tolerance: Option<Tolerance>,
    pub baseline: Option<bool>,
    #[serde(deserialize_with = "timeout")]
    pub timeout: Option<String>,
}

// Each value is checked by its own deserializer, because only that knows its position in the file.

fn mib<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::deserialize(from)? {
        Some(mib) if Size::from_mib(mib).is_none() => {
            Err(Error::custom("expected a number of MiB, zero or more"))
        }
        mib => Ok(mib),
    }
}

fn iterations<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match Option::deserialize(from)? {
        Some(0) => Err(Error::custom(WrittenError::NoIterations)),
        number => Ok(number),
    }
}

fn max_iterations<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match Option::deserialize(from)? {
        Some(0) => Err(Error::custom(WrittenError::NoMaxIterations)),
        number => Ok(number),
    }
}

fn evidence<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(from)?;
    text.as_deref().map(parse_evidence).transpose().map_err(Error::custom)?;
    Ok(text)
}

fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(from)?;
    text.as_deref().map(parse_timeout).transpose().map_err(Error::custom)?;
    Ok(text)
}

/// The reason why the written limits are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    /// Both spellings of one limit are set.
    #[error("`{0}` and `{0}_mb` say the same limit: write one of them")]
    Twice(&'static str),
    /// The number of MiB is not a size.
    #[error("`{0}_mb` must be a number of MiB, zero or more")]
    NotMib(&'static str),
    /// No iteration would be measured.
    #[error("`iterations` must be at least 1")]
    NoIterations,
    /// No iteration is allowed.
    #[error("`max_iterations` must be at least 1; as many as `iterations` switch following off")]
    NoMaxIterations,
    /// The text is not a time for which a test is followed.
    #[error(transparent)]
    Evidence(#[from] crate::limits::EvidenceError),
    /// The text is not a duration.
    #[error(transparent)]
    Timeout(#[from] crate::limits::TimeoutError),
}

/// Joins the two spellings of one size.
///
/// # Errors
/// Both spellings are set, or the number of MiB is not a size.
pub fn one_spelling<T: From<Size>>(
    name: &'static str,
    size: Option<T>,
    mib: Option<f64>,
) -> Result<Option<T>, WrittenError> {
    match (size, mib) {
        (Some(_), Some(_)) => Err(WrittenError::Twice(name)),
        (size, None) => Ok(size),
        (None, Some(mib)) => {
            let size = Size::from_mib(mib).ok_or(WrittenError::NotMib(name))?;
            Ok(Some(size.into()))
        }
    }
}

impl TryFrom<Written> for Layer {
    type Error = WrittenError;

    fn try_from(written: Written) -> Result<Self, WrittenError> {
        if written.iterations == Some(0) {
            return Err(WrittenError::NoIterations);
        }
        if written.max_iterations == Some(0) {
            return Err(WrittenError::NoMaxIterations);
        }
        Ok(Self {
            max_growth: one_spelling("max_growth", written.max_growth, written.max_growth_mb)?,
            max_peak: one_spelling("max_peak", written.max_peak, written.max_peak_mb)?,
            max_retained: one_spelling(
                "max_retained",
                written.max_retained,
                written.max_retained_mb,
            )?,
            max_allocations: written.max_allocations,
            max_reserved_growth: one_spelling(
                "max_reserved_growth",
                written.max_reserved_growth,
                written.max_reserved_growth_mb,
            )?,
            fits: written.fits,
            iterations: written.iterations,
            warmup: written.warmup,
            max_iterations: written.max_iterations,
            evidence: written.evidence.as_deref().map(parse_evidence).transpose()?,
            tolerance: written.tolerance,
            baseline: written.baseline,
            timeout: written.timeout.as_deref().map(parse_timeout).transpose()?,
        })
    }
}
