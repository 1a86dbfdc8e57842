//! The arguments of `estimate`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::invocation::cli::OutputFlags;
use crate::invocation::values::CargoOptions;

/// `cargo memcheck estimate`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EstimateArgs {
    /// Configuration of the model: config.json as on Hugging Face.
    #[arg(long, value_name = "FILE", required_unless_present = "gguf")]
    pub(crate) config: Option<PathBuf>,
    /// Quantized model: a GGUF file, of which only the header is read. The file may end after it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "train"])]
    pub(crate) gguf: Option<PathBuf>,
    /// Weights of the model: a safetensors file, or model.safetensors.index.json of several. Only
    /// headers are read. The names and shapes that candle asks for must be in them.
    #[arg(long, value_name = "FILE", requires = "config")]
    pub(crate) weights: Option<PathBuf>,
    /// Number of sequences in a batch.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch: u64,
    /// Number of tokens of the prompt.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seq: u64,
    /// Number of tokens to generate after the prompt.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) generate: u64,
    /// Measure a training step (forward pass, backward pass, AdamW) instead of inference.
    #[arg(long, conflicts_with = "generate")]
    pub(crate) train: bool,
    /// Also measure the model with flash-attention, which candle-transformers has for some models
    /// in f16 and bf16.
    #[arg(long, conflicts_with = "train")]
    pub(crate) flash_attn: bool,
    /// Element type of weights and activations (default: that of the configuration, or f32).
    #[arg(long, value_name = "DTYPE")]
    pub(crate) dtype: Option<DtypeFlag>,
    /// Simulated device that the model must fit: sim or sim:CARD (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) build: EstimatorFlags,
}

/// Flags for the build of the estimator. Cargo's flags cannot be used as a whole, because
/// `--config` has another meaning here.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Cargo options")]
pub(crate) struct EstimatorFlags {
    /// Build the estimator in release mode.
    #[arg(short = 'r', long)]
    pub(crate) release: bool,
    /// Directory for build output.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) target_dir: Option<PathBuf>,
    /// Path to Cargo.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Run without accessing the network.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Number of parallel build jobs.
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<String>,
}

impl EstimatorFlags {
    pub(crate) fn as_cargo(&self) -> CargoOptions {
        let Self { release, target_dir, manifest_path, offline, jobs } = self.clone();
        // The program is not the user's.
        let no_package_cuda = true;
        CargoOptions {
            release,
            target_dir,
            manifest_path,
            offline,
            jobs,
            no_package_cuda,
            ..Default::default()
        }
    }
}

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeFlag {
    /// 4 bytes per element.
    F32,
    /// 2 bytes per element.
    F16,
    /// 2 bytes per element.
    Bf16,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::invocation::cli::Cli;

    #[test]
    fn sizes_begin_at_one_and_a_training_step_generates_no_tokens() {
        let read = |flags: &str| {
            let line = format!("x estimate --config a.json {flags}");
            Cli::try_parse_from(line.split_whitespace())
        };
        assert!(read("--batch 8 --seq 4096 --generate 256 --dtype bf16").is_ok());
        assert!(read("--seq 1 --train --device sim:t4 --device sim").is_ok());
        assert!(read("--seq 1 --flash-attn --generate 2").is_ok());
        assert!(read("--seq 1 --flash-attn --train").is_err());
        for (wrong, why) in [
            ("", "--seq <N>"),
            ("--seq 0", "'--seq <N>'"),
            ("--seq 1 --batch 0", "'--batch <N>'"),
            ("--seq 1 --batch -1", "unexpected argument '-1'"),
            ("--seq -1", "unexpected argument '-1'"),
            ("--seq 1 --train --generate 1", "cannot be used with"),
            ("--seq 99999999999999999999", "'--seq <N>'"),
            ("--seq 1 --gguf a.gguf", "cannot be used with"),
            ("--seq 1 --dtype i4", "'--dtype <DTYPE>'"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_model_is_a_configuration_or_a_gguf_file() {
        let read = |flags: &str| {
            let line = format!("x estimate --seq 1 {flags}");
            Cli::try_parse_from(line.split_whitespace())
        };
        assert!(read("--gguf a.gguf --generate 4 --dtype bf16 --flash-attn").is_ok());
        assert!(read("").is_err());
        assert!(read("--gguf a.gguf --train").is_err());
    }
}
