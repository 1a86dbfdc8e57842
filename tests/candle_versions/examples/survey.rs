//! Measures the tiny models of `docs/survey.md` on the simulated device. `survey FILE` writes the
//! figures of all models. `survey FILE NAME` runs one prompt of one model, for a profile.

#[path = "../../../memcheck-estimate/tests/survey/needed.rs"]
#[allow(dead_code, reason = "the survey calls its assertions")]
mod needed;
#[path = "../../../memcheck-estimate/tests/survey/one_request.rs"]
mod one_request;
#[path = "../../../memcheck-estimate/tests/tiny/mod.rs"]
mod tiny;

use candle_core::Device;
use memcheck_core::wire::estimate::Question;
use memcheck_estimate::{architectures, requests, Between};

use one_request::{one_request, OneRequest, PROMPT};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let device = Device::new_cuda(0)?;
    let asked = |name: &str| Question { seq: PROMPT, ..tiny::question(name) };
    match &arguments[..] {
        [file] => {
            let row = |name: &'static str| one_request(name, name, &asked(name), &device);
            let rows: Vec<OneRequest> = architectures().into_iter().map(row).collect();
            std::fs::write(file, serde_json::to_string_pretty(&rows)?)?;
        }
        // Without the canary of `answer`, which is larger than the models.
        [_, name] => {
            let length = usize::try_from(PROMPT)?;
            let run = requests(&asked(name), &[length], Between::Nothing, &device);
            run.map_err(anyhow::Error::msg)?;
        }
        _ => anyhow::bail!("survey FILE [NAME]"),
    }
    Ok(())
}
