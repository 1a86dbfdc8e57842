//! Trains a small transformer and watches its memory: it uses every helper of memcheck-runtime in a
//! program that is not a test.
//!
//! `train_small_transformer [leak]`: with `leak` it keeps the loss of each step as a tensor, and
//! the audit raises alerts. The helpers report through `tracing` events. The program has its own
//! subscriber, which prints them.

use anyhow::Result;
use candle_core::Device;
use memcheck_runtime::{Audit, Cleanup, Scopes, log_usage, release_cached, usage};
use memcheck_tests::training::Trainer;
use tracing::info_span;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

const EPOCHS: usize = 3;
/// Steps in an epoch, and steps between two checks of the audit.
const STEPS: usize = 10;

fn main() -> Result<()> {
    let lines = fmt::layer().without_time();
    tracing_subscriber::registry().with(lines).with(Scopes).init();
    let leaks = std::env::args().nth(1).is_some_and(|how| how == "leak");

    let device = Device::cuda_if_available(0)?;
    log_usage("before load", &device);
    let mut trainer = Trainer::new(&device)?;
    log_usage("after load", &device);
    release_cached(&device)?;
    log_usage("after cache clear", &device);

    let mut audit = Audit::every(STEPS as u64)
        .alert_above("8 MiB")
        .alert_growth("0 B")
        .reset_peak(true)
        .on_alert(|alert| println!("alert: {alert}"));
    for epoch in 0..EPOCHS {
        let _cleanup = Cleanup::new(&device);
        let _epoch = info_span!("epoch").entered();
        for _ in 0..STEPS {
            if leaks {
                trainer.leaky_step()?;
            } else {
                trainer.fixed_step()?;
            }
            audit.step(&device)?;
        }
        if let Some(loss) = trainer.history().last() {
            println!("epoch {epoch}: loss {loss:.4}");
        }
    }
    println!("at the end: {}", usage(&device));
    Ok(())
}
