//! The measurement of each row.

use std::iter;
use std::path::{Path, PathBuf};

use candle_core::{Device, Result};
use memcheck_core::wire::estimate::{Answer, Question};
use memcheck_estimate::{
    Between, Faults, HostPeaks, Refusals, answer, architecture, architectures, faults, host_peaks,
    requests,
};
use memcheck_runtime::usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::one_request::{OneRequest, PROMPT, answered, cause, one_request};
use super::tiny::{is_encoder, question};

const PUBLISHED_PROMPT: u64 = 256;
/// The prompt whose allocations are refused, each in a new model.
const REFUSED_PROMPT: u64 = 4;

/// The types in which a published model is measured if candle refuses the type of its file.
const OTHER_TYPES: [&str; 3] = ["bf16", "f16", "f32"];

/// The requests to one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManyRequests {
    pub(crate) after_8: Option<u64>,
    pub(crate) after_64: Option<u64>,
    pub(crate) refused: String,
}

/// The refused allocations of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedAllocations {
    pub(crate) refused: u64,
    pub(crate) panics: u64,
    pub(crate) leaving: u64,
    pub(crate) most_left: u64,
}

/// The bytes that refused allocations leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FaultRow {
    pub(crate) loading: RefusedAllocations,
    pub(crate) prompt: RefusedAllocations,
    pub(crate) most_after_clearing: Option<u64>,
    pub(crate) most_after_dropping: u64,
}

/// The memory of the host during loading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostRow {
    pub(crate) file: u64,
    pub(crate) mapped: u64,
    pub(crate) buffered: u64,
}

/// An architecture at its tiny size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TinyRow {
    #[serde(flatten)]
    pub(crate) request: OneRequest,
    pub(crate) uncleared: ManyRequests,
    pub(crate) cleared: ManyRequests,
    /// The bytes that are live when the first model, and a second one, were dropped.
    pub(crate) left: [u64; 2],
    pub(crate) host: Option<HostRow>,
    pub(crate) faults: Option<FaultRow>,
}

/// A configuration in `configs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRow {
    #[serde(flatten)]
    pub(crate) request: OneRequest,
    pub(crate) architecture: String,
    /// The type in which it was measured.
    pub(crate) dtype: Option<String>,
}

/// An architecture of GGUF files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GgufRow {
    pub(crate) name: String,
    pub(crate) tensors: u64,
    pub(crate) host: u64,
}

/// 64 requests of eight lengths, eight times.
fn many_requests(asked: &Question, between: Between, device: &Device) -> ManyRequests {
    let lengths: Vec<usize> = (0..64).map(|request| 4 + request % 8 * 4).collect();
    let mut row = ManyRequests::default();
    match requests(asked, &lengths, between, device) {
        Ok(requests) => {
            let kept = |request: usize| requests.kept.get(request - 1).copied();
            (row.after_8, row.after_64) = (kept(8), kept(64));
            if let Some(error) = &requests.refused {
                row.refused = format!("request {}: {}", requests.kept.len() + 1, cause(error));
            }
        }
        Err(error) => row.refused = cause(&error),
    }
    row
}

/// The row of an architecture at its tiny size.
pub(crate) fn tiny_row(architecture: &str, device: &Device) -> TinyRow {
    let asked = Question { seq: PROMPT, ..question(architecture) };
    let live = || usage(device).allocated;
    let before = live();
    let mut left = [0; 2];
    // Models that run and are dropped.
    for bytes in &mut left {
        let start = live();
        answer(&asked, device);
        *bytes = live().saturating_sub(start);
    }
    let request = one_request(architecture, architecture, &asked, device);
    let uncleared = many_requests(&asked, Between::Nothing, device);
    let cleared = if is_encoder(architecture) {
        ManyRequests { refused: "an encoder".to_owned(), ..ManyRequests::default() }
    } else {
        many_requests(&asked, Between::Clear, device)
    };
    // All models since then count as the second one.
    left[1] = left[1].max(live().saturating_sub(before + left[0]));
    let host = host_row(&asked, device);
    TinyRow { request, uncleared, cleared, left, host, faults: None }
}

