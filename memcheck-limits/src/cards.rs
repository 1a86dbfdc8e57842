//! Well-known NVIDIA cards, by the names that the command line accepts. This file is data only.
//!
//! `bytes` is the total memory that `cuDeviceTotalMem` reports for the card. If no figure has been
//! published, it is the nominal size in GiB. `--device sim:CARD,capacity=SIZE` overrides it. The
//! memory that a driver keeps for itself differs a little between versions. A published figure is
//! that of one driver, so it is correct to a percent and not to the byte.

use crate::spelling;

/// One card: the identity and the capacity of a simulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// The name that the user types: lower case, digits and dashes.
    pub id: &'static str,
    /// The name that `cuDeviceGetName` and NVML report.
    pub name: &'static str,
    /// Compute capability: major and minor version.
    pub compute: (u8, u8),
    /// Capacity in bytes.
    pub bytes: u64,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The relation of its memory to that of the host.
    pub memory: CardMemory,
}

/// The relation of a card's memory to that of the host, by NVIDIA's CUDA Programming Guide
/// ("Unified and System Memory") and its CUDA for Tegra Application Note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardMemory {
    /// The card has its own memory, behind a bus.
    Separate,
    /// The card and the host have a memory each, and one page table (GH200).
    Coherent,
    /// The card and the host share one memory, and the card cannot read the host's pages (Jetson
    /// Orin).
    Shared,
    /// The card and the host share one memory and one page table (GB10, Jetson Thor).
    SharedCoherent,
}

impl CardMemory {
    /// True if the host takes its memory from that of the card (`INTEGRATED` in CUDA).
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::SharedCoherent)
    }

    /// True if the card reads and writes all memory of the host through the host's page table.
    pub fn is_coherent(self) -> bool {
        matches!(self, Self::Coherent | Self::SharedCoherent)
    }
}

/// A capacity that `deviceQuery` output publishes to the byte, or for the H200 one that was read on a
/// card with driver 580.159.04.
const fn exact(bytes: u64) -> u64 {
    bytes
}

/// A capacity that PyTorch's out-of-memory message publishes in hundredths of a GiB ("GPU 0 has a
/// total capacity of 79.11 GiB"), rounded down to a MiB.
const fn reported(hundredths_of_gib: u64) -> u64 {
    (hundredths_of_gib * 1024 / 100) << 20
}

/// The capacity in the name of the product, for a card without a published figure.
const fn nominal(gib: u64) -> u64 {
    gib << 30
}

const fn card(
    id: &'static str,
    name: &'static str,
    compute: (u8, u8),
    multiprocessors: u32,
    bytes: u64,
) -> Card {
    Card { id, name, compute, bytes, multiprocessors, memory: CardMemory::Separate }
}

/// A capacity that `deviceQuery` output publishes in MiB.
const fn mebibytes(mib: u64) -> u64 {
    mib << 20
}

impl Card {
    const fn with(self, memory: CardMemory) -> Self {
        Self { memory, ..self }
    }
}

