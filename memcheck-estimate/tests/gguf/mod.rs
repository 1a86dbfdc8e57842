//! Headers that are cut off, or that declare more than there can be, and questions that do not suit a file.

#[allow(dead_code, reason = "the functional tests use other types")]
mod file;
#[allow(dead_code, reason = "the functional tests use other layouts")]
mod layouts;

use std::path::Path;

use candle_core::Device;
use memcheck_core::wire::estimate::{Answer, Question, VERSION, Why};

use self::file::{Header, IQ4_NL, Q8_0, Value};
use self::layouts::tiny;

fn question(gguf: &Path) -> Question {
    Question {
        version: VERSION,
        config: serde_json::Value::Null,
        gguf: Some(gguf.to_owned()),
        weights: None,
        batch: 1,
        seq: 8,
        generate: 0,
        train: false,
        flash_attn: false,
        dtype: None,
    }
}

#[track_caller]
fn assert_refused(question: &Question, why: Why, text: &str) {
    match memcheck_estimate::answer(question, &Device::Cpu) {
        Answer::Measured(estimate) => panic!("{text}: {estimate:?}"),
        Answer::Refused(refusal) => {
            assert_eq!(refusal.why, why, "{refusal:?}");
            let shown = format!("{}\n{}", refusal.message, refusal.hint.unwrap_or_default());
            assert!(shown.contains(text) && !shown.contains("panicked"), "{text}: {shown}");
        }
    }
}

/// The start of a file: version, tensors, entries of metadata.
fn start(version: u32, tensors: u64, entries: u64) -> Vec<u8> {
    let mut file = b"GGUF".to_vec();
    file.extend(version.to_le_bytes());
    file.extend(tensors.to_le_bytes());
    file.extend(entries.to_le_bytes());
    file
}

/// One entry of metadata with a key of one letter, and bytes of its type and value.
fn entry(value: &[u8]) -> Vec<u8> {
    let mut file = start(3, 0, 1);
    file.extend(1_u64.to_le_bytes());
    file.push(b'k');
    file.extend(value);
    file.extend([0; 64]);
    file
}

fn with(key: &str, value: Value) -> Vec<u8> {
    tiny("llama", Q8_0).with(key, value).write()
}

fn changed(change: fn(&mut Header)) -> Vec<u8> {
    let mut header = tiny("llama", Q8_0);
    change(&mut header);
    header.write()
}

pub(super) fn invalid_headers_are_refused_without_memory_for_what_they_declare() {
    let number = |key: &str, number: u32| with(key, Value::Number(number));
    let whole = tiny("llama", Q8_0).write();
    let mut same_place = whole.clone();
    let end = same_place.len();
    same_place[end - 8..].fill(0);
    let list = |kind: u32, length: u64| {
        let mut bytes = 9_u32.to_le_bytes().to_vec();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        entry(&bytes)
    };
    let mut text = 8_u32.to_le_bytes().to_vec();
    text.extend((1_u64 << 29).to_le_bytes());
    let (usage, unmeasured) = (Why::Question, Why::NotMeasured);
    let cases: Vec<(Vec<u8>, Why, &str)> = vec![
        (Vec::new(), usage, "is not a GGUF file"),
        (b"{ \"model_type\": \"llama\" }".to_vec(), usage, "use --config for a config.json"),
        (whole[..6].to_vec(), usage, "the file ends within it"),
        (whole[..whole.len() / 2].to_vec(), usage, "download at least the first 32.0 MiB"),
        (whole[..whole.len() - 1].to_vec(), usage, "the file ends within it"),
        (start(9, 0, 0), usage, "unsupported magic/version"),
        (start(3, 1 << 60, 0), usage, "tensor_count 1152921504606846976 exceeds max"),
        (start(3, 1 << 29, 0), usage, "the file ends within it"),
        (start(3, 0, 1 << 60), usage, "metadata_kv_count 1152921504606846976 exceeds max"),
        (entry(&text), usage, "string length 536870912 exceeds remaining"),
        (list(0, 1 << 29), usage, "array of 536870912 elements"),
        (list(9, 1 << 60), usage, "array length 1152921504606846976 exceeds max"),
        (number("general.alignment", 0), usage, "`general.alignment` is 0"),
        (with("general.architecture", Value::Text("bloom".into())), usage, "glm4, lfm2, llama"),
        (number("general.architecture", 7), usage, "has no text for `general.architecture`"),
        (number("split.count", 3), usage, "llama-gguf-split --merge"),
        (number("llama.block_count", u32::MAX), usage, "is 4,294,967,295 (limit 10,000)"),
        (number("llama.expert_count", u32::MAX), usage, "is 4,294,967,295 (limit 10,000)"),
        (number("llama.context_length", u32::MAX), usage, "(limit 134,217,728)"),
        (number("llama.attention.head_count", 0), usage, "of the header is 0"),
        (number("llama.attention.head_count_kv", 0), usage, "of the header is 0"),
        (same_place, usage, "of the header begin at the same byte"),
        (
            changed(|header| header.tensors[0].dims = vec![1 << 40, 1 << 40]),
            usage,
            "`token_embd.weight` of the header has the impossible shape",
        ),
        (changed(|header| header.tensors[0].dims[1] = 0), usage, "has the impossible shape"),
        (
            changed(|header| header.tensors[0].dims[1] = 1 << 42),
            unmeasured,
            "candle loads a tensor by way of the host, where `token_embd.weight` takes",
        ),
        (
            changed(|header| header.tensors[0].of_type = IQ4_NL),
            usage,
            "does not read tensors of the type with the number 20",
        ),
        (
            changed(|header| header.tensors.truncate(9)),
            unmeasured,
            "cannot find tensor info for blk.0.",
        ),
        (
            changed(|header| header.tensors[5].dims = vec![256, 32]),
            unmeasured,
            "the model does not run: ",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    for (bytes, why, text) in cases {
        std::fs::write(&path, bytes).unwrap();
        assert_refused(&question(&path), why, text);
    }
}

pub(super) fn questions_that_do_not_suit_a_gguf_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, tiny(name, Q8_0).write()).unwrap();
        question(&path)
    };
    let (llama, glm) = (written("llama"), written("glm4"));
    for (asked, text) in [
        (
            Question { seq: 4097, ..llama.clone() },
            "4,096 positions (`MAX_SEQ_LEN` of candle's `quantized_llama`)",
        ),
        (Question { dtype: Some("bf16".to_owned()), ..llama }, "sets the type of its activations"),
        (Question { batch: 2, ..glm }, "reads one sequence at a time"),
    ] {
        assert_refused(&asked, Why::Question, text);
    }
}
