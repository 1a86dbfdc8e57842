//! Runs every architecture on the CPU, from a tiny configuration.

mod gguf;
mod tiny;

use candle_core::Device;
use memcheck_core::wire::estimate::{Answer, Estimate, EstimateRefusal, Question, Why};
use memcheck_estimate::{answer, architectures};
use serde_json::{Value, json};
use tiny::{is_encoder, question};

#[track_caller]
fn measured(question: &Question) -> Estimate {
    match answer(question, &Device::Cpu) {
        Answer::Measured(estimate) => *estimate,
        Answer::Refused(refusal) => panic!("{}: {refusal:?}", question.config["model_type"]),
    }
}

fn refused(question: &Question) -> EstimateRefusal {
    match answer(question, &Device::Cpu) {
        Answer::Measured(estimate) => panic!("{estimate:?}"),
        Answer::Refused(refusal) => refusal,
    }
}

// All of this is one test, because host figures include the allocations of all threads.
#[test]
fn every_architecture_runs_and_invalid_questions_are_refused() {
    let mut failed = Vec::new();
    for model in architectures() {
        let generate = if is_encoder(model) { 0 } else { 2 };
        match answer(&Question { generate, ..question(model) }, &Device::Cpu) {
            Answer::Measured(estimate) => {
                // A tied tensor that candle reads twice takes its bytes twice.
                let twice = if model == "gpt_bigcode" { 128 * 64 } else { 0 };
                let noted = estimate.notes.iter().any(|note| note.contains("32,768 B"));
                assert_eq!(noted, twice > 0, "{model}: {:?}", estimate.notes);
                let loaded = 4 * (estimate.parameters + twice);
                if estimate.weights != loaded || estimate.peak < loaded {
                    failed.push(format!("{model}: {loaded} {estimate:?}"));
                }
            }
            Answer::Refused(refusal) => failed.push(format!("{model}: {refusal:?}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    caches_grow_by_their_formula();
    states_have_one_size();
    one_sequence_at_a_time();
    training_reports_the_reached_variables();
    irrelevant_fields_change_no_figure();
    invalid_questions_are_refused();
    gguf::invalid_headers_are_refused_without_memory_for_what_they_declare();
    gguf::questions_that_do_not_suit_a_gguf_file_are_refused();
}

/// The cache contains keys and values: 2 layers of 2 heads of 16, twice, in 4 bytes. Llama also
/// keeps the mask of its prompt, a byte for each pair.
fn caches_grow_by_their_formula() {
    const TOKEN: u64 = 2 * 2 * 2 * 16 * 4;
    for (model, mask) in [("llama", 64 * 64), ("mistral", 0)] {
        let asked = Question { seq: 48, generate: 16, ..question(model) };
        let inference = measured(&asked).inference.expect("it is inference");
        // The mask of 48 tokens is larger than 1 KiB, the size from which host blocks count.
        let mask = if mask > 0 { 48 * 48 } else { 0 };
        assert_eq!(inference.cache, 48 * TOKEN + mask, "{model}");
        assert_eq!(inference.cache_after, 64 * TOKEN + mask, "{model}");
    }
}

/// The state of RWKV 7 has the same size after any number of tokens.
fn states_have_one_size() {
    for seq in [1, 2, 24] {
        let estimate = measured(&Question { seq, generate: 4, ..question("rwkv7") });
        let inference = estimate.inference.expect("it is inference");
        assert_eq!((inference.cache, inference.cache_after), (0, 0), "{seq} tokens");
    }
    // The formula of the parameters does not contain the tensors that candle reads from the first
    // layer and discards.
    let (c, v, f, [w, a, g]) = (64, 128, 128, [8, 8, 16]);
    let layer = 4 * c * c + 2 * c * f + 2 * c * (w + a + g) + (6 + 2 + 3 + 2 + 1 + 4) * c;
    let residual = 2 * c * 4 + c;
    let parameters = 2 * v * c + 2 * layer + residual + 2 * c + 2 * c;
    assert_eq!(measured(&question("rwkv7")).parameters, parameters);
}

fn one_sequence_at_a_time() {
    for model in ["based", "rwkv7"] {
        let refusal = refused(&Question { batch: 2, ..question(model) });
        assert_eq!(refusal.why, Why::Question, "{refusal:?}");
        assert_eq!(refusal.hint.as_deref(), Some("use --batch 1"));
    }
}

fn training_reports_the_reached_variables() {
    let step = |model: &str| {
        let estimate = measured(&Question { train: true, ..question(model) });
        (estimate.weights, estimate.training.expect("it is training"))
    };
    // In a model without fused operations every variable is reached, and AdamW keeps two moments of
    // each.
    let (_, whole) = step("modernbert");
    assert!(whole.is_whole(), "{whole:?}");
    // Fused normalization has no backward pass, so the variables before the last one are not
    // reached.
    let (weights, part) = step("llama");
    assert!(!part.is_whole() && part.reached == 1, "{part:?}");
    assert_eq!(part.gradients, 128 * 64 * 4, "of the head: vocabulary x width x 4");
    assert!(part.optimizer <= 2 * weights, "{part:?}");
}

fn irrelevant_fields_change_no_figure() {
    let mut asked = question("llama");
    let plain = measured(&asked);
    let config = &mut asked.config;
    config["auto_map"] = json!({ "AutoModel": "modeling.Model" });
    config["rope_theta"] = json!(1_u64 << 40);
    config["eos_token_id"] = json!([2, 3]);
    config["head_dim"] = Value::Null;
    config["max_length"] = json!("long");
    config["dtype"] = config["torch_dtype"].take();
    assert_eq!(measured(&asked), plain);
    // The user must know of these, and they have a note.
    asked.config["quantization_config"] = json!({ "quant_method": "gptq", "bits": 4 });
    asked.config["rope_scaling"] = json!({ "type": "linear", "factor": 4.0 });
    let noted = measured(&asked);
    let [scaling, quantized] = &noted.notes[..] else { panic!("{:?}", noted.notes) };
    assert!(scaling.contains("of type `linear`") && quantized.contains("(gptq)"), "{noted:?}");
    assert_eq!(Estimate { notes: plain.notes.clone(), ..noted }, plain);
}

fn invalid_questions_are_refused() {
    let llama = || question("llama");
    let with = |key: &str, value: Value| {
        let mut asked = llama();
        asked.config[key] = value;
        asked
    };
    let without = |key: &str| {
        let mut asked = llama();
        asked.config.as_object_mut().expect("an object").remove(key);
        asked
    };
    let bert = Question { generate: 1, ..question("bert") };
    let mut never = question("gemma3");
    never.config["sliding_window_pattern"] = json!(0);
    let cases: Vec<(Question, Why, &str)> = vec![
        (with("model_type", json!("gpt5")), Why::Question, "`gpt5` is not an architecture"),
        (without("model_type"), Why::Question, "no `model_type`"),
        (with("model_type", Value::Null), Why::Question, "no `model_type`"),
        (with("vocab_size", Value::Null), Why::Question, "missing field `vocab_size`"),
        (
            with("torch_dtype", json!("float8_e4m3fn")),
            Why::Question,
            "`float8_e4m3fn` is not an element type",
        ),
        (without("hidden_size"), Why::Question, "missing field `hidden_size`"),
        (with("hidden_size", json!("wide")), Why::Question, "invalid type: string \"wide\""),
        (with("hidden_size", json!(1_u64 << 60)), Why::Question, "`hidden_size`"),
        (with("num_hidden_layers", json!(1_000_000)), Why::Question, "(limit 10,000)"),
        (with("num_attention_heads", json!(0)), Why::Question, "`num_attention_heads` of the"),
        (with("num_hidden_layers", json!(0)), Why::Question, "`num_hidden_layers` of the"),
        (
            with("num_attention_heads", json!(3)),
            Why::Question,
            "is not divisible by `num_key_value_heads` (2)",
        ),
        (
            with("hidden_size", json!(-64)),
            Why::Question,
            "`llama` is invalid at `hidden_size`: invalid value",
        ),
        (
            with("vocab_size", json!(1e30)),
            Why::Question,
            "`llama` is invalid at `vocab_size`: invalid type",
        ),
        (with("model_type", json!(7)), Why::Question, "`model_type` is 7, which is not a string"),
        (never, Why::NotMeasured, "the model panicked: "),
        (Question { config: json!([1]), ..llama() }, Why::Question, "not a JSON object"),
        (Question { batch: 0, ..llama() }, Why::Question, "must be at least 1"),
        (Question { seq: 0, ..llama() }, Why::Question, "must be at least 1"),
        (Question { batch: u64::MAX, seq: 2, ..llama() }, Why::Question, "tokens at once"),
        (Question { seq: u64::MAX, generate: 2, ..llama() }, Why::Question, "tokens at once"),
        (Question { seq: 60, generate: 5, ..llama() }, Why::Question, "the model's 64 positions"),
        (Question { dtype: Some("i4".into()), ..llama() }, Why::Question, "not an element type"),
        (
            Question { flash_attn: true, ..question("bert") },
            Why::Question,
            "`bert` has no flash-attention",
        ),
        (Question { flash_attn: true, ..llama() }, Why::Question, "f16 and bf16 only"),
        (
            Question { generate: 1, train: true, ..llama() },
            Why::Question,
            "does not generate tokens",
        ),
        (bert, Why::Question, "`bert` is an encoder"),
        (Question { seq: 65, ..question("marian") }, Why::Question, "the model's 64 positions"),
        (Question { generate: 64, ..question("marian") }, Why::Question, "the model's 64"),
    ];
    for (asked, why, text) in cases {
        let refusal = refused(&asked);
        assert_eq!(refusal.why, why, "{refusal:?}");
        assert!(refusal.message.contains(text), "{text}: {refusal:?}");
    }
    let dtype = refused(&with("torch_dtype", json!("float8_e4m3fn"))).hint;
    assert_eq!(dtype.as_deref(), Some("use --dtype f32, f16 or bf16"));
    let mut seen = with("model_type", json!("llava"));
    seen.config["text_config"] = json!({ "model_type": "llama" });
    let seen = refused(&seen).hint.expect("a hint");
    assert!(
        seen.contains("its text model is a `llama`") && seen.contains("`text_config`"),
        "{seen}"
    );
    let unknown = refused(&with("model_type", json!("gpt5"))).hint.expect("a hint");
    assert!(architectures().iter().all(|name| unknown.contains(name)), "{unknown}");
    // Marian's encoder and decoder have separate positions. Whisper's prompt and its generated
    // tokens share theirs.
    assert_eq!(measured(&Question { seq: 60, generate: 8, ..question("marian") }).generate, 8);
    let whisper = refused(&Question { seq: 60, generate: 8, ..question("whisper") });
    assert_eq!(whisper.hint.as_deref(), Some("use at most --seq 56"));
    let long = refused(&Question { seq: 60, generate: 5, ..llama() }).hint;
    assert_eq!(long.as_deref(), Some("use at most --seq 59"));
}
