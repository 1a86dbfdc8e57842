//! User errors with estimates. Most are unit tests: `commands/estimates/estimate.rs` of the command, and `tests/architectures.rs`
//! of memcheck-estimate.

use memcheck_core::wire::exit;

use super::{config, estimate};
use crate::fixture::{memcheck, workspace};

#[test]
fn estimates_without_an_answer_have_an_exit_code_and_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = config("llama-2-7b");
    let llama = std::fs::read_to_string(&good).expect("a configuration");
    let uneven = folder.path().join("uneven.json");
    let text = llama.replace("\"num_attention_heads\": 32", "\"num_attention_heads\": 33");
    std::fs::write(&uneven, format!("\u{feff}{text}")).expect("the file is written");
    let uneven = uneven.display().to_string();
    let divides = "is not divisible by `num_attention_heads` (33)";
    let cases: [(&str, &[&str], u8, &str); 6] = [
        (&good, &["--seq", "0"], exit::USAGE, "'--seq <N>'"),
        (&uneven, &["--seq", "8"], exit::USAGE, divides),
        (&config("phi-2"), &["--seq", "8"], exit::NOT_MEASURED, "--dtype f32"),
        // candle compiles no kernels for bf16 on a card of this age.
        (
            &config("smollm2-135m"),
            &["--seq", "8", "--device", "sim:t4"],
            exit::NOT_MEASURED,
            "compute capability 8.0",
        ),
        (&config("llama-3-70b"), &["--seq", "8192"], exit::NOT_MEASURED, "use a smaller --seq"),
        (&good, &["--seq", "4000", "--batch", "4000"], exit::FAILED, "does not fit 1 TiB"),
    ];
    for (config, arguments, code, text) in cases {
        let run = estimate(config, arguments).exits(code).prints(text);
        assert_eq!(run.summary()["exit_code"], code, "{text}");
        assert_eq!(run.json().len(), 1, "{text}: {}", run.stdout);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
    // With the human output, stdout must be empty.
    let arguments = ["estimate", "--config", &uneven, "--seq", "8"];
    let human = memcheck(&workspace(), &arguments).exits(exit::USAGE).prints("hint: ");
    assert_eq!(human.stdout, "");
}
