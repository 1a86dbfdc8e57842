//! The reason why tensors of call sites are larger: one dimension, the dtype, or their shapes.

use std::collections::BTreeSet;

use crate::judgement::grown_holder::{GrownHolder, tensor};

/// The difference between tensors and those of the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Larger {
    /// Every dimension that differs has the same two lengths. The number is that of the dimension, if
    /// it is one and the same in all tensors.
    Dimension { number: Option<usize>, from: u64, to: u64 },
    /// All have another element type, and the same shape.
    Dtype { from: String, to: String },
    /// The tensors differ in several lengths; those of the largest change are `from` and `to`.
    Shapes { from: String, to: String },
}

impl Larger {
    /// The difference of these holders, the largest change first; `None` if a tensor is not known.
    pub(super) fn of(holders: &[&GrownHolder]) -> Option<Self> {
        let changes: Option<Vec<TensorChange>> =
            holders.iter().map(|holder| TensorChange::of(holder)).collect();
        let changes = changes?;
        let first = changes.first()?;
        let lengths: BTreeSet<(u64, u64)> =
            changes.iter().flat_map(|it| &it.lengths).map(|it| (it.1, it.2)).collect();
        let numbers: BTreeSet<usize> =
            changes.iter().flat_map(|it| &it.lengths).map(|it| it.0).collect();
        let dtypes: BTreeSet<_> = changes.iter().map(|it| &it.dtypes).collect();
        let is_ranked = changes.iter().all(|it| it.has_same_rank);
        let is_same_dtype = changes.iter().all(|it| it.dtypes.0 == it.dtypes.1);
        let each_has_one = changes.iter().all(|it| !it.lengths.is_empty());
        if let (1, Some(&(from, to))) = (lengths.len(), lengths.first())
            && is_ranked
            && is_same_dtype
            && each_has_one
        {
            let number = numbers.first().copied().filter(|_| numbers.len() == 1);
            return Some(Self::Dimension { number, from, to });
        }
        if let ([_], (from, to)) =
            (dtypes.iter().collect::<Vec<_>>().as_slice(), first.dtypes.clone())
            && is_ranked
            && lengths.is_empty()
            && from != to
        {
            return Some(Self::Dtype { from, to });
        }
        let TensorChange { tensors: (from, to), .. } = first;
        Some(Self::Shapes { from: from.clone(), to: to.clone() })
    }

    /// The change as the beginning of a sentence that ends with lines, and a remark behind them.
    pub(super) fn texts(&self, count: usize) -> (String, String) {
        match self {
            Self::Dimension { number, from, to } => {
                let which =
                    number.map_or_else(|| "a dimension".to_owned(), |it| format!("dimension {it}"));
                let verb = if to > from { "grew" } else { "changed" };
                (format!("{which} {verb} from {from} to {to}"), String::new())
            }
            Self::Dtype { from, to } => {
                (format!("the dtype changed from {from} to {to}"), String::new())
            }
            Self::Shapes { from, to } if count == 1 => {
                ("the tensor is larger".to_owned(), format!(", {from} → {to}"))
            }
            Self::Shapes { from, to } => {
                ("tensors are larger".to_owned(), format!(", such as {from} → {to}"))
            }
        }
    }

    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Dimension { to, .. } => {
                format!(
                    "find out why the dimension is {to}, such as a longer sequence or a larger batch"
                )
            }
            Self::Dtype { to, .. } => {
                format!("find out why the dtype is {to}, such as a cast or other weights")
            }
            Self::Shapes { .. } => {
                "find out what enlarges the tensor, such as a longer sequence or \
                                    a larger batch"
                    .to_owned()
            }
        }
    }
}

/// The difference between one tensor and that of the baseline.
struct TensorChange {
    tensors: (String, String),
    dtypes: (String, String),
    has_same_rank: bool,
    /// The dimensions whose lengths differ: number, length in the baseline, and length now.
    lengths: Vec<(usize, u64, u64)>,
}