/// The rows of all architectures. The refused allocations of each follow its other figures, because
/// the simulated device computes no values once larger models have run, and some prompts need them.
pub(crate) fn tiny_rows(device: &Device) -> Vec<TinyRow> {
    let row = |name| {
        let row = tiny_row(name, device);
        TinyRow { faults: fault_row(name, device), ..row }
    };
    architectures().into_iter().map(row).collect()
}

fn host_row(asked: &Question, device: &Device) -> Option<HostRow> {
    match host_peaks(asked, device).ok()? {
        HostPeaks::Safetensors { file, mapped, buffered } => {
            Some(HostRow { file, mapped, buffered })
        }
        HostPeaks::Gguf { .. } => None,
    }
}

/// The refused allocations of an architecture.
fn fault_row(architecture: &str, device: &Device) -> Option<FaultRow> {
    let asked = Question { seq: REFUSED_PROMPT, ..question(architecture) };
    let Faults { loading, prompt, most_after_clearing, most_after_dropping } =
        faults(&asked, device).ok()?;
    let row = |Refusals { refused, panics, leaving, most_left }| RefusedAllocations {
        refused,
        panics,
        leaving,
        most_left,
    };
    let (loading, prompt) = (row(loading), row(prompt));
    Some(FaultRow { loading, prompt, most_after_clearing, most_after_dropping })
}

/// The rows of the configurations in `configs`.
pub(crate) fn published_rows(device: &Device) -> Result<Vec<PublishedRow>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let row = |path: &PathBuf| {
        let config = serde_json::from_slice(&std::fs::read(path)?).expect("JSON");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        Ok(published_row(name, config, device))
    };
    files.iter().map(row).collect()
}

/// The row of a configuration, in the type of its file, or else in the first type that candle runs.
/// Without one, only its weights are known, from a prompt of one token.
fn published_row(name: String, config: Value, device: &Device) -> PublishedRow {
    let architecture = architecture(&config).expect("a known architecture");
    let asked = |dtype: Option<&str>, seq| Question {
        config: config.clone(),
        dtype: dtype.map(str::to_owned),
        seq,
        ..question("llama")
    };
    let mut reason = None;
    for dtype in iter::once(None).chain(OTHER_TYPES.map(Some)) {
        let asked = asked(dtype, PUBLISHED_PROMPT);
        let answer = answer(&asked, device);
        match &answer {
            Answer::Measured(estimate) => {
                let dtype = Some(estimate.dtype.clone());
                let mut request = answered(&name, &architecture, &asked, answer, device);
                request.remark = remarks(reason, &request.remark);
                return PublishedRow { request, architecture, dtype };
            }
            Answer::Refused(refusal) => {
                let stated = config["torch_dtype"].as_str().unwrap_or("float32");
                reason.get_or_insert(format!("in {stated}: {}", cause(&refusal.message)));
            }
        }
    }
    let mut row = PublishedRow { architecture, ..PublishedRow::default() };
    row.request = OneRequest { name, remark: remarks(reason, ""), ..OneRequest::default() };
    if let Answer::Measured(estimate) = answer(&asked(None, 1), device) {
        row.request.weights = Some(estimate.weights);
        row.request.tables = Some(estimate.tables);
        row.dtype = Some(estimate.dtype);
    }
    row
}

/// The reason for another type, and the remark of the measurement.
fn remarks(reason: Option<String>, remark: &str) -> String {
    let remark = Some(remark).filter(|remark| !remark.is_empty()).map(str::to_owned);
    reason.into_iter().chain(remark).collect::<Vec<_>>().join("; ")
}

/// The rows of the GGUF files of `write`, which has the header of each architecture.
pub(crate) fn gguf_rows(
    write: fn(&str) -> Vec<u8>,
    names: &[&str],
    device: &Device,
) -> Result<Vec<GgufRow>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.gguf");
    let row = |&name: &&str| {
        std::fs::write(&path, write(name))?;
        let asked = Question {
            config: Value::Null,
            gguf: Some(path.clone()),
            seq: PROMPT,
            ..question("llama")
        };
        match host_peaks(&asked, device).map_err(candle_core::Error::msg)? {
            HostPeaks::Gguf { tensors, peak } => {
                Ok(GgufRow { name: name.to_owned(), tensors, host: peak })
            }
            HostPeaks::Safetensors { .. } => candle_core::bail!("{name} is not a GGUF file"),
        }
    };
    names.iter().map(row).collect()
}
