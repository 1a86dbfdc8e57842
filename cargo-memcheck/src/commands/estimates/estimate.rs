//! `cargo memcheck estimate`: estimates the memory of a model from its configuration alone, or from
//! the header of a GGUF file.

use std::path::{self, Path};
use std::{fs, io};

use clap::ValueEnum;
use memcheck_core::cards::{CARDS, Card};
use memcheck_core::device::Request;
use memcheck_core::input;
use memcheck_core::machine::Machine;
use memcheck_core::request::variables::{self, VariableError};
use memcheck_core::size::both;
use memcheck_core::wire::estimate::{Answer, Estimate, EstimateRefusal, Question, VERSION, Why};
use memcheck_core::wire::exit;
use serde_json::Value;

use crate::discovery::session::Session;
use crate::execution::estimator::{DeviceFit, Estimator};
use crate::invocation::cli::EstimateArgs;
use crate::invocation::devices;
use crate::invocation::options::{Flags, OptionsError, environment};
use crate::invocation::values::Format;
use crate::presentation::presenters::estimates::estimate::{self as presenters, EstimateFigures};
use crate::system::error::{CommandError, Failure};
use crate::system::printing::print;

const ROOMY: &str = "h200,capacity=1TiB";

#[derive(Debug, thiserror::Error)]
enum EstimateError {
    #[error("{0}: {1}")]
    Read(String, io::Error),
    #[error("{1}: {2}")]
    File(&'static str, String, io::Error),
    #[error("{0} is not JSON: {1}")]
    Json(String, serde_json::Error),
    #[error("{0} is not a JSON object")]
    Shape(String),
    #[error("--device {0}: an estimate runs on simulated devices only")]
    Device(Request),
    #[error("{}", .0.message)]
    Refused(EstimateRefusal),
    #[error("the model does not fit 1 TiB, the largest capacity of a simulated device: {0}")]
    TooLarge(String),
}

impl CommandError for EstimateError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Read(..) | Self::File(..) | Self::Json(..) | Self::Shape(_) | Self::Device(_) => {
                exit::USAGE
            }
            Self::TooLarge(_) => exit::FAILED,
            Self::Refused(refusal) => match refusal.why {
                Why::Question => exit::USAGE,
                Why::OutOfMemory => exit::FAILED,
                Why::NotMeasured => exit::NOT_MEASURED,
            },
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Read(folder, error) if error.kind() == io::ErrorKind::IsADirectory => {
                Some(format!("--config {}", Path::new(folder).join("config.json").display()))
            }
            Self::Read(..) => Some("--config FILE, the model's config.json".to_owned()),
            Self::File(flag, ..) => Some(format!("{flag} FILE, whose name must be valid UTF-8")),
            Self::Json(..) | Self::Shape(_) => Some(
                "Hugging Face has a config.json for each model; JSON has no comments".to_owned(),
            ),
            Self::Device(_) => Some("--device sim, or sim:CARD such as sim:rtx4090".to_owned()),
            Self::Refused(refusal) => refusal.hint.clone(),
            Self::TooLarge(_) => Some("use a smaller --batch, --seq or --dtype".to_owned()),
        }
    }
}

pub(super) fn estimate(args: &EstimateArgs) -> Result<u8, Failure> {
    let machines = machines(&args.device)?;
    let question = Question {
        version: VERSION,
        config: args.config.as_deref().map(config).transpose()?.unwrap_or_default(),
        gguf: args.gguf.as_deref().map(|file| absolute("--gguf", file)).transpose()?,
        weights: args.weights.as_deref().map(|file| absolute("--weights", file)).transpose()?,
        batch: args.batch,
        seq: args.seq,
        generate: args.generate,
        train: args.train,
        flash_attn: false,
        dtype: args.dtype.and_then(|dtype| Some(dtype.to_possible_value()?.get_name().to_owned())),
    };
    let (kind, cargo) = Estimator::target(args.build.as_cargo(), args.flash_attn)?;
    let flags = Flags::new(&args.output, &cargo).devices(&["sim".to_owned()])?;
    let estimator = Estimator::build(&Session::open(flags)?, kind)?;
    let with_flash = Question { flash_attn: true, ..question.clone() };
    let questions = [Some(question), args.flash_attn.then_some(with_flash)];
    let mut code = exit::OK;
    let mut all = Vec::new();
    for question in questions.into_iter().flatten() {
        let figures = measure(&estimator, &question, &machines)?;
        // The figures without flash-attention are only for comparison.
        code = exit_code(&figures.estimate, &figures.tried);
        all.push(figures);
    }
    match args.output.form.message_format {
        Format::Json => all.iter().for_each(presenters::json),
        Format::Human => print(&presenters::human(&all, args.output.verbosity())),
    }
    Ok(code)
}

