//! `cargo memcheck plan`: runs a test once on a simulated device that is large enough, and assigns
//! its layers to devices.

use std::path::{Path, PathBuf};

use anyhow::Context;
use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::machine::{Machine, MachineError};
use memcheck_core::measurement::placement::{self, Modules, Short};
use memcheck_core::runs::plan::RunPlan;
use memcheck_core::tolerance::Tolerance;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Follow;

use super::measuring_flags;
use crate::commands::one::only;
use crate::commands::prologue::Prologue;
use crate::discovery::task::{Task, TestOutcome};

use crate::invocation::cli::PlanArgs;
use crate::presentation::presenters::estimates::plan::{self as presenters, Placed};
use crate::presentation::presenters::interrupted;
use crate::system::error::{CommandError, Failure};
use crate::system::files;

/// The largest that can be simulated.
const CAPACITY: &str = "1TiB";

#[derive(Debug, thiserror::Error)]
enum PlanError {
    #[error("plan needs one test: write its path, or a part of it")]
    NoName,
    #[error("plan does not accept --device, because it measures on a simulated device")]
    Device,
    #[error("`{0}` takes no device, so it has no layers to place")]
    Deviceless(String),
    #[error("{0}: {1}")]
    Ended(Code, String),
    #[error("`{0}` has no layers: no span around its allocations has an `index`")]
    NoLayers(String),
    #[error("`{0}` has more events than the log of a plan can hold: {1} were lost")]
    LogFull(String, u64),
    #[error(
        "the modules of `{0}` add up to a peak of {1} B, but {2} B were measured: several threads \
         allocate at the same time"
    )]
    Threads(String, u64, u64),
    #[error("{short}, with {margin} of each device left free")]
    Short {
        short: Short,
        /// The part of each device that must be left free.
        margin: Tolerance,
    },
    #[error("{path}: {1}", path = .0.display())]
    Write(PathBuf, std::io::Error),
}

impl CommandError for PlanError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoName | Self::Device | Self::Deviceless(_) | Self::NoLayers(_) => exit::USAGE,
            Self::Ended(code, _) if code.row().class == Class::Instrument => exit::NOT_MEASURED,
            Self::Ended(..) | Self::Short { .. } => exit::FAILED,
            Self::Threads(..) | Self::LogFull(..) => exit::NOT_MEASURED,
            Self::Write(..) => exit::REPORT,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoName => "`cargo memcheck list` shows the tests",
            Self::Device => "--devices names the devices for the layers",
            Self::NoLayers(_) => {
                "enter a span for each layer, when it is loaded and when it runs: \
                 `info_span!(\"model.layers\", index = 3)`"
            }
            Self::Short { .. } => {
                "add a device, or use a larger device or a narrower dtype; --margin 0% uses the \
                 whole devices"
            }
            Self::Threads(..) => "measure with one thread",
            Self::LogFull(..) => {
                "one iteration is enough: `--iterations 1 --warmup 0`; or generate fewer tokens"
            }
            Self::Deviceless(_) | Self::Ended(..) | Self::Write(..) => return None,
        };
        Some(hint.to_owned())
    }
}

pub(super) fn plan(args: &PlanArgs) -> Result<u8, Failure> {
    let [name] = args.test.select.filters.as_slice() else { return Err(PlanError::NoName.into()) };
    if !args.test.select.device.is_empty() {
        return Err(PlanError::Device.into());
    }
    let flags = &args.placement;
    let margin = flags.margin.tolerance();
    let machine = Machine::of_list(&flags.devices)?;
    let usable = machine.with_margin(margin)?;
    let device = measured_on(&machine)?;
    let prologue = Prologue::open(measuring_flags(&args.test, None)?.devices(&[device])?)?;
    let Some((runner, chosen)) = prologue.tests()? else { return Err(interrupted()) };
    let tasks = only("plan", name, chosen)?;
    let [task] = tasks.as_slice() else { return Err(PlanError::NoName.into()) };
    if task.family() != task.leg.family() {
        return Err(PlanError::Deviceless(task.name().to_owned()).into());
    }
    let Some(outcome) = runner.once(task, RunPlan::from(Follow::Modules).into(), |_| {})? else {
        return Err(interrupted());
    };
    let modules = measured(task, &outcome)?;
    let usable: Vec<u64> = usable.gpus.iter().map(|gpu| gpu.capacity).collect();
    let plan = placement::plan(modules, &usable);
    let reporting = &prologue.session.options.reporting;
    let plan = plan.map_err(|short| {
        presenters::modules(reporting, modules);
        PlanError::Short { short, margin }
    })?;
    let map = plan.device_map(modules);
    let placed = Placed { task, machine: &machine, margin, modules, plan: &plan, map: &map };
    presenters::plan(reporting, &placed, flags.output_map.as_deref());
    if let Some(path) = &flags.output_map {
        write(
            path,
            &(serde_json::to_string_pretty(&map).context("writing the device map")? + "\n"),
        )?;
    }
    Ok(exit::OK)
}

fn measured_on(machine: &Machine) -> Result<String, MachineError> {
    let first = machine.gpus.first().ok_or_else(|| MachineError::Card(String::new()))?;
    Ok(format!("sim:{},capacity={CAPACITY}", first.card.id))
}

