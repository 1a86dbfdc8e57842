//! The table of causes and neighbours: programs of different shape, each with the only cause that it
//! may get. A cause fires on at least three of them, and on none of the others.

use std::collections::BTreeMap;

use super::tests::{MATMUL, ZEROS, cache, masks, tensors, zeros_of};
use super::*;
use crate::growth::survivors::Pattern;
use crate::measurement::attribution::HeldBy;
use crate::measurement::attribution::builder::{
    Run, buffer, enlarged, grows, kept, of_sizes, once, rests, steady,
};
use crate::measurement::record::example::GPU;
use crate::measurement::stack::Passage;
use crate::space::Space;

const COPY: &str = "candle_core::tensor::Tensor::copy";
const RELU: &str = "candle_core::tensor::Tensor::relu";
const RANDN: &str = "candle_core::tensor::Tensor::randn";
const SOFTMAX: &str = "candle_nn::ops::softmax_last_dim";
const BACKWARD: &str = "candle_core::backprop::Tensor::backward";
const APPEND: &str = "candle_nn::kv_cache::Cache::append";

/// How a program of the table is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Examined {
    Growth,
    Remaining,
    Remarked,
}

type Row = (&'static str, Examined, Option<&'static str>, Run);

fn graph(blocks: u64) -> HeldBy {
    HeldBy { whole: 10, graph: blocks, ..HeldBy::default() }
}

fn whole() -> HeldBy {
    graph(0)
}

fn variables() -> HeldBy {
    HeldBy { variables: 10, ..whole() }
}

fn view(view_bytes: u64) -> HeldBy {
    HeldBy { views: 10, view_bytes, ..HeldBy::default() }
}

/// Two tensors in each iteration, one of each layer.
fn of_layers(functions: &[&str], shape: &[u64]) -> Run {
    let group = kept(4_096, [2; 10], grows(Pattern::Steady, 8_192));
    Run::default().place(functions, group).tensors(&[shape])
}

fn row(name: &'static str, cause: &'static str, run: Run) -> Row {
    (name, Examined::Growth, Some(cause), run)
}

fn refused_and_reopened() -> Vec<Row> {
    let scattered = |refused| {
        let lines = (0..10).fold(Run::default(), |run, at| {
            run.place(&[ZEROS], once(4_096, at)).unfreed(if at < refused { 4_096 } else { 0 })
        });
        lines.unplaced(steady(4_096))
    };
    let reopened = |functions| tensors(functions).devices(GPU, 10);
    vec![
        row("dropped on a thread", "free-without-context", tensors(&[ZEROS]).unfreed(40_960)),
        row(
            "two tensors dropped on a thread",
            "free-without-context",
            tensors(&[MATMUL]).unfreed(40_960).place(&[RELU], steady(512)).unfreed(5_120),
        ),
        row("dropped at many lines", "free-without-context", scattered(6)),
        row("dropped at a few of many lines", "tensor-kept", scattered(1)),
        row(
            "tasks that never end, whose tensors are refused at the end",
            "tensor-kept",
            tensors(&[ZEROS]).held(whole()).through(Passage::Task).failed_frees(10),
        ),
        row(
            "buffers of a list, and as many scalars that are dropped on a thread",
            "tensor-kept",
            tensors(&[ZEROS]).place(&[MATMUL], steady(4)).unfreed(40).failed_frees(10),
        ),
        row("weights of each device", "device-recreated", reopened(&[ZEROS]).on_new_devices(10)),
        row(
            "workspace of each device",
            "device-recreated",
            reopened(&["candle_core::quantized::cuda::workspace"]),
        ),
        row(
            "a device in every second iteration",
            "device-recreated",
            Run::default()
                .place(
                    &[MATMUL],
                    kept(64, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], grows(Pattern::Periodic, 32)),
                )
                .on_new_devices(5)
                .devices(GPU, 5),
        ),
        row("one device", "tensor-kept", tensors(&[ZEROS]).devices(GPU, 1).on_new_devices(1)),
        row("another GPU", "tensor-kept", tensors(&[ZEROS]).devices(Space::Cuda(1), 10)),
        row(
            "a list on one device while others are opened and dropped",
            "tensor-kept",
            reopened(&[ZEROS]),
        ),
    ]
}

