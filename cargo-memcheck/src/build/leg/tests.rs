//! Tests of the resolution from requested and available devices to legs.

use memcheck_core::wire::exit;

use super::*;
use crate::invocation::devices::{
    DeviceError, DeviceSource, RequestedDevices, Sharing, parse_list,
};
use crate::system::error::CommandError;

fn resolved(
    requested: &[&str],
    candle: bool,
    sharing: Sharing,
    found: Found,
) -> Result<Vec<Leg>, DeviceError> {
    let requested = RequestedDevices {
        requests: parse_list(requested.iter().copied())?,
        by: DeviceSource::Flag,
    };
    let lacks = (!candle).then_some("no package depends on candle-core or cudarc");
    resolve(&requested, "t4", lacks, sharing, || found)
}

fn legs(requested: &[&str], candle: bool, found: Found) -> Result<Vec<String>, DeviceError> {
    let legs = resolved(requested, candle, Sharing::Together, found)?;
    Ok(legs.iter().map(Leg::name).collect())
}

fn no_hardware() -> Found {
    let gpus = Gpus::Here(Err("no driver".to_owned()));
    Found { gpus, launched: false, nvcc: Err("no nvcc".to_owned()) }
}

fn gpus_of_count(count: u16) -> Found {
    let gpu = |index: u16| {
        let word = format!("GPU-{index}");
        let (name, uuid) = ("NVIDIA H200".to_owned(), Some(word.clone()));
        RealGpu { index, name, uuid, word, slice: false }
    };
    let gpus = Gpus::Here(Ok((0..count).map(gpu).collect()));
    Found { gpus, launched: false, nvcc: Ok("13.0".to_owned()) }
}

fn one_gpu() -> Found {
    gpus_of_count(1)
}

fn words(leg: &Leg) -> Vec<&str> {
    leg.gpus.iter().map(|gpu| gpu.word.as_str()).collect()
}

#[test]
fn real_gpus_are_one_device_that_tests_are_spread_over() {
    let together = |requested: &[&str]| {
        let mut legs = resolved(requested, true, Sharing::Together, gpus_of_count(3)).unwrap();
        assert_eq!(legs.iter().filter(|leg| leg.kind == DeviceKind::Cuda).count(), 1);
        let place = legs.iter().position(|leg| leg.kind == DeviceKind::Cuda).unwrap();
        legs.swap_remove(place)
    };
    let all = together(&["cuda"]);
    assert_eq!((all.name().as_str(), words(&all)), ("cuda", vec!["GPU-0", "GPU-1", "GPU-2"]));
    assert_eq!(all.why, "--device: NVIDIA H200, NVIDIA H200, NVIDIA H200");
    let two = together(&["cuda:2", "cpu", "cuda:0", "cuda:2"]);
    assert_eq!((two.name().as_str(), words(&two)), ("cuda:2,cuda:0", vec!["GPU-2", "GPU-0"]));
    assert_eq!(two.requests(), [Request::Cuda(Some(2)), Request::Cuda(Some(0))]);
    assert_eq!(two.why, "--device: NVIDIA H200, NVIDIA H200");
    let one = together(&["cuda:1"]);
    assert_eq!((one.name().as_str(), words(&one)), ("cuda:1", vec!["GPU-1"]));
    // A request for all GPUs includes each single one.
    for requested in [["cuda", "cuda:1"], ["cuda:1", "cuda"], ["cuda:1", "auto"]] {
        assert_eq!(together(&requested), Leg { why: together(&requested).why, ..all.clone() });
    }
    assert_eq!(
        legs(&["cuda:0", "cpu", "cuda:1"], true, gpus_of_count(2)).unwrap(),
        ["cuda:0,cuda:1", "cpu"]
    );
    // If the room on each GPU is measured, each GPU is a device.
    let apart = resolved(&["cuda:0", "cuda:1", "cuda:0"], true, Sharing::Apart, gpus_of_count(2));
    let apart: Vec<String> = apart.unwrap().iter().map(Leg::name).collect();
    assert_eq!(apart, ["cuda:0", "cuda:1"]);
}

