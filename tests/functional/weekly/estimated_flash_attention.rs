//! `estimate --flash-attn`. It compiles candle-transformers with another feature, so that the test
//! is ignored; `just features` runs it.

use memcheck_core::wire::exit;

use crate::estimate::{config, estimate};
use crate::fixture::{memcheck, workspace};

#[test]
#[ignore = "compiles candle-transformers with another feature: just features"]
fn flash_attention_stores_no_scores() {
    let tokens = ["--batch", "4", "--seq", "4096", "--dtype", "bf16"];
    let arguments: Vec<&str> = tokens.into_iter().chain(["--flash-attn"]).collect();
    let lines = estimate(&config("llama-2-7b"), &arguments).exits(exit::OK).json();
    let [plain, flash, summary] = &lines[..] else { panic!("two estimates: {lines:?}") };
    assert_eq!(summary["type"], "summary");
    assert_eq!((&plain["flash_attn"], &flash["flash_attn"]), (&false.into(), &true.into()));
    assert_eq!(plain["weights"], flash["weights"]);
    let figure = |line: &serde_json::Value, name: &str| line["inference"][name].as_u64();
    // Keys and values of 32 layers; without flash-attention the mask too, a byte for each pair.
    let (tokens, hidden, inner) = (4 * 4096, 4096, 11_008);
    let cache = 2 * 32 * tokens * hidden * 2;
    assert_eq!(figure(flash, "cache"), Some(cache));
    assert_eq!(figure(plain, "cache"), Some(cache + 4096 * 4096));
    // At the peak, four tensors of the hidden width and four of the inner width, and the ids.
    let activations = 4 * tokens * (hidden + inner) * 2 + 4 * tokens;
    assert_eq!(figure(flash, "activations"), Some(activations));
    assert_eq!(figure(plain, "activations"), Some(27_917_352_960));
    assert_eq!(figure(plain, "prompt_peak"), Some(50_001_944_576));
    assert_eq!(figure(flash, "prompt_peak"), Some(24_047_591_424));

    // The table has both figures in one line.
    let config_file = config("llama-2-7b");
    let human = ["estimate", "--config", &config_file, "--quiet"];
    let human: Vec<&str> = human.into_iter().chain(arguments).collect();
    let human = memcheck(&workspace(), &human).exits(exit::OK).stdout;
    let line = human.lines().find(|line| line.starts_with("  activations")).expect("a line");
    assert!(line.contains("27,917,352,960 B") && line.contains("1,979,777,024 B"), "{human}");

    let refused = estimate(&config("bert-base-uncased"), &["--seq", "8", "--flash-attn"]);
    refused.exits(exit::USAGE).prints("candle's `bert` has no flash-attention");
}