fn training() -> Vec<Row> {
    let adam = "candle_nn::optim::AdamW::new";
    let backward = |group| Run::default().place(&[MATMUL, BACKWARD], group).tensors(&[&[8, 8]]);
    let step = "candle_nn::optim::Optimizer::backward_step";
    let periodic = kept(64, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], grows(Pattern::Periodic, 32));
    vec![
        row("moments of each epoch", "optimizer-recreated", tensors(&[ZEROS, adam])),
        row(
            "an optimizer of two variables",
            "optimizer-recreated",
            tensors(&[ZEROS, adam]).place(&[ZEROS, adam], steady(4_096)),
        ),
        row(
            "state in a step",
            "optimizer-recreated",
            tensors(&[MATMUL, "candle_nn::optim::SGD::step"]),
        ),
        row("the program's own optimizer", "tensor-kept", tensors(&[ZEROS, "app::AdamW::new"])),
        row(
            "models of each fold with their optimizers",
            "tensor-kept",
            tensors(&[RANDN]).held(variables()).place(&[ZEROS, adam], steady(8_192)),
        ),
        row(
            "optimizers, and a variable of a schedule",
            "optimizer-recreated",
            Run::default()
                .place(&[RANDN], steady(64))
                .held(variables())
                .place(&[ZEROS, adam], steady(8_192)),
        ),
        row("a store of each step", "grad-store-kept", backward(steady(4_096))),
        row("a store in every second step", "grad-store-kept", backward(periodic)),
        row("gradients in a step", "grad-store-kept", tensors(&[MATMUL, BACKWARD, step])),
        row("the program's own backward pass", "tensor-kept", tensors(&[MATMUL, "app::backward"])),
        row("snapshots of a weight", "variables-copied", tensors(&[COPY]).held(graph(10))),
        row(
            "snapshots of a weight and a bias",
            "variables-copied",
            tensors(&[COPY]).held(graph(10)).place(&[COPY], steady(256)).held(graph(10)),
        ),
        row(
            "a snapshot in every second step",
            "variables-copied",
            Run::default()
                .place(
                    &[COPY],
                    kept(64, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], grows(Pattern::Periodic, 32)),
                )
                .held(HeldBy { whole: 5, graph: 5, ..HeldBy::default() }),
        ),
        row("`relu()?.copy()?` without a variable", "tensor-kept", tensors(&[COPY]).held(whole())),
        row(
            "a copy of what a variable computed",
            "graph-kept",
            tensors(&[MATMUL]).held(graph(10)).place(&[COPY], steady(4_096)).held(graph(10)),
        ),
        row("a loss", "graph-kept", tensors(&[MATMUL]).held(graph(10))),
        row(
            "a loss of three lines",
            "graph-kept",
            tensors(&[MATMUL]).held(graph(10)).place(&[RELU], steady(4_096)).held(graph(10)),
        ),
        row("a loss that is half detached", "graph-kept", tensors(&[MATMUL]).held(graph(5))),
        row("a detached loss", "tensor-kept", tensors(&[MATMUL]).held(graph(4))),
    ]
}

fn views_and_batches() -> Vec<Row> {
    let narrow = "candle_core::tensor::Tensor::narrow";
    let from_slice = "candle_core::tensor::Tensor::from_slice";
    let new = "candle_core::tensor::Tensor::new";
    let arange = "candle_core::tensor::Tensor::arange";
    vec![
        row("the last row of logits", "view-keeps-storage", tensors(&[MATMUL]).held(view(256))),
        row("half of a tensor", "view-keeps-storage", tensors(&[MATMUL]).held(view(2_048))),
        row("a view of a copy", "view-keeps-storage", tensors(&[COPY, narrow]).held(view(4))),
        row("a view of 3,968 of 4,096 bytes", "tensor-kept", tensors(&[MATMUL]).held(view(3_968))),
        row(
            "some views",
            "tensor-kept",
            tensors(&[MATMUL]).held(HeldBy { views: 4, whole: 6, view_bytes: 4, ..whole() }),
        ),
        row("a loader's batches", "batches-kept", tensors(&[from_slice])),
        row("batches of a `Vec`", "batches-kept", tensors(&[]).held(whole())),
        row("a queue of ids", "batches-kept", of_layers(&[from_slice], &[8, 64])),
        row("positions of each step", "tensor-kept", of_layers(&[arange], &[8, 64])),
        row("noise of each step", "tensor-kept", tensors(&[RANDN]).place(&[], steady(16))),
        row(
            "a constant of each step",
            "tensor-kept",
            Run::default().place(&[new], steady(4)).tensors(&[&[]]),
        ),
        row("variables from data", "tensor-kept", tensors(&[from_slice]).held(variables())),
        row(
            "weights that are loaded again",
            "tensor-kept",
            tensors(&[from_slice, "candle_core::safetensors::Load::load"]),
        ),
        row(
            "masks that a model makes",
            "tensor-kept",
            tensors(&[from_slice, "candle_transformers::models::llama::Cache::mask"]),
        ),
        row("a computed tensor", "tensor-kept", tensors(&[MATMUL])),
    ]
}

