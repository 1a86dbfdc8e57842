//! Checks a question before anything is allocated: the architecture, the element type, and whether
//! the sizes fit into numbers and into the host's memory.

use candle_core::DType;
use memcheck_core::size::{Size, exact};
use memcheck_core::wire::estimate::Question;
use serde_json::{Map, Value};

use crate::families::{self, Family, Kind};
use crate::problem::Problem;
use crate::sizes;

/// The maximum number of tokens in a batch.
const MOST_TOKENS: u64 = 1 << 31;

/// The number of elements at which candle's CUDA kernels go wrong. They count in 32 bits, so they
/// leave the first 2^32 elements out, and they fail if no other elements remain.
const COUNTED: u64 = 1 << 32;

/// A question that has passed all checks.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) family: &'static Family,
    /// The configuration in the form that candle's types parse.
    pub(crate) config: Value,
    pub(crate) model: String,
    /// Remarks for the reader about how the configuration was read.
    pub(crate) notes: Vec<String>,
    pub(crate) dtype: DType,
    pub(crate) batch: usize,
    pub(crate) seq: usize,
    pub(crate) generate: usize,
}

impl Checked {
    /// The number of attention scores of one sequence: heads x prompt²; 0 without attention.
    fn scores(&self) -> u64 {
        let heads = ["num_attention_heads", "num_heads", "n_head", "encoder_attention_heads"];
        let heads = heads.iter().find_map(|key| self.config.get(key)?.as_u64()).unwrap_or(0);
        let seq = self.seq as u64;
        heads.saturating_mul(seq.saturating_mul(seq))
    }

    /// Returns the reason why a GPU computes these attention scores incorrectly; `None` if candle's
    /// kernels can count them.
    pub(crate) fn uncounted(&self) -> Option<String> {
        let scores = self.scores().saturating_mul(self.batch as u64);
        (scores >= COUNTED).then(|| {
            format!(
                "attention has {} scores, and candle's kernels count to {} \
                 (https://github.com/huggingface/candle/issues/3604)",
                exact(scores),
                exact(COUNTED - 1)
            )
        })
    }

    /// Returns the largest batch whose attention scores candle's kernels can count.
    pub(crate) fn counted_batch(&self) -> u64 {
        (COUNTED - 1).checked_div(self.scores()).unwrap_or(0)
    }
}

pub(crate) fn check(question: &Question) -> Result<Checked, Problem> {
    let Value::Object(config) = &question.config else {
        return Err(Problem::asked("the configuration is no JSON object")
            .hint("config.json lies beside the weights of a model on Hugging Face"));
    };
    let (model, family) = families::find(config)?;
    // Of a model with images or sound, only the part that reads and writes text is estimated.
    let config = match config.get("text_config") {
        Some(Value::Object(text)) => text,
        _ => config,
    };
    sizes::bounded(config)?;
    let Value::Object(outer) = &question.config else { unreachable!("looked at above") };
    let dtype = dtype(question, [config, outer])?;
    let (config, notes) = family.adapted(config);
    sizes::sound(&config)?;
    tokens(question)?;
    kind(question, &model, family)?;
    positions(question, family, &config)?;
    host(question, family)?;
    let [batch, seq, generate] =
        [question.batch, question.seq, question.generate].map(|n| usize::try_from(n).unwrap_or(0));
    let config = Value::Object(config);
    Ok(Checked { family, config, model, notes, dtype, batch, seq, generate })
}

/// Returns the requested element type or, without one, the first that these configurations name.
fn dtype(question: &Question, configs: [&Map<String, Value>; 2]) -> Result<DType, Problem> {
    let said = |config: &&Map<String, Value>| {
        ["torch_dtype", "dtype"]
            .iter()
            .find_map(|key| config.get(*key)?.as_str().map(str::to_owned))
    };
    let own = configs.iter().find_map(said);
    let named = question.dtype.as_deref().or(own.as_deref()).unwrap_or("float32");
    match named {
        "float32" | "f32" => Ok(DType::F32),
        "float16" | "f16" => Ok(DType::F16),
        "bfloat16" | "bf16" => Ok(DType::BF16),
        other => Err(Problem::asked(format!("`{other}` is no element type that models run in"))
            .hint("--dtype f32, f16 or bf16")),
    }
}

