//! User errors with estimates, and irrelevant fields in configuration files.

use std::path::PathBuf;

use memcheck_core::wire::exit;
use serde_json::{Value, json};

use super::{config, estimate, figures};
use crate::fixture::{memcheck, workspace};

#[test]
fn invalid_estimates_are_refused_with_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path: PathBuf = folder.path().join(name);
        std::fs::write(&path, text).expect("the file is written");
        path.display().to_string()
    };
    let llama = std::fs::read_to_string(config("llama-2-7b")).expect("a configuration");
    let broken = write("broken.json", &llama[..llama.len() / 2]);
    let partial = write("partial.json", &llama.replace("\"hidden_size\": 4096,", ""));
    let unknown = write("unknown.json", &llama.replace("\"llama\"", "\"llamma\""));
    let huge = write("huge.json", &llama.replace(": 4096,", ": 4611686018427387904,"));
    let empty = write("empty.json", "");
    let missing = empty.replace("empty", "missing");
    let list = write("list.json", "[]");
    let comments = write("comments.json", &format!("// Llama\n{llama}"));
    let not_text = folder.path().join("utf-16.json");
    std::fs::write(&not_text, [0xff, 0xfe, b'{', 0]).expect("the file is written");
    let not_text = not_text.display().to_string();
    let directory = folder.path().display().to_string();
    let with = |name: &str, key: &str, value: &str| {
        let mut config: Value = serde_json::from_str(&llama).expect("a configuration");
        config[key] = serde_json::from_str(value).expect("a value");
        write(name, &config.to_string())
    };
    let nameless = with("nameless.json", "model_type", "null");
    let numbered = with("numbered.json", "model_type", "7");
    let negative = with("negative.json", "num_hidden_layers", "-32");
    let fraction = with("fraction.json", "hidden_size", "1e30");
    let uneven = with("uneven.json", "num_attention_heads", "33");
    let shared = with("shared.json", "num_key_value_heads", "5");
    let flat = with("flat.json", "num_hidden_layers", "0");
    let wordy = with("wordy.json", "vocab_size", "1152921504606846976");
    let null = with("null.json", "vocab_size", "null");
    let typeless = with("typeless.json", "torch_dtype", "\"float8_e4m3fn\"");
    let pictures = r#"{ "model_type": "llava", "text_config": { "model_type": "llama" } }"#;
    let pictures = write("pictures.json", pictures);
    let good = config("llama-2-7b");
    let usage = exit::USAGE;
    let config_inside = folder.path().join("config.json").display().to_string();
    let cases: [(&str, &[&str], u8, &str); 35] = [
        (&empty, &["--seq", "8"], usage, "is not JSON: EOF"),
        (&list, &["--seq", "8"], usage, "is not a JSON object"),
        (&comments, &["--seq", "8"], usage, "JSON has no comments"),
        (&not_text, &["--seq", "8"], usage, "valid UTF-8"),
        (&directory, &["--seq", "8"], usage, &config_inside),
        (&nameless, &["--seq", "8"], usage, "has no `model_type`"),
        (&numbered, &["--seq", "8"], usage, "`model_type` is 7, which is not a string"),
        (&negative, &["--seq", "8"], usage, "`num_hidden_layers`: invalid value: integer `-32`"),
        (&fraction, &["--seq", "8"], usage, "`hidden_size`: invalid type: floating point `1e+30`"),
        (&uneven, &["--seq", "8"], usage, "is not divisible by `num_attention_heads` (33)"),
        (&shared, &["--seq", "8"], usage, "is not divisible by `num_key_value_heads` (5)"),
        (&flat, &["--seq", "8"], usage, "`num_hidden_layers` of the configuration is 0"),
        (&wordy, &["--seq", "8"], usage, "`vocab_size` of the configuration is"),
        (&null, &["--seq", "8"], usage, "missing field `vocab_size`"),
        (&typeless, &["--seq", "8"], usage, "--dtype f32, f16 or bf16"),
        (&pictures, &["--seq", "8"], usage, "its text model is a `llama`"),
        (&good, &["--seq", "8", "--dtype", "i4"], usage, "'--dtype <DTYPE>'"),
        (&good, &["--seq", "8", "--batch", "-1"], usage, "unexpected argument '-1'"),
        (
            &good,
            &["--seq", "8", "--device", "sim:t4", "--device", "sim:t5"],
            usage,
            "`t5` is not a known card",
        ),
        (&good, &["--seq", "8", "--train", "--generate", "1"], usage, "cannot be used with"),
        (&missing, &["--seq", "8"], usage, "No such file"),
        (&broken, &["--seq", "8"], usage, "is not JSON"),
        (&partial, &["--seq", "8"], usage, "missing field `hidden_size`"),
        (&unknown, &["--seq", "8"], usage, "deberta-v2, deepseek_v2, distilbert"),
        (&huge, &["--seq", "8"], usage, "of the configuration is 4,611,686,018,427,387,904"),
        (&good, &["--seq", "8", "--batch", "0"], usage, "'--batch <N>'"),
        (&good, &["--seq", "0"], usage, "'--seq <N>'"),
        (&good, &["--seq", "5000"], usage, "use at most --seq 4096"),
        (&good, &["--seq", "8", "--batch", "999999999999999"], usage, "tokens at once"),
        (&good, &["--seq", "8", "--device", "sim:rtx4091"], usage, "did you mean `rtx4090`?"),
        (&good, &["--seq", "8", "--device", "cpu"], usage, "on simulated devices only"),
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
    let human = memcheck(&workspace(), &arguments).exits(usage).prints("hint: ");
    assert_eq!(human.stdout, "");
}

#[test]
fn irrelevant_fields_of_a_configuration_do_not_change_the_estimate() {
    let plain = figures("llama-2-7b", &["--seq", "8"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.json").display().to_string();
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(config("llama-2-7b")).expect("a file"))
            .expect("a configuration");
    config["auto_map"] = json!({ "AutoModel": "modeling.Model" });
    config["rope_theta"] = json!(1_u64 << 40);
    config["eos_token_id"] = json!([2, 3]);
    config["head_dim"] = Value::Null;
    config["max_length"] = json!("long");
    config["dtype"] = config["torch_dtype"].take();
    let estimate_of = |config: &Value| {
        // Begins with the byte order mark that some editors write.
        std::fs::write(&path, format!("\u{feff}{config}")).expect("the file is written");
        let run = estimate(&path, &["--seq", "8", "--generate", "0"]).exits(exit::OK);
        run.json().swap_remove(0)
    };
    assert_eq!(estimate_of(&config), plain);
    // Fields that do not change the estimate, but that the user must know, are noted.
    config["quantization_config"] = json!({ "quant_method": "gptq", "bits": 4 });
    config["rope_scaling"] = json!({ "type": "linear", "factor": 4.0 });
    let noted = estimate_of(&config);
    let notes = noted["notes"].as_array().expect("notes");
    assert!(notes.len() == 2, "{notes:?}");
    for (note, text) in notes.iter().zip(["of type `linear`", "(gptq)"]) {
        assert!(note.as_str().is_some_and(|note| note.contains(text)), "{note}");
    }
    for figure in ["parameters", "weights", "tables", "inference", "peak"] {
        assert_eq!(noted[figure], plain[figure], "{figure}");
    }
}
