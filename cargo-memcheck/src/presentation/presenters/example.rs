//! A leaking test with attribution and verdict, for the unit tests of the presenters.

use memcheck_core::growth::survivors::{Group, Pattern, Reading};
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::verdict::judge;
use memcheck_core::measurement::attribution::{
    Attribution, HeldBy, Holder, HolderKind, Lifetime, Lifetimes, Peak, Place, Survivors, Tensor,
};
use memcheck_core::measurement::stack::{Frame, Stack};
use memcheck_core::runs::report::Report;
use memcheck_core::space::Space;

use crate::discovery::task::{TestOutcome, example};

const MIB: u64 = 1 << 20;

fn frame(function: &str, file: Option<&str>, line: u32) -> Frame {
    Frame { function: function.to_owned(), file: file.map(str::to_owned), line: Some(line) }
}

fn stack(operation: &str, line: u32) -> Stack {
    Stack {
        frames: vec![
            frame(&format!("candle_core::tensor::Tensor::{operation}"), None, 7),
            frame("app::Model::forward", Some("src/model.rs"), line),
        ],
        ..Stack::default()
    }
}

fn place(stack: usize, operation: &str, scope: &str, last: u32) -> Place {
    let calls = u64::from(last.max(1));
    Place {
        space: Space::Host,
        stack,
        scope: scope.to_owned(),
        operation: Some(operation.to_owned()),
        tensor: Some(Tensor { shape: vec![512, 1024], dtype: "f32".to_owned() }),
        calls,
        bytes: 2 * calls * MIB,
        last_calls: 1,
        last_bytes: 2 * MIB,
        last,
    }
}

/// One block of weights, and one of each iteration.
fn lifetimes() -> Lifetimes {
    let life =
        |born: u64| Lifetime { place: usize::from(born > 1), born, died: None, bytes: 2 * MIB };
    Lifetimes {
        events: 13,
        iterations: (1..=12).collect(),
        ended: Some(13),
        peak: 13,
        blocks: (1..=13).map(life).collect(),
        ..Lifetimes::default()
    }
}

/// Weights of 2 MiB, and one output of 2 MiB for each iteration, which is retained.
fn attribution() -> Attribution {
    let holder = |place, kind, count| Holder { place, kind, bytes: 2 * count * MIB, count };
    let peak = Peak {
        bytes: 26 * MIB,
        iteration: 12,
        holders: vec![
            holder(1, HolderKind::Kept, 11),
            holder(0, HolderKind::Setup, 1),
            holder(1, HolderKind::Activations, 1),
        ],
        stretch: 2,
        timeline: (1..=13).map(|blocks| 2 * blocks * MIB).collect(),
        lifetimes: Some(lifetimes()),
    };
    let survivors = Survivors {
        space: Space::Host,
        stack: 1,
        scope: "model.head".to_owned(),
        tensors: vec![Tensor { shape: vec![512, 1024], dtype: "f32".to_owned() }],
        group: Group {
            block: Some(2 * MIB),
            births: vec![1; 10],
            bytes: vec![2 * MIB; 10],
            live: (3..=12).collect(),
            live_bytes: (3..=12).map(|blocks| blocks * 2 * MIB).collect(),
            reading: Reading {
                pattern: Pattern::Steady,
                bytes_per_iteration: 2 * MIB,
                period: 1,
                bytes: 2 * MIB,
                last: 0,
                groups: 1,
            },
            ..Group::default()
        },
        held: HeldBy { whole: 10, graph: 10, ..HeldBy::default() },
    };
    Attribution {
        stacks: vec![stack("zeros", 10), stack("matmul", 20)],
        places: vec![place(0, "zeros", "", 0), place(1, "matmul", "model.head", 12)],
        peaks: [(Space::Host, peak)].into(),
        survivors: vec![survivors],
        retained: vec![holder(0, HolderKind::Setup, 1)],
        events: 26,
        hint: Some("no line tables".to_owned()),
        ..Attribution::default()
    }
}

pub(crate) fn leaky() -> TestOutcome {
    let mut report: Report = serde_json::from_value(example::report()).unwrap();
    let record = &mut report.record;
    let host = record.spaces.get_mut(&Space::Host).unwrap();
    host.metrics.peak_allocated = 26 * MIB;
    host.metrics.growth = 2 * MIB;
    host.metrics.retained = 2 * MIB;
    host.allocated = (4..=13).map(|blocks| 2 * blocks * MIB).collect();
    host.peak = host.allocated.clone();
    record.attribution = Some(attribution());
    let verdict = judge(record, &Baseline::Off, &record.limits, |code| code.default_level(false));
    report.verdict = verdict.clone();
    TestOutcome { verdict, report: Some(report), ..TestOutcome::ignored() }
}
