//! Each rule with survivors that satisfy its predicate, and with survivors that miss one condition.

mod remedies;

use super::*;
use crate::growth::survivors::Pattern;
use crate::measurement::attribution::HeldBy;
use crate::measurement::attribution::builder::{Run, buffer, grows, kept, once, rests, steady};
use crate::measurement::record::example::GPU;

#[test]
fn every_rule_has_a_page_that_shows_the_mistake_and_the_fix() {
    for rule in RULES {
        assert!(rule.page.starts_with(&format!("# {}\n", rule.code)), "{}", rule.code);
        for part in ["## What happens", "## How it is recognized", "## What to do"] {
            assert!(rule.page.contains(part), "{}: no `{part}`", rule.code);
        }
    }
}

#[test]
fn codes_are_unique_and_differ_from_those_of_findings() {
    let mut codes: Vec<_> = RULES.iter().map(|rule| rule.code).collect();
    codes.sort_unstable();
    let before = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), before);
    for code in codes {
        assert!(code.parse::<crate::judgement::finding::Code>().is_err(), "{code}");
    }
}

struct Marks {
    code: &'static str,
    fires: Run,
    instead: &'static str,
    without: Run,
}

pub(super) const MATMUL: &str = "candle_core::tensor::Tensor::matmul";
pub(super) const ZEROS: &str = "candle_core::tensor::Tensor::zeros";

fn leak(functions: &[&str]) -> Run {
    Run::default().place(functions, steady(4_096))
}

pub(super) fn tensors(functions: &[&str]) -> Run {
    leak(functions).tensors(&[&[32, 32]])
}

fn held(held: HeldBy) -> Run {
    tensors(&[MATMUL]).held(held)
}

/// A cache of `past` positions, to which each iteration adds some.
pub(super) fn cache_of(positions: u64, past: u64, width: u64) -> Run {
    let lengths: [u64; 10] = std::array::from_fn(|at| past + positions * (at as u64 + 1));
    let shapes = lengths.map(|length| [1, length, width]);
    let shapes: Vec<&[u64]> = shapes.iter().map(|shape| &shape[..]).collect();
    let rate = grows(Pattern::Enlarged, 4 * width * positions);
    Run::default()
        .place(
            &["candle_core::tensor_cat::Tensor::cat"],
            buffer(lengths.map(|length| 4 * width * length), rate),
        )
        .tensors(&shapes[9..])
        .types(&shapes)
}

pub(super) fn cache(positions: u64, past: u64) -> Run {
    cache_of(positions, past, 64)
}

/// A tensor of another length in each iteration.
fn of_lengths(functions: &[&str]) -> Run {
    let shapes: Vec<[u64; 2]> = (1..=10).map(|length| [length, length]).collect();
    let shapes: Vec<&[u64]> = shapes.iter().map(|shape| &shape[..]).collect();
    leak(functions).tensors(&shapes).types(&shapes)
}

pub(super) fn masks() -> Run {
    of_lengths(&["candle_core::tensor::Tensor::from_vec"])
}

pub(super) fn zeros_of() -> Run {
    of_lengths(&[ZEROS])
}

