//! Reads the header of a GGUF file with candle's parser, and rejects sizes that no model can have,
//! before candle allocates memory for them.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::panic::AssertUnwindSafe;
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use memcheck_core::size::{Size, exact};

use super::tensors::{StoredTensor, stored_tensors};
use crate::problem::Problem;
use crate::sizes::{LARGEST, MOST_LAYERS};

/// The largest header, in bytes. The texts of the tokens take nearly all of a header: 262,144
/// tokens of 16 letters take 6 MiB. candle's parser takes 32 bytes for each byte of a list.
const MOST_BYTES: u64 = 32 << 20;

/// Keys that count layers or experts. candle reserves memory for so many.
const COUNTS: &[&str] = &["block_count", "expert_count", "expert_used_count"];

/// Keys that cannot be 0 in any model.
const POSITIVE: &[&str] = &[
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "block_count",
    "context_length",
    "embedding_length",
    "rope.dimension_count",
];

#[derive(Debug)]
pub(super) struct Header {
    pub(super) architecture: String,
    pub(super) tensors: BTreeMap<String, StoredTensor>,
    content: Content,
}

impl Header {
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let shown = path.display().to_string();
        let bytes = first_bytes(path).map_err(|error| {
            Problem::invalid_question(format!("{shown}: {error}")).hint("--gguf FILE")
        })?;
        Self::parse(bytes, &shown)
    }

    fn parse(bytes: Vec<u8>, file: &str) -> Result<Self, Problem> {
        if !bytes.starts_with(b"GGUF") {
            return Err(Problem::invalid_question(format!("{file} is not a GGUF file"))
                .hint("a GGUF file begins with the letters GGUF; use --config for a config.json"));
        }
        let content = parse_content(bytes, file)?;
        let architecture = match content.metadata.get("general.architecture") {
            Some(Value::String(name)) => name.clone(),
            _ => {
                return Err(Problem::invalid_question(format!(
                    "the header of {file} has no text for `general.architecture`"
                )));
            }
        };
        check_parts(&content)?;
        check_numbers(&content, &architecture)?;
        let tensors = stored_tensors(&content)?;
        Ok(Self { architecture, tensors, content })
    }

    /// Returns a number of the model's metadata.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        integer(self.content.metadata.get(&format!("{}.{key}", self.architecture))?)
    }

    /// Returns the header for candle, without the tokenizer, which models do not read.
    pub(super) fn content(&self) -> Content {
        let kept = self.content.metadata.iter().filter(|(key, _)| !key.starts_with("tokenizer."));
        let infos = self.content.tensor_infos.iter().map(|(name, info)| {
            let TensorInfo { ggml_dtype, ref shape, offset } = *info;
            (name.clone(), TensorInfo { ggml_dtype, shape: shape.clone(), offset })
        });
        Content {
            magic: self.content.magic,
            metadata: kept.map(|(key, value)| (key.clone(), value.clone())).collect(),
            tensor_infos: infos.collect(),
            tensor_data_offset: self.content.tensor_data_offset,
        }
    }

    /// Returns the names of the tensors by the position of their first byte.
    pub(super) fn starts(&self) -> BTreeMap<u64, String> {
        self.tensors.iter().map(|(name, tensor)| (tensor.start, name.clone())).collect()
    }
}

fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse_content(bytes: Vec<u8>, file: &str) -> Result<Content, Problem> {
    let mut cursor = Cursor::new(bytes);
    // candle's parser divides by the alignment that the file sets.
    let parsed = std::panic::catch_unwind(AssertUnwindSafe(|| Content::read(&mut cursor)));
    let reason = match parsed {
        Ok(Ok(content)) => return Ok(content),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "`general.alignment` is 0".to_owned(),
    };
    let reason = reason.lines().next().unwrap_or_default().to_owned();
    let invalid = |reason: &str| {
        Problem::invalid_question(format!("the header of {file} is invalid: {reason}"))
    };
    // candle's words for a file that ends within its header.
    let ends_early = ["failed to fill whole buffer", "remaining"];
    Err(if let Some(number) = reason.strip_prefix("unknown dtype for tensor ") {
        invalid(&format!("candle does not read tensors of the type with the number {number}"))
            .hint("candle reads f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0 and q2_k to q6_k")
    } else if ends_early.iter().any(|words| reason.contains(words)) {
        invalid(&format!("the file ends within it ({reason})")).hint(format!(
            "the header is at the start of the file: download at least the first {}",
            Size(MOST_BYTES)
        ))
    } else {
        invalid(&reason)
    })
}

