//! Computes real steps on the CPU: an overflow must skip a step and halve the scale, and the loss
//! must fall.

use candle_core::{DType, Device, Tensor, Var};
use memcheck_tests::mixed_precision::{LossScaler, Step, Trainer, step_peak_bytes};

fn trainer(dtype: DType, scale: f64, interval: u32) -> Trainer {
    Trainer::new(dtype, LossScaler::new(scale, interval), &Device::Cpu).unwrap()
}

fn bits(trainer: &Trainer) -> Vec<u32> {
    let values = |var: &Var| var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    trainer.masters().iter().flat_map(values).map(f32::to_bits).collect()
}

fn loss(trainer: &Trainer) -> f32 {
    trainer.gradients().unwrap().0
}

#[test]
fn the_scale_halves_on_overflow_and_doubles_after_good_steps_in_a_row() {
    let mut scaler = LossScaler::new(1024.0, 3);
    let scales = [false, false, true, false, false, false, false].map(|overflowed| {
        scaler.update(overflowed);
        scaler.scale()
    });
    assert_eq!(scales, [1024.0, 1024.0, 512.0, 512.0, 512.0, 1024.0, 1024.0]);
}

#[test]
fn an_overflow_skips_the_step_and_halves_the_scale_until_it_fits() {
    // The largest number of f16 is 65,504. The gradient of the output, 2 error scale / 16,384,
    // exceeds it.
    let mut trainer = trainer(DType::F16, f64::from(1 << 30), 1000);
    let (before, first) = (bits(&trainer), loss(&trainer));
    let mut skipped = 0;
    while trainer.step().unwrap() == Step::Skipped {
        skipped += 1;
        assert_eq!(trainer.scaler().scale(), f64::from(1 << 30) / f64::from(1 << skipped));
        assert_eq!(bits(&trainer), before, "a step that is skipped changes nothing");
    }
    assert!((1..=20).contains(&skipped), "{skipped}");
    assert_ne!(bits(&trainer), before);
    for _ in 0..20 {
        trainer.step().unwrap();
    }
    assert!(loss(&trainer) < 0.9 * first, "{first} -> {}", loss(&trainer));
}

#[test]
fn bf16_has_the_range_of_f32_and_does_not_overflow_there() {
    for dtype in [DType::BF16, DType::F32] {
        let mut trainer = trainer(dtype, f64::from(1 << 30), 1000);
        assert!(matches!(trainer.step().unwrap(), Step::Updated { .. }), "{dtype:?}");
    }
}

#[test]
fn every_type_trains_as_f32_does() {
    let losses = [DType::F32, DType::BF16, DType::F16].map(|dtype| {
        let mut trainer = trainer(dtype, 1024.0, 4);
        let first = loss(&trainer);
        for _ in 0..14 {
            assert!(matches!(trainer.step().unwrap(), Step::Updated { .. }), "{dtype:?}");
        }
        // Three times four good steps, and two more.
        assert_eq!(trainer.scaler().scale(), 8192.0);
        (first, loss(&trainer))
    });
    let [(first, plain), halves @ ..] = losses;
    assert!(plain < 0.9 * first, "{first} -> {plain}");
    for (_, half) in halves {
        assert!((half - plain).abs() < 0.02 * first, "{plain} and {half}");
    }
}

/// Without a scale, the gradient of a small error is 0 in f16.
#[test]
fn small_gradients_vanish_in_f16_without_a_scale() {
    let largest = |scale: f64| {
        let trainer = trainer(DType::F16, scale, 1000);
        // The output differs from the target by 1e-5.
        let (_, gradients) = {
            let weights: Vec<Tensor> =
                trainer.masters().iter().map(|var| var.to_dtype(DType::F16).unwrap()).collect();
            let mut hidden = trainer.input().matmul(&weights[0]).unwrap();
            for weight in &weights[1..] {
                hidden = hidden.relu().unwrap().matmul(weight).unwrap();
            }
            let output = hidden.to_dtype(DType::F32).unwrap();
            let target = (output.detach() + 1e-5).unwrap();
            trainer.with_target(target).gradients().unwrap()
        };
        let largest = |one: &Tensor| one.abs().unwrap().max_all().unwrap().to_scalar::<f32>();
        gradients.iter().map(|one| largest(one).unwrap()).fold(0.0, f32::max)
    };
    assert_eq!(largest(1.0), 0.0);
    assert!(largest(65_536.0) > 0.0);
}

#[test]
fn a_half_type_takes_less_than_seven_tenths_of_the_peak() {
    let [wide, half, brain] = [DType::F32, DType::F16, DType::BF16].map(step_peak_bytes);
    assert_eq!(half, brain);
    assert!(10 * half < 7 * wide, "{half} of {wide}");
}
