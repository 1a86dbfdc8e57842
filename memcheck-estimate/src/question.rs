//! Checks a question before anything is allocated: the architecture, the element type, and whether
//! the sizes fit into numbers and into the host's memory.

use std::sync::Arc;

use candle_core::DType;
use memcheck_core::size::{Size, counted, exact};
use memcheck_core::wire::estimate::Question;
use serde_json::{Map, Value};

use crate::families::{self, ModelFamily, PromptUse};
use crate::gguf::{GgufFile, GgufOptions};
use crate::host;
use crate::problem::Problem;
use crate::safetensors::TensorListing;
use crate::sizes;

/// A batch must have fewer tokens than this.
const MOST_TOKENS: u64 = 1 << 31;

/// The number of elements from which candle's CUDA kernels are wrong: their 32-bit count wraps, so
/// they skip the first 2^32 elements, and they fail if no other elements remain.
const COUNTED: u64 = 1 << 32;

/// The description of a model.
#[derive(Debug)]
pub(crate) enum WeightSource {
    /// A configuration, in the form that candle's types parse.
    Config {
        family: &'static ModelFamily,
        config: Value,
        /// The tensors of the model's files, if they are known.
        listing: Option<Arc<TensorListing>>,
    },
    Gguf(GgufFile),
}

/// A question that has passed all checks.
#[derive(Debug)]
pub(crate) struct CheckedQuestion {
    pub(crate) source: WeightSource,
    pub(crate) model: String,
    /// Remarks for the reader about how the configuration was read.
    pub(crate) notes: Vec<String>,
    /// The type of the activations.
    pub(crate) dtype: DType,
    pub(crate) batch: usize,
    pub(crate) seq: usize,
    pub(crate) generate: usize,
    pub(crate) flash_attn: bool,
}

impl CheckedQuestion {
    /// The number of attention scores of one sequence: heads x prompt²; 0 if they are not stored.
    fn scores(&self) -> u64 {
        if self.flash_attn {
            return 0;
        }
        let heads = match &self.source {
            WeightSource::Config { config, .. } => {
                let keys =
                    ["num_attention_heads", "num_heads", "n_head", "encoder_attention_heads"];
                keys.iter().find_map(|key| config.get(key)?.as_u64())
            }
            WeightSource::Gguf(file) => file.heads(),
        };
        let seq = self.seq as u64;
        heads.unwrap_or(0).saturating_mul(seq.saturating_mul(seq))
    }

    /// True if the model's code reads on the host which tokens go to which expert.
    pub(crate) fn reads_routing(&self) -> bool {
        match &self.source {
            WeightSource::Config { family, .. } => family.reads_routing,
            WeightSource::Gguf(file) => file.reads_routing(),
        }
    }

    pub(crate) fn options(&self) -> GgufOptions {
        GgufOptions { dtype: self.dtype, flash_attn: self.flash_attn }
    }

    /// Returns the reason why a GPU computes these attention scores incorrectly; `None` if candle's
    /// kernels can count them.
    pub(crate) fn kernel_overflow(&self) -> Option<String> {
        let scores = self.scores().saturating_mul(self.batch as u64);
        (scores >= COUNTED).then(|| {
            format!(
                "attention has {} scores, but candle's kernels count at most {} \
                 (https://github.com/huggingface/candle/issues/3604)",
                exact(scores),
                exact(COUNTED - 1)
            )
        })
    }

    /// Returns the largest batch whose attention scores candle's kernels can count.
    pub(crate) fn largest_countable_batch(&self) -> u64 {
        (COUNTED - 1).checked_div(self.scores()).unwrap_or(0)
    }
}

pub(crate) fn check(question: &Question) -> Result<CheckedQuestion, Problem> {
    match &question.gguf {
        Some(path) => check_file(question, GgufFile::open(path)?),
        None => check_config(question),
    }
}

