//! The transformer must train, and a kept loss must keep the bytes of the formula.

use std::collections::HashMap;

use candle_core::{Device, Tensor};
use memcheck_tests::training::{
    KEPT_LOSS_BYTES, KEPT_LOSS_SCALAR_BYTES, LAYERS, PARAMETERS, Trainer,
};

#[test]
fn every_parameter_gets_a_gradient_that_is_not_zero() {
    let trainer = Trainer::new(&Device::Cpu).unwrap();
    let gradients = trainer.loss().unwrap().backward().unwrap();
    let vars = trainer.vars().data().lock().unwrap();
    assert_eq!(vars.len(), 4 + 8 * LAYERS);
    for (name, var) in vars.iter() {
        let gradient = gradients.get(var).unwrap_or_else(|| panic!("{name} has no gradient"));
        let size = gradient.abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(size.is_finite() && size > 0.0, "{name}: {size}");
    }
}

#[test]
fn the_parameter_formula_agrees_with_the_model() {
    let trainer = Trainer::new(&Device::Cpu).unwrap();
    let held = trainer.vars().all_vars().iter().map(|var| var.elem_count()).sum::<usize>();
    assert_eq!(held, PARAMETERS);
}

#[test]
fn the_loss_falls() {
    let mut trainer = Trainer::new(&Device::Cpu).unwrap();
    for _ in 0..10 {
        trainer.fixed_step().unwrap();
    }
    let history = trainer.history();
    assert!(history.iter().all(|loss| loss.is_finite()));
    assert!(history[9] < 0.7 * history[0], "{} -> {}", history[0], history[9]);
}

/// Walks the graph of a loss and adds up the distinct storages in it, minus those of the
/// parameters.
#[test]
fn the_graph_of_a_loss_has_the_bytes_of_its_formula() {
    let trainer = Trainer::new(&Device::Cpu).unwrap();
    let loss = trainer.loss().unwrap();
    let storage = |tensor: &Tensor| {
        let (guard, layout) = tensor.storage_and_layout();
        let candle_core::Storage::Cpu(candle_core::CpuStorage::F32(values)) = &*guard else {
            panic!("{:?} {layout:?}", tensor.dtype());
        };
        (values.as_ptr(), values.len() * 4)
    };
    let mut held = loss.sorted_nodes().into_iter().map(storage).collect::<HashMap<_, _>>();
    for var in trainer.vars().all_vars() {
        held.remove(&storage(&var).0);
    }
    let (small, large): (Vec<usize>, Vec<usize>) = held.values().partition(|&&size| size < 1024);
    assert_eq!(large.iter().sum::<usize>(), KEPT_LOSS_BYTES);
    assert_eq!(small.iter().sum::<usize>(), KEPT_LOSS_SCALAR_BYTES);
}

#[test]
fn a_detached_loss_has_no_graph() {
    let mut trainer = Trainer::new(&Device::Cpu).unwrap();
    trainer.detached_step().unwrap();
    assert!(trainer.kept()[0].sorted_nodes().is_empty());
    trainer.leaky_step().unwrap();
    assert!(!trainer.kept()[1].sorted_nodes().is_empty());
}