fn measured<'a>(task: &Task, outcome: &'a TestOutcome) -> Result<&'a Modules, PlanError> {
    if let Some(Finding { code, message, .. }) = outcome.verdict.findings.iter().find(|f| ends(f)) {
        return Err(PlanError::Ended(*code, message.clone()));
    }
    let test = || task.name().to_owned();
    let no_layers = || PlanError::NoLayers(test());
    let record = &outcome.report.as_ref().ok_or_else(no_layers)?.record;
    let found = record.attribution.as_ref().ok_or_else(no_layers)?;
    if found.unlogged > 0 {
        return Err(PlanError::LogFull(test(), found.unlogged));
    }
    let modules = found.modules.as_ref().ok_or_else(no_layers)?;
    let own = record.judged.iter().find(|space| space.is_device());
    let counted = own.and_then(|space| record.spaces.get(space));
    let counted = counted.map_or(0, |measured| measured.metrics.peak_allocated);
    if modules.whole() != counted {
        return Err(PlanError::Threads(test(), modules.whole(), counted));
    }
    Ok(modules)
}

/// True if a run with this finding did not come to its end.
fn ends(finding: &Finding) -> bool {
    let code = finding.code;
    matches!(code, Code::OutOfMemory | Code::DoesNotFit) || code.cut_it_short()
}

fn write(path: &Path, text: &str) -> Result<(), PlanError> {
    files::replace(path, text.as_bytes()).map_err(|error| PlanError::Write(path.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use memcheck_core::measurement::attribution::Attribution;

    use clap::Parser;

    use super::*;
    use crate::discovery::task::example;
    use crate::invocation::cli::{Cli, Command, EstimatesCommand};

    /// The arguments are refused before anything is built.
    #[track_caller]
    fn assert_refused(arguments: &[&str], text: &str) {
        let cli = Cli::try_parse_from([&["x", "plan"], arguments].concat()).unwrap();
        let Command::Estimates(EstimatesCommand::Plan(args)) = cli.command else {
            panic!("{:?}", cli.command)
        };
        let failure = plan(&args).unwrap_err();
        assert_eq!(failure.exit_code(), exit::USAGE, "{arguments:?}");
        let shown = format!("{}\n{}", failure.message(), failure.hint().unwrap_or_default());
        assert!(shown.contains(text), "{arguments:?}: {shown}");
    }

    #[test]
    fn invalid_arguments_are_refused_with_a_hint() {
        for (devices, text) in [
            ("2xrtx4091", "did you mean `rtx4090`?"),
            ("t4,memory=1GiB", "capacity=SIZE"),
            ("t4,capacity=99999999999TiB", "is not a capacity"),
            ("t4,capacity=0B", "is not a capacity"),
            ("0xt4", "a machine has 1 to 65536 devices, not 0"),
            ("", "not a known card"),
        ] {
            assert_refused(&["a", "--devices", devices], text);
        }
        for (devices, margin, text) in [
            ("2xt4", "100%", "leaves no memory of sim:2xt4"),
            ("2xt4", "150%", "`--margin 0%` uses the whole capacity"),
            ("t4,t4,capacity=1MiB", "1 MiB", "leaves no memory"),
        ] {
            assert_refused(&["a", "--devices", devices, "--margin", margin], text);
        }
        assert_refused(&["--devices", "t4"], "plan needs one test");
        assert_refused(&["a", "b", "--devices", "t4"], "plan needs one test");
        assert_refused(&["a", "--devices", "t4", "--device", "sim"], "--devices names the devices");
        let without = Cli::try_parse_from(["x", "plan", "a"]).unwrap_err().to_string();
        assert!(without.contains("--devices <DEVICES>"), "{without}");
    }

    #[test]
    fn a_map_that_cannot_be_written_is_a_failed_report() {
        let error = write(Path::new("/proc/none/map.json"), "{}").unwrap_err();
        assert_eq!(error.exit_code(), exit::REPORT);
        assert!(error.to_string().starts_with("/proc/none/map.json: "), "{error}");
    }

    /// `unlogged` events did not fit into the log.
    fn of(unlogged: u64) -> PlanError {
        let mut outcome = TestOutcome::ignored();
        let mut report: memcheck_core::runs::report::Report =
            serde_json::from_value(example::report()).unwrap();
        report.record.attribution = Some(Attribution { unlogged, ..Attribution::default() });
        outcome.report = Some(report);
        measured(&example::task(), &outcome).unwrap_err()
    }

    #[test]
    fn a_full_log_and_a_model_without_layers_are_distinguished() {
        let full = of(3);
        assert!(full.to_string().contains("`a::b` has more events"), "{full}");
        assert!(full.to_string().contains("3 were lost"), "{full}");
        assert!(full.hint().unwrap().contains("--iterations 1 --warmup 0"));
        assert_eq!(full.exit_code(), exit::NOT_MEASURED);
        let none = of(0);
        assert!(matches!(none, PlanError::NoLayers(_)), "{none}");
        assert_eq!(none.exit_code(), exit::USAGE);
    }
}
