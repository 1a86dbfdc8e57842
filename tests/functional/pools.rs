//! Memory that crates keep for each thread, in pools of bounded size, is neither growth nor retained.

use crate::fixture::Programs;

#[test]
fn pools_of_regex_and_tokenizers_are_no_leaks() {
    let programs = Programs::of("pools");
    let run = programs.run("cpu", &[]).exits(100);
    for test in [
        "regex_on_a_thread_of_each_iteration",
        "regex_on_a_thread_of_each_round",
        "tokenizer_on_threads_for_blocking_work",
    ] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
    }
    for (test, code) in [
        ("clones_of_a_regex", "retained"),
        ("clone_of_a_regex_in_each_round", "retained"),
        ("encodings_that_are_kept", "leak"),
    ] {
        assert_eq!(run.codes(test).first().map(String::as_str), Some(code), "{}", run.test(test));
    }
}
