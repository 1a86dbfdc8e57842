use super::*;
use crate::growth::survivors::{Group, Pattern};
use crate::measurement::attribution::builder::{grows, rests};
use crate::measurement::attribution::{Holder, HolderKind, Peak, Survivors, Tensor};
use crate::measurement::stack::Frame;

const SPACE: Space = Space::Cuda(0);
const LAST: u32 = 12;

fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame { function: function.to_owned(), file: Some(file.to_owned()), line: Some(line) }
}

fn stack(operation: &str, function: &str, line: u32) -> Stack {
    let candle = "/home/u/.cargo/registry/src/i/candle-core-0.11.1/src/tensor.rs";
    Stack {
        frames: vec![
            frame(&format!("candle_core::tensor::Tensor::{operation}"), candle, 7),
            frame(function, "src/model.rs", line),
        ],
        ..Stack::default()
    }
}

fn place(stack: usize, operation: &str, shape: &[u64], calls: u64, last: u32) -> Place {
    let bytes = 4 * shape.iter().product::<u64>();
    let last_calls = if last == 0 { calls } else { calls / u64::from(last) };
    Place {
        space: SPACE,
        stack,
        scope: if stack == 0 { String::new() } else { format!("bert.layer{stack}") },
        operation: Some(operation.to_owned()),
        tensor: Some(Tensor { shape: shape.to_vec(), dtype: "f32".to_owned() }),
        calls,
        bytes: calls * bytes,
        last_calls,
        last_bytes: last_calls * bytes,
        last,
    }
}

/// Weights, `matmul` twice, `softmax`, and a call site that does not allocate each iteration.
fn attribution() -> Attribution {
    let holder = |place, kind, bytes, count| Holder { place, kind, bytes, count };
    let peak = Peak {
        bytes: 1200 + 256 + 64 + 80,
        iteration: 5,
        holders: vec![
            holder(0, HolderKind::Setup, 1200, 3),
            holder(1, HolderKind::Activations, 256, 1),
            holder(2, HolderKind::Kept, 64, 1),
        ],
        stretch: 2,
        timeline: vec![1200, 1300, 1600, 1200],
        lifetimes: None,
    };
    Attribution {
        stacks: vec![
            stack("zeros", "app::load", 10),
            stack("matmul", "app::Model::forward", 20),
            stack("matmul", "app::Model::forward", 21),
            stack("softmax", "app::Model::forward", 20),
        ],
        places: vec![
            place(0, "zeros", &[10, 10], 3, 0),
            place(1, "matmul", &[8, 8], 2 * u64::from(LAST), LAST),
            place(2, "matmul", &[4, 4], u64::from(LAST), LAST),
            place(3, "softmax", &[8, 8], u64::from(LAST), LAST),
            place(3, "softmax", &[2, 2], 9, 9),
        ],
        peaks: [(SPACE, peak)].into(),
        events: 100,
        ..Attribution::default()
    }
}

fn rows(by: By, sort: Sort, window: Window) -> Table {
    table::table(&attribution(), (SPACE, 0), window, by, sort)
}

fn names(table: &Table) -> Vec<&str> {
    table.rows.iter().map(|row| row.name.as_str()).collect()
}

#[test]
fn the_rows_of_every_table_add_up_to_the_peak() {
    for by in [By::Op, By::Site, By::Scope] {
        for window in [Window::Whole, Window::Iteration(LAST)] {
            let table = rows(by, Sort::Peak, window);
            let sum: u64 = table.rows.iter().map(|row| row.peak).sum();
            assert_eq!((sum, table.total.peak), (1600, 1600), "{by:?} {window:?}");
            assert!(names(&table).contains(&"(unplaced)"), "{by:?}: 80 B are of no place");
        }
    }
}

#[test]
fn calls_and_bytes_are_those_of_the_last_iteration_without_the_set_up() {
    let table = rows(By::Op, Sort::Peak, Window::Iteration(LAST));
    assert_eq!(names(&table), ["zeros", "matmul", "(unplaced)", "softmax"]);
    let [zeros, matmul, _, softmax] = table.rows.as_slice() else { panic!("{table:#?}") };
    assert_eq!((zeros.phase, zeros.calls, zeros.bytes), (Phase::Setup, 3, 1200));
    assert_eq!((matmul.calls, matmul.bytes, matmul.peak), (3, 2 * 256 + 64, 320));
    assert_eq!((softmax.calls, softmax.bytes), (1, 256));
    assert_eq!(softmax.total_calls, u64::from(LAST) + 9);
    let Totals { calls, bytes, .. } = table.total;
    assert_eq!((calls, bytes), (4, 576 + 256));
    assert_eq!((table.setup.calls, table.setup.bytes), (3, 1200));
}

