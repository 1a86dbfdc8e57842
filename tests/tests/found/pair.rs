//! Two memory tests of one program, `before` and `after` a change.

use candle_core::Device;

/// Two memory tests of one program, in which `subject` is the first path, and then the second. What
/// the program returns is alive at its end, so that it is in the figure `setup`.
macro_rules! pair {
    (
        $($before:ident)::+ => $($after:ident)::+ $(, $option:ident = $value:literal)*;
        |$device:ident| $body:block
    ) => {
        #[memcheck_runtime::mem_test(iterations = 1, warmup = 0 $(, $option = $value)*)]
        fn before(trial: &mut memcheck_runtime::Trial) -> anyhow::Result<()> {
            use $($before)::+ as subject;
            let program = |$device: &candle_core::Device| -> anyhow::Result<_> { $body };
            $crate::pair::keep(trial, program)
        }

        #[memcheck_runtime::mem_test(iterations = 1, warmup = 0 $(, $option = $value)*)]
        fn after(trial: &mut memcheck_runtime::Trial) -> anyhow::Result<()> {
            use $($after)::+ as subject;
            let program = |$device: &candle_core::Device| -> anyhow::Result<_> { $body };
            $crate::pair::keep(trial, program)
        }
    };
}
pub(crate) use pair;

/// Runs a program as the set-up of a test, and keeps its result until the end.
pub(crate) fn keep<T>(
    trial: &mut memcheck_runtime::Trial,
    program: impl FnOnce(&Device) -> anyhow::Result<T>,
) -> anyhow::Result<()> {
    let kept = program(&trial.device().clone())?;
    trial.iterate(|_| anyhow::Ok(()))?;
    drop(kept);
    Ok(())
}
