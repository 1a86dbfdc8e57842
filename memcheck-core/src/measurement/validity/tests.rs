//! A record with one wrong field is refused, and the message names the field.

use serde_json::{Value, json};

use crate::measurement::attribution::Unresolved;
use crate::measurement::attribution::builder::{Run, steady};
use crate::measurement::record::Record;

const HUGE: u64 = u64::MAX;

fn valid() -> Value {
    let run = Run::default().place(&["candle_core::tensor::Tensor::matmul"], steady(64));
    let mut record = serde_json::to_value(run.unplaced(steady(8)).record()).unwrap();
    record["spaces"]["cuda:0"]["allocated"] = json!([1, 2]);
    record["spaces"]["cuda:0"]["peak"] = json!([3, 4]);
    let attribution = &mut record["attribution"];
    attribution["places"] = json!([
        {"space": "cuda:0", "stack": 0, "calls": 1, "bytes": 1, "last_calls": 1, "last_bytes": 1, "last": 1},
        {"space": "cuda:0", "stack": 0, "calls": 1, "bytes": 1, "last_calls": 1, "last_bytes": 1, "last": 1},
    ]);
    let holders = json!([
        {"place": 0, "kind": "kept", "bytes": 1, "count": 1},
        {"place": 1, "kind": "setup", "bytes": 1, "count": 1},
    ]);
    attribution["retained"] = holders.clone();
    attribution["peaks"] = json!({"cuda:0":
        {"bytes": 2, "iteration": 1, "holders": holders, "stretch": 1, "timeline": [1, 2],
         "lifetimes": {"events": 2, "iterations": [1], "ended": 2, "peak": 2,
                       "blocks": [[0, 1, null, 1], [1, 2, 3, 1]],
                       "left_out": 1, "stretch": 1, "rest": [1, 2]}}});
    attribution["refused"] = json!({"cuda:0": {"stack": 0, "requested": HUGE, "holders": holders}});
    attribution["devices"] = json!({"cuda:0": 1});
    attribution["modules"] = json!({
        "modules": [
            {"name": "a", "weights": 1, "cache": 0, "activations": 0, "input": 0},
            {"name": "b", "weights": 1, "cache": 0, "activations": 0, "input": 0},
        ],
        "peaks": [[1, 2], [1]], "outside": 0, "replicated": 0,
    });
    record
}

fn refusal(record: Value) -> Option<String> {
    serde_json::from_value::<Record>(record).err().map(|error| error.to_string())
}

fn changed(pointer: &str, value: Value) -> Option<String> {
    let mut record = valid();
    *record.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer} in {:#}", valid())) = value;
    refusal(record)
}