fn check_file(question: &Question, file: GgufFile) -> Result<CheckedQuestion, Problem> {
    let model = file.architecture().to_owned();
    if question.train {
        return Err(Problem::invalid_question("candle does not train quantized models")
            .hint("use --config with the model's config.json"));
    }
    if question.dtype.is_some() && !file.has_dtype() {
        return Err(Problem::invalid_question(format!(
            "candle's quantized `{model}` sets the type of its activations"
        ))
        .hint("remove --dtype"));
    }
    if question.batch > 1 && file.reads_one_sequence() {
        return Err(one_sequence(&model));
    }
    // The type that candle's examples use on a GPU.
    let dtype = match &question.dtype {
        Some(name) => parse_dtype(name)?,
        None => DType::BF16,
    };
    check_tokens(question)?;
    // candle converts the values to bf16 for flash-attention.
    check_flash_attention(question, &model, file.has_flash_attention(), DType::BF16)?;
    check_positions(question, false, file.positions())?;
    check_host_memory(question, file.mask())?;
    let notes = if file.has_dtype() {
        vec![format!("activations in {} (--dtype)", dtype.as_str())]
    } else {
        Vec::new()
    };
    Ok(checked(question, WeightSource::Gguf(file), model, notes, dtype))
}

fn checked(
    question: &Question,
    source: WeightSource,
    model: String,
    notes: Vec<String>,
    dtype: DType,
) -> CheckedQuestion {
    let [batch, seq, generate] =
        [question.batch, question.seq, question.generate].map(|n| usize::try_from(n).unwrap_or(0));
    let flash_attn = question.flash_attn;
    CheckedQuestion { source, model, notes, dtype, batch, seq, generate, flash_attn }
}

fn check_config(question: &Question) -> Result<CheckedQuestion, Problem> {
    let Value::Object(config) = &question.config else {
        return Err(Problem::invalid_question("the configuration is not a JSON object")
            .hint("use the config.json that is published with the model on Hugging Face"));
    };
    let (model, family) = families::find(config)?;
    // Of a model with images or sound, only the part that reads and writes text is estimated.
    let config = match config.get("text_config") {
        Some(Value::Object(text)) => text,
        _ => config,
    };
    sizes::check_bounds(config)?;
    let Value::Object(outer) = &question.config else { unreachable!("checked above") };
    let dtype = parse_dtype(&dtype_name(question, [config, outer]))?;
    let (config, notes) = family.adapted(config, question.flash_attn);
    sizes::check_divisions(&config)?;
    check_tokens(question)?;
    check_kind(question, &model, family)?;
    check_flash_attention(question, &model, family.flash_attn, dtype)?;
    // The encoder and the decoder each have this number of positions.
    let separate = family.kind == PromptUse::Pair && !family.reads_into_decoder();
    let positions = family.positions(&config).map(|(key, most)| (format!("`{key}`"), most));
    check_positions(question, separate, positions)?;
    check_host_memory(question, family.mask)?;
    let listing = question.weights.as_deref().map(TensorListing::read).transpose()?.map(Arc::new);
    let source = WeightSource::Config { family, config: Value::Object(config), listing };
    Ok(checked(question, source, model, notes, dtype))
}

/// Returns the requested element type or, without one, the first that these configurations name.
fn dtype_name(question: &Question, configs: [&Map<String, Value>; 2]) -> String {
    let stated = |config: &&Map<String, Value>| {
        ["torch_dtype", "dtype"]
            .iter()
            .find_map(|key| config.get(*key)?.as_str().map(str::to_owned))
    };
    let own = configs.iter().find_map(stated);
    question.dtype.clone().or(own).unwrap_or_else(|| "float32".to_owned())
}

fn parse_dtype(name: &str) -> Result<DType, Problem> {
    match name {
        "float32" | "f32" => Ok(DType::F32),
        "float16" | "f16" => Ok(DType::F16),
        "bfloat16" | "bf16" => Ok(DType::BF16),
        other => {
            Err(Problem::invalid_question(format!("`{other}` is not an element type of models"))
                .hint("use --dtype f32, f16 or bf16"))
        }
    }
}

fn check_tokens(question: &Question) -> Result<(), Problem> {
    let Question { batch, seq, generate, .. } = question;
    if *batch == 0 || *seq == 0 {
        return Err(Problem::invalid_question("--batch and --seq must be at least 1")
            .hint("use 1 or more for both"));
    }
    let all = seq.checked_add(*generate).and_then(|length| length.checked_mul(*batch));
    match all {
        Some(tokens) if tokens < MOST_TOKENS => Ok(()),
        _ => Err(Problem::invalid_question(format!(
            "a batch of {} with {} tokens each exceeds the limit of {} tokens at once",
            exact(*batch),
            exact(seq.saturating_add(*generate)),
            exact(MOST_TOKENS - 1)
        ))
        .hint("use a smaller --batch, --seq or --generate")),
    }
}

