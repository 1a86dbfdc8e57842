//! `cargo memcheck estimate --gguf`: headers of GGUF files without tensor data, in the layouts of
//! published files, compared with closed formulas.

#[allow(dead_code, reason = "the unit tests of memcheck-estimate use other types")]
#[path = "../../../memcheck-estimate/tests/gguf/file.rs"]
mod file;
#[path = "../../../memcheck-estimate/tests/gguf/layouts.rs"]
mod layouts;

use memcheck_core::wire::exit;
use serde_json::Value;
use tempfile::TempDir;

use self::file::{F16, F32, Header, Q4_0, Q6_K, Q8_0, Type};
use self::layouts::{LLAMA_2_7B, Recipe, Sizes, TINY, llama, q4_k_m, tiny};
use super::figures_of;
use crate::fixture::{Run, memcheck, workspace};

/// A folder with GGUF files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("the file is written");
        path.display().to_string()
    }
}

fn estimate(file: &str, arguments: &[&str]) -> Run {
    let mut all = vec!["estimate", "--gguf", file, "--quiet", "--message-format", "json"];
    all.extend(arguments);
    memcheck(&workspace(), &all)
}

#[track_caller]
fn figures(header: &Header, arguments: &[&str]) -> Value {
    let files = Files::new();
    figures_of(estimate(&files.write("model.gguf", &header.write()), arguments))
}

/// The bytes of 512 elements. candle adds them to each quantized tensor on the device.
const fn padding(of_type: Type) -> u64 {
    512 / of_type.block * of_type.bytes
}

/// The memory of a loaded Llama beyond the bytes of its file. Quantized matrices are padded. The
/// embeddings become `f32`, and their quantized form is freed. Matrices in `f16` become `f32` too.
/// Norms are `f32` in the file. In addition there are sines and cosines of half a head's width for
/// 4,096 positions, and a constant of the mask.
fn beyond_the_file(header: &Header, sizes: Sizes) -> u64 {
    let tables = 2 * 4096 * (sizes.head() / 2) * 4 + 4;
    let added = header.tensors.iter().map(|tensor| {
        let dequantized = 4 * tensor.elements() - tensor.bytes();
        match tensor.of_type {
            F32 | F16 => dequantized,
            _ if tensor.name == "token_embd.weight" => dequantized,
            of_type => padding(of_type),
        }
    });
    tables + added.sum::<u64>()
}

/// The memory that stays after a prompt: keys and values in `f32`, the mask with a byte for each
/// pair of tokens, and workspaces of candle's quantized products. For more than 8 rows candle keeps
/// 256 x 128 x 128 floats, and 144 bytes for every 128 elements of a row of the longest product and
/// for 128 rows more. The product for the last token keeps a row in blocks of 32 elements with 36
/// bytes.
fn cache(sizes: Sizes, tokens: u64) -> u64 {
    let keys = sizes.head() * sizes.key_heads;
    let rows = tokens * sizes.inner.next_multiple_of(512) / 128 + 128;
    let row = sizes.width.next_multiple_of(512) / 32 * 36;
    let workspaces = 256 * 128 * 128 * 4 + 144 * rows + row;
    2 * sizes.layers * keys * tokens * 4 + tokens * tokens + workspaces
}

#[test]
#[ignore = "slow: just all"]
fn published_files_have_their_tensors_and_candle_adds_bytes_by_a_formula() {
    let q4_0: Recipe = |name, _| if name == "output" { Q6_K } else { Q4_0 };
    let published: [(Recipe, u64, &str); 3] = [
        (q4_0, 3_825_065_984, "q4_0"),
        (q4_k_m, 4_080_263_168, "q4_k"),
        (|_, _| Q8_0, 7_160_348_672, "q8_0"),
    ];
    let example = workspace().join("memcheck-estimate/configs/llama-2-7b-q4_0.gguf");
    let example = std::fs::read(example).expect("the example of the documentation");
    assert!(example == llama(LLAMA_2_7B, q4_0).write(), "the example differs from the layout");
    for (recipe, bytes, name) in published {
        let header = llama(LLAMA_2_7B, recipe);
        assert_eq!((header.bytes(), header.elements()), (bytes, 6_738_415_616), "{name}");
        let figures = figures(&header, &["--seq", "64"]);
        assert_eq!(figures["dtype"], name);
        assert_eq!(
            (&figures["weights"], &figures["parameters"]),
            (&bytes.into(), &6_738_415_616_u64.into())
        );
        assert_eq!(figures["tables"], beyond_the_file(&header, LLAMA_2_7B), "{name}");
        assert_eq!(figures["inference"]["cache"], cache(LLAMA_2_7B, 64), "{name}");
        assert_eq!(figures["notes"], serde_json::json!([]), "{name}");
        let types = figures["types"].as_array().expect("the types of the tensors");
        assert_eq!(types[0]["type"], name);
        let floats = types.iter().find(|found| found["type"] == "f32").expect("norms");
        assert_eq!((&floats["tensors"], &floats["bytes"]), (&65.into(), &(65 * 4096 * 4).into()));
        let sum = |key: &str| types.iter().filter_map(|found| found[key].as_u64()).sum::<u64>();
        assert_eq!((sum("tensors"), sum("bytes")), (291, bytes), "{name}");
    }
}

