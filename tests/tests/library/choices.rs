//! The decisions of each workload on the CPU.

use candle_core::{D, DType, Device, Tensor};
use memcheck_tests::choices::{decoder, early_exit, experts, loss_scale, sampling, speculative};
use memcheck_tests::mixed_precision::Step;

#[test]
fn the_end_token_decides_the_length_of_an_answer() {
    let generator = sampling::Generator::new(&Device::Cpu).unwrap();
    let answers = [2, 3, 5].map(|seed| generator.generate(seed).unwrap());
    assert_eq!(answers.each_ref().map(Vec::len), [8, 23, sampling::MOST]);
    let ends = answers.each_ref().map(|tokens| tokens.last() == Some(&sampling::END));
    assert_eq!(ends, [true, true, false]);
    assert_eq!(generator.generate(3).unwrap(), answers[1], "the seed decides the tokens");
}

#[test]
fn a_speculation_generates_the_tokens_of_the_model_alone() {
    let speculation = speculative::Speculation::new(&Device::Cpu).unwrap();
    let answer = speculation.generate().unwrap();
    assert_eq!(speculation.generate_alone(answer.tokens.len()).unwrap(), answer.tokens);
    let rounds = answer.accepted.len();
    assert_eq!(answer.accepted.iter().sum::<usize>() + rounds, answer.tokens.len());
    for count in 0..4 {
        assert!(answer.accepted.contains(&count), "{:?}", answer.accepted);
    }
}

#[test]
fn certainty_decides_how_many_layers_run() {
    let model = early_exit::EarlyExit::new(&Device::Cpu).unwrap();
    let layers = early_exit::PROMPTS.map(|(_, prompt)| model.layers(prompt).unwrap());
    assert_eq!(layers, [1, 4, early_exit::LAYERS]);
}

/// Every expert computes every token here, and a share of 0 removes its result.
#[test]
fn a_mixture_has_the_result_of_experts_that_compute_all_tokens() {
    for is_skewed in [false, true] {
        let mixture = experts::Mixture::new(is_skewed, &Device::Cpu).unwrap();
        let (result, counts) = mixture.forward().unwrap();
        assert_eq!(counts.iter().sum::<usize>(), experts::CHOSEN * experts::TOKENS);
        assert_eq!(counts[0] == experts::TOKENS, is_skewed, "{counts:?}");
        let difference = (result - mixture.dense().unwrap()).unwrap().abs().unwrap();
        let largest: f32 =
            difference.flatten_all().unwrap().max(D::Minus1).unwrap().to_scalar().unwrap();
        assert!(largest < 1e-5, "{largest}");
    }
}

#[test]
fn velocities_exist_after_the_first_update_only() {
    for (scale, skipped) in [(loss_scale::LARGEST, 0), (2.0 * loss_scale::LARGEST, 1)] {
        let mut trainer = loss_scale::trainer(scale, &Device::Cpu).unwrap();
        for _ in 0..skipped {
            assert_eq!(trainer.step().unwrap(), Step::Skipped);
        }
        assert!(matches!(trainer.step().unwrap(), Step::Updated { .. }));
        assert_eq!(trainer.scaler().scale(), loss_scale::LARGEST);
    }
    assert_eq!(loss_scale::live_bytes(1) - loss_scale::live_bytes(0), 4 * 128 * 128 * 4);
}

#[test]
fn formulas_of_weights_count_what_the_models_load() {
    let count =
        |tensors: &[&Tensor]| -> usize { tensors.iter().map(|it| it.elem_count() * 4).sum() };
    let mixture = experts::Mixture::new(false, &Device::Cpu).unwrap();
    assert_eq!(count(&mixture.tensors()), experts::setup_bytes());
    let model = decoder::Decoder::new(3, &Device::Cpu).unwrap();
    assert_eq!(count(&model.tensors()), decoder::weight_bytes(3));
    assert!(model.tensors().iter().all(|tensor| tensor.dtype() == DType::F32));
}
