//! Records for unit tests: a test that ran ten iterations on a GPU.

use std::collections::BTreeMap;

use super::{Facts, Metrics, Outcome, Record, SpaceRecord, VERSION};
use crate::device::Family;
use crate::limits::{Layer, Limits, Source};
use crate::space::Space;

pub(crate) const GPU: Space = Space::Cuda(0);

pub(crate) fn limits(layer: Layer) -> Limits {
    Limits::resolve(Family::Cuda, [(Source::Attribute, &layer)])
}

pub(crate) fn record(measured: SpaceRecord) -> Record {
    let limits = limits(Layer::default());
    Record {
        version: VERSION,
        package: "app".into(),
        test: "t".into(),
        case: BTreeMap::new(),
        device: "sim:h200".into(),
        family: Family::Cuda,
        judged: vec![GPU],
        outcome: Outcome::Returned,
        should_panic: None,
        facts: Facts {
            memcheck: 1,
            candle: "0.11.1".into(),
            profile: "debug".into(),
            iterations: 10,
            warmup: 2,
            threads: None,
            dtype: None,
            arch: None,
            features: None,
        },
        phase_limits: BTreeMap::new(),
        iterated: true,
        iterations: 10,
        limits,
        spaces: BTreeMap::from([(GPU, measured)]),
        capacities: BTreeMap::new(),
        lost_events: 0,
        events_of_unknown_gpus: 0,
        unsupported_calls: Vec::new(),
        failed_assert: None,
        notes: Vec::new(),
        driver: Default::default(),
        process: None,
        unified: None,
        marks: Vec::new(),
        followed: None,
        can_go_on: false,
        soaked: None,
        attribution: None,
        longer: None,
        repeats: None,
        ended_at: None,
        remarks: Vec::new(),
        values: None,
        fault_sweep: None,
    }
}

pub(crate) fn armed(metrics: Metrics) -> SpaceRecord {
    SpaceRecord { metrics, armed: true, ..SpaceRecord::default() }
}
