//! Polls the future of a sweep and those of its iterations.
//!
//! The thread is quiet while the sweep itself runs. While a body waits, the thread belongs to the
//! body's executor, which can run other tasks of the test, so that it is not quiet then.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use memcheck_core::quiet;

/// Runs a future whose bodies return without waiting.
pub(super) fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// A future during whose polls the thread is quiet.
pub(super) async fn quietly<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _quiet = quiet::enter();
        future.as_mut().poll(context)
    })
    .await
}

/// The output of a body, or the payload of its panic. Its polls are part of the workload.
pub(super) async fn caught<F: Future>(body: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut body = pin!(body);
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| quiet::lifted(|| body.as_mut().poll(context)));
        match catch_unwind(poll) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}

/// Lets the executor run other tasks.
pub(super) async fn let_others_run() {
    let mut is_first = true;
    poll_fn(|context| match std::mem::take(&mut is_first) {
        true => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        false => Poll::Ready(()),
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_quiet_in_the_sweep_but_not_in_its_body_and_not_between_polls() {
        let mut seen = Vec::new();
        {
            let mut future = pin!(quietly(async {
                seen.push(quiet::is_quiet());
                let body = caught(async {
                    let before = quiet::is_quiet();
                    let_others_run().await;
                    (before, quiet::is_quiet())
                });
                let (before, after) = body.await.unwrap();
                seen.extend([before, after, quiet::is_quiet()]);
            }));
            let mut context = Context::from_waker(Waker::noop());
            assert!(future.as_mut().poll(&mut context).is_pending());
            assert!(!quiet::is_quiet());
            assert!(future.as_mut().poll(&mut context).is_ready());
        }
        assert_eq!(seen, [true, false, false, true]);
    }

    #[test]
    fn a_panic_of_a_body_is_an_error_and_a_future_that_waits_is_polled_again() {
        let panicked = run(caught(async { std::panic::panic_any(7) }));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&7));
        run(let_others_run());
    }
}
