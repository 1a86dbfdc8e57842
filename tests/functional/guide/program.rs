//! The rows about helpers for any program: the output of the example that trains a small
//! transformer with all of them, on the CPU and on the simulated GPU.

use std::process::Command;
use std::sync::OnceLock;

use memcheck_tests::scenarios::{Family, small_bytes};
use memcheck_tests::training::{BATCH, KEPT_LOSS_BYTES, KEPT_LOSS_SCALAR_BYTES, PARAMETERS, SEQ};

use super::{LEGS, assert_passed};
use crate::fixture::{build_example, memcheck, memcheck_with, workspace};

const EXAMPLE: &str = "train_small_transformer";

/// The lines of the example, with and without its leak.
fn example_lines(leg: Family, leaks: bool) -> &'static [String] {
    static LINES: [OnceLock<Vec<String>>; 4] = [const { OnceLock::new() }; 4];
    let slot = 2 * usize::from(leg == Family::Cuda) + usize::from(leaks);
    LINES[slot].get_or_init(|| match leg {
        Family::Cpu => {
            let run = Command::new(build_example(EXAMPLE)).args(leaks.then_some("leak")).output();
            let run = run.expect("the example runs");
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            lines(&String::from_utf8_lossy(&run.stdout))
        }
        Family::Cuda => {
            let target = ["profile", "-p", "memcheck-tests", "--example", EXAMPLE, "--quiet"];
            let rest: &[&str] = if leaks { &["--", "leak"] } else { &[] };
            let device = ["--device", "sim:h200"];
            let run = memcheck(&workspace(), &[&target[..], &device, rest].concat()).exits(0);
            lines(&run.stderr)
        }
    })
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// The lines of usage with this label.
fn labeled(leg: Family, leaks: bool, label: &str) -> Vec<&'static str> {
    let mark = format!("label=\"{label}\"");
    let lines = example_lines(leg, leaks).iter().map(String::as_str);
    lines.filter(|line| line.contains(&mark)).collect()
}

fn field(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!(" {name}="))?;
    rest.split(' ').next()?.parse().ok()
}

/// Every byte of the model, its two moments, the mask, ids and targets, on a device.
const LOADED: u64 = (3 * PARAMETERS * 4 + SEQ * SEQ * 4 + 2 * BATCH * SEQ * 4) as u64;

#[test]
fn row_02_usage_is_allocated_reserved_and_peak() {
    for leg in LEGS {
        assert_passed(leg, &["helpers::usage_is_live_bytes_and_their_peak"]);
        let ignored = super::workloads(leg).codes("helpers::a_peak_that_was_reset_is_judged");
        assert_eq!(ignored, ["peak-limit"]);
    }
    let line = labeled(Family::Cuda, false, "after load")[0];
    let figures = ["allocated", "peak_allocated"].map(|name| field(line, name));
    assert_eq!(figures, [Some(LOADED); 2]);
    assert!(field(line, "reserved") >= Some(LOADED), "{line}");
    // The host has no pool, and does not count norms and other small blocks.
    let line = labeled(Family::Cpu, false, "after load")[0];
    assert_eq!(field(line, "reserved"), None);
    assert!(field(line, "allocated") >= Some(LOADED * 98 / 100), "{line}");
}

#[test]
fn row_03_a_labeled_line_of_usage_at_each_step() {
    for (leg, space) in LEGS.into_iter().zip(["host", "cuda:0"]) {
        let order: Vec<&str> = example_lines(leg, false)
            .iter()
            .filter_map(|line| line.split_once("label=\"")?.1.split('"').next())
            .take(3)
            .collect();
        assert_eq!(order, ["before load", "after load", "after cache clear"]);
        let before = labeled(leg, false, "before load")[0];
        assert_eq!(field(before, "allocated"), Some(0));
        assert!(before.contains("INFO memcheck: before load: allocated 0 B"), "{before}");
        assert!(before.contains(&format!("device={space}")), "{before}");
    }
}

#[test]
fn row_04_cached_memory_is_given_back() {
    for leg in LEGS {
        assert_passed(leg, &["helpers::cached_memory_is_given_back_at_both_ends"]);
        let live = ["after load", "after cache clear"]
            .map(|label| field(labeled(leg, false, label)[0], "allocated"));
        assert_eq!(live[0], live[1], "live memory has changed");
    }
}

#[test]
fn row_13_a_guard_cleans_up_before_and_after_every_epoch() {
    for leg in LEGS {
        let order: Vec<&str> = example_lines(leg, false)
            .iter()
            .filter_map(|line| line.split_once("label=\"cleanup ")?.1.split('"').next())
            .collect();
        assert_eq!(order, ["before", "after"].repeat(3));
    }
    // The device is lost at its 3,000th call, in the first epoch. The program must end with its own
    // error, and the guard with a warning.
    let arguments = ["profile", "-p", "memcheck-tests", "--example", EXAMPLE, "--quiet"];
    let arguments = [&arguments[..], &["--device", "sim:h200"]].concat();
    let faults = [("MEMCHECK_SIM_FAULTS", "lost-at=3000")];
    let lost = memcheck_with(&workspace(), &arguments, &faults).exits(100);
    lost.prints("WARN memcheck: cached memory was not released: ").prints("crashed");

    // An epoch must leave no memory behind on the device.
    for label in ["cleanup before", "cleanup after"] {
        for line in labeled(Family::Cuda, false, label) {
            assert_eq!(field(line, "allocated"), Some(LOADED), "{line}");
        }
    }
}

#[test]
fn row_14_an_audit_alerts_where_memory_is_high_or_grows() {
    for leg in LEGS {
        assert_passed(
            leg,
            &[
                "helpers::an_audit_alerts_at_the_step_that_it_looks_at",
                "helpers::an_audit_starts_the_peak_anew_where_it_is_told_to",
            ],
        );
        let alerts = |leaks: bool| {
            example_lines(leg, leaks).iter().filter(|line| line.starts_with("alert: "))
        };
        assert_eq!(alerts(false).count(), 0);
        for step in ["step 10", "step 20", "step 30"] {
            assert_eq!(labeled(leg, false, step).len(), 1, "{step}");
            let high =
                alerts(true).filter(|line| line.contains(step) && line.contains("above 8.00 MiB"));
            assert_eq!(high.count(), 1, "{step}");
        }
        // From the second check on, the growth is every byte of a kept loss.
        let leak = KEPT_LOSS_BYTES as u64 + small_bytes(leg, KEPT_LOSS_SCALAR_BYTES as u64);
        let growth = format!("{} more are live with every step", memcheck_core::size::both(leak));
        let grows = |line: &&String| line.contains(&growth);
        assert_eq!(alerts(true).filter(grows).count(), 2, "{growth}");
        let warned =
            example_lines(leg, true).iter().filter(|line| line.contains("WARN ")).filter(grows);
        assert_eq!(warned.count(), 2);
    }
}

fn exact(bytes: u64) -> String {
    memcheck_core::size::exact(bytes)
}
