//! Tests of tokenizers with onig, a C library.

use memcheck_runtime::{Trial, mem_test};
use tokenizers::Tokenizer;

const JSON: &str = r###"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false}]},
"post_processor":null,"decoder":null,"model":{"type":"WordLevel","vocab":{"a":0,"text":1,"[UNK]":2},"unk_token":"[UNK]"}}"###;

#[mem_test(max_c_growth = "0 B", max_growth = "0 B")]
fn tokenizers_with_onig(trial: &mut Trial) -> anyhow::Result<()> {
    let tokenizer: Tokenizer = JSON.parse().map_err(|e| anyhow::anyhow!("{e}"))?;
    trial.iterate(|turn| {
        let text = format!("a text with {turn} numbers, and the words' apostrophes");
        let encoded = tokenizer.encode(text, false).map_err(|e| anyhow::anyhow!("{e}"))?;
        assert!(encoded.len() > 5);
        anyhow::Ok(())
    })
}

#[mem_test(max_c_growth = "0 B")]
fn keeps_tokenizers(trial: &mut Trial) -> anyhow::Result<()> {
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(JSON.parse::<Tokenizer>().map_err(|e| anyhow::anyhow!("{e}"))?);
        anyhow::Ok(())
    })
}
