//! A checkpointed step must compute the same gradients as the plain one.

use candle_core::{Device, Tensor};
use memcheck_tests::checkpointing::{Deep, Gradients};

fn numbers(gradients: &Gradients) -> Vec<Vec<f32>> {
    let numbers = |one: &Tensor| one.flatten_all().unwrap().to_vec1().unwrap();
    gradients.gradients.iter().map(numbers).collect()
}

#[test]
fn gradients_are_those_of_the_plain_step() {
    // Four layers in segments that divide them, in segments that do not, and in one segment.
    let deep = Deep::new(4, &Device::Cpu).unwrap();
    let plain = deep.plain().unwrap();
    let wanted = numbers(&plain);
    // Eight parameters per layer.
    assert_eq!(wanted.len(), 8 * 4);
    for segment in [1, 2, 3, 5] {
        let checkpointed = deep.checkpointed(segment).unwrap();
        let close = (checkpointed.loss - plain.loss).abs() <= 1e-6 * plain.loss;
        assert!(close, "{segment}: {} and {}", checkpointed.loss, plain.loss);
        let found = numbers(&checkpointed);
        assert_eq!(found.len(), wanted.len(), "{segment}");
        for (parameter, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
            let largest = wanted.iter().fold(0f32, |most, value| most.max(value.abs()));
            assert!(largest > 0.0, "{parameter} has a gradient");
            assert_eq!(wanted.len(), found.len());
            for (wanted, found) in wanted.iter().zip(found) {
                let off = (wanted - found).abs();
                assert!(off <= 1e-5 * largest, "{segment}, {parameter}: {wanted} and {found}");
            }
        }
    }
}

#[test]
fn the_borders_are_one_for_each_segment() {
    let deep = Deep::new(6, &Device::Cpu).unwrap();
    for (segment, borders) in [(1, 6), (2, 3), (4, 2), (6, 1), (7, 1)] {
        assert_eq!(deep.borders(segment).unwrap().len(), borders, "{segment}");
    }
}
