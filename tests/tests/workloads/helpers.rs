//! The helpers for any program, used in memory tests because there the true figures are known:
//! `usage`, `reset_peak`, `release_cached`, `Cleanup`, `Audit`.

use std::sync::{Arc, Mutex};

use candle_core::{DType, Device, Tensor};
use memcheck_runtime::{
    Alert, AlertReason, Audit, Cleanup, Trial, mem_test, release_cached, reset_peak, usage,
};

/// Floats of a block of 1 MiB.
const MIB: usize = 1 << 18;

fn block(device: &Device) -> candle_core::Result<Tensor> {
    Tensor::zeros(MIB, DType::F32, device)
}

/// The figures are those of the ledger: live bytes, and the highest live bytes since the last
/// reset. The judged peak is still that of the whole body.
#[mem_test(baseline = false, max_growth = "0 B", max_peak = "3 MiB")]
fn usage_is_live_bytes_and_their_peak(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        reset_peak(&device);
        assert_eq!((usage(&device).allocated, usage(&device).peak_allocated), (0, 0));
        let first = block(&device)?;
        drop((block(&device)?, block(&device)?));
        let now = usage(&device);
        assert_eq!((now.allocated, now.peak_allocated), (1 << 20, 3 << 20));
        reset_peak(&device);
        assert_eq!(usage(&device).peak_allocated, 1 << 20);
        drop(first);
        anyhow::Ok(())
    })
}

/// The body has three live blocks under a limit of two, and then resets the peak. The limit must
/// still be broken.
#[mem_test(baseline = false, max_peak = "2 MiB")]
#[ignore = "exceeds its peak limit on purpose"]
fn a_peak_that_was_reset_is_judged(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        drop((block(&device)?, block(&device)?, block(&device)?));
        reset_peak(&device);
        Ok(())
    })
}

/// Memory that is freed without a synchronization stays in the driver's pool until it is released.
/// The CPU has no pool.
#[mem_test(baseline = false, max_growth = "0 B")]
fn cached_memory_is_given_back_at_both_ends(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let has_pool = usage(&device).reserved.is_some();
    assert_eq!(has_pool, device.is_cuda());
    // 128 MiB, which are four chunks of the driver's pool.
    let step = Tensor::zeros(32 * MIB, DType::F32, &device)?;
    let held = usage(&device).reserved;
    drop(step);
    release_cached(&device)?;
    assert_eq!(usage(&device).reserved, held.map(|_| 0));
    trial.iterate(|_| {
        let cleanup = Cleanup::new(&device);
        let kept = block(&device)?;
        let after = cleanup.end()?;
        assert_eq!(after.allocated, 1 << 20);
        drop(kept);
        // It is declared before the block, so it is dropped after it.
        let _cleanup = Cleanup::new(&device);
        let _block = block(&device)?;
        anyhow::Ok(())
    })?;
    assert_eq!(usage(&device).allocated, 0);
    Ok(())
}

/// The audit checks every four steps of a loop that keeps 1 MiB per step. At its first check 4 MiB
/// are live. At the second check 8 MiB are above the limit of 6 MiB, and the 4 MiB since the first
/// check are 1 MiB per step.
#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn an_audit_alerts_at_the_step_that_it_looks_at(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        let received: Arc<Mutex<Vec<Alert>>> = Arc::default();
        let sink = Arc::clone(&received);
        let mut audit = Audit::every(4)
            .alert_above("6 MiB")
            .alert_growth("1023 KiB")
            .on_alert(move |alert| sink.lock().unwrap().push(*alert));
        let mut kept = Vec::with_capacity(8);
        for _ in 0..8 {
            kept.push(block(&device)?);
            audit.step(&device)?;
        }
        let alerts = received.lock().unwrap().clone();
        let reasons: Vec<_> = alerts.iter().map(|alert| (alert.step, alert.reason)).collect();
        let growth = AlertReason::Growth { bytes_per_step: 1 << 20, limit: 1023 << 10 };
        assert_eq!(reasons, [(8, AlertReason::Allocated { limit: 6 << 20 }), (8, growth)]);
        assert_eq!(alerts[0].usage.allocated, 8 << 20);
        anyhow::Ok(())
    })
}

/// With `reset_peak` an audit reports the peak of the steps since its last check. The peak of the
/// first four steps is therefore not part of the second check.
#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn an_audit_starts_the_peak_anew_where_it_is_told_to(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        for (resets, peaks) in [(true, [3 << 20, 1 << 20]), (false, [3 << 20, 3 << 20])] {
            reset_peak(&device);
            let mut audit = Audit::every(4).reset_peak(resets);
            let mut reported = Vec::new();
            for step in 0..8 {
                let blocks = if step == 0 { 3 } else { 1 };
                drop((0..blocks).map(|_| block(&device)).collect::<candle_core::Result<Vec<_>>>()?);
                reported.extend(audit.step(&device)?.map(|usage| usage.peak_allocated));
            }
            assert_eq!(reported, peaks);
        }
        anyhow::Ok(())
    })
}