#[test]
fn a_valid_record_is_read_back_unchanged() {
    let read: Record = serde_json::from_value(valid()).unwrap();
    let again: Record = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn an_index_out_of_range_is_refused() {
    for (pointer, field) in [
        ("/attribution/places/1/stack", "attribution.places[1].stack"),
        ("/attribution/peaks/cuda:0/holders/1/place", "attribution.peaks[cuda:0].holders[1].place"),
        (
            "/attribution/peaks/cuda:0/lifetimes/blocks/1/0",
            "attribution.peaks[cuda:0].lifetimes.blocks[1].place",
        ),
        ("/attribution/retained/0/place", "attribution.retained[0].place"),
        ("/attribution/refused/cuda:0/stack", "attribution.refused[cuda:0].stack"),
        (
            "/attribution/refused/cuda:0/holders/0/place",
            "attribution.refused[cuda:0].holders[0].place",
        ),
        ("/attribution/survivors/0/stack", "attribution.survivors[0].stack"),
    ] {
        let expected = format!("`{field}` is 9, but the list has ");
        let why = changed(pointer, json!(9)).unwrap_or_else(|| panic!("{pointer} was accepted"));
        assert!(why.starts_with(&expected), "{why}");
    }
}

#[test]
fn series_of_unequal_length_are_refused() {
    for (pointer, field, found, expected) in [
        ("/attribution/survivors/0/group/births", "attribution.survivors[0].group.bytes", 10, 1),
        ("/attribution/survivors/0/group/live", "attribution.survivors[0].group.live", 1, 10),
        ("/spaces/cuda:0/survivors/0/live_bytes", "spaces[cuda:0].survivors[0].live_bytes", 1, 10),
        ("/spaces/cuda:0/peak", "spaces[cuda:0].peak", 1, 2),
        ("/spaces/cuda:0/allocations", "spaces[cuda:0].allocations", 1, 2),
        ("/spaces/cuda:0/allocated_total", "spaces[cuda:0].allocated_total", 1, 2),
        ("/attribution/modules/peaks", "attribution.modules.peaks", 1, 2),
        ("/attribution/modules/peaks/1", "attribution.modules.peaks[1]", 0, 1),
    ] {
        let value = match found {
            0 => json!([]),
            _ if pointer.ends_with("/peaks") => json!([[1]]),
            _ => json!([1]),
        };
        let expected = format!("`{field}` has {found} values instead of {expected}");
        assert_eq!(changed(pointer, value).as_deref(), Some(expected.as_str()));
    }
}

#[test]
fn sums_that_overflow_are_refused() {
    for (pointer, field) in [
        ("/spaces/cuda:0/metrics/growth", "spaces[cuda:0].metrics.growth"),
        ("/spaces/cuda:0/allocated/0", "spaces[cuda:0].allocated"),
        ("/spaces/cuda:0/failed_frees", "spaces[cuda:0].failed_frees"),
        ("/attribution/devices/cuda:0", "attribution.devices"),
        ("/attribution/places/0/calls", "attribution.places.calls"),
        ("/attribution/places/1/last_bytes", "attribution.places.last_bytes"),
        ("/attribution/peaks/cuda:0/bytes", "attribution.peaks[cuda:0].bytes"),
        ("/attribution/peaks/cuda:0/stretch", "attribution.peaks[cuda:0].stretch"),
        ("/attribution/peaks/cuda:0/holders/0/bytes", "attribution.peaks[cuda:0].holders.bytes"),
        (
            "/attribution/peaks/cuda:0/lifetimes/blocks/1/3",
            "attribution.peaks[cuda:0].lifetimes.blocks.bytes",
        ),
        (
            "/attribution/peaks/cuda:0/lifetimes/blocks/1/2",
            "attribution.peaks[cuda:0].lifetimes.blocks[1].born",
        ),
        (
            "/attribution/peaks/cuda:0/lifetimes/iterations/0",
            "attribution.peaks[cuda:0].lifetimes.iterations",
        ),
        ("/attribution/peaks/cuda:0/lifetimes/rest/1", "attribution.peaks[cuda:0].lifetimes.rest"),
        ("/attribution/retained/1/count", "attribution.retained.count"),
        ("/attribution/survivors/0/group/births/3", "attribution.survivors.group.births"),
        ("/attribution/survivors/0/group/live_bytes/3", "attribution.survivors.group.live_bytes"),
        (
            "/attribution/survivors/0/group/reading/bytes",
            "attribution.survivors.group.reading.bytes",
        ),
        ("/attribution/survivors/0/held/graph", "attribution.survivors.held.graph"),
        ("/spaces/cuda:0/survivors/0/bytes/0", "spaces[cuda:0].survivors.bytes"),
        ("/attribution/modules/modules/1/weights", "attribution.modules.modules.weights"),
        ("/attribution/modules/outside", "attribution.modules.outside"),
    ] {
        let expected = format!("`{field}` is more than 2^60 in all");
        assert_eq!(changed(pointer, json!(HUGE)).as_deref(), Some(expected.as_str()));
    }
}

#[test]
fn a_space_cannot_be_judged_twice() {
    let why = changed("/judged", json!(["cuda:0", "cuda:0"]));
    assert_eq!(why.as_deref(), Some("`judged` has an element twice"));
}

#[test]
fn places_without_names_refer_to_addresses() {
    let mut attribution = valid()["attribution"].clone();
    attribution["stacks"] = json!([]);
    let read = |calls: Value| {
        let sources = serde_json::to_value(crate::measurement::stack::Sources::default()).unwrap();
        let value = json!({"sources": sources, "calls": calls, "attribution": attribution});
        serde_json::from_value::<Unresolved>(value).map_err(|error| error.to_string())
    };
    assert!(read(json!([[1]])).is_ok());
    let expected =
        "`unresolved.attribution.places[0].stack` is 0, but the list has 0 elements".to_owned();
    assert_eq!(read(json!([])).err(), Some(expected));
}