/// Rejects a model in several files, because candle loads one file.
fn check_parts(content: &Content) -> Result<(), Problem> {
    match content.metadata.get("split.count").and_then(integer) {
        Some(parts) if parts > 1 => Err(Problem::invalid_question(format!(
            "the file is one of {parts} parts of a model, and candle loads models of one file"
        ))
        .hint("join the parts with `llama-gguf-split --merge`")),
        _ => Ok(()),
    }
}

/// Returns the value of an integer; `None` for another type, and for a negative number.
fn integer(value: &Value) -> Option<u64> {
    match *value {
        Value::U8(number) => Some(number.into()),
        Value::U16(number) => Some(number.into()),
        Value::U32(number) => Some(number.into()),
        Value::U64(number) => Some(number),
        Value::I8(number) => number.try_into().ok(),
        Value::I16(number) => number.try_into().ok(),
        Value::I32(number) => number.try_into().ok(),
        Value::I64(number) => number.try_into().ok(),
        _ => None,
    }
}

fn check_numbers(content: &Content, architecture: &str) -> Result<(), Problem> {
    let mut keys: Vec<&String> = content.metadata.keys().collect();
    keys.sort();
    for key in keys {
        let Some(short) = key.strip_prefix(architecture).and_then(|key| key.strip_prefix('.'))
        else {
            continue;
        };
        let most = if COUNTS.contains(&short) { MOST_LAYERS } else { LARGEST };
        let value = &content.metadata[key];
        let several = value.to_vec().map(Vec::as_slice).unwrap_or_default();
        for number in several.iter().chain([value]).filter_map(integer) {
            if number > most {
                return Err(Problem::invalid_question(format!(
                    "`{key}` of the header is {} (limit {})",
                    exact(number),
                    exact(most)
                )));
            }
        }
        if POSITIVE.contains(&short) && integer(value) == Some(0) {
            return Err(Problem::invalid_question(format!("`{key}` of the header is 0")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    const EXAMPLE: &[u8] = include_bytes!("../../configs/llama-2-7b-q4_0.gguf");

    #[test]
    fn mutated_headers_are_parsed_or_refused_without_a_panic() {
        let mut random = StdRng::seed_from_u64(0);
        let mut accepted = 0;
        for _ in 0..300 {
            let mut bytes = EXAMPLE.to_vec();
            for _ in 0..random.random_range(1..4) {
                // The first half of the changes is at the start, with the counts and the metadata.
                let most = if random.random() { 600 } else { bytes.len() };
                bytes[random.random_range(4..most)] = random.random();
            }
            if let Ok(header) = Header::parse(bytes, "mutated.gguf") {
                accepted += 1;
                assert_eq!(header.content().tensor_infos.len(), header.tensors.len());
            }
        }
        assert!((30..270).contains(&accepted), "{accepted} of 300");
    }

    #[test]
    fn the_example_has_the_tensors_of_llama_2_7b() {
        let header = Header::parse(EXAMPLE.to_vec(), "example.gguf").unwrap();
        assert_eq!((header.architecture.as_str(), header.tensors.len()), ("llama", 291));
        assert_eq!(header.number("block_count"), Some(32));
        let bytes: u64 = header.tensors.values().map(|tensor| tensor.bytes).sum();
        assert_eq!(bytes, 3_825_065_984);
    }
}