fn caches() -> Vec<Row> {
    let llama = "candle-transformers-0.11.1/src/models/llama.rs";
    let forward = "candle_transformers::models::llama::Llama::forward";
    let mask = "candle_transformers::models::llama::Cache::mask";
    let by_token = cache(4, 10).calls(4);
    let steps = kept(1_024, [1; 10], grows(Pattern::Steady, 1_024));
    let two_layers = || {
        let level = |at: usize| 512 * (10 + at as u64);
        let group = buffer(std::array::from_fn(level), grows(Pattern::Enlarged, 512));
        let mut group = group;
        group.live = vec![2; 10];
        let run = Run::default().place(&["candle_core::tensor_cat::Tensor::cat"], group);
        let lengths: Vec<[u64; 3]> = (10..20).map(|length| [1, length, 64]).collect();
        let lengths: Vec<&[u64]> = lengths.iter().map(|shape| &shape[..]).collect();
        run.tensors(&[&[1, 19, 64]]).types(&lengths).calls(2)
    };
    let capacity = buffer([1, 1, 1, 1, 5, 5, 5, 5, 9, 9].map(|kib| 1_024 * kib), {
        let reading = grows(Pattern::Enlarged, 1_024);
        crate::growth::survivors::Reading { period: 4, bytes: 4_096, ..reading }
    });
    vec![
        row("a model's masks", "cache-by-shape", masks().via(mask, llama, 97).map_of(mask)),
        row("the program's own map of masks", "cache-by-shape", masks().map_of("app::step")),
        row("a closure for a missing entry", "cache-by-shape", masks().through(Passage::Map)),
        row("a list of batches of every length", "batches-kept", masks()),
        row("a list of zeros of every length", "tensor-kept", zeros_of()),
        row(
            "a list, and a map of another function",
            "tensor-kept",
            zeros_of().map_of("app::other"),
        ),
        row(
            "a list of every length, and a map of counts in the same function",
            "batches-kept",
            masks().map_of("app::step").list_of("app::step", 128),
        ),
        row(
            "masks in a map of a model, and a list of its outputs",
            "cache-by-shape",
            masks().via(mask, llama, 97).map_of(mask).list_of("app::step", 128),
        ),
        row(
            "a map of masks, and a list that is too short for them",
            "cache-by-shape",
            masks().map_of("app::step").list_of("app::step", 64),
        ),
        row("a list of a model's outputs", "tensor-kept", zeros_of().via(forward, llama, 3)),
        row(
            "outputs of repeated lengths, and a map of counts",
            "tensor-kept",
            zeros_of().map_of("app::step").totals(20, 40_960),
        ),
        row("a request of four positions", "cache-never-cleared", cache(4, 10)),
        row("a request of four tokens", "cache-never-cleared", by_token),
        row(
            "sessions that never end",
            "cache-never-cleared",
            Run::default().place(&[MATMUL, APPEND], steps).tensors(&[&[1, 4, 64]]),
        ),
        row("a token in each iteration", "cache-grows", cache(1, 10)),
        row("two layers with a token in each iteration", "cache-grows", two_layers()),
        row(
            "room for four tokens at once",
            "cache-grows",
            Run::default().place(&[ZEROS, APPEND], capacity).tensors(&[&[9, 256]]),
        ),
        row(
            "a buffer that a library replaces",
            "cache-grows",
            Run::default().place(&[], enlarged(64)),
        ),
    ]
}

