//! One attempt of a search: runs a test process with one value and decides whether the test had
//! room.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use memcheck_core::device::Request;
use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::machine::{Machine, MachineError};
use memcheck_core::measurement::record::{Record, RefusedAllocation};
use memcheck_core::size::Size;
use memcheck_core::space::Space;
use memcheck_core::tolerance::Tolerance;
use memcheck_core::wire::exit;

use super::FitError;
use crate::build::leg::{DeviceKind, Leg};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::run::{RunSettings, Runner};
use crate::system::error::Failure;

#[derive(Debug, Clone)]
pub(crate) struct Capacities {
    /// The machine as requested, and with the margin subtracted.
    machines: Option<(Machine, Machine)>,
    /// The requested capacity of a real GPU in bytes (`--fits`), and its usable part.
    stated: Option<(u64, u64)>,
}

impl Capacities {
    pub(super) fn of(
        leg: &Leg,
        margin: Tolerance,
        fits: Option<u64>,
    ) -> Result<Self, MachineError> {
        if let Request::Sim(Some(text)) = &leg.device
            && let Ok(machine) = text.parse::<Machine>()
        {
            let machine = machine.no_larger_than(fits.unwrap_or(u64::MAX));
            let usable = machine.with_margin(margin)?;
            return Ok(Self { machines: Some((machine, usable)), stated: None });
        }
        let stated = fits.map(|bytes| (bytes, margin.floor(bytes)));
        match stated {
            Some((bytes, 0)) => {
                Err(MachineError::Margin(margin.to_string(), Size(bytes).to_string()))
            }
            stated => Ok(Self { machines: None, stated }),
        }
    }

    #[cfg(test)]
    pub(super) fn stated(capacity: u64, usable: u64) -> Self {
        Self { machines: None, stated: Some((capacity, usable)) }
    }

    /// A real GPU keeps its capacity, so its leg does not change.
    pub(super) fn leg(&self, leg: &Leg) -> Leg {
        match &self.machines {
            Some((_, usable)) => {
                let device = Request::Sim(Some(usable.to_string()));
                Leg::new(device, DeviceKind::Sim, leg.why.clone())
            }
            None => leg.clone(),
        }
    }

    /// In bytes. `None` if `space` is not the memory of a device, or if only the driver knows.
    pub(crate) fn of_space(&self, space: Space) -> Option<(u64, u64)> {
        let Space::Cuda(ordinal) = space else { return None };
        let Some((whole, usable)) = &self.machines else { return self.stated };
        let capacity =
            |machine: &Machine| machine.gpus.get(usize::from(ordinal)).map(|gpu| gpu.capacity);
        Some((capacity(whole)?, capacity(usable)?))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) value: u64,
    /// Bytes.
    pub(crate) peaks: BTreeMap<Space, u64>,
    pub(crate) refused: Option<(Space, RefusedAllocation)>,
    /// Only a real GPU can exceed its usable capacity, because a simulated one has no more.
    pub(crate) above: Option<Space>,
    pub(crate) other_findings: Vec<Code>,
}

impl Attempt {
    pub(crate) fn has_room(&self) -> bool {
        self.refused.is_none() && self.above.is_none()
    }

    /// The peak of a device that is above its capacity, or else the highest one of a device. A test
    /// that uses no device has peaks of other spaces only.
    pub(crate) fn peak(&self) -> u64 {
        let decides =
            |space: Space, peak: u64| (self.above == Some(space), space.is_device(), peak);
        let peaks = self.peaks.iter().max_by_key(|(space, peak)| decides(**space, **peak));
        peaks.map_or(0, |(_, peak)| *peak)
    }

    /// The device with the least room and its peak; without a known capacity the one with the
    /// highest peak.
    pub(crate) fn tightest(&self, rooms: &Capacities) -> Option<(Space, u64)> {
        let left = |space: Space, peak: u64| {
            rooms.of_space(space).map_or(u64::MAX, |(capacity, _)| capacity.saturating_sub(peak))
        };
        let peaks = self.peaks.iter().map(|(&space, &peak)| (space, peak));
        peaks.min_by_key(|&(space, peak)| {
            (!space.is_device(), left(space, peak), Reverse(peak), space)
        })
    }
}

/// `None` if the run was interrupted.
pub(super) fn run(
    runner: &Runner<'_>,
    task: &Task,
    param: &str,
    value: u64,
    rooms: &Capacities,
) -> Result<Option<Attempt>, Failure> {
    let case = BTreeMap::from([(param.to_owned(), value.to_string())]);
    let setting = RunSettings { case, ..RunSettings::default() };
    let smaller = Task { leg: rooms.leg(&task.leg), ..task.clone() };
    match runner.once(&smaller, setting, |_| {})? {
        Some(outcome) => read(&outcome, task, (param, value), rooms).map(Some).map_err(Into::into),
        None => Ok(None),
    }
}

