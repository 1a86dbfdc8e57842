//! Distributes tests to workers. Every test has its own process, so that on the CPU and the
//! simulated device its figures do not depend on other tests. A real GPU must have only one test at
//! a time ([`crate::system::gpus`]). A launcher assigns devices itself, so that the user decides
//! how many tests it receives at the same time.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};

use memcheck_core::judgement::verdict::Status;
use memcheck_core::runs::plan::Stage;
use memcheck_core::wire::protocol::Progress;

use crate::build::leg::{DeviceKind, Leg};
use crate::discovery::task::TestOutcome;
use crate::invocation::options::Scheduling;
use crate::system::error::Failure;
use crate::system::panics::caught;
use crate::system::process::Capture;

/// The number is the index of the task.
#[derive(Debug)]
pub(crate) enum RunEvent {
    Started(usize),
    Progress(usize, Stage, Progress),
    Finished(usize, Box<TestOutcome>),
}

/// A worker sends `Gone` at its end, because a process that a test left behind can keep the channel
/// open.
enum WorkerMessage {
    Event(RunEvent),
    Progress(usize, Latest),
    Gone,
}

/// The progress that is not presented yet. Newer progress replaces it, so that a test that reports
/// faster than the presenters print does not fill the channel.
type Latest = Arc<Mutex<Option<(Stage, Progress)>>>;

#[derive(Clone)]
pub(crate) struct ProgressSender {
    number: usize,
    latest: Latest,
    sender: Sender<WorkerMessage>,
}

impl ProgressSender {
    fn new(number: usize, sender: Sender<WorkerMessage>) -> Self {
        Self { number, latest: Latest::default(), sender }
    }

    pub(crate) fn progress(&self, stage: Stage, progress: Progress) {
        let before = self.latest.lock().expect("no sender panics").replace((stage, progress));
        if before.is_none() {
            let _ =
                self.sender.send(WorkerMessage::Progress(self.number, Arc::clone(&self.latest)));
        }
    }
}

/// On real GPUs at most their number.
pub(crate) fn workers(
    scheduling: &Scheduling,
    leg: &Leg,
    cores: usize,
    rayon_threads: &str,
) -> usize {
    if scheduling.launcher.is_some() {
        let requested = scheduling.threads.map_or(1, NonZeroUsize::get);
        return if leg.gpus.is_empty() { requested } else { requested.min(leg.gpus.len()) };
    }
    let requested = match (scheduling.threads, scheduling.capture) {
        (Some(threads), _) => threads.get(),
        // Tests that print at the same time would mix their output.
        (None, Capture::Shown | Capture::None) => 1,
        (None, Capture::Kept) => match leg.kind {
            // Each test computes with this number of threads.
            DeviceKind::Cpu => cores / rayon_threads.parse().unwrap_or(cores).max(1),
            DeviceKind::Sim => cores,
            DeviceKind::Cuda => leg.gpus.len(),
        },
    };
    let most = match leg.kind {
        DeviceKind::Cuda => leg.gpus.len(),
        DeviceKind::Cpu | DeviceKind::Sim => usize::MAX,
    };
    requested.min(most).max(1)
}