fn outputs() -> Vec<Row> {
    let hidden = "app::hidden_states::Layer::block";
    vec![
        row("weights of two layers", "outputs-collected", of_layers(&[SOFTMAX], &[2, 16, 16])),
        row(
            "weights of one layer in attention",
            "outputs-collected",
            tensors(&["candle_nn::ops::softmax"]).tensors(&[&[1, 2, 16, 16]]).scope("decoder.attn"),
        ),
        row("weights of a decoder", "outputs-collected", of_layers(&[SOFTMAX], &[1, 8, 1, 64])),
        row("states of a server", "tensor-kept", of_layers(&[MATMUL, hidden], &[16, 32])),
        row("a state of each Mamba block", "tensor-kept", of_layers(&[RELU, hidden], &[1, 32, 16])),
        row("a projection in attention", "tensor-kept", tensors(&[MATMUL]).scope("decoder.attn")),
        row("probabilities of tokens", "tensor-kept", of_layers(&[SOFTMAX], &[8, 512])),
        row(
            "a softmax over an image",
            "tensor-kept",
            tensors(&[SOFTMAX]).tensors(&[&[1, 21, 64, 64]]),
        ),
        row("a task that waits", "tensor-kept", tensors(&[ZEROS]).through(Passage::Task)),
        row("a thread that waits", "tensor-kept", tensors(&[ZEROS]).through(Passage::Thread)),
        row("strings", "buffers-kept", Run::default().place(&["serde_json::to_vec"], steady(64))),
        row("bytes of every size", "buffers-kept", Run::default().place(&[], of_sizes([9; 10]))),
        row(
            "a vector that doubles",
            "buffers-kept",
            Run::default().place(&[], buffer([64; 10], grows(Pattern::Amortized, 8))),
        ),
    ]
}

fn bounded() -> Vec<Row> {
    let remains = |name, cause, run: Run| (name, Examined::Remaining, cause, run);
    let remarked = |name, cause, run| (name, Examined::Remarked, cause, run);
    let left = |functions: &[&str], made: (u64, u64)| {
        Run::default().place(functions, once(8_192, 2)).totals(made.0, made.1).retained(1, 8_192)
    };
    let largest = Some("cache-keeps-largest");
    let ratchet = [1_024, 1_024, 4_096, 4_096, 4_096, 4_096, 8_192, 8_192, 8_192, 8_192];
    let resting = |pattern, births, shapes: &[&[u64]]| {
        Run::default().place(&[ZEROS], kept(64, births, rests(pattern, 64, 10))).tensors(shapes)
    };
    let last = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
    let ring = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    let shapes: &[&[u64]] = &[&[2, 3], &[2, 5]];
    let sizes = [1_024, 4_096, 2_048, 8_192, 1_024, 4_096, 2_048, 8_192, 1_024, 2_048];
    let variable = Some("variable-shapes");
    vec![
        remains("a workspace of the largest request", largest, left(&[ZEROS], (3, 12_288))),
        remains("a cache that is reset", largest, left(&[ZEROS, APPEND], (6, 24_576))),
        remains(
            "candle's workspace",
            largest,
            left(&["candle_core::quantized::cuda::workspace"], (1, 8_192)),
        ),
        remains("one of equal blocks", None, left(&[ZEROS], (3, 3 * 8_192))),
        remains(
            "blocks that the driver kept",
            Some("free-without-context"),
            left(&[ZEROS], (1, 8_192)).unfreed_at_end(8_192),
        ),
        remarked(
            "a buffer of the largest input",
            largest,
            Run::default().place(&[ZEROS], buffer(ratchet, rests(Pattern::Ratchet, 8_192, 7))),
        ),
        remarked("the last two texts", variable, resting(Pattern::LastKept, last, shapes)),
        remarked("a ring of texts", variable, resting(Pattern::Replaced, ring, shapes)),
        remarked(
            "a ring of many lengths",
            variable,
            resting(Pattern::Replaced, ring, &[&[9, 9], &[3, 3], &[2, 2]]),
        ),
        remarked(
            "the last image",
            variable,
            Run::default()
                .place(&[ZEROS], buffer(sizes, rests(Pattern::LastKept, 2_048, 10)))
                .tensors(&[&[2, 3]]),
        ),
        remarked(
            "the last image, of a size that never changes",
            None,
            Run::default()
                .place(&[ZEROS], buffer([2_048; 10], rests(Pattern::LastKept, 2_048, 10)))
                .tensors(&[&[2, 3]]),
        ),
        remarked("texts of one length", None, resting(Pattern::LastKept, last, &[&[2, 3]])),
        remarked("a cache that filled", None, resting(Pattern::Filled, ring, shapes)),
    ]
}