/// The cards that `--device sim:CARD` and `fits = "CARD"` accept.
#[rustfmt::skip]
pub const CARDS: &[Card] = &[
    card("p100", "Tesla P100-PCIE-16GB", (6, 0), 56, exact(17_071_734_784)),
    card("v100-16g", "Tesla V100-SXM2-16GB", (7, 0), 80, exact(16_945_512_448)),
    card("v100-32g", "Tesla V100-SXM2-32GB", (7, 0), 80, reported(3174)),
    card("t4", "Tesla T4", (7, 5), 40, exact(15_843_721_216)),
    card("rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", (7, 5), 68, reported(1075)),
    card("a100-40g", "NVIDIA A100-SXM4-40GB", (8, 0), 108, exact(42_298_834_944)),
    card("a100-80g", "NVIDIA A100-SXM4-80GB", (8, 0), 108, reported(7915)),
    card("a10", "NVIDIA A10", (8, 6), 72, reported(2206)),
    card("a10g", "NVIDIA A10G", (8, 6), 80, reported(2206)),
    card("a40", "NVIDIA A40", (8, 6), 84, reported(4442)),
    card("a6000", "NVIDIA RTX A6000", (8, 6), 84, reported(4754)),
    card("rtx3060", "NVIDIA GeForce RTX 3060", (8, 6), 28, reported(1176)),
    card("rtx3080", "NVIDIA GeForce RTX 3080", (8, 6), 68, reported(977)),
    card("rtx3090", "NVIDIA GeForce RTX 3090", (8, 6), 82, reported(2369)),
    card("l4", "NVIDIA L4", (8, 9), 58, reported(2203)),
    card("l40s", "NVIDIA L40S", (8, 9), 142, reported(4439)),
    card("rtx4060ti-16g", "NVIDIA GeForce RTX 4060 Ti", (8, 9), 34, nominal(16)),
    card("rtx4070", "NVIDIA GeForce RTX 4070", (8, 9), 46, nominal(12)),
    card("rtx4080", "NVIDIA GeForce RTX 4080", (8, 9), 76, nominal(16)),
    card("rtx4090", "NVIDIA GeForce RTX 4090", (8, 9), 128, reported(2364)),
    card("rtx6000-ada", "NVIDIA RTX 6000 Ada Generation", (8, 9), 142, reported(4750)),
    card("h100-80g", "NVIDIA H100 80GB HBM3", (9, 0), 132, reported(7911)),
    card("h100-94g", "NVIDIA H100 NVL", (9, 0), 132, reported(9310)),
    card("gh200", "NVIDIA GH200 480GB", (9, 0), 132, nominal(96)).with(CardMemory::Coherent),
    card("h200", "NVIDIA H200", (9, 0), 132, exact(150_109_880_320)),
    card("b200", "NVIDIA B200", (10, 0), 148, reported(17835)),
    card("rtx5070ti", "NVIDIA GeForce RTX 5070 Ti", (12, 0), 70, nominal(16)),
    card("rtx5080", "NVIDIA GeForce RTX 5080", (12, 0), 84, nominal(16)),
    card("rtx5090", "NVIDIA GeForce RTX 5090", (12, 0), 170, exact(33_680_457_728)),
    card("rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (12, 0), 188, nominal(96)),
    card("gb10", "NVIDIA GB10", (12, 1), 48, mebibytes(122_570)).with(CardMemory::SharedCoherent),
    card("orin-nano-8g", "Orin", (8, 7), 8, mebibytes(7_620)).with(CardMemory::Shared),
    card("orin-nx-16g", "Orin", (8, 7), 8, exact(16_136_011_776)).with(CardMemory::Shared),
    card("agx-orin-64g", "Orin", (8, 7), 16, exact(65_893_089_280)).with(CardMemory::Shared),
    card("agx-thor", "NVIDIA Thor", (11, 0), 20, exact(131_881_680_896)).with(CardMemory::SharedCoherent),
];

/// Finds the card with this name.
///
/// The comparison ignores case, spaces, dashes, underscores and the words NVIDIA, GeForce, Tesla
/// and Jetson. `80g` and `80GB` are equal, and `rtx` can be left out. The name that the driver
/// reports is accepted too, unless several cards have it. `h100` means the card with 80 GB, and
/// `dgx-spark` its GB10.
pub fn find(id: &str) -> Option<&'static Card> {
    let wanted = normalized(id);
    if wanted.is_empty() {
        return None;
    }
    let wanted = match wanted.as_str() {
        "h100" => "h10080g",
        "dgxspark" => "gb10",
        other => other,
    };
    let has_id = |card: &&Card| {
        let known = normalized(card.id);
        wanted == known || known.strip_prefix("rtx") == Some(wanted)
    };
    CARDS.iter().find(has_id).or_else(|| {
        let mut named = CARDS.iter().filter(|card| wanted == normalized(card.name));
        named.next().filter(|_| named.next().is_none())
    })
}

/// Returns the most similar id for a misspelt `id`, if one is similar.
pub fn suggest(id: &str) -> Option<&'static str> {
    near(id).into_iter().next()
}

