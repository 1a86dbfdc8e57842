//! Headers that are cut off, or that declare more than there can be.

use memcheck_core::wire::exit;

use super::file::{Header, IQ4_NL, Q8_0, Value};
use super::layouts::tiny;
use super::{Files, estimate};

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

#[test]
fn invalid_headers_are_refused_without_memory_for_what_they_declare() {
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
    let (usage, unmeasured) = (exit::USAGE, exit::NOT_MEASURED);
    let cases: Vec<(Vec<u8>, u8, &str)> = vec![
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
    let files = Files::new();
    for (number, (bytes, code, text)) in cases.into_iter().enumerate() {
        let file = files.write(&format!("{number}.gguf"), &bytes);
        let run = estimate(&file, &["--seq", "8"]).exits(code).prints(text);
        assert_eq!(run.json().len(), 1, "{text}: {}", run.stdout);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
}

#[test]
fn questions_that_do_not_suit_a_gguf_file_are_refused() {
    let files = Files::new();
    let file = files.write("llama.gguf", &tiny("llama", Q8_0).write());
    let glm = files.write("glm4.gguf", &tiny("glm4", Q8_0).write());
    let folder = files.write("x", b"").replace("/x", "");
    let missing = file.replace("llama.gguf", "missing.gguf");
    let cases: [(&str, &[&str], &str); 7] = [
        (
            &file,
            &["--seq", "4097"],
            "4,096 positions (`MAX_SEQ_LEN` of candle's `quantized_llama`)",
        ),
        (&file, &["--seq", "8", "--dtype", "bf16"], "sets the type of its activations"),
        (&file, &["--seq", "8", "--train"], "cannot be used with"),
        (&file, &["--seq", "8", "--config", "config.json"], "cannot be used with"),
        (&glm, &["--seq", "8", "--batch", "2"], "reads one sequence at a time"),
        (&folder, &["--seq", "8"], "is a directory"),
        (&missing, &["--seq", "8"], "No such file"),
    ];
    for (file, arguments, text) in cases {
        estimate(file, arguments).exits(exit::USAGE).prints(text);
    }
}
