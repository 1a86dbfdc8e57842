//! The device on which a test runs: the requested device, and the family of a device.

use serde::{Deserialize, Serialize};

/// The family of a device. Baselines are kept per family, because a simulated and a real GPU have
/// the same `allocated` figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// candle's CPU backend.
    Cpu,
    /// candle's CUDA backend, on a real or a simulated device.
    Cuda,
}

impl Family {
    /// Returns the suffix of a baseline's file name, which is also the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

/// The devices on which a test makes sense (`device = …` in the attribute).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// Every device.
    #[default]
    Any,
    /// The CPU only.
    Cpu,
    /// A CUDA device only, real or simulated.
    Cuda,
}

impl Need {
    /// The names, in the order in which errors list them.
    pub const NAMES: [&'static str; 3] = ["any", "cpu", "cuda"];

    /// Parses one of [`Need::NAMES`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "any" => Some(Self::Any),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda),
            _ => None,
        }
    }

    /// True if a test with this need can run on a device of `family`.
    pub fn admits(self, family: Family) -> bool {
        match self {
            Self::Any => true,
            Self::Cpu => family == Family::Cpu,
            Self::Cuda => family == Family::Cuda,
        }
    }
}

/// The device that `--device` or `MEMCHECK_DEVICE` requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Request {
    /// A real GPU if its driver answers and `nvcc` is found, else the simulated GPU, else the CPU
    /// if the package does not use candle.
    Auto,
    /// The CPU.
    Cpu,
    /// The simulated CUDA device. The text, if any, describes the simulated machine (`h200`,
    /// `2xrtx4090`, `a100-80g,capacity=8GiB`).
    Sim(Option<String>),
    /// Real GPUs: all visible ones, or the one with this ordinal.
    Cuda(Option<u16>),
}

/// The error of a text that is not a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a device: expected auto, cpu, sim, sim:CARD, cuda or cuda:N")]
pub struct RequestError(String);

impl Request {
    /// Returns the family; `None` for [`Request::Auto`], because it depends on the machine.
    pub fn family(&self) -> Option<Family> {
        match self {
            Self::Auto => None,
            Self::Cpu => Some(Family::Cpu),
            Self::Sim(_) | Self::Cuda(_) => Some(Family::Cuda),
        }
    }
}

impl std::str::FromStr for Request {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || RequestError(text.to_owned());
        match text.split_once(':') {
            None => match text {
                "auto" => Ok(Self::Auto),
                "cpu" => Ok(Self::Cpu),
                "sim" => Ok(Self::Sim(None)),
                "cuda" => Ok(Self::Cuda(None)),
                _ => Err(error()),
            },
            Some(("sim", machine)) if !machine.is_empty() => {
                Ok(Self::Sim(Some(machine.to_owned())))
            }
            Some(("cuda", ordinal)) => {
                ordinal.parse().map(|ordinal| Self::Cuda(Some(ordinal))).map_err(|_| error())
            }
            Some(_) => Err(error()),
        }
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Sim(None) => f.write_str("sim"),
            Self::Sim(Some(machine)) => write!(f, "sim:{machine}"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(ordinal)) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl From<Request> for String {
    fn from(request: Request) -> Self {
        request.to_string()
    }
}

impl TryFrom<String> for Request {
    type Error = RequestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_interface_round_trips() {
        for text in
            ["auto", "cpu", "sim", "sim:h200", "sim:2xrtx4090,capacity=8GiB", "cuda", "cuda:3"]
        {
            assert_eq!(text.parse::<Request>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_errors_that_list_the_devices() {
        for text in ["", "gpu", "sim:", "cuda:", "cuda:x", "cpu:0"] {
            assert!(text.parse::<Request>().expect_err(text).to_string().contains("sim:CARD"));
        }
    }
}
