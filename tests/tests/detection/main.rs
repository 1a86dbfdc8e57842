//! The corpus of `memcheck_tests::scenarios` as memory tests. `leaky` tests are ignored in an
//! ordinary run, and `fixed` has the twin of each. A profile must remark on the `uneven` tests and
//! not on the `even` ones. Random clean programs follow.
//!
//! The functional tests and the benchmark `detection` run these tests and compare the findings with
//! the expectations of the scenarios.

mod clean;

mod uneven {
    use memcheck_runtime::{Trial, mem_test};
    use memcheck_tests::scenarios::shapes::{remarked, uneven};

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn texts_of_every_length(trial: &mut Trial) -> anyhow::Result<()> {
        (remarked("texts_of_every_length").uneven)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn images_of_every_size(trial: &mut Trial) -> anyhow::Result<()> {
        (remarked("images_of_every_size").uneven)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn requests_of_every_batch(trial: &mut Trial) -> anyhow::Result<()> {
        (remarked("requests_of_every_batch").uneven)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn layers_by_condition(trial: &mut Trial) -> anyhow::Result<()> {
        (uneven("layers_by_condition").program)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn cache_that_is_trimmed(trial: &mut Trial) -> anyhow::Result<()> {
        (uneven("cache_that_is_trimmed").program)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn last_batch_of_an_epoch(trial: &mut Trial) -> anyhow::Result<()> {
        (uneven("last_batch_of_an_epoch").program)(trial)
    }
}

mod even {
    use memcheck_runtime::{Trial, mem_test};
    use memcheck_tests::scenarios::shapes::remarked;

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn texts_of_every_length(trial: &mut Trial) -> anyhow::Result<()> {
        (remarked("texts_of_every_length").even)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn images_of_every_size(trial: &mut Trial) -> anyhow::Result<()> {
        (remarked("images_of_every_size").even)(trial)
    }

    #[mem_test(baseline = false, max_growth = "0 B")]
    fn requests_of_every_batch(trial: &mut Trial) -> anyhow::Result<()> {
        (remarked("requests_of_every_batch").even)(trial)
    }
}

/// Two memory tests for each scenario, with the options that it needs. The scenarios after the
/// semicolon have no device.
macro_rules! mem_tests {
    (
        $($name:ident $(($($option:tt)*))?,)*
        ; $($alone:ident,)*
    ) => {
        mod leaky {
            use memcheck_runtime::{Trial, mem_test};
            use memcheck_tests::scenarios::{Program, named};

            $(
                #[mem_test(baseline = false, max_growth = "0 B" $(, $($option)*)?)]
                #[ignore = "leaks on purpose"]
                fn $name(trial: &mut Trial) -> anyhow::Result<()> {
                    let Program::Trial(body) = named(stringify!($name)).leaky else {
                        anyhow::bail!("the body has no device: list it after the semicolon");
                    };
                    body(trial)
                }
            )*
            $(
                #[mem_test(baseline = false, max_growth = "0 B")]
                #[ignore = "leaks on purpose"]
                fn $alone() {
                    let Program::Iteration(body) = named(stringify!($alone)).leaky else {
                        panic!("the body has a device: list it before the semicolon");
                    };
                    body();
                }
            )*
        }

        mod fixed {
            use memcheck_runtime::{Trial, mem_test};
            use memcheck_tests::scenarios::{Program, named};

            $(
                #[mem_test(baseline = false, max_growth = "0 B" $(, $($option)*)?)]
                fn $name(trial: &mut Trial) -> anyhow::Result<()> {
                    let Program::Trial(body) = named(stringify!($name)).fixed else {
                        anyhow::bail!("the body has no device: list it after the semicolon");
                    };
                    body(trial)
                }
            )*
            $(
                #[mem_test(baseline = false, max_growth = "0 B")]
                fn $alone() {
                    let Program::Iteration(body) = named(stringify!($alone)).fixed else {
                        panic!("the body has a device: list it before the semicolon");
                    };
                    body();
                }
            )*
        }
    };
}

mem_tests! {
    total_of_losses,
    history_of_losses,
    perplexity_of_every_step,
    state_between_windows,
    average_of_weights,
    stores_of_every_step,
    gradients_of_micro_batches,
    store_of_every_fourth_step(iterations = 12),
    optimizer_of_every_epoch,
    trials_of_a_search,
    phases_of_a_schedule,
    snapshots_of_a_weight,
    checkpoints_in_memory,
    weights_before_every_step,
    one_cache_for_all_requests,
    model_without_a_way_to_clear,
    sessions_that_never_end,
    concatenated_at_every_token,
    capacity_that_grows_in_steps(iterations = 20),
    masks_of_every_length(iterations = 11),
    masks_that_a_model_keeps,
    index_of_documents,
    positions_of_every_length,
    workspace_of_the_largest_request(max_retained = "0 B"),
    cache_of_the_longest_request(max_retained = "0 B"),
    workspace_of_quantized_products(device = "cuda", max_retained = "0 B"),
    last_row_of_logits,
    contiguous_at_batch_one,
    first_token_of_every_text,
    attention_weights,
    attention_of_every_image,
    weights_of_every_token,
    hidden_states_of_every_layer,
    loader_that_keeps_every_batch,
    queue_without_a_bound,
    worker_that_outlives_its_epoch,
    device_of_every_request(device = "cuda"),
    workspace_of_every_device(device = "cuda", max_retained = "17 MiB"),
    device_of_every_model(device = "cuda"),
    dropped_without_a_context(device = "cuda"),
    answers_of_a_worker(device = "cuda"),
    device_dropped_late(device = "cuda"),
    four_bytes_in_a_list(device = "cuda"),
    results_in_a_static,
    cycle_of_two_nodes,
    messages_that_nobody_reads,
    list_behind_a_pool,
    list_behind_inlined_helpers,
    list_in_a_nested_scope,
    every_third_time(iterations = 12),
    more_every_time(max_iterations = 200),
    larger_every_time,
    no_two_sizes_alike(iterations = 12),
    beside_a_ring_of_its_size(iterations = 12),
    ;
    one_kib_in_a_static,
    answers_by_prompt,
    boxes_leaked_for_a_lifetime,
}
