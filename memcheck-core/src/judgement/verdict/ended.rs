//! The end of the body: as expected, or a finding such as `test-failed` or `out-of-memory`.

use super::fit;
use crate::judgement::finding::{Code, Finding};
use crate::judgement::{blame, fault};
use crate::limits::Limits;
use crate::measurement::record::{Outcome, Record, RefusedAllocation};
use crate::measurement::stack::program_frames;
use crate::size::both;
use crate::space::Space;

pub(super) fn judge_outcome(record: &Record, limits: &Limits) -> Option<Finding> {
    let (what, whole) = match (&record.outcome, &record.should_panic) {
        (Outcome::Returned, None) => return None,
        (Outcome::Panicked { message }, Some(expected)) if message.contains(expected) => {
            return None;
        }
        (Outcome::Panicked { message }, Some(expected)) => {
            return Some(Finding::new(
                Code::TestFailed,
                format!(
                    "the panic message `{}` does not contain the expected `{expected}`",
                    gist(message)
                ),
            ));
        }
        (Outcome::Returned, Some(_)) => {
            return Some(Finding::new(
                Code::TestFailed,
                "the test did not panic, although it is marked #[should_panic]",
            ));
        }
        (Outcome::Failed { error }, _) => ("returned an error", error),
        (Outcome::Panicked { message }, None) => ("panicked", message),
    };
    let text = gist(whole);
    let at = record.ended_at.as_ref().map(|at| format!(" {at}")).unwrap_or_default();
    let ended: Vec<String> = std::iter::once(format!("the body {what}{at}: {text}"))
        .chain(program_frames(whole).into_iter().map(|frame| format!("at {frame}")))
        .collect();
    let ended = ended.join("\n");
    let refused = refusal(record, text);
    if let Some(finding) = refused.and_then(|found| fit::refused(record, limits, found, &ended)) {
        return Some(finding);
    }
    let finding = match refused {
        Some((space, refusal)) => Finding {
            space: Some(space),
            figure: Some(fit::needed(refusal)),
            sites: blame::at_refusal(record, space),
            ..Finding::new(
                Code::OutOfMemory,
                format!(
                    "{space} refused an allocation of {} with {} live{}{}; {ended}",
                    both(refusal.requested),
                    both(refusal.live),
                    fit::with_host(record, refusal),
                    fit::other_processes(record, space),
                ),
            )
        }
        .hint(
            if record.driver.others.iter().any(|other| other.space == space && !other.maybe_own) {
                "end the other process, wait for it, or use another GPU"
            } else if refusal.host > refusal.live {
                fit::DROP_FIRST
            } else {
                "use a smaller batch or a shorter sequence, or a larger card: `--device sim:CARD`"
            },
        ),
        None => match (
            fault::of(text),
            assert_hint(record, text).or_else(|| context_hint(record, text)),
        ) {
            (_, Some(hint)) => Finding::new(Code::TestFailed, ended).hint(hint),
            (Some((fault, error)), None) => {
                let message = format!("{} ({error}); {ended}", fault.title);
                Finding::new(Code::DeviceFault, message).hint(fault.remedy)
            }
            (None, None) => Finding::new(Code::TestFailed, ended),
        },
    };
    Some(finding)
}

/// The hint for a body that ended after an assert of a kernel has failed. This is an error of the
/// program, although every later call on the device fails.
fn assert_hint(record: &Record, text: &str) -> Option<String> {
    if let Some(failed) = &record.failed_assert {
        return Some(format!(
            "{failed}, so that the device stopped: compare the ids with the size of the dim, such \
             as token ids with the vocabulary"
        ));
    }
    let is_assert = text.contains("CUDA_ERROR_ASSERT");
    is_assert.then(|| {
        "a kernel stopped at an assert, which the device prints on stderr; candle's kernels assert \
         that an id is in its dim: `--device sim` and `--device cpu` name the id"
            .to_owned()
    })
}

/// The hint for a body that ended after the driver had refused a free. cudarc returns the error of a
/// free from the next call.
fn context_hint(record: &Record, text: &str) -> Option<String> {
    let refused: u64 = record.spaces.values().map(|measured| measured.failed_frees).sum();
    let is_it = refused > 0 && text.contains("INVALID_CONTEXT");
    is_it.then(|| super::growth::refused_frees(refused))
}

/// The refusal that ended the body. A search for the largest batch survives refusals, so one counts
/// only if no allocation followed it or if `text` is an out-of-memory error.
fn refusal(record: &Record, text: &str) -> Option<(Space, RefusedAllocation)> {
    let is_out_of_memory = says_out_of_memory(text);
    record
        .spaces
        .iter()
        .filter_map(|(space, measured)| Some((*space, measured.refused?)))
        .find(|(_, refusal)| refusal.last || is_out_of_memory)
}

/// True if a text is an out-of-memory error of the driver, of cuBLAS or of a program.
pub fn says_out_of_memory(text: &str) -> bool {
    // Without the backtrace, because a function in it can be named `out_of_memory`.
    let text = gist(text).to_lowercase().replace(['_', '-'], " ");
    ["out of memory", "alloc failed"].iter().any(|words| text.contains(words))
}

