//! Of `functional/pools.rs`: crates that keep memory for each thread, in pools of bounded size, and
//! programs of the same shape that leak.

use std::sync::{Arc, LazyLock};
use std::thread;

use memcheck_runtime::{Trial, mem_test};
use regex::Regex;
use tokenizers::Tokenizer;

/// A regex keeps scratch memory for its first thread and in a pool of 8 entries for the others.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?i)\b[\p{L}\d-]+\b").expect("valid"));

/// 640 words.
static TEXT: LazyLock<String> = LazyLock::new(|| "a list of several words ".repeat(128));

fn count_words(regex: &Regex) {
    assert_eq!(regex.captures_iter(&TEXT).count(), 640);
}

fn on_a_thread(work: fn()) {
    thread::spawn(work).join().expect("the thread does not panic");
}

#[mem_test(baseline = false)]
fn regex_on_a_thread_of_each_iteration(trial: &mut Trial) {
    trial.iterate(|_| on_a_thread(|| count_words(&WORD)));
}

/// Without iterations, each round of the body fills one entry of the pool.
#[mem_test(baseline = false)]
fn regex_on_a_thread_of_each_round(_trial: &mut Trial) {
    on_a_thread(|| count_words(&WORD));
}

/// A clone has a pool of its own.
#[mem_test(baseline = false)]
fn clones_of_a_regex(trial: &mut Trial) {
    trial.iterate(|_| {
        on_a_thread(|| {
            let own = WORD.clone();
            count_words(&own);
            std::mem::forget(own);
        });
    });
}

#[mem_test(baseline = false)]
fn clone_of_a_regex_in_each_round(_trial: &mut Trial) {
    on_a_thread(|| {
        let own = WORD.clone();
        count_words(&own);
        std::mem::forget(own);
    });
}

fn tokenizer() -> tokenizers::Result<Tokenizer> {
    let vocabulary =
        serde_json::json!({"a": 0, "list": 1, "of": 2, "several": 3, "words": 4, "?": 5});
    let description = serde_json::json!({
        "version": "1.0",
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
    });
    Tokenizer::from_bytes(description.to_string())
}

/// Encodes four texts in each iteration, on two threads of tokio that run blocking work.
fn encode(trial: &Trial, after: fn(tokenizers::Encoding)) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(2).build()?;
    let tokenizer = Arc::new(tokenizer().map_err(anyhow::Error::from_boxed)?);
    trial.iterate(|_| {
        runtime.block_on(async {
            let encoded = std::array::from_fn::<_, 4, _>(|_| {
                let tokenizer = Arc::clone(&tokenizer);
                tokio::task::spawn_blocking(move || tokenizer.encode(TEXT.as_str(), false))
            });
            for encoding in encoded {
                let encoding = encoding.await?.map_err(anyhow::Error::from_boxed)?;
                anyhow::ensure!(encoding.len() == 640, "{} words", encoding.len());
                after(encoding);
            }
            Ok(())
        })
    })
}

#[mem_test(baseline = false)]
fn tokenizer_on_threads_for_blocking_work(trial: &mut Trial) -> anyhow::Result<()> {
    encode(trial, drop)
}

#[mem_test(baseline = false, max_growth = "64 KiB")]
fn encodings_that_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    encode(trial, std::mem::forget)
}