fn measure(
    estimator: &Estimator,
    question: &Question,
    machines: &[String],
) -> Result<EstimateFigures, Failure> {
    let mut ran = true;
    let estimate = match estimator.estimate(question, ROOMY)? {
        Answer::Measured(estimate) => *estimate,
        Answer::Refused(refusal) if refusal.runs_at.is_some() => {
            ran = false;
            let estimate = extrapolate_batch(estimator, question, refusal)?;
            fits(estimate.peak, &ROOMY.parse()?).map_err(EstimateError::TooLarge)?;
            estimate
        }
        Answer::Refused(refusal) if refusal.why == Why::OutOfMemory => {
            return Err(EstimateError::TooLarge(refusal.message).into());
        }
        Answer::Refused(refusal) => return Err(EstimateError::Refused(refusal).into()),
    };
    let mut tried = Vec::new();
    for machine in machines.iter().filter(|_| estimate.is_run()) {
        let result = if ran {
            match estimator.estimate(question, machine)? {
                Answer::Measured(estimate) => Ok(estimate.peak),
                Answer::Refused(refusal) if refusal.why == Why::OutOfMemory => Err(refusal.message),
                Answer::Refused(refusal) => return Err(EstimateError::Refused(refusal).into()),
            }
        } else {
            fits(estimate.peak, &machine.parse()?)
        };
        tried.push(DeviceFit { device: format!("sim:{machine}"), result });
    }
    let cards = cards(&estimate);
    Ok(EstimateFigures { estimate, cards, tried, flash_attn: question.flash_attn })
}

/// candle cannot run this batch: the figures follow from the laws of smaller ones.
fn extrapolate_batch(
    estimator: &Estimator,
    question: &Question,
    refusal: EstimateRefusal,
) -> Result<Estimate, Failure> {
    let most = refusal.runs_at.unwrap_or(0);
    let mut batches = vec![1, 2, 3, most];
    batches.retain(|&batch| batch <= most);
    batches.dedup();
    let mut measured = Vec::new();
    for &batch in &batches {
        let question = Question { batch, ..question.clone() };
        let Answer::Measured(estimate) = estimator.estimate(&question, ROOMY)? else {
            return Err(EstimateError::Refused(refusal).into());
        };
        measured.push(*estimate);
    }
    let Some(mut estimate) = Estimate::at_batch(&measured, question.batch) else {
        return Err(EstimateError::Refused(refusal).into());
    };
    let batches: Vec<String> = batches.iter().map(u64::to_string).collect();
    estimate.notes.push(format!(
        "{}: the figures are extrapolated from batch {} by their exact laws",
        refusal.message,
        batches.join(", ")
    ));
    Ok(estimate)
}

fn fits(peak: u64, machine: &Machine) -> Result<u64, String> {
    let capacity = machine.gpus.first().map_or(0, |gpu| gpu.capacity);
    if peak <= capacity {
        return Ok(peak);
    }
    Err(format!("the peak is {} above its capacity", both(peak - capacity)))
}

fn machines(devices: &[String]) -> Result<Vec<String>, Failure> {
    let default = || match environment(variables::SIM.name) {
        Some(machine) => devices::check_machine(&machine)
            .map(|()| machine)
            .map_err(|error| VariableError::new(variables::SIM.name, error)),
        None => Ok(devices::DEFAULT_MACHINE.to_owned()),
    };
    let mut machines: Vec<String> = Vec::new();
    for request in devices::parse_list(devices.iter().map(String::as_str))? {
        let machine = match request {
            Request::Sim(Some(machine)) => machine,
            Request::Sim(None) => default().map_err(OptionsError::from)?,
            other => return Err(EstimateError::Device(other).into()),
        };
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    Ok(machines)
}

fn config(path: &Path) -> Result<Value, EstimateError> {
    let shown = path.display().to_string();
    let text = input::read_text(path, input::MODEL)
        .map_err(|error| EstimateError::Read(shown.clone(), error))?;
    // Some editors write a byte order mark at the start of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match serde_json::from_str(text) {
        Ok(config @ Value::Object(_)) => Ok(config),
        Ok(_) => Err(EstimateError::Shape(shown)),
        Err(error) => Err(EstimateError::Json(shown, error)),
    }
}

/// The estimator is another process, which receives the path as text and opens the file.
fn absolute(flag: &'static str, file: &Path) -> Result<path::PathBuf, EstimateError> {
    let error = |error| EstimateError::File(flag, file.display().to_string(), error);
    let file = path::absolute(file).map_err(error)?;
    match (fs::metadata(&file), file.to_str()) {
        (Err(metadata), _) => Err(error(metadata)),
        (Ok(metadata), _) if metadata.is_dir() => Err(error(io::ErrorKind::IsADirectory.into())),
        (Ok(_), None) => Err(error(io::ErrorKind::InvalidFilename.into())),
        (Ok(_), Some(_)) => Ok(file),
    }
}

/// The smallest card first. `None` if the model does not fit; empty if the model was not run.
fn cards(estimate: &Estimate) -> Vec<(&'static Card, Option<u64>)> {
    let known = CARDS.iter().filter(|_| estimate.is_run());
    let mut cards: Vec<_> =
        known.map(|card| (card, card.bytes.checked_sub(estimate.peak))).collect();
    cards.sort_by_key(|(card, _)| (card.bytes, card.id));
    cards
}

