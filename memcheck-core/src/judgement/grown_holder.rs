//! A call site whose bytes at the peak differ from those in the baseline.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A holder that holds more at the peak than in the baseline, or less.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrownHolder {
    /// A description of the holder: `softmax [8,12,512,512] f32 in encoder.3.attn`.
    pub holder: String,
    /// Its tensor in the baseline, if that one had another shape or element type: `[8,128] f32`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub was_tensor: Option<String>,
    /// Its line of the program now, as `src/model.rs:42`. A baseline has no lines.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// Bytes in the baseline; 0 if the holder was not among the largest there.
    pub then: u64,
    /// Bytes now; 0 if it holds nothing at the peak.
    pub now: u64,
    /// The baseline has no room for more holders, so that this one can have held some bytes there,
    /// although fewer than now.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_unlisted: bool,
    /// All of its bytes were allocated before the first iteration.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_setup: bool,
}

/// The name of the row that has the sum of all holders that no other row has.
const OTHERS: &str = "other call sites";

impl GrownHolder {
    /// True if the baseline shows that the holder held nothing at the peak.
    pub fn is_new(&self) -> bool {
        self.then == 0 && !self.is_unlisted
    }

    /// True if the shape and the element type of its tensors are known.
    pub fn has_tensor(&self) -> bool {
        tensor(&self.holder).is_some()
    }

    /// The shape and the element type of its tensors, as `[192,8] f32`.
    pub(super) fn tensor(&self) -> Option<&str> {
        tensor(&self.holder).map(|at| &self.holder[at])
    }

    /// The operation that allocated, or the innermost function.
    pub(super) fn operation(&self) -> &str {
        self.holder.split(' ').next().unwrap_or_default()
    }

    /// Its file and its line of the program.
    pub(super) fn line(&self) -> Option<(&str, u32)> {
        let (file, line) = self.place.as_deref()?.rsplit_once(':')?;
        Some((file, line.parse().ok()?))
    }

    /// The change of its bytes.
    pub fn difference(&self) -> i128 {
        i128::from(self.now) - i128::from(self.then)
    }

    /// The description and, of a tensor that had another shape, both shapes:
    /// `softmax [8,128] → [8,256] f32 in attn`.
    pub fn description(&self) -> String {
        let now = tensor(&self.holder);
        let (Some(then), Some(now)) = (&self.was_tensor, now) else { return self.holder.clone() };
        let (shape, dtype) = then.split_once(' ').unwrap_or((then, ""));
        let is_same_dtype =
            self.holder[now.clone()].split_once(' ').is_some_and(|it| it.1 == dtype);
        let then = if is_same_dtype { shape } else { then };
        let (before, after) = self.holder.split_at(now.start);
        format!("{before}{then} → {after}")
    }

    /// The description that the holder had in the baseline, if its tensor was another one.
    pub fn before(&self) -> Option<String> {
        let at = tensor(&self.holder)?;
        let was = self.was_tensor.as_deref()?;
        Some(format!("{}{was}{}", &self.holder[..at.start], &self.holder[at.end..]))
    }

    /// The sum of the holders that are not in `rows`, for peaks of `then` and `now` bytes; `None` if
    /// the rows explain the whole change.
    pub fn others<'a>(
        then: u64,
        now: u64,
        rows: impl Iterator<Item = &'a Self> + Clone,
    ) -> Option<Self> {
        let sum = |of: fn(&Self) -> u64| rows.clone().map(|row| i128::from(of(row))).sum::<i128>();
        let then = i128::from(then) - sum(|row| row.then);
        let now = i128::from(now) - sum(|row| row.now);
        // The rows can have more than the peak if they are those of another run: then the
        // difference is still the one that the peak needs.
        let missing = (-then.min(now)).max(0);
        let bytes = |of: i128| u64::try_from(of + missing).unwrap_or(u64::MAX);
        (then != now).then(|| Self {
            holder: OTHERS.to_owned(),
            then: bytes(then),
            now: bytes(now),
            ..Self::default()
        })
    }
}

/// The tensor in a description: `[2,4] f32` of `matmul [2,4] f32 in attn`.
pub(super) fn tensor(holder: &str) -> Option<Range<usize>> {
    let start = holder.find(" [")? + 1;
    let dtype = start + holder[start..].find("] ")? + 2;
    let length = holder[dtype..].find(' ').unwrap_or(holder.len() - dtype);
    Some(start..dtype + length)
}

/// `matmul in attn` of `matmul [2,4] f32 in attn`.
pub(super) fn without_tensor(holder: &str) -> String {
    match tensor(holder) {
        Some(at) => format!("{}{}", &holder[..at.start - 1], &holder[at.end..]),
        None => holder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_both_shapes_if_they_differ() {
        let of = |holder: &str, was: Option<&str>| {
            let (holder, was_tensor) = (holder.to_owned(), was.map(str::to_owned));
            GrownHolder { holder, was_tensor, ..GrownHolder::default() }.description()
        };
        let holder = "randn [192,8] f32 in attn";
        assert_eq!(of(holder, None), holder);
        assert_eq!(of(holder, Some("[128,8] f32")), "randn [128,8] → [192,8] f32 in attn");
        assert_eq!(of(holder, Some("[192,8] f16")), "randn [192,8] f16 → [192,8] f32 in attn");
        assert_eq!(of("randn", Some("[1] f32")), "randn", "its tensor is not known now");
        let was_tensor = Some("[128,8] f16".to_owned());
        let other = GrownHolder { holder: holder.to_owned(), was_tensor, ..GrownHolder::default() };
        assert_eq!(other.before().as_deref(), Some("randn [128,8] f16 in attn"));
        assert_eq!(GrownHolder { was_tensor: None, ..other }.before(), None);
        assert_eq!(without_tensor("new [1] f32"), "new");
        assert_eq!(without_tensor("a [b"), "a [b");
    }

    #[test]
    fn the_other_holders_have_the_rest_of_a_change_and_are_left_out_without_one() {
        let row = |then, now| GrownHolder { then, now, ..GrownHolder::default() };
        let of = |then, now, rows: &[GrownHolder]| {
            GrownHolder::others(then, now, rows.iter()).map(|rest| (rest.then, rest.now))
        };
        assert_eq!(of(10, 15, &[row(4, 7)]), Some((6, 8)));
        assert_eq!(of(10, 13, &[row(4, 7)]), None);
        assert_eq!(of(10, 15, &[row(12, 20)]), Some((3, 0)), "the rows are those of another run");
    }
}