#[test]
fn without_iterations_the_whole_body_is_counted() {
    let table = rows(By::Op, Sort::Peak, Window::Whole);
    let expected: u64 = attribution().places.iter().map(|place| place.calls).sum();
    assert_eq!(table.total.calls, expected);
    assert!(table.rows[..2].iter().all(|row| row.phase == Phase::Iteration));
}

#[test]
fn rows_are_operations_lines_or_scopes() {
    let by = |by| {
        let table = rows(by, Sort::Name, Window::Iteration(LAST));
        names(&table).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(by(By::Op), ["(unplaced)", "matmul", "softmax", "zeros"]);
    assert_eq!(
        by(By::Site),
        [
            "(unplaced)",
            "src/model.rs:10 (load)",
            "src/model.rs:20 (Model::forward)",
            "src/model.rs:21 (Model::forward)"
        ]
    );
    assert_eq!(
        by(By::Scope),
        ["(none)", "(unplaced)", "bert", "bert.layer1", "bert.layer2", "bert.layer3"]
    );
}

#[test]
fn every_column_sorts() {
    let first =
        |sort| rows(By::Op, sort, Window::Iteration(LAST)).rows.first().map(|row| row.name.clone());
    assert_eq!(first(Sort::Peak).as_deref(), Some("zeros"));
    assert_eq!(first(Sort::Bytes).as_deref(), Some("zeros"));
    assert_eq!(first(Sort::Calls).as_deref(), Some("zeros"));
    assert_eq!(first(Sort::Name).as_deref(), Some("(unplaced)"));
    for name in Sort::NAMES {
        assert!(name.parse::<Sort>().is_ok());
    }
    assert!("size".parse::<Sort>().unwrap_err().contains("calls, bytes, peak, surviving"));
    assert!("line".parse::<By>().unwrap_err().contains("op, site, scope"));
}

#[test]
fn the_most_common_shape_is_first() {
    let table = rows(By::Op, Sort::Peak, Window::Iteration(LAST));
    let shapes: Vec<String> =
        table.rows[1].shapes.iter().map(|shape| shape.tensor.to_string()).collect();
    assert_eq!(shapes, ["[8,8] f32", "[4,4] f32"]);
    assert_eq!(table.rows[1].scopes, ["bert.layer1", "bert.layer2"]);
    assert_eq!(table.rows[1].sites[0], "src/model.rs:20 (Model::forward)");
}

#[test]
fn holders_and_kinds_divide_the_peak() {
    let attribution = attribution();
    let peak = &attribution.peaks[&SPACE];
    let holders = holders::holders(&attribution, SPACE, peak);
    assert_eq!(holders[0].label, "zeros [10,10] f32");
    assert_eq!(holders[0].site, "src/model.rs:10 (load)");
    let inner = "Tensor::zeros (candle-core-0.11.1/src/tensor.rs:7)";
    assert_eq!(holders[0].stack, [inner, "load (src/model.rs:10)"]);
    let kinds: Vec<_> = holders::kinds(peak).iter().map(|sum| (sum.kind, sum.bytes)).collect();
    assert_eq!(
        kinds,
        [(HolderKind::Setup, 1200), (HolderKind::Activations, 256), (HolderKind::Kept, 64)]
    );
}

fn with_remains() -> Attribution {
    let group = |bytes| Group {
        block: None,
        births: vec![1; 10],
        bytes: vec![bytes; 10],
        live: vec![1; 10],
        live_bytes: vec![bytes; 10],
        ..Group::default()
    };
    let survivors = |stack, scope: &str, bytes| Survivors {
        space: SPACE,
        stack,
        scope: scope.to_owned(),
        tensors: Vec::new(),
        group: group(bytes),
        held: Default::default(),
    };
    let holder = |place, bytes| Holder { place, kind: HolderKind::Kept, bytes, count: 1 };
    Attribution {
        survivors: vec![
            survivors(1, "bert.layer1", 256),
            survivors(3, "bert.layer3", 16),
            // A stack and scope without a call site in `places`.
            survivors(2, "elsewhere", 1),
        ],
        retained: vec![holder(0, 1200), holder(1, 256), holder(4, 16)],
        ..attribution()
    }
}

#[test]
fn surviving_and_retained_bytes_of_the_rows_add_up() {
    let table_by =
        |by, sort| table::table(&with_remains(), (SPACE, 1500), Window::Iteration(LAST), by, sort);
    let left = |by| {
        let table = table_by(by, Sort::Name);
        let rows = table.rows.iter().filter(|row| row.surviving + row.retained > 0);
        let rows = rows.map(|row| (row.name.clone(), row.surviving, row.retained));
        assert_eq!((table.total.surviving, table.total.retained), (2730, 1500), "{by:?}");
        rows.collect::<Vec<_>>()
    };
    let row = |name: &str, surviving, retained| (name.to_owned(), surviving, retained);
    let rest = row("(unplaced)", 10, 28);
    let weights = |name| row(name, 0, 1200);
    assert_eq!(
        left(By::Op),
        [rest.clone(), row("matmul", 2560, 256), row("softmax", 160, 16), weights("zeros")]
    );
    assert_eq!(
        left(By::Scope),
        [weights("(none)"), rest, row("bert.layer1", 2560, 256), row("bert.layer3", 160, 16)]
    );
    let bert = table_by(By::Scope, Sort::Retained).rows.swap_remove(1);
    assert_eq!((bert.name.as_str(), bert.retained), ("bert", 0));
    let in_all = bert.in_all.unwrap();
    assert_eq!((in_all.surviving, in_all.retained), (2720, 272));
    assert_eq!(names(&table_by(By::Op, Sort::Surviving))[..2], ["matmul", "softmax"]);
    assert_eq!(names(&table_by(By::Op, Sort::Retained))[..2], ["zeros", "matmul"]);
}

fn record(growth: u64, live: [u64; 10], block: Option<u64>) -> Record {
    let group = Group {
        block,
        births: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        bytes: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, live[9]],
        live: vec![1; 10],
        live_bytes: live.to_vec(),
        reading: match growth {
            0 => rests(Pattern::Ratchet, live[9], 7),
            rate => grows(Pattern::Enlarged, rate),
        },
        ..Group::default()
    };
    let survivors = Survivors {
        space: SPACE,
        stack: 1,
        scope: "bert.layer1".to_owned(),
        tensors: Vec::new(),
        group,
        held: Default::default(),
    };
    let json = serde_json::json!({
        "version": 1, "package": "app", "test": "a", "device": "sim", "family": "cuda",
        "judged": ["cuda:0"], "outcome": {"kind": "returned"},
        "facts": {"memcheck": 1, "candle": "0", "profile": "debug", "iterations": 10, "warmup": 2},
        "limits": serde_json::to_value(crate::limits::Limits::resolve(
            crate::device::Family::Cuda, [],
        )).unwrap(),
        "iterated": true, "iterations": 10, "lost_events": 0,
        "spaces": {"cuda:0": {
            "metrics": {"allocated": 0, "peak_allocated": 1600, "setup": 0, "growth": growth,
                        "retained": 0, "allocations": 4, "allocated_total": 832},
            "allocated": live, "peak": live, "armed": true,
        }},
    });
    let mut record: Record = serde_json::from_value(json).unwrap();
    record.attribution = Some(Attribution { survivors: vec![survivors], ..attribution() });
    record
}