/// An error without the backtrace that the `Debug` forms of candle and anyhow append.
pub fn gist(text: &str) -> &str {
    let end =
        ["\n\nStack backtrace:", "\n   0: "].iter().filter_map(|start| text.find(start)).min();
    text[..end.unwrap_or(text.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::super::tests::codes;
    use super::*;
    use crate::judgement::baseline::Baseline;
    use crate::limits::Layer;
    use crate::measurement::driver::Occupant;
    use crate::measurement::record::example::{GPU, armed, limits, record};
    use crate::measurement::record::{Metrics, SpaceRecord};

    fn failed(error: &str) -> Record {
        let mut run = record(armed(Metrics::default()));
        run.outcome = Outcome::Failed { error: error.to_owned() };
        run
    }

    #[test]
    fn a_fault_of_the_gpu_is_a_device_fault_and_any_other_error_test_failed() {
        let codes_of = |error: &str| codes(&failed(error), &Baseline::Off, Layer::default());
        for fault in fault::FAULTS {
            for error in fault.errors {
                let text = format!("Cuda(Cuda(DriverError({error}, \"words\")))");
                assert_eq!(codes_of(&text), ["device-fault"], "{error}");
            }
        }
        assert_eq!(codes_of("DriverError(CUDA_ERROR_INVALID_VALUE, \"words\")"), ["test-failed"]);
        let mut expected = failed("");
        expected.outcome = Outcome::Panicked { message: "CUDA_ERROR_NO_BINARY_FOR_GPU".into() };
        expected.should_panic = Some(String::new());
        assert!(codes(&expected, &Baseline::Off, Layer::default()).is_empty());
    }

    #[test]
    fn a_body_that_failed_names_its_iteration_if_that_is_known() {
        let message = |at: Option<&str>| {
            let mut run = failed("why");
            run.ended_at = at.map(str::to_owned);
            judge_outcome(&run, &limits(Layer::default())).unwrap().message
        };
        assert_eq!(message(None), "the body returned an error: why");
        let expected = "the body returned an error in iteration 5 of 12: why";
        assert_eq!(message(Some("in iteration 5 of 12")), expected);
    }

    #[test]
    fn a_failed_assert_is_an_error_of_the_test_with_the_kernel_and_the_id() {
        let outcome = |text: &str, assert: Option<&str>| {
            let mut run = failed(text);
            run.failed_assert = assert.map(str::to_owned);
            let finding = judge_outcome(&run, &limits(Layer::default())).unwrap();
            (finding.code, finding.hint)
        };
        let known = "the kernel is_u32_f32 got the id 64, which is not in 0..64";
        for text in ["DriverError(CUDA_ERROR_ASSERT)", "CUBLAS_STATUS_EXECUTION_FAILED"] {
            let (code, hint) = outcome(text, Some(known));
            assert_eq!(code, Code::TestFailed);
            assert!(hint.is_some_and(|hint| hint.starts_with(known)), "{text}");
        }
        let (code, hint) = outcome("DriverError(CUDA_ERROR_ASSERT)", None);
        assert_eq!(code, Code::TestFailed);
        assert!(hint.is_some_and(|hint| hint.contains("--device sim")));
        assert_eq!(outcome("another error", None), (Code::TestFailed, None));
        assert_eq!(outcome("CUBLAS_STATUS_EXECUTION_FAILED", None).0, Code::DeviceFault);
    }

    #[test]
    fn the_hint_of_a_refusal_is_about_the_larger_of_host_and_device() {
        let hint = |host| {
            let refused = Some(RefusedAllocation { requested: 30, live: 60, host, last: true });
            let mut run = record(SpaceRecord { refused, ..armed(Metrics::default()) });
            run.outcome = Outcome::Failed { error: "CUDA_ERROR_OUT_OF_MEMORY".into() };
            judge_outcome(&run, &limits(Layer::default())).unwrap().hint.unwrap()
        };
        assert_eq!(hint(61), fit::DROP_FIRST);
        for host in [0, 60] {
            assert!(hint(host).starts_with("use a smaller batch"), "{host}");
        }
    }

    #[test]
    fn only_processes_on_the_refusing_device_are_reported() {
        let refused = Some(RefusedAllocation { requested: 30, live: 60, host: 0, last: true });
        let mut run = record(SpaceRecord { refused, ..armed(Metrics::default()) });
        run.outcome = Outcome::Failed { error: "CUDA_ERROR_OUT_OF_MEMORY".into() };
        let outcome = |run: &Record| {
            let found = judge_outcome(run, &limits(Layer::default())).unwrap();
            (found.message, found.hint.unwrap())
        };
        let alone = outcome(&run);
        let other = |space| Occupant {
            space,
            pid: 4711,
            name: Some("python".to_owned()),
            bytes: Some(60),
            maybe_own: false,
        };
        run.driver.others = vec![other(Space::Cuda(1))];
        assert_eq!(outcome(&run), alone, "it is on another device");
        run.driver.others = vec![other(GPU)];
        let (message, hint) = outcome(&run);
        let holder = "with 60 B live; process 4711 (python) holds 60 B of cuda:0; the body";
        assert!(message.contains(holder), "{message}");
        assert!(hint.contains("other process"), "{hint}");
    }
}