fn rows() -> Vec<Row> {
    [refused_and_reopened(), training(), views_and_batches(), caches(), outputs(), bounded()]
        .into_iter()
        .flatten()
        .collect()
}

fn cause_of(examined: Examined, run: Run) -> Option<String> {
    let record = run.record();
    let evidence = Evidence::of(&record, GPU).unwrap();
    let cause = match examined {
        Examined::Growth => diagnose(&evidence),
        Examined::Remaining => diagnose_retained(&evidence),
        Examined::Remarked => remark(&evidence.suspects.iter().collect::<Vec<_>>(), &evidence),
    };
    cause.map(|cause| cause.code)
}

#[test]
fn each_cause_fires_on_three_programs_and_on_no_neighbour() {
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, examined, cause, run) in rows() {
        assert_eq!(cause_of(examined, run).as_deref(), cause, "{name}");
        *programs.entry(cause.unwrap_or_default()).or_default() += 1;
    }
    for rule in RULES {
        assert!(programs.get(rule.code).is_some_and(|&count| count >= 3), "{}", rule.code);
    }
}

#[test]
fn the_cause_of_a_cache_is_the_same_after_every_number_of_iterations() {
    // Each width and each length of the past has iterations in which another dimension divides, too.
    for width in [16, 64, 256] {
        for past in 0..200 {
            let cause = |positions| {
                let run = super::tests::cache_of(positions, past, width);
                cause_of(Examined::Growth, run)
            };
            assert_eq!(cause(1).as_deref(), Some("cache-grows"), "{width} {past}");
            assert_eq!(cause(7).as_deref(), Some("cache-never-cleared"), "{width} {past}");
        }
    }
}

#[test]
fn the_evidence_names_the_task_thread_channel_map_or_list_that_the_stacks_show() {
    let evidence = |run: Run| {
        let record = run.record();
        diagnose(&Evidence::of(&record, GPU).unwrap()).unwrap().evidence
    };
    for (passage, question) in [
        (Passage::Task, "a task of an async runtime made them: does it end?"),
        (Passage::Thread, "a thread that the program started made them: does it end?"),
        (Passage::Channel, "the same function sends to a channel: are its messages received?"),
        (Passage::Map, "the same function adds to a map: are its entries removed?"),
    ] {
        let text = evidence(tensors(&[ZEROS]).through(passage));
        assert_eq!(text, format!("10 tensors survive, such as [32,32] f32; {question}"));
        let text = evidence(Run::default().place(&[], steady(64)).through(passage));
        assert_eq!(text, format!("10 surviving blocks do not belong to a tensor; {question}"));
    }
    let kept = "10 tensors survive, such as [32,32] f32";
    assert_eq!(evidence(tensors(&[ZEROS])), kept);
    let list = |function, bytes| tensors(&[ZEROS]).list_of(function, bytes);
    let adds = format!("{kept}; src/step.rs:99 adds to a list");
    assert_eq!(evidence(list("app::step", 128)), format!("{adds}: are the entries removed?"));
    let both = evidence(list("app::step", 80).map_of("app::step"));
    assert_eq!(both, format!("{adds}, and the same function to a map: are the entries removed?"));
    // One that is too short, that of another function, and one of two.
    assert_eq!(evidence(list("app::step", 72)), kept);
    assert_eq!(evidence(list("app::other", 128)), kept);
    assert_eq!(evidence(list("app::step", 128).list_of("app::step", 512)), kept);
}