#[test]
fn a_profile_separates_growth_from_patterns_that_resemble_it() {
    let ratchet = [1024, 1024, 4096, 4096, 4096, 4096, 8192, 8192, 8192, 8192];
    let profile = Profile::of(&record(0, ratchet, None), SPACE, By::Op, Sort::Peak).unwrap();
    assert_eq!(profile.window, Window::Iteration(LAST));
    assert_eq!((profile.timeline.peak_at, profile.timeline.points[2]), (2, 1600));
    let growth = profile.growth.unwrap();
    assert_eq!((growth.bytes_per_iteration, &growth.cause), (0, &None));
    let [survivor] = growth.survivors.as_slice() else { panic!("{growth:#?}") };
    assert_eq!(survivor.label, "matmul in bert.layer1");
    assert_eq!(survivor.remark.as_ref().unwrap().code, "cache-keeps-largest");

    let enlarged = [1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216, 10240];
    let profile = Profile::of(&record(1024, enlarged, None), SPACE, By::Op, Sort::Peak).unwrap();
    let growth = profile.growth.unwrap();
    assert!(growth.cause.unwrap().code.starts_with("cache-"));
    assert_eq!(growth.survivors[0].remark, None);
    let nothing = Record { attribution: None, ..record(0, ratchet, None) };
    assert_eq!(Profile::of(&nothing, SPACE, By::Op, Sort::Peak), None);
}

#[test]
fn a_profile_shows_the_growth_of_the_leak_finding() {
    use crate::measurement::attribution::builder::{Run, of_sizes};
    let uneven = of_sizes([10, 20, 50, 30, 90, 40, 70, 60, 80, 100]);
    let record = Run::default().place(&["candle_core::tensor::Tensor::zeros"], uneven).record();
    let growth = growth::growth(&record, SPACE).unwrap();
    assert_eq!(growth.bytes_per_iteration, 55);
    assert_eq!(growth.cause.unwrap().code, "tensor-kept");
}