impl TensorChange {
    fn of(holder: &GrownHolder) -> Option<Self> {
        let (then, now) = (holder.was_tensor.as_deref()?, &holder.holder[tensor(&holder.holder)?]);
        let ((old, old_dtype), (new, new_dtype)) = (parsed(then)?, parsed(now)?);
        let both = old.iter().zip(&new).enumerate();
        let differ = both.filter(|(_, (old, new))| old != new);
        Some(Self {
            tensors: (then.to_owned(), now.to_owned()),
            dtypes: (old_dtype.to_owned(), new_dtype.to_owned()),
            has_same_rank: old.len() == new.len(),
            lengths: differ.map(|(number, (old, new))| (number, *old, *new)).collect(),
        })
    }
}

/// The shape and the element type of `[192,8] f32`.
fn parsed(tensor: &str) -> Option<(Vec<u64>, &str)> {
    let (shape, dtype) = tensor.strip_prefix('[')?.split_once("] ")?;
    let lengths = shape.split(',').filter(|length| !length.is_empty());
    Some((lengths.map(|length| length.trim().parse().ok()).collect::<Option<_>>()?, dtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(changes: &[(&str, &str)]) -> String {
        let holder = |(then, now): &(&str, &str)| GrownHolder {
            holder: format!("add {now} in block"),
            was_tensor: Some((*then).to_owned()),
            ..GrownHolder::default()
        };
        let holders: Vec<GrownHolder> = changes.iter().map(holder).collect();
        let larger = Larger::of(&holders.iter().collect::<Vec<_>>()).unwrap();
        let (before, after) = larger.texts(changes.len());
        before + &after
    }

    #[test]
    fn tensors_that_share_a_dimension_have_its_lengths() {
        let rows = ("[128,8] f32", "[192,8] f32");
        assert_eq!(text(&[rows, ("[128] f32", "[192] f32")]), "dimension 0 grew from 128 to 192");
        let columns = ("[8,128] f32", "[8,192] f32");
        assert_eq!(text(&[rows, columns]), "a dimension grew from 128 to 192");
        let scores = ("[4,128,128] f32", "[4,192,192] f32");
        assert_eq!(text(&[scores]), "a dimension grew from 128 to 192");
        assert_eq!(text(&[("[2,8] f32", "[1,8] f32")]), "dimension 0 changed from 2 to 1");
    }

    #[test]
    fn tensors_that_share_no_change_have_the_shapes_of_the_largest() {
        let rows = ("[128,8] f32", "[192,8] f32");
        let others =
            [("[128,8] f32", "[256,8] f32"), ("[128] f32", "[192,1] f32"), ("[8] f16", "[8] f32")];
        for other in others {
            assert_eq!(
                text(&[rows, other]),
                "tensors are larger, such as [128,8] f32 → [192,8] f32"
            );
        }
        let both = ("[128,8] f16", "[192,8] f32");
        assert_eq!(text(&[both]), "the tensor is larger, [128,8] f16 → [192,8] f32");
    }

    #[test]
    fn another_element_type_of_the_same_shape_is_named() {
        let wider = ("[8] f16", "[8] f32");
        assert_eq!(text(&[wider, ("[2,8] f16", "[2,8] f32")]), "the dtype changed from f16 to f32");
        let other = text(&[wider, ("[8] bf16", "[8] f32")]);
        assert_eq!(other, "tensors are larger, such as [8] f16 → [8] f32");
    }

    #[test]
    fn a_tensor_that_is_not_known_has_no_change() {
        let unknown =
            GrownHolder { was_tensor: Some("[1] f32".to_owned()), ..GrownHolder::default() };
        assert_eq!(Larger::of(&[&unknown]), None);
        let known = GrownHolder { holder: "add [2] f32".to_owned(), ..unknown.clone() };
        assert!(Larger::of(&[&known]).is_some());
        assert_eq!(Larger::of(&[&known, &unknown]), None);
    }
}