fn exit_code(estimate: &Estimate, tried: &[DeviceFit]) -> u8 {
    let trains = estimate.training.as_ref().is_none_or(|training| training.is_whole());
    let whole = estimate.is_run() && trains;
    match tried.iter().all(|tried| tried.result.is_ok()) {
        false => exit::FAILED,
        true if whole => exit::OK,
        true => exit::NOT_MEASURED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::presenters::estimates::estimate::example::loaded;
    use memcheck_core::wire::estimate::Training;

    fn estimate(reached: u64) -> Estimate {
        let training =
            Training { variables: 2, reached, gradients: 0, optimizer: 0, activations: 0, peak: 1 };
        Estimate { training: Some(training), peak: 16 << 30, ..loaded() }
    }

    #[test]
    fn the_exit_code_of_a_card_that_is_too_small_takes_precedence() {
        let tried = |result| vec![DeviceFit { device: "sim:t4".to_owned(), result }];
        let full = || tried(Err("full".to_owned()));
        assert_eq!(exit_code(&estimate(2), &[]), exit::OK);
        assert_eq!(exit_code(&estimate(2), &tried(Ok(1))), exit::OK);
        assert_eq!(exit_code(&estimate(2), &full()), exit::FAILED);
        assert_eq!(exit_code(&estimate(1), &[]), exit::NOT_MEASURED);
        assert_eq!(exit_code(&estimate(1), &full()), exit::FAILED);
    }

    #[test]
    fn a_model_that_was_only_loaded_fits_no_card() {
        assert_eq!(exit_code(&loaded(), &[]), exit::NOT_MEASURED);
        assert!(cards(&loaded()).is_empty());
    }

    #[test]
    fn a_model_fits_a_card_up_to_the_last_byte_of_its_capacity() {
        let left = |peak| {
            let cards = cards(&Estimate { peak, ..estimate(2) });
            cards.into_iter().find(|(card, _)| card.id == "rtx4080").unwrap().1
        };
        assert_eq!(left(16 << 30), Some(0));
        assert_eq!(left((16 << 30) + 1), None);
    }

    #[test]
    fn only_simulated_devices_are_understood_and_each_once() {
        let of = |devices: &[&str]| {
            machines(&devices.iter().map(|&device| device.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["sim:t4", "sim:t4", "sim:h200"]).unwrap(), ["t4", "h200"]);
        for (wrong, why) in [
            ("cpu", "an estimate runs on simulated devices only"),
            ("cuda", "an estimate runs on simulated devices only"),
            ("auto", ""),
            ("sim:toaster", "`toaster` is not a known card"),
            ("sim:rtx4091", "`rtx4091` is not a known card"),
            ("t4", ""),
        ] {
            let failure = of(&["sim:t4", wrong]).unwrap_err();
            assert_eq!(failure.exit_code(), exit::USAGE, "{wrong}");
            assert!(failure.message().contains(why), "{wrong}: {}", failure.message());
        }
        let near = of(&["sim:rtx4091"]).unwrap_err().hint();
        assert_eq!(near.as_deref(), Some("did you mean `rtx4090`?"));
    }

    #[test]
    fn a_file_that_is_not_a_configuration_is_refused_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        let inside = format!("--config {}", folder.path().join("config.json").display());
        let refused = |path: &Path, why: &str, hint: &str| {
            let error = config(path).unwrap_err();
            assert_eq!(error.exit_code(), exit::USAGE, "{why}");
            assert!(error.to_string().contains(why), "{why}: {error}");
            assert!(error.hint().unwrap().contains(hint), "{hint}: {:?}", error.hint());
        };
        for (text, why, hint) in [
            (&b""[..], "a.json is not JSON: EOF", "has a config.json for each model"),
            (b"{\"hidden_size\": 4", "is not JSON: EOF", "has a config.json for each model"),
            (b"// Llama\n{}", "is not JSON: expected value", "JSON has no comments"),
            (b"[]", "is not a JSON object", "has a config.json for each model"),
            (&[0xff, 0xfe, b'{', 0], "valid UTF-8", "--config FILE"),
        ] {
            fs::write(&file, text).unwrap();
            refused(&file, why, hint);
        }
        refused(folder.path(), "", &inside);
        refused(&folder.path().join("none"), "No such file", "--config FILE");
        for (path, why) in [
            (folder.path().to_owned(), "is a directory"),
            (folder.path().join("none"), "No such file"),
        ] {
            let error = absolute("--gguf", &path).unwrap_err();
            assert_eq!(error.exit_code(), exit::USAGE);
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(error.hint().unwrap(), "--gguf FILE, whose name must be valid UTF-8");
        }
        fs::write(&file, "\u{feff}{}").unwrap();
        assert_eq!(config(&file).unwrap(), serde_json::json!({}));
    }
}