/// Fails if the test ended for a reason that does not concern room.
fn read(
    outcome: &TestOutcome,
    task: &Task,
    (param, value): (&str, u64),
    rooms: &Capacities,
) -> Result<Attempt, FitError> {
    let ended = |code: Code, message: String| FitError::Ended {
        param: param.to_owned(),
        value,
        device: task.leg.name(),
        code: code.name(),
        message,
        exit_code: match code.row().class {
            Class::Instrument => exit::NOT_MEASURED,
            Class::Measured | Class::Bookkeeping => exit::FAILED,
        },
    };
    let findings = &outcome.verdict.findings;
    let other = findings.iter().find(|finding| finding.code.cut_it_short());
    if let Some(Finding { code, message, .. }) = other {
        return Err(ended(*code, message.clone()));
    }
    let record = outcome.report.as_ref().map(|report| &report.record);
    // An older runtime ignores the value of the job.
    let tried = |record: &&Record| record.case.get(param) == Some(&value.to_string());
    let Some(record) = record.filter(tried) else {
        let why = "the test executable does not support `fit`: build it with memcheck-runtime of \
                   the same version as cargo-memcheck";
        return Err(ended(Code::NotMeasured, why.to_owned()));
    };
    let full = findings.iter().find(|finding| is_about_room(finding.code));
    let refused = full.and_then(|finding| {
        let spaces = record.spaces.iter().filter(|(space, _)| finding.space == Some(**space));
        spaces.filter_map(|(space, measured)| Some((*space, measured.refused?))).next()
    });
    let judged = record.judged.iter().filter_map(|space| record.spaces.get_key_value(space));
    let peaks: BTreeMap<Space, u64> =
        judged.map(|(space, measured)| (*space, measured.metrics.peak_allocated)).collect();
    Ok(Attempt {
        value,
        above: above(&peaks, rooms),
        peaks,
        refused,
        other_findings: findings
            .iter()
            .map(|finding| finding.code)
            .filter(|&code| !is_about_room(code) && code.row().class == Class::Measured)
            .collect(),
    })
}

/// The first device whose peak is above its usable capacity.
fn above(peaks: &BTreeMap<Space, u64>, rooms: &Capacities) -> Option<Space> {
    let exceeds = |space, peak| rooms.of_space(space).is_some_and(|(_, usable)| peak > usable);
    peaks.iter().find(|(space, peak)| exceeds(**space, **peak)).map(|(space, _)| *space)
}

fn is_about_room(code: Code) -> bool {
    matches!(code, Code::OutOfMemory | Code::DoesNotFit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_and_a_capacity_make_the_devices_smaller() {
        let machine = Request::Sim(Some("2xt4,capacity=1000B".to_owned()));
        let leg = Leg::new(machine, DeviceKind::Sim, "");
        let rooms = |margin: &str, fits| Capacities::of(&leg, margin.parse().unwrap(), fits);
        let first = |rooms: Capacities| (rooms.leg(&leg).name(), rooms.of_space(Space::Cuda(1)));
        let (name, room) = first(rooms("5%", None).unwrap());
        assert_eq!((name.as_str(), room), ("sim:2xt4,capacity=950B", Some((1000, 950))));
        assert_eq!(first(rooms("10%", Some(100)).unwrap()).1, Some((100, 90)));
        assert_eq!(first(rooms("0%", None).unwrap()).1, Some((1000, 1000)));
        let error = rooms("100%", None).unwrap_err().to_string();
        assert_eq!(error, "a margin of 100% leaves no memory of sim:2xt4,capacity=1000B");

        // The capacity of a real GPU is known only if `--fits` requests one.
        let leg = Leg::new(Request::Cuda(None), DeviceKind::Cuda, "");
        let margin: Tolerance = "50%".parse().unwrap();
        assert_eq!(Capacities::of(&leg, margin, None).unwrap().of_space(Space::Cuda(0)), None);
        let stated = Capacities::of(&leg, margin, Some(200)).unwrap();
        assert_eq!(stated.of_space(Space::Cuda(0)), Some((200, 100)));
    }

    fn attempt(peaks: &[(Space, u64)]) -> Attempt {
        let peaks = peaks.iter().copied().collect();
        Attempt { value: 1, peaks, refused: None, above: None, other_findings: Vec::new() }
    }

    #[test]
    fn only_the_memory_of_a_device_has_a_capacity() {
        let machine = Request::Sim(Some("2xt4,capacity=1000B".to_owned()));
        let leg = Leg::new(machine, DeviceKind::Sim, "");
        let simulated = Capacities::of(&leg, "5%".parse().unwrap(), None).unwrap();
        let unknown = Capacities { machines: None, stated: None };
        let [first, second] = [0, 1].map(Space::Cuda);
        let others = [Space::Host, Space::Pinned(0), Space::Managed(0), Space::Graph(0)]
            .map(|it| (it, 5_000));
        for rooms in [simulated, Capacities::stated(1000, 950), unknown] {
            for (space, _) in others {
                assert_eq!(rooms.of_space(space), None, "{space} {rooms:?}");
            }
            let mut peaks = others.to_vec();
            assert_eq!(attempt(&peaks).tightest(&rooms), Some(others[0]), "{rooms:?}");
            peaks.extend([(first, 700), (second, 900)]);
            assert_eq!(attempt(&peaks).tightest(&rooms), Some((second, 900)), "{rooms:?}");
            assert_eq!(attempt(&peaks).peak(), 900);
            assert_eq!(Attempt { above: Some(first), ..attempt(&peaks) }.peak(), 700);
            assert_eq!(above(&attempt(&peaks).peaks, &rooms), None, "{rooms:?}");
        }
        let rooms = Capacities::stated(1000, 899);
        assert_eq!(above(&attempt(&[(first, 700), (second, 900)]).peaks, &rooms), Some(second));
    }
}