fn one_sequence(model: &str) -> Problem {
    Problem::invalid_question(format!("candle's `{model}` reads one sequence at a time"))
        .hint("use --batch 1")
}

fn check_kind(question: &Question, model: &str, family: &ModelFamily) -> Result<(), Problem> {
    if question.batch > 1 && family.one_sequence {
        return Err(one_sequence(model));
    }
    if question.generate > 0 && family.kind == PromptUse::Encoder {
        return Err(Problem::invalid_question(format!(
            "`{model}` is an encoder and cannot generate tokens"
        ))
        .hint("remove --generate"));
    }
    if question.generate > 0 && question.train {
        return Err(Problem::invalid_question("a training step does not generate tokens")
            .hint("use either --generate or --train"));
    }
    Ok(())
}

fn check_flash_attention(
    question: &Question,
    model: &str,
    has_flash_attention: bool,
    dtype: DType,
) -> Result<(), Problem> {
    if !question.flash_attn {
        return Ok(());
    }
    if !has_flash_attention {
        return Err(Problem::invalid_question(format!(
            "candle's `{model}` has no flash-attention"
        ))
        .hint("remove --flash-attn"));
    }
    if !matches!(dtype, DType::F16 | DType::BF16) {
        return Err(Problem::invalid_question("flash-attention computes in f16 and bf16 only")
            .hint("use --dtype f16 or bf16"));
    }
    if question.train {
        return Err(Problem::invalid_question("candle's flash-attention has no backward pass")
            .hint("use either --flash-attn or --train"));
    }
    if !cfg!(feature = "flash-attn") {
        return Err(Problem::not_measured("the estimator was built without flash-attention"));
    }
    Ok(())
}

/// Rejects tokens beyond the last position. At best candle reports such a token as an error. On a
/// simulated device it cannot, because kernels do not refuse an index: their result is unknown
/// then.
/// `separate` means that the prompt and the generated tokens have positions of their own.
fn check_positions(
    question: &Question,
    separate: bool,
    limit: Option<(String, u64)>,
) -> Result<(), Problem> {
    let Some((name, most)) = limit else { return Ok(()) };
    let wanted = match separate {
        true => question.seq.max(question.generate + 1),
        false => question.seq + question.generate,
    };
    if wanted <= most {
        return Ok(());
    }
    let generated = match question.generate {
        0 => String::new(),
        tokens => format!(" and {}", counted(tokens, "generated token", "generated tokens")),
    };
    Err(Problem::invalid_question(format!(
        "{}{generated} exceed the model's {} positions ({name})",
        counted(question.seq, "prompt token", "prompt tokens"),
        exact(most)
    ))
    .hint(match most.checked_sub(question.generate) {
        _ if separate => format!("use at most --seq {most} and --generate {}", most - 1),
        Some(0) | None => format!("use --generate below {most}"),
        Some(seq) => format!("use at most --seq {seq}"),
    }))
}

/// Rejects a prompt whose causal mask cannot fit into the host's memory. Models build the mask
/// there.
fn check_host_memory(question: &Question, element: u64) -> Result<(), Problem> {
    match host::available() {
        Some(available) => check_mask(question.seq, element, available),
        None => Ok(()),
    }
}

fn check_mask(seq: u64, element: u64, available: u64) -> Result<(), Problem> {
    // A growing list takes up to twice its bytes, and candle copies it once.
    let wanted = seq.saturating_mul(seq).saturating_mul(3 * element);
    if wanted <= available {
        return Ok(());
    }
    Err(Problem::not_measured(format!(
        "candle builds the mask of {} on the host, which takes {}, but {} are available",
        counted(seq, "token", "tokens"),
        Size(wanted),
        Size(available)
    ))
    .hint("use a smaller --seq, or a machine with more memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_exceeds_the_available_memory_is_refused() {
        let wanted = 1024 * 1024 * 3 * 4;
        assert!(check_mask(1024, 4, wanted).is_ok());
        assert!(check_mask(1024, 4, wanted - 1).is_err());
        assert!(check_mask(u64::MAX, 4, u64::MAX - 1).is_err());
        assert!(check_mask(u64::MAX, 0, 0).is_ok());
    }
}