fn marks() -> Vec<Marks> {
    let marks = |code, fires, instead, without| Marks { code, fires, instead, without };
    let whole = HeldBy { whole: 10, ..HeldBy::default() };
    vec![
        marks(
            "free-without-context",
            tensors(&[ZEROS]).unfreed(5 * 4_096),
            "tensor-kept",
            tensors(&[ZEROS]).unfreed(4 * 4_096),
        ),
        marks(
            "device-recreated",
            tensors(&[ZEROS]).devices(GPU, 10).on_new_devices(5),
            "tensor-kept",
            tensors(&[ZEROS]).devices(GPU, 10).on_new_devices(4),
        ),
        marks(
            "optimizer-recreated",
            tensors(&[ZEROS, "candle_nn::optim::AdamW::new"]),
            "tensor-kept",
            tensors(&[ZEROS, "app::optim::AdamW::new"]),
        ),
        marks(
            "grad-store-kept",
            tensors(&[MATMUL, "candle_core::backprop::Tensor::backward"]),
            "tensor-kept",
            tensors(&[MATMUL, "app::backward"]),
        ),
        marks(
            "variables-copied",
            tensors(&["candle_core::tensor::Tensor::copy"]).held(HeldBy { graph: 10, ..whole }),
            "view-keeps-storage",
            tensors(&["candle_core::tensor::Tensor::copy"]).held(HeldBy {
                views: 10,
                view_bytes: 4,
                ..HeldBy::default()
            }),
        ),
        marks(
            "graph-kept",
            held(HeldBy { graph: 5, ..whole }),
            "tensor-kept",
            held(HeldBy { graph: 4, ..whole }),
        ),
        marks(
            "view-keeps-storage",
            held(HeldBy { views: 5, view_bytes: 128, ..HeldBy::default() }),
            "tensor-kept",
            held(HeldBy { views: 4, view_bytes: 128, whole: 6, ..HeldBy::default() }),
        ),
        marks(
            "batches-kept",
            tensors(&["candle_core::tensor::Tensor::from_vec"]),
            "tensor-kept",
            leak(&["candle_core::tensor::Tensor::from_vec"]),
        ),
        marks(
            "cache-by-shape",
            masks()
                .via("candle_mi::util::masks::causal", "candle-mi-0.2.2/src/util/masks.rs", 97)
                .map_of("candle_mi::util::masks::causal"),
            "batches-kept",
            masks(),
        ),
        marks("cache-never-cleared", cache(4, 10), "cache-grows", cache(1, 10)),
        marks(
            "cache-never-cleared",
            tensors(&[MATMUL, "candle_nn::kv_cache::KvCache::append"]),
            "tensor-kept",
            tensors(&[MATMUL, "app::kv_cache::KvCache::append"]),
        ),
        marks("cache-grows", cache(1, 10), "tensor-kept", tensors(&[MATMUL])),
        marks(
            "outputs-collected",
            tensors(&["candle_nn::ops::softmax"]).tensors(&[&[2, 16, 16]]).scope("decoder.attn"),
            "tensor-kept",
            tensors(&["candle_nn::ops::softmax"]).tensors(&[&[2, 16, 16]]).scope("decoder"),
        ),
        marks("tensor-kept", leak(&[MATMUL]), "buffers-kept", leak(&["serde_json::to_vec"])),
        marks("buffers-kept", leak(&[]), "tensor-kept", tensors(&[])),
    ]
}

fn cause(run: Run) -> Option<String> {
    let record = run.record();
    diagnose(&Evidence::of(&record, GPU)?).map(|cause| cause.code)
}

#[test]
fn every_mistake_is_recognized_only_if_its_conditions_hold() {
    let mut seen = Vec::new();
    for Marks { code, fires, instead, without } in marks() {
        assert_eq!(cause(fires).as_deref(), Some(code));
        assert_eq!(cause(without).as_deref(), Some(instead), "without the marks of {code}");
        seen.push(code);
    }
    for rule in RULES.iter().filter(|rule| rule.class == RuleClass::Mistake) {
        assert!(seen.contains(&rule.code), "{}", rule.code);
    }
}

#[test]
fn a_cause_explains_at_least_half_of_the_growth() {
    let with = |block| tensors(&[MATMUL]).place(&["serde_json::to_vec"], steady(block));
    assert_eq!(cause(with(4_096)).as_deref(), Some("tensor-kept"));
    assert_eq!(cause(with(4_097)).as_deref(), Some("buffers-kept"));
    assert_eq!(cause(Run::default().place(&[MATMUL], once(4_096, 3))), None);
    // Most of the growth has no call site, so it has no cause.
    assert_eq!(cause(tensors(&[MATMUL]).unplaced(steady(4_097))), None);
    let scattered = (0..10).fold(Run::default(), |run, at| run.place(&[MATMUL], once(4_096, at)));
    let scattered = scattered.unplaced(steady(4_096));
    assert_eq!(cause(scattered).as_deref(), Some("tensor-kept"));
}

#[test]
fn one_refused_free_does_not_explain_a_scattered_leak() {
    let scattered = |refused| {
        let lines = (0..10).fold(Run::default(), |run, at| {
            run.place(&[ZEROS], once(4_096, at)).unfreed(if at < refused { 4_096 } else { 0 })
        });
        cause(lines.unplaced(steady(4_096)))
    };
    assert_eq!(scattered(1).as_deref(), Some("tensor-kept"));
    assert_eq!(scattered(6).as_deref(), Some("free-without-context"));
}