/// Returns the most similar ids for a misspelt `id`; all of them are equally similar.
pub fn near(id: &str) -> Vec<&'static str> {
    let wanted = normalized(id);
    if wanted.len() < 2 {
        return Vec::new();
    }
    let distance = |card: &Card| {
        let known = normalized(card.id);
        // The beginning of an id is more similar than any id with a typing error: a100 -> a100-40g.
        if known.starts_with(&wanted) { 0 } else { spelling::edits(&wanted, &known) }
    };
    let least = CARDS.iter().map(distance).min().unwrap_or(usize::MAX);
    if least > spelling::most_edits(&wanted) {
        return Vec::new();
    }
    CARDS.iter().filter(|card| distance(card) == least).map(|card| card.id).collect()
}

fn normalized(id: &str) -> String {
    let mut text: String =
        id.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    for word in ["nvidia", "geforce", "tesla", "jetson"] {
        text = text.replacen(word, "", 1);
    }
    if text.ends_with("gb") {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_found_by_its_id_and_by_its_name_unless_others_have_it() {
        for card in CARDS {
            assert_eq!(find(card.id), Some(card), "{}", card.id);
            let is_only = CARDS.iter().filter(|other| other.name == card.name).count() == 1;
            assert_eq!(find(card.name), is_only.then_some(card), "{}", card.name);
        }
        assert_eq!(near("orin"), ["orin-nano-8g", "orin-nx-16g"]);
    }

    #[test]
    fn the_memory_of_a_card_is_separate_coherent_or_shared() {
        let memory = |id: &str| {
            let memory = find(id).unwrap().memory;
            (memory.is_shared(), memory.is_coherent())
        };
        assert_eq!(memory("h200"), (false, false));
        assert_eq!(memory("gh200"), (false, true));
        assert_eq!(memory("jetson-agx-orin-64gb"), (true, false));
        for id in ["gb10", "dgx-spark", "Jetson AGX Thor"] {
            assert_eq!(memory(id), (true, true), "{id}");
        }
    }

    #[test]
    fn ids_are_unique_lower_case_digits_and_dashes() {
        for (i, card) in CARDS.iter().enumerate() {
            assert!(
                card.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            assert!(CARDS[..i].iter().all(|other| normalized(other.id) != normalized(card.id)));
        }
    }

    #[test]
    fn spellings_that_people_type_are_accepted() {
        for (typed, id) in [
            ("RTX-4090", "rtx4090"),
            ("rtx 4090", "rtx4090"),
            ("4090", "rtx4090"),
            ("GeForce RTX 4090", "rtx4090"),
            ("A100_80GB", "a100-80g"),
            ("h100", "h100-80g"),
            ("H100-80G", "h100-80g"),
            ("rtx6000ada", "rtx6000-ada"),
            ("rtx-pro-6000", "rtxpro6000"),
        ] {
            assert_eq!(find(typed).map(|card| card.id), Some(id), "{typed}");
        }
    }

    #[test]
    fn an_ambiguous_or_unknown_name_is_not_guessed() {
        for typed in ["", "rtx", "a100", "gtx1080", "h", "h1000"] {
            assert_eq!(find(typed), None, "{typed}");
        }
    }

    #[test]
    fn suggestions_are_near_or_absent() {
        assert_eq!(suggest("a100"), Some("a100-40g"));
        assert_eq!(suggest("rtx4091"), Some("rtx4090"));
        assert_eq!(suggest("rxt4090"), Some("rtx4090"));
        assert_eq!(suggest("h20"), Some("h200"));
        assert_eq!(suggest("toaster"), None);
        assert_eq!(suggest(""), None);
        assert_eq!(near("h100"), ["h100-80g", "h100-94g"]);
        assert_eq!(near("toaster"), Vec::<&str>::new());
    }

    #[test]
    fn capacities_are_those_of_the_box_within_five_percent() {
        for (id, gib) in [("h200", 141.0), ("rtx4090", 24.0), ("t4", 15.0), ("a100-40g", 40.0)] {
            let card = find(id).unwrap();
            let measured = card.bytes as f64 / f64::from(1 << 30);
            assert!((measured - gib).abs() / gib < 0.05, "{id}: {measured} GiB");
        }
    }
}