/// Calls `on_event` on the calling thread. `run` returns `None` if it was interrupted; its first
/// error ends the run, and so does a panic of either.
pub(crate) fn run_all(
    count: usize,
    workers: usize,
    fail_fast: bool,
    run: impl Fn(usize, ProgressSender) -> Result<Option<TestOutcome>, Failure> + Sync,
    mut on_event: impl FnMut(RunEvent),
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, events) = mpsc::channel();
    let workers = workers.clamp(1, count.max(1));
    std::thread::scope(|scope| {
        let start = |_| {
            let (next, stop, run, sender) = (&next, &stop, &run, sender.clone());
            std::thread::Builder::new().spawn_scoped(scope, move || {
                let worked = caught(|| work(count, fail_fast, next, stop, run, &sender));
                // An error or a panic of one worker must not let the others begin further tests.
                stop.fetch_or(!matches!(worked, Ok(Ok(()))), Ordering::SeqCst);
                let _ = sender.send(WorkerMessage::Gone);
                worked.unwrap_or_else(|panicked| Err(panicked.into()))
            })
        };
        // If the system has no thread left, fewer workers run the tests.
        let (handles, refused): (Vec<_>, Vec<_>) =
            (0..workers).map(start).partition(std::io::Result::is_ok);
        if let (true, Some(Err(error))) = (handles.is_empty(), refused.into_iter().next()) {
            return Err(anyhow::Error::from(error).context("starting a thread for tests").into());
        }
        let (mut working, mut result) = (handles.len(), Ok(()));
        while working > 0 {
            match events.recv() {
                // The workers must be waited for, so that their tests end before the command does.
                Ok(WorkerMessage::Event(event)) => {
                    if let Err(panicked) = caught(|| on_event(event)) {
                        stop.store(true, Ordering::SeqCst);
                        result = result.and(Err(panicked.into()));
                    }
                }
                Ok(WorkerMessage::Progress(number, latest)) => {
                    let progress = latest.lock().expect("no sender panics").take();
                    let Some((stage, progress)) = progress else { continue };
                    let event = RunEvent::Progress(number, stage, progress);
                    if let Err(panicked) = caught(|| on_event(event)) {
                        stop.store(true, Ordering::SeqCst);
                        result = result.and(Err(panicked.into()));
                    }
                }
                Ok(WorkerMessage::Gone) | Err(_) => working -= 1,
            }
        }
        for handle in handles.into_iter().flatten() {
            // Joined only now, because a worker sends until its end.
            let worked = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(worked);
        }
        result
    })
}

fn work(
    count: usize,
    fail_fast: bool,
    next: &AtomicUsize,
    stop: &AtomicBool,
    run: &impl Fn(usize, ProgressSender) -> Result<Option<TestOutcome>, Failure>,
    sender: &Sender<WorkerMessage>,
) -> Result<(), Failure> {
    let send_event = |event| {
        let _ = sender.send(WorkerMessage::Event(event));
    };
    while !stop.load(Ordering::SeqCst) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= count {
            break;
        }
        send_event(RunEvent::Started(number));
        match run(number, ProgressSender::new(number, sender.clone())) {
            Ok(Some(outcome)) => {
                if fail_fast && is_failure(&outcome) {
                    stop.store(true, Ordering::SeqCst);
                }
                send_event(RunEvent::Finished(number, Box::new(outcome)));
            }
            Ok(None) => stop.store(true, Ordering::SeqCst),
            Err(error) => {
                stop.store(true, Ordering::SeqCst);
                return Err(error);
            }
        }
    }
    Ok(())
}

