//! Serializes a series as repeated differences: rings and leaks become a few numbers.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A damaged record must not exhaust memory.
const LONGEST: u64 = 1 << 16;

pub(super) fn serialize<S: Serializer>(series: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut runs: Vec<i64> = Vec::new();
    let mut before = 0u64;
    for &value in series {
        let difference = value.wrapping_sub(before).cast_signed();
        match runs.len().checked_sub(2) {
            Some(at) if runs[at] == difference => runs[at + 1] += 1,
            _ => runs.extend([difference, 1]),
        }
        before = value;
    }
    runs.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<u64>, D::Error> {
    let runs = Vec::<i64>::deserialize(deserializer)?;
    let mut series = Vec::new();
    let mut value = 0u64;
    for run in runs.chunks(2) {
        let &[difference, repeats] = run else {
            return Err(D::Error::custom("the number of repeats of a run is missing"));
        };
        let repeats = u64::try_from(repeats).unwrap_or(0);
        if repeats + series.len() as u64 > LONGEST {
            return Err(D::Error::custom("the series is too long"));
        }
        for _ in 0..repeats {
            value = value.wrapping_add(difference.cast_unsigned());
            series.push(value);
        }
    }
    Ok(series)
}
