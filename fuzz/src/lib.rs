//! The mutator of the targets whose input is JSON.

mod json;

use json::Random;
use libfuzzer_sys::fuzzer_mutate;

/// Mutates `size` bytes of `data` and returns their new number. Of lines of JSON, one is mutated.
pub fn mutate_json(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random::new(seed);
    if random.below(8) > 0
        && let Some(mutated) = json::mutated(&data[..size], &mut random)
        && mutated.len() <= max_size
    {
        data[..mutated.len()].copy_from_slice(&mutated);
        return mutated.len();
    }
    fuzzer_mutate(data, size, max_size)
}
