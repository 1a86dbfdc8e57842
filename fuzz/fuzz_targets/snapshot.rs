#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cargo_memcheck::fuzzing::snapshot(input));