fn is_failure(outcome: &TestOutcome) -> bool {
    matches!(outcome.verdict.status, Status::Failed | Status::NotMeasured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::gpus::RealGpu;
    use crate::system::launcher::Launcher;
    use memcheck_core::device::Request;
    use memcheck_core::wire::exit;

    fn outcome(status: Status) -> TestOutcome {
        let mut outcome = TestOutcome::ignored();
        outcome.verdict.status = status;
        outcome
    }

    fn scheduling(threads: Option<usize>) -> Scheduling {
        let threads = threads.map(|threads| NonZeroUsize::new(threads).unwrap());
        Scheduling { threads, ..Scheduling::default() }
    }

    fn leg(kind: DeviceKind, gpus: u16) -> Leg {
        let gpu = |index| {
            let (name, word) = ("NVIDIA H200".to_owned(), format!("GPU-{index}"));
            RealGpu { index, name, uuid: Some(word.clone()), word, slice: false }
        };
        let gpus = (0..gpus).map(gpu).collect();
        Leg { gpus, ..Leg::new(Request::Cpu, kind, "") }
    }

    #[test]
    fn a_real_gpu_runs_one_test_at_a_time_whatever_the_flags_request() {
        let cuda =
            |gpus, threads| workers(&scheduling(threads), &leg(DeviceKind::Cuda, gpus), 8, "1");
        assert_eq!(cuda(1, Some(8)), 1);
        assert_eq!(cuda(4, None), 4);
        assert_eq!(cuda(4, Some(8)), 4);
        assert_eq!(cuda(4, Some(3)), 3);
        let shown = Scheduling { capture: Capture::Shown, ..scheduling(None) };
        assert_eq!(workers(&shown, &leg(DeviceKind::Cuda, 4), 8, "1"), 1);
        let of = |kind, threads, cores, rayon| {
            workers(&scheduling(threads), &leg(kind, 0), cores, rayon)
        };
        assert_eq!(of(DeviceKind::Sim, Some(8), 2, "1"), 8);
        assert_eq!(of(DeviceKind::Sim, None, 4, "4"), 4);
        assert_eq!(of(DeviceKind::Cpu, None, 8, "2"), 4);
        assert_eq!(of(DeviceKind::Cpu, None, 2, "4"), 1);
    }

    #[test]
    fn a_launcher_has_as_many_tests_as_it_is_given_on_any_device() {
        let launched = |threads| Scheduling {
            launcher: Launcher::Command(vec!["srun".to_owned()]),
            ..scheduling(threads)
        };
        for kind in [DeviceKind::Cpu, DeviceKind::Sim, DeviceKind::Cuda] {
            assert_eq!(workers(&launched(None), &leg(kind, 0), 8, "1"), 1);
            assert_eq!(workers(&launched(Some(4)), &leg(kind, 0), 8, "1"), 4);
        }
        // The command assigns GPUs that the user named, even with a launcher.
        assert_eq!(workers(&launched(Some(4)), &leg(DeviceKind::Cuda, 2), 8, "1"), 2);
    }

    #[test]
    fn every_task_runs_once_on_however_many_workers() {
        for workers in [1, 3, 20] {
            let mut finished = Vec::new();
            let run = |_, _: ProgressSender| Ok(Some(outcome(Status::Passed)));
            run_all(10, workers, false, run, |event| {
                if let RunEvent::Finished(number, _) = event {
                    finished.push(number);
                }
            })
            .unwrap();
            finished.sort_unstable();
            assert_eq!(finished, (0..10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn progress_that_is_not_presented_yet_is_replaced() {
        let progress =
            |iteration| Progress { iteration, of: 100_000, live: 0, ..Progress::default() };
        let (sender, events) = mpsc::channel();
        let progress_sender = ProgressSender::new(0, sender);
        let mut presented = Vec::new();
        for iteration in 0..100_000 {
            progress_sender.progress(Stage::Explain, progress(iteration));
            if iteration == 7 || iteration == 99_999 {
                let waiting: Vec<WorkerMessage> = events.try_iter().collect();
                let [WorkerMessage::Progress(0, latest)] = &waiting[..] else {
                    panic!("one message")
                };
                presented.push(latest.lock().unwrap().take());
            }
        }
        assert_eq!(presented, [7, 99_999].map(|at| Some((Stage::Explain, progress(at)))));
    }

    #[test]
    fn fail_fast_ends_the_run_at_the_first_failure() {
        let mut finished = 0;
        let run = |number, _: ProgressSender| {
            Ok(Some(outcome(if number == 2 { Status::Failed } else { Status::Passed })))
        };
        run_all(10, 1, true, run, |event| {
            finished += usize::from(matches!(event, RunEvent::Finished(..)))
        })
        .unwrap();
        assert_eq!(finished, 3);
    }

    #[test]
    fn an_error_ends_the_run() {
        let no = || Err(Failure::Internal(anyhow::anyhow!("no")));
        let run = |number, _: ProgressSender| if number == 1 { no() } else { Ok(None) };
        assert!(run_all(1, 1, false, run, |_| {}).is_ok());
        let run = |number, _: ProgressSender| {
            if number == 1 { no() } else { Ok(Some(outcome(Status::Passed))) }
        };
        assert_eq!(run_all(5, 1, false, run, |_| {}).unwrap_err().message(), "no");
    }

    #[test]
    fn a_panic_in_any_thread_ends_the_run_and_keeps_the_finished_tests() {
        let passes = || Ok(Some(outcome(Status::Passed)));
        for workers in [1, 3] {
            let mut finished = 0;
            let mut count =
                |event: RunEvent| finished += usize::from(matches!(event, RunEvent::Finished(..)));
            let run = |number, _: ProgressSender| {
                if number == 4 { panic!("in a worker") } else { passes() }
            };
            let failure = run_all(1_000, workers, false, run, &mut count).unwrap_err();
            assert_eq!(failure.exit_code(), exit::PANIC);
            assert!(failure.message().ends_with("in a worker"), "{}", failure.message());
            assert!((4..1_000).contains(&finished), "{finished} tests have ended");
        }
        let event = |event: RunEvent| {
            if matches!(event, RunEvent::Finished(4, _)) {
                panic!("in a presenter")
            }
        };
        let failure = run_all(1_000, 1, false, |_, _| passes(), event).unwrap_err();
        assert!(failure.message().ends_with("in a presenter"), "{}", failure.message());
    }
}
