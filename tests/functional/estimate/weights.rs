//! `cargo memcheck estimate --weights`: the names and shapes of a model's safetensors files.

use std::collections::BTreeMap;

use memcheck_core::wire::exit;
use serde_json::{Value, json};

use super::{config, estimate, figures_of};

/// The tensors of Llama-2-7B with their shapes. Its files contain a constant of each layer that
/// candle computes, in 4 bytes for each of 64 elements.
fn llama() -> BTreeMap<String, Vec<u64>> {
    let (vocabulary, width, inner) = (32_000, 4096, 11_008);
    let mut tensors: BTreeMap<String, Vec<u64>> = [
        ("model.embed_tokens.weight".to_owned(), vec![vocabulary, width]),
        ("lm_head.weight".to_owned(), vec![vocabulary, width]),
        ("model.norm.weight".to_owned(), vec![width]),
    ]
    .into();
    for layer in 0..32 {
        let mut add = |name: &str, shape: &[u64]| {
            tensors.insert(format!("model.layers.{layer}.{name}"), shape.to_vec());
        };
        for name in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            add(&format!("self_attn.{name}.weight"), &[width, width]);
        }
        add("mlp.gate_proj.weight", &[inner, width]);
        add("mlp.up_proj.weight", &[inner, width]);
        add("mlp.down_proj.weight", &[width, inner]);
        add("input_layernorm.weight", &[width]);
        add("post_attention_layernorm.weight", &[width]);
        add("self_attn.rotary_emb.inv_freq", &[64]);
    }
    tensors
}

/// A file with these tensors in f16, which ends after its header.
fn file(tensors: &BTreeMap<String, Vec<u64>>) -> Vec<u8> {
    let mut end = 0;
    let entries = tensors.iter().map(|(name, shape)| {
        let (kind, size) = if name.ends_with("inv_freq") { ("F32", 4) } else { ("F16", 2) };
        let start = end;
        end += shape.iter().product::<u64>() * size;
        (name.clone(), json!({ "dtype": kind, "shape": shape, "data_offsets": [start, end] }))
    });
    let header: serde_json::Map<String, Value> = entries.collect();
    let text = Value::Object(header).to_string();
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend(text.as_bytes());
    file
}

#[test]
#[ignore = "slow: just all"]
fn an_index_and_headers_of_files_are_compared_with_the_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the file is written");
        path.display().to_string()
    };
    let (llama_2, all) = (config("llama-2-7b"), llama());
    let run = |weights: &str| estimate(&llama_2, &["--seq", "8", "--weights", weights]);
    let shard = |name: &str| if name.contains(".1") { "b.safetensors" } else { "a.safetensors" };
    let map: BTreeMap<&String, &str> = all.keys().map(|name| (name, shard(name))).collect();
    // The published size of the files: 6,738,415,616 parameters in two bytes, and the constants.
    let total = 6_738_415_616_u64 * 2 + 32 * 64 * 4;
    assert_eq!(total, 13_476_839_424);
    let index = json!({ "metadata": { "total_size": total }, "weight_map": map });
    let index = write("model.safetensors.index.json", index.to_string().as_bytes());
    let of_index = figures_of(run(&index));
    let expected = json!({ "tensors": 323, "bytes": total, "unread": 32 });
    assert_eq!((&of_index["files"], &of_index["weights"]), (&expected, &13_476_831_232_u64.into()));
    let note = of_index["notes"][0].as_str().expect("a note");
    assert!(note.contains("does not read 32 tensors of the model's files"), "{note}");

    for part in ["a.safetensors", "b.safetensors"] {
        let mut tensors = all.clone();
        tensors.retain(|name, _| shard(name) == part);
        write(part, &file(&tensors));
    }
    assert_eq!(figures_of(run(&index)), of_index);
    assert_eq!(figures_of(run(&write("whole.safetensors", &file(&all)))), of_index);

    // Files that cannot be read, and a tensor with another shape, are unit tests of memcheck-estimate.
    let mut lacks = all.clone();
    lacks.remove("model.norm.weight");
    let lacks = run(&write("lacks.safetensors", &file(&lacks)));
    lacks.exits(exit::NOT_MEASURED).prints("cannot find tensor model.norm.weight");
    let cut = run(&write("cut.safetensors", &file(&all)[..500]));
    cut.exits(exit::USAGE).prints("the file ends within its header");
}
