#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cargo_memcheck::fuzzing::archive(input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    memcheck_fuzz::mutate_json(data, size, max_size, seed)
});