#[test]
fn refused_frees_of_small_blocks_do_not_explain_large_ones() {
    let with_small_blocks = |large| {
        let small = Run::default().place(&[MATMUL], kept(8, [9; 10], grows(Pattern::Steady, 72)));
        cause(small.unfreed(720).place(&[ZEROS], steady(4_096)).unfreed(large).failed_frees(100))
    };
    assert_eq!(with_small_blocks(0).as_deref(), Some("tensor-kept"));
    assert_eq!(with_small_blocks(20_480).as_deref(), Some("free-without-context"));
}

fn retained(run: Run) -> Option<String> {
    let record = run.record();
    diagnose_retained(&Evidence::of(&record, GPU)?).map(|cause| cause.code)
}

#[test]
fn retained_memory_has_the_cause_of_the_growth_only_if_it_grew() {
    let grown = || tensors(&[MATMUL]).retained(10, 40_960);
    assert_eq!(retained(grown()).as_deref(), Some("tensor-kept"));
    let other = tensors(&[MATMUL]).place(&[ZEROS], once(8_192, 2)).retained(1, 8_192);
    assert_eq!(retained(other), None);
    let nothing_grew = Run::default().place(&[], once(4_096, 3)).retained(1, 4_096);
    assert_eq!(retained(nothing_grew), None);
    let less = grown().place(&[ZEROS], once(8_192, 2)).retained(1, 40_961);
    assert_eq!(retained(less), None);
}

#[test]
fn only_a_buffer_above_its_average_size_keeps_the_largest_input() {
    let left = |made: (u64, u64)| {
        Run::default().place(&[ZEROS], once(8_192, 2)).totals(made.0, made.1).retained(1, 8_192)
    };
    assert_eq!(retained(left((3, 12_288))).as_deref(), Some("cache-keeps-largest"));
    assert_eq!(retained(left((3, 3 * 8_192))), None, "all are alike");
    assert_eq!(retained(left((1, 8_192))), None, "it is the only one");
    let workspace = "candle_core::quantized::cuda::workspace";
    let of_candle = Run::default().place(&[workspace], once(8_192, 2)).retained(2, 16_384);
    assert_eq!(retained(of_candle).as_deref(), Some("cache-keeps-largest"));
    let of_others = Run::default().place(&["app::workspace"], once(8_192, 2)).retained(2, 16_384);
    assert_eq!(retained(of_others), None);
}

#[test]
fn refused_frees_are_the_cause_of_the_blocks_that_they_left() {
    let left = |bytes| {
        let run = Run::default().place(&[ZEROS], once(8_192, 2)).retained(4, 32_768);
        run.failed_frees(4).unfreed_at_end(bytes)
    };
    assert_eq!(retained(left(16_384)).as_deref(), Some("free-without-context"));
    assert_eq!(retained(left(16_383)), None);
}

#[test]
fn a_pattern_that_resembles_growth_is_not_a_cause() {
    let reading = rests(Pattern::Replaced, 4_096, 10);
    let ring = kept(512, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1], reading);
    let run = Run::default().place(&[MATMUL], ring).tensors(&[&[2, 64], &[4, 32]]);
    assert_eq!(cause(run.unplaced(steady(512))).as_deref(), Some("tensor-kept"));
}

#[test]
fn a_pattern_that_resembles_growth_gets_a_remark_and_growth_does_not() {
    let remark = |run: Run| {
        let record = run.record();
        let evidence = Evidence::of(&record, GPU).unwrap();
        remark(&[&evidence.suspects[0]], &evidence).map(|cause| cause.code)
    };
    let ratchet = [1024, 1024, 4096, 4096, 4096, 4096, 8192, 8192, 8192, 8192];
    let largest =
        Run::default().place(&[ZEROS], buffer(ratchet, rests(Pattern::Ratchet, 8_192, 7)));
    assert_eq!(remark(largest).as_deref(), Some("cache-keeps-largest"));
    let latest = |shapes: &[&[u64]]| {
        let births = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        let young = kept(4, births, rests(Pattern::LastKept, 8, 10));
        Run::default().place(&[ZEROS], young).tensors(shapes)
    };
    assert_eq!(remark(latest(&[&[2, 3], &[2, 5]])).as_deref(), Some("variable-shapes"));
    assert_eq!(remark(latest(&[&[2, 3]])), None);
    let leak = leak(&[ZEROS]).tensors(&[&[2, 3], &[2, 5]]);
    assert_eq!(remark(leak), None, "that is a leak");
}
