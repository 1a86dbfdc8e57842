//! Workloads whose path depends on computed values: they read a result from the device and decide
//! with it what to compute next.
//!
//! A device whose memory reads as zeros would take another path, with other figures. The weights
//! are therefore numbers, the same on every machine, and each formula takes the decisions of the
//! run (such as the number of generated tokens) as its arguments.
//!
//! | module | decision | its effect on memory |
//! |---|---|---|
//! | [`sampling`] | the token after each step, until the end token | the length of the cache |
//! | [`speculative`] | the proposed tokens that the model accepts | the number and length of its passes |
//! | [`early_exit`] | the layer after which the output is certain enough | the number of layers that run |
//! | [`experts`] | the two experts of each token | the rows of the busiest expert |
//! | [`loss_scale`] | whether a gradient overflows | whether the step updates its weights |

use candle_core::{Device, Result, Tensor};

pub mod decoder;
pub mod early_exit;
pub mod experts;
pub mod loss_scale;
pub mod sampling;
pub mod speculative;

/// Numbers between `-spread` and `spread`, which look random. Each `salt` gives other numbers.
///
/// # Errors
///
/// When the device is full.
pub(crate) fn numbers(
    shape: (usize, usize),
    salt: u64,
    spread: f32,
    device: &Device,
) -> Result<Tensor> {
    let number = |at: usize| {
        let mixed = mix(mix(salt) ^ at as u64);
        // 24 bits are exact in f32.
        spread * ((mixed >> 40) as f32 / (1 << 23) as f32 - 1.0)
    };
    Tensor::from_vec((0..shape.0 * shape.1).map(number).collect(), shape, device)
}

/// The mixer of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
