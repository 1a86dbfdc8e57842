//! The modules of candle-transformers that load a GGUF file: one row for each, with the
//! architectures of the files that it reads.

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Result, Tensor};
use candle_transformers::models as m;

use super::{GgufOptions, Zeros};
use crate::families::{Model, decoder};
use crate::problem::Problem;

type Load = fn(Content, &mut Zeros, &Device, GgufOptions) -> Result<Box<dyn Model>>;

pub(super) struct Quantized {
    /// The module of candle-transformers.
    pub(super) module: &'static str,
    /// The values of `general.architecture` that the module reads.
    architectures: &'static [&'static str],
    /// The positions of the module's rotary tables; `None` if the file sets them.
    pub(super) most_positions: Option<usize>,
    /// Bytes per element of the mask that candle builds on the host.
    pub(super) mask: u64,
    pub(super) flash_attn: bool,
    /// True if the program chooses the type of the activations.
    pub(super) has_dtype: bool,
    /// True if candle reads one sequence at a time.
    pub(super) one_sequence: bool,
    pub(super) load: Load,
}

impl std::fmt::Debug for Quantized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.module)
    }
}

impl Quantized {
    const fn new(module: &'static str, architectures: &'static [&'static str], load: Load) -> Self {
        Self {
            module,
            architectures,
            most_positions: None,
            mask: 1,
            flash_attn: false,
            has_dtype: false,
            one_sequence: false,
            load,
        }
    }

    const fn masked_by(self, mask: u64) -> Self {
        Self { mask, ..self }
    }

    const fn positions(self, most: usize) -> Self {
        Self { most_positions: Some(most), ..self }
    }

    const fn flash(self) -> Self {
        Self { flash_attn: true, ..self }
    }

    const fn typed(self) -> Self {
        Self { has_dtype: true, ..self }
    }

    const fn one_sequence(self) -> Self {
        Self { one_sequence: true, ..self }
    }
}

const TABLE: &[Quantized] = &[
    Quantized::new("quantized_gemma3", &["gemma3", "gemma2", "gemma", "gemma-embedding"], {
        use m::quantized_gemma3::ModelWeights;
        |content, zeros, device, _| {
            run(ModelWeights::from_gguf(content, zeros, device)?, ModelWeights::forward)
        }
    })
    .masked_by(4)
    .positions(m::quantized_gemma3::MAX_SEQ_LEN),
    Quantized::new("quantized_glm4", &["glm4"], {
        use m::quantized_glm4::ModelWeights;
        |content, zeros, device, options| {
            let model = ModelWeights::from_gguf(content, zeros, device, options.dtype)?;
            run(model, ModelWeights::forward)
        }
    })
    .masked_by(4)
    .one_sequence()
    .typed(),
    Quantized::new("quantized_lfm2", &["lfm2"], {
        use m::quantized_lfm2::ModelWeights;
        |content, zeros, device, _| {
            run(ModelWeights::from_gguf(content, zeros, device)?, ModelWeights::forward)
        }
    }),
    Quantized::new("quantized_llama", &["llama"], {
        use m::quantized_llama::ModelWeights;
        |content, zeros, device, _| {
            run(ModelWeights::from_gguf(content, zeros, device)?, ModelWeights::forward)
        }
    })
    .positions(m::quantized_llama::MAX_SEQ_LEN),
    Quantized::new("quantized_phi", &["phi2"], {
        use m::quantized_phi::ModelWeights;
        |content, zeros, device, _| {
            run(ModelWeights::from_gguf(content, zeros, device)?, ModelWeights::forward)
        }
    })
    .positions(m::quantized_phi::MAX_SEQ_LEN),
    Quantized::new("quantized_phi3", &["phi3"], {
        use m::quantized_phi3::ModelWeights;
        |content, zeros, device, options| {
            let flash_attn = options.flash_attn;
            let model = ModelWeights::from_gguf(flash_attn, content, zeros, device)?;
            run(model, ModelWeights::forward)
        }
    })
    .flash(),
    Quantized::new("quantized_qwen2", &["qwen2"], {
        use m::quantized_qwen2::ModelWeights;
        |content, zeros, device, _| {
            run(ModelWeights::from_gguf(content, zeros, device)?, ModelWeights::forward)
        }
    }),
    Quantized::new("quantized_qwen3", &["qwen3"], {
        use m::quantized_qwen3::ModelWeights;
        |content, zeros, device, _| {
            run(ModelWeights::from_gguf(content, zeros, device)?, ModelWeights::forward)
        }
    })
    .masked_by(4),
    Quantized::new("quantized_qwen3_moe", &["qwen3moe", "qwen2moe"], {
        use m::quantized_qwen3_moe::GGUFQWenMoE;
        |content, zeros, device, options| {
            let model = GGUFQWenMoE::from_gguf(content, zeros, device, options.dtype)?;
            run(model, GGUFQWenMoE::forward)
        }
    })
    .masked_by(4)
    .typed(),
];

fn run<M: 'static>(
    model: M,
    forward: impl FnMut(&mut M, &Tensor, usize) -> Result<Tensor> + 'static,
) -> Result<Box<dyn Model>> {
    Ok(decoder(model, forward))
}

/// Returns every architecture of GGUF files that can be estimated, sorted.
pub(super) fn architectures() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLE.iter().flat_map(|row| row.architectures).copied().collect();
    names.sort_unstable();
    names
}

pub(super) fn find(architecture: &str) -> std::result::Result<&'static Quantized, Problem> {
    TABLE.iter().find(|row| row.architectures.contains(&architecture)).ok_or_else(|| {
        Problem::invalid_question(format!(
            "candle loads no GGUF file of the architecture `{architecture}`"
        ))
        .hint(format!("known architectures: {}", architectures().join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candle_sources::{modules, source};

    #[test]
    fn every_module_that_loads_a_gguf_file_by_a_reader_has_one_row() {
        // SmolLM3 takes a path, and reads the data of all tensors before its model is loaded.
        let loads = |module: &String| source(module).contains("pub fn from_gguf<R");
        let mut present: Vec<String> = modules().into_iter().filter(loads).collect();
        present.sort_unstable();
        let rows: Vec<&str> = TABLE.iter().map(|row| row.module).collect();
        assert_eq!(present, rows);
    }

    #[test]
    fn every_architecture_belongs_to_one_module() {
        let names = architectures();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert!(names.iter().all(|name| find(name).is_ok()) && find("bloom").is_err());
    }
}