/// candle converts such a file on the host, which takes long for 32 layers, so that two are run.
#[test]
fn matrices_in_f16_take_twice_their_bytes() {
    let whole = llama(LLAMA_2_7B, |_, _| F16);
    assert_eq!(whole.bytes(), 13_477_363_712);
    let header = llama(TINY, |_, _| F16);
    let figures = figures(&header, &["--seq", "8"]);
    assert_eq!(figures["weights"], header.bytes());
    assert_eq!(figures["tables"], beyond_the_file(&header, TINY));
    // No product is quantized, so that there is no workspace.
    let keys_and_values = 2 * TINY.layers * TINY.head() * TINY.key_heads * 8 * 4;
    assert_eq!(figures["inference"]["cache"], keys_and_values + 8 * 8);
}

#[test]
#[ignore = "slow: just all"]
fn every_architecture_runs_from_its_header() {
    let architectures =
        ["gemma3", "glm4", "lfm2", "llama", "phi2", "phi3", "qwen2", "qwen3", "qwen3moe"];
    for architecture in architectures {
        let header = tiny(architecture, Q8_0);
        let figures = figures(&header, &["--seq", "16", "--generate", "2"]);
        assert_eq!(figures["model"], architecture);
        assert_eq!(figures["weights"], header.bytes(), "{architecture}");
        assert_eq!(figures["parameters"], header.elements(), "{architecture}");
        let inference = &figures["inference"];
        if ["llama", "qwen2"].contains(&architecture) {
            assert_eq!(inference["cache"], cache(TINY, 16), "{architecture}");
        }
        let figure = |name: &str| inference[name].as_u64().expect("bytes");
        // Keys and values of the layers with attention, in two bytes or more.
        let layers = if architecture == "lfm2" { 1 } else { 2 };
        let keys_and_values = 2 * layers * 128 * 16 * 2;
        assert!(figure("cache") >= keys_and_values, "{architecture}: {inference}");
        assert!(figure("activations") > 0 && figure("prompt_peak") > header.bytes());
        let noted = figures["notes"].as_array().expect("notes").len();
        let has_dtype = ["glm4", "qwen3moe"].contains(&architecture);
        assert_eq!(noted, usize::from(has_dtype), "{architecture}: {}", figures["notes"]);
    }
}

#[test]
#[ignore = "slow: just all"]
fn a_file_with_its_data_and_tensors_that_candle_ignores_is_estimated_too() {
    let header = tiny("llama", Q4_0);
    let plain = figures(&header, &["--seq", "8"]);
    let files = Files::new();
    let mut bytes = header.write();
    bytes.extend(std::iter::repeat_n(0x5a, 200_000));
    let with_data = figures_of(estimate(&files.write("data.gguf", &bytes), &["--seq", "8"]));
    assert_eq!(with_data, plain);

    let mut more = header.clone();
    more.tensor("rope_freqs.weight", &[32], F32);
    let file = files.write("more.gguf", &more.write());
    let noted = figures_of(estimate(&file, &["--seq", "8"]));
    let note = noted["notes"][0].as_str().expect("a note");
    assert!(note.contains("does not read 1 tensor of the file, such as `rope_freqs"), "{note}");
    assert_eq!((&noted["weights"], &noted["peak"]), (&plain["weights"], &plain["peak"]));

    // Other invalid files are unit tests of memcheck-estimate.
    let cut = files.write("cut.gguf", &header.write()[..6]);
    estimate(&cut, &["--seq", "8"]).exits(exit::USAGE).prints("the file ends within it");
    let mut part = header.clone();
    part.tensors.truncate(9);
    let part = estimate(&files.write("part.gguf", &part.write()), &["--seq", "8"]);
    part.exits(exit::NOT_MEASURED).prints("cannot find tensor info for blk.0.");

    let human = memcheck(&workspace(), &["estimate", "--gguf", &file, "--seq", "8"]);
    let human = human.exits(exit::OK);
    for row in ["llama in q4_0: batch 1, 8 tokens", "    q4_0", "    f32", "  beyond the file"] {
        assert!(human.stdout.contains(row), "{row}: {}", human.stdout);
    }
}

/// candle's code reads the values of the router, so that the model is only loaded.
#[test]
fn a_llama_with_experts_is_only_loaded() {
    let mut header = tiny("llama", Q8_0).with("llama.expert_count", file::Value::Number(2));
    header.tensors.retain(|tensor| !tensor.name.contains("ffn_") || tensor.name.contains("norm"));
    for layer in 0..TINY.layers {
        header.tensor(format!("blk.{layer}.ffn_gate_inp.weight"), &[TINY.width, 2], F32);
        for expert in 0..2 {
            for (name, from, to) in [
                ("gate", TINY.width, TINY.inner),
                ("up", TINY.width, TINY.inner),
                ("down", TINY.inner, TINY.width),
            ] {
                let name = format!("blk.{layer}.ffn_{name}.{expert}.weight");
                header.tensor(name, &[from, to], Q8_0);
            }
        }
    }
    let files = Files::new();
    let run = estimate(&files.write("experts.gguf", &header.write()), &["--seq", "8"]);
    let lines = run.exits(exit::NOT_MEASURED).json();
    assert_eq!(
        (&lines[0]["weights"], &lines[0]["inference"]),
        (&header.bytes().into(), &Value::Null)
    );
    assert!(lines[0]["notes"][0].as_str().is_some_and(|note| note.contains("router")));
}