fn tokens(question: &Question) -> Result<(), Problem> {
    let Question { batch, seq, generate, .. } = question;
    if *batch == 0 || *seq == 0 {
        return Err(Problem::asked("a batch and a prompt have at least one element")
            .hint("--batch and --seq from 1"));
    }
    let all = seq.checked_add(*generate).and_then(|length| length.checked_mul(*batch));
    match all {
        Some(tokens) if tokens < MOST_TOKENS => Ok(()),
        _ => Err(Problem::asked(format!(
            "a batch of {} with {} tokens each: more than {} tokens at once",
            exact(*batch),
            exact(seq.saturating_add(*generate)),
            exact(MOST_TOKENS)
        ))),
    }
}

fn kind(question: &Question, model: &str, family: &Family) -> Result<(), Problem> {
    if question.batch > 1 && family.alone {
        return Err(Problem::asked(format!("candle's `{model}` reads one sequence at a time"))
            .hint("--batch 1"));
    }
    if question.generate > 0 && family.kind == Kind::Encoder {
        return Err(Problem::asked(format!("`{model}` is an encoder: it generates nothing"))
            .hint("leave --generate out"));
    }
    if question.generate > 0 && question.train {
        return Err(Problem::asked("a training step generates nothing")
            .hint("leave out one of --generate and --train"));
    }
    Ok(())
}

/// Rejects tokens beyond the last position. At best candle reports such a token as an error. On a
/// simulated device it cannot, because kernels do nothing and therefore do not check an index.
fn positions(
    question: &Question,
    family: &Family,
    config: &Map<String, Value>,
) -> Result<(), Problem> {
    let Some((key, most)) = family.positions(config) else { return Ok(()) };
    // The encoder and the decoder each have this number of positions.
    let apart = family.kind == Kind::Pair && !family.reads_into_decoder();
    let wanted = match apart {
        true => question.seq.max(question.generate + 1),
        false => question.seq + question.generate,
    };
    if wanted <= most {
        return Ok(());
    }
    let generated = match question.generate {
        0 => String::new(),
        tokens => format!(" and {} generated", exact(tokens)),
    };
    Err(Problem::asked(format!(
        "{} tokens of prompt{generated} are more than the model's {} positions (`{key}`)",
        exact(question.seq),
        exact(most)
    ))
    .hint(match most.checked_sub(question.generate) {
        _ if apart => format!("--seq {most} and --generate {} at most", most - 1),
        Some(0) | None => format!("--generate below {most}"),
        Some(seq) => format!("--seq {seq} at most"),
    }))
}

/// Rejects a prompt whose causal mask cannot fit into the host's memory. Models build the mask
/// there.
fn host(question: &Question, family: &Family) -> Result<(), Problem> {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    match available {
        Some(available) => mask(question.seq, family.mask, available),
        None => Ok(()),
    }
}

fn mask(seq: u64, element: u64, available: u64) -> Result<(), Problem> {
    // A growing list takes up to twice its bytes, and candle copies it once.
    let wanted = seq.saturating_mul(seq).saturating_mul(3 * element);
    if wanted <= available {
        return Ok(());
    }
    Err(Problem::unmeasured(format!(
        "candle builds the mask of {} tokens on the host, which takes {}: {} are available",
        exact(seq),
        Size(wanted),
        Size(available)
    ))
    .hint("a smaller --seq, or a machine with more memory"))
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_host_is_read_in_bytes() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    1024 kB\n"), Some(1 << 20));
        assert_eq!(available("nothing"), None);
    }

    #[test]
    fn a_mask_is_not_built_with_more_memory_than_there_is() {
        let wanted = 1024 * 1024 * 3 * 4;
        assert!(mask(1024, 4, wanted).is_ok());
        assert!(mask(1024, 4, wanted - 1).is_err());
        assert!(mask(u64::MAX, 4, u64::MAX - 1).is_err());
        assert!(mask(u64::MAX, 0, 0).is_ok());
    }
}