#[test]
fn a_launcher_gives_the_gpu_unless_one_was_named() {
    let launched = |requested: &[&str]| {
        let found = Found { launched: true, ..gpus_of_count(2) };
        resolved(requested, true, Sharing::Together, found).unwrap().remove(0)
    };
    assert!(launched(&["cuda"]).gpus.is_empty());
    assert!(launched(&["auto"]).gpus.is_empty());
    assert_eq!(words(&launched(&["cuda:1"])), ["GPU-1"]);
}

#[test]
fn auto_prefers_a_real_gpu_then_the_simulated_one_then_the_cpu() {
    assert_eq!(legs(&["auto"], true, one_gpu()).unwrap(), ["cuda"]);
    assert_eq!(legs(&["auto"], true, no_hardware()).unwrap(), ["sim:t4"]);
    assert_eq!(legs(&["auto"], false, no_hardware()).unwrap(), ["cpu"]);
    let no_compiler = Found { nvcc: Err("no nvcc".to_owned()), ..one_gpu() };
    assert_eq!(legs(&["auto"], true, no_compiler).unwrap(), ["sim:t4"]);
}

#[test]
fn a_missing_gpu_is_never_replaced_by_another_device() {
    let error = legs(&["cuda"], true, no_hardware()).unwrap_err();
    assert_eq!(error.exit_code(), exit::NO_DEVICE);
    assert_eq!(legs(&["cuda:1"], true, one_gpu()).unwrap_err().exit_code(), exit::NO_DEVICE);
    assert_eq!(legs(&["cuda:0"], true, one_gpu()).unwrap(), ["cuda:0"]);
}

#[test]
fn packing_an_archive_needs_the_compiler_but_not_a_gpu() {
    let elsewhere = || Found { gpus: Gpus::Elsewhere, ..one_gpu() };
    assert_eq!(legs(&["cuda:3", "auto"], true, elsewhere()).unwrap(), ["cuda"]);
    let several = ["cuda:0", "cuda:3"];
    assert_eq!(legs(&several, true, elsewhere()).unwrap(), ["cuda:0,cuda:3"]);
    let no_compiler = Found { gpus: Gpus::Elsewhere, ..no_hardware() };
    let error = legs(&["cuda"], true, no_compiler).unwrap_err();
    assert!(error.to_string().contains("no nvcc"), "{error}");
}

#[test]
fn several_devices_are_several_legs_each_once() {
    let requested = ["cpu", "sim", "sim:t4", "sim:h200", "cpu"];
    assert_eq!(legs(&requested, true, no_hardware()).unwrap(), ["cpu", "sim:t4", "sim:h200"]);
}

#[test]
fn an_unknown_card_is_a_usage_error_that_names_the_nearest() {
    let error = legs(&["sim:rtx4091"], true, no_hardware()).unwrap_err();
    assert_eq!(error.exit_code(), exit::USAGE);
    assert_eq!(error.hint().unwrap(), "did you mean `rtx4090`?");
    assert!(
        legs(&["sim:toaster"], true, no_hardware()).unwrap_err().hint().unwrap().contains("h200")
    );
    assert!(legs(&["sim:h200,capacity=much"], true, no_hardware()).is_err());
    assert!(legs(&["gpu"], true, no_hardware()).is_err());
    let many = legs(&["sim:40xt4"], true, no_hardware()).unwrap_err();
    assert_eq!(many.exit_code(), exit::USAGE);
    assert_eq!(many.to_string(), "a machine has 1 to 32 devices, not 40");
    let machine = "sim:2xrtx4090,capacity=8GiB+t4,mig";
    assert_eq!(legs(&[machine], true, no_hardware()).unwrap(), [machine]);
}
