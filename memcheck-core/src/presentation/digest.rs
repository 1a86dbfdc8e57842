//! The short form of an attribution for reports: the bytes of each line, without call stacks.

use serde::Serialize;

use crate::judgement::finding::Site;
use crate::judgement::{blame, diagnosis};
use crate::measurement::attribution::{Attribution, Holder, HolderKind};
use crate::presentation::profile::{self, KindSum};
use crate::space::Space;

/// The short form of the attribution of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Digest<'a> {
    /// Allocations and frees that the run followed.
    pub events: u64,
    /// The reason why names are incomplete, and the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
    /// Every space with at least one allocation.
    pub spaces: Vec<SpaceDigest>,
}

/// The holders and survivors of one space. Holders are sorted by bytes, survivors by growth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpaceDigest {
    /// The space.
    pub space: Space,
    /// Bytes at the peak. Both `kinds` and `holders` add up to it.
    pub peak: u64,
    /// The iteration of the peak, counted from 1 with the warm-up included; 0 is the set-up.
    pub iteration: u32,
    /// The bytes at the peak by purpose.
    pub kinds: Vec<KindSum>,
    /// The bytes at the peak by line of the program.
    pub holders: Vec<HolderDigest>,
    /// The survivors of the measured iterations, growing or not.
    pub survivors: Vec<Site>,
    /// The bytes that were live when the body had returned, by line of the program.
    pub retained: Vec<HolderDigest>,
}

/// The bytes of one line of the program that have one purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HolderDigest {
    /// The purpose of the bytes.
    pub kind: HolderKind,
    /// The line, its operation and tensor, and the bytes; without a stack.
    #[serde(flatten)]
    pub site: Site,
}

impl<'a> Digest<'a> {
    /// The short form, with the survivors of `longer` if that other run decided the growth.
    pub fn of(attribution: &'a Attribution, longer: Option<&'a Attribution>) -> Self {
        let decided = longer.unwrap_or(attribution);
        let of_space =
            |(&space, peak): (&Space, &crate::measurement::attribution::Peak)| SpaceDigest {
                space,
                peak: peak.bytes,
                iteration: peak.iteration,
                kinds: profile::kinds(peak),
                holders: lines_of_holders(attribution, space, &peak.holders),
                survivors: blame::alike(&diagnosis::suspects(decided, space))
                    .iter()
                    .map(|alike| Site { stack: Vec::new(), ..blame::surviving(alike) })
                    .collect(),
                retained: lines_of_holders(attribution, space, &attribution.retained),
            };
        Self {
            events: attribution.events,
            hint: attribution.hint.as_deref(),
            spaces: attribution.peaks.iter().map(of_space).collect(),
        }
    }
}

fn lines_of_holders(
    attribution: &Attribution,
    space: Space,
    holders: &[Holder],
) -> Vec<HolderDigest> {
    blame::holding_lines(attribution, space, holders)
        .into_iter()
        .map(|(kind, site)| HolderDigest { kind, site })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::survivors::Pattern;
    use crate::measurement::attribution::builder::steady;
    use crate::measurement::attribution::{Peak, Place, Survivors, Tensor};
    use crate::measurement::stack::{Frame, Stack};

    const SPACE: Space = Space::Cuda(0);

    fn frame(function: &str, line: u32) -> Frame {
        let file = (!function.starts_with("candle")).then(|| "src/model.rs".to_owned());
        Frame { function: function.to_owned(), file, line: Some(line) }
    }

    fn attribution() -> Attribution {
        let stack = |caller| Stack {
            frames: vec![
                frame("candle_core::tensor::Tensor::matmul", 7),
                frame("app::forward", 20),
                frame("app::main", caller),
            ],
            ..Stack::default()
        };
        let place = |stack, space| Place {
            space,
            stack,
            scope: "layer".to_owned(),
            operation: Some("matmul".to_owned()),
            tensor: Some(Tensor { shape: vec![2, 2], dtype: "f32".to_owned() }),
            calls: 3,
            bytes: 48,
            last_calls: 1,
            last_bytes: 16,
            last: 3,
        };
        let holder = |place, kind| Holder { place, kind, bytes: 16, count: 1 };
        let holders = vec![
            holder(0, HolderKind::Activations),
            holder(1, HolderKind::Activations),
            holder(0, HolderKind::Kept),
        ];
        let peak = Peak { bytes: 48, iteration: 2, holders, ..Peak::default() };
        let survivors = Survivors {
            space: SPACE,
            stack: 0,
            scope: "layer".to_owned(),
            tensors: Vec::new(),
            group: steady(16),
            held: Default::default(),
        };
        Attribution {
            stacks: vec![stack(5), stack(6)],
            places: vec![place(0, SPACE), place(1, SPACE), place(1, Space::Host)],
            peaks: [(SPACE, peak)].into(),
            survivors: vec![survivors],
            retained: vec![holder(1, HolderKind::Kept), holder(2, HolderKind::Kept)],
            events: 6,
            ..Attribution::default()
        }
    }

    #[test]
    fn callers_of_one_line_are_one_holder_and_the_sums_agree() {
        let attribution = attribution();
        let digest = Digest::of(&attribution, None);
        let [of_space] = digest.spaces.as_slice() else { panic!("{digest:#?}") };
        let held: Vec<_> = of_space.holders.iter().map(|h| (h.kind, h.site.bytes)).collect();
        assert_eq!(held, [(HolderKind::Activations, 32), (HolderKind::Kept, 16)]);
        let sum = |bytes: &mut dyn Iterator<Item = u64>| bytes.sum::<u64>();
        assert_eq!(sum(&mut of_space.holders.iter().map(|held| held.site.bytes)), of_space.peak);
        assert_eq!(sum(&mut of_space.kinds.iter().map(|kind| kind.bytes)), of_space.peak);
        assert_eq!(of_space.retained.len(), 1, "the other is of another space");
        assert_eq!(of_space.survivors[0].pattern, Some(Pattern::Steady));
        assert_eq!(of_space.survivors[0].bytes, 160);
    }

    #[test]
    fn as_json_a_holder_is_a_site_with_a_kind_and_no_stack() {
        let attribution = attribution();
        let digest = serde_json::to_value(Digest::of(&attribution, None)).unwrap();
        assert_eq!(
            digest["spaces"][0]["holders"][0],
            serde_json::json!({
                "kind": "activations", "function": "app::forward", "file": "src/model.rs",
                "line": 20, "scope": "layer", "operation": "matmul", "tensor": "[2,2] f32",
                "bytes": 32, "count": 2, "bytes_per_iteration": 0,
            })
        );
        assert!(!digest.to_string().contains("stack"), "{digest}");
    }
}
