//! The rows about causes: each leak of a row must be found with its code, exact bytes, line,
//! pattern and cause, and its fixed twin must have no growth, on both legs.

use std::collections::BTreeSet;

use memcheck_core::judgement::diagnosis::RULES;
use memcheck_tests::scenarios::shapes::{REMARKED, UNEVEN, uneven};
use memcheck_tests::scenarios::{Family, named};

use super::{LEGS, assert_passed, device, workloads};
use crate::detection::{assert_pair, assert_uneven, on, remarks};

/// Gradients and their stores, losses and metrics that are kept as tensors.
const GRADIENTS: [&str; 6] = [
    "gradients_of_micro_batches",
    "stores_of_every_step",
    "store_of_every_fourth_step",
    "total_of_losses",
    "history_of_losses",
    "perplexity_of_every_step",
];

/// Caches of keys and values: never cleared, growing with the position, or kept at their largest
/// size.
const CACHES: [&str; 6] = [
    "one_cache_for_all_requests",
    "model_without_a_way_to_clear",
    "sessions_that_never_end",
    "concatenated_at_every_token",
    "capacity_that_grows_in_steps",
    "cache_of_the_longest_request",
];

/// Additional outputs of a model.
const OUTPUTS: [&str; 2] = ["attention_weights", "hidden_states_of_every_layer"];

/// A loader that keeps its batches, its queue and its worker.
const LOADERS: [&str; 3] =
    ["loader_that_keeps_every_batch", "queue_without_a_bound", "worker_that_outlives_its_epoch"];

/// Other accumulated memory: tensors, views, optimizers, devices.
const OTHERS: [&str; 9] = [
    "results_in_a_static",
    "last_row_of_logits",
    "contiguous_at_batch_one",
    "first_token_of_every_text",
    "optimizer_of_every_epoch",
    "snapshots_of_a_weight",
    "device_of_every_request",
    "device_dropped_late",
    "dropped_without_a_context",
];

fn assert_pairs(pairs: &[&str]) {
    for pair in pairs {
        let legs = LEGS.into_iter().filter(|&leg| assert_pair(named(pair), leg)).count();
        assert!(legs > 0, "{pair} runs on no leg");
    }
}

#[test]
fn row_08_gradients_that_are_never_cleared() {
    assert_pairs(&GRADIENTS);
}

#[test]
fn row_09_attention_caches_and_gradient_checkpointing() {
    assert_pairs(&CACHES);
    assert_pairs(&OUTPUTS);
    let (plain, checkpointed) = ("checkpointing::train_plain", "checkpointing::train_checkpointed");
    for leg in LEGS {
        assert_passed(leg, &[plain, checkpointed]);
        let figure = |test: &str, name: &str| -> u64 {
            let metrics =
                workloads(leg).test(test)["metrics"][crate::detection::space(leg)].clone();
            metrics[name].as_u64().expect("a figure")
        };
        assert_eq!(figure(checkpointed, "growth"), 0);
        let (plain, checkpointed) =
            (figure(plain, "peak_allocated"), figure(checkpointed, "peak_allocated"));
        assert!(10 * checkpointed < 4 * plain, "{checkpointed} of {plain}");
    }
    for layers in [4, 16, 36, 64] {
        assert_passed(Family::Cuda, &[&format!("checkpointing::peaks::layers_{layers}")]);
    }
}

#[test]
fn row_10_batches_that_a_loader_keeps() {
    assert_pairs(&LOADERS);
    LEGS.into_iter().for_each(|leg| assert_uneven(uneven("last_batch_of_an_epoch"), leg));
}

#[test]
fn row_17_steady_growth_has_its_cause_and_its_remedy() {
    let all = [&GRADIENTS[..], &CACHES, &OUTPUTS, &LOADERS, &OTHERS].concat();
    assert_pairs(&all);
    let (mut causes, mut with_lines) = (BTreeSet::new(), 0);
    for pair in all {
        let finding = on(Family::Cuda).test(&named(pair).leaky_test())["findings"][0].clone();
        let rule = RULES.iter().find(|rule| finding["cause"]["code"] == rule.code);
        let rule = rule.unwrap_or_else(|| panic!("{pair} has no known cause: {finding}"));
        // It names the lines, or is the general one of the rule.
        let remedy = finding["cause"]["remedy"].as_str().expect("a remedy");
        let names_line = remedy.contains(".rs:");
        assert!(names_line || remedy == rule.remedy, "{pair}: {remedy}");
        with_lines += u32::from(names_line);
        causes.insert(rule.code);
    }
    assert!(with_lines >= 12, "{with_lines}");
    assert!(causes.len() >= 12, "{causes:?}");
}

#[test]
fn row_18_uneven_memory_is_explained_and_is_no_leak() {
    for leg in LEGS {
        UNEVEN.iter().for_each(|uneven| assert_uneven(uneven, leg));
        for remarked in REMARKED {
            assert_eq!(remarks(device(leg), &remarked.uneven_test()), [remarked.cause]);
            assert_eq!(remarks(device(leg), &remarked.even_test()), [""; 0]);
        }
    }
}
