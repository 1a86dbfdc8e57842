//! A memory test on a system that memcheck cannot measure, or only in part. There it must not fail
//! because of what memcheck cannot do.
//!
//! If nothing is measured, the body runs in the process of the harness, as an ordinary test. If only
//! the host is measured, the limits on other memory do not apply, and no baseline is compared,
//! because a baseline of Linux has other figures.

use std::io::Write;
use std::sync::Once;

use memcheck_core::device::Family;
use memcheck_core::limits::Limits;
use memcheck_core::wire::protocol::Reach;

use super::harness::{not_run, or_fail};
use super::settings;
use crate::description::Description;
use crate::device::HOST;
use crate::os::{self, Instrument};
use crate::trial::Trial;

/// Runs the body as an ordinary test, with as many iterations as its attribute says.
///
/// # Panics
/// If the body panics, or returns an error.
pub(super) fn run(description: &'static Description) {
    or_fail(settings::check_names());
    let config = or_fail(settings::configuration(description.workspace()));
    let device = description.device_on(&or_fail(settings::device()));
    if !description.need.admits(Family::Cpu) || device.family() == Some(Family::Cuda) {
        return not_run(description, &device);
    }
    let limits = or_fail(settings::limits(description, Family::Cpu, &config));
    note("the bodies of memory tests run as ordinary tests, and no memory is measured");
    let case = description.case.iter().map(|&(name, value)| (name, value.to_owned())).collect();
    let trial = Trial::new(HOST, (&limits, Reach::Screen), case, None);
    if let Err(error) = (description.body)(&mut trial.uncounted()) {
        match description.should_panic {
            // The harness expects a panic, so that the test fails without one.
            Some(_) => eprintln!("Error: {error}"),
            None => panic!("Error: {error}"),
        }
    }
}

/// Removes what this system cannot measure from the limits of a test.
pub(super) fn adapt(limits: &mut Limits) {
    if os::INSTRUMENT == Instrument::Complete {
        return;
    }
    note(
        "experimental: only the host's memory is measured, without call sites, limits on other \
         memory do not apply, and no baseline is compared",
    );
    limits.baseline.value = false;
    limits.max_c_growth.value = None;
    limits.max_rss_growth.value = None;
}

/// Prints the line once in a process. It is not captured, because the harness prints what it has
/// captured only if a test fails.
fn note(text: &str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let system = std::env::consts::OS;
        let _ = writeln!(std::io::stderr(), "memcheck: on {system}, {text}");
    });
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use memcheck_core::device::Need;
    use memcheck_core::limits::Layer;

    use crate::Trial;
    use crate::description::Description;

    static CALLS: AtomicUsize = AtomicUsize::new(0);

    fn description(body: fn(&mut Trial) -> Result<(), String>) -> &'static Description {
        Box::leak(Box::new(Description {
            name: "test",
            module: "app::mem",
            case: &[],
            file: file!(),
            line: line!(),
            package: "app",
            manifest_dir: env!("CARGO_MANIFEST_DIR"),
            ignored: false,
            should_panic: None,
            deviceless: false,
            need: Need::Any,
            limits: Layer::default,
            scaling: &[],
            phases: &[],
            body,
        }))
    }

    #[test]
    fn a_body_runs_as_an_ordinary_test() {
        super::run(description(|trial| {
            trial.iterate(|_| {
                CALLS.fetch_add(1, Relaxed);
            });
            Ok(())
        }));
        assert_eq!(CALLS.load(Relaxed), 12, "ten iterations and two before them");
        let failing = description(|_| Err("no model".to_owned()));
        let failed = catch_unwind(|| super::run(failing)).unwrap_err();
        assert_eq!(failed.downcast_ref::<String>().unwrap(), "Error: no model");
        let panicking = description(|_| panic!("wrong shape"));
        let failed = catch_unwind(|| super::run(panicking)).unwrap_err();
        assert_eq!(*failed.downcast_ref::<&str>().unwrap(), "wrong shape");
    }
}
