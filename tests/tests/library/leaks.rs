//! Checks the graphs and storages that each habit keeps.

use candle_core::{Device, Tensor};
use memcheck_tests::leaks::{KeptGradients, LastLogits, RunningLoss, Snapshots, WIDTH};

#[test]
fn a_running_loss_holds_its_graphs_until_it_is_detached() {
    let mut running = RunningLoss::new(&Device::Cpu).unwrap();
    running.leaky_step().unwrap();
    running.leaky_step().unwrap();
    // The weight, and for each step: product, relu, square, sum, sum without its dimensions, mean,
    // total.
    assert_eq!(running.total().sorted_nodes().len(), 1 + 2 * 7);
    let mut running = RunningLoss::new(&Device::Cpu).unwrap();
    running.fixed_step().unwrap();
    assert!(running.total().sorted_nodes().is_empty());
    assert_eq!(running.total().to_scalar::<f32>().unwrap(), (WIDTH * WIDTH) as f32);
}

#[test]
fn a_kept_store_has_the_gradient_of_the_input_too() {
    let mut kept = KeptGradients::new(&Device::Cpu).unwrap();
    kept.leaky_step().unwrap();
    kept.fixed_step().unwrap();
    assert_eq!(kept.stores()[0].get_ids().count(), 2);
    assert!(kept.stores()[0].get(kept.input()).is_some());
    assert!(kept.norms()[0] > 0.0);
}

#[test]
fn a_view_and_its_contiguous_twin_have_the_storage_of_all_logits() {
    let mut logits = LastLogits::new(&Device::Cpu).unwrap();
    logits.leaky_step().unwrap();
    logits.contiguous_step().unwrap();
    logits.copied_step().unwrap();
    let stored = |kept: &Tensor| match &*kept.storage_and_layout().0 {
        candle_core::Storage::Cpu(storage) => storage.as_slice::<f32>().unwrap().len() * 4,
        _ => unreachable!("the device is the CPU"),
    };
    let sizes = logits.kept().iter().map(stored).collect::<Vec<_>>();
    let all = LastLogits::LEAK_BYTES;
    assert_eq!(sizes, [all, all, LastLogits::ROW_BYTES]);
    logits.fixed_step().unwrap();
    assert_eq!(logits.tokens(), [0]);
}

#[test]
fn snapshots_are_kept_all_or_one() {
    let mut snapshots = Snapshots::new(&Device::Cpu).unwrap();
    for _ in 0..2 {
        snapshots.leaky_step().unwrap();
        snapshots.fixed_step().unwrap();
    }
    assert_eq!(snapshots.all().len(), 2);
    assert!(snapshots.latest().is_some());
}
