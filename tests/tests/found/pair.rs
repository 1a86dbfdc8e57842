//! Two memory tests of one program, `before` and `after` a change, and a test that both compute the
//! same values.

use std::cell::RefCell;

use candle_core::{DType, Device, Result, Shape, Tensor};
use candle_nn::{VarBuilder, VarMap};

/// Two memory tests of one program, in which `subject` is the first path, and then the second. What
/// the program returns is alive at its end, so that it is in the figure `setup`.
///
/// `compared` before the program adds a test on the CPU: both paths must compute the values that the
/// program hands to [`compare`], with random [`weights`] and inputs.
macro_rules! pair {
    (
        $($before:ident)::+ => $($after:ident)::+ $(, $option:ident = $value:literal)*;
        compared |$device:ident| $body:block
    ) => {
        $crate::pair! {
            $($before)::+ => $($after)::+ $(, $option = $value)*; |$device| $body
        }

        #[test]
        fn the_change_computes_the_same() -> anyhow::Result<()> {
            let before = || {
                use $($before)::+ as subject;
                let program = |$device: &candle_core::Device| -> anyhow::Result<_> { $body };
                program(&candle_core::Device::Cpu).map(drop)
            };
            let after = || {
                use $($after)::+ as subject;
                let program = |$device: &candle_core::Device| -> anyhow::Result<_> { $body };
                program(&candle_core::Device::Cpu).map(drop)
            };
            $crate::pair::assert_same_values(before, after)
        }
    };
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

/// What two versions share while they are compared.
struct Comparison {
    weights: VarMap,
    results: Vec<Tensor>,
}

thread_local! {
    static COMPARISON: RefCell<Option<Comparison>> = const { RefCell::new(None) };
}

fn is_compared() -> bool {
    COMPARISON.with_borrow(Option::is_some)
}

/// Zeros in a memory test, because its bytes follow from the sizes and not from the values.
/// Random values, the same for both versions, while these are compared.
pub(crate) fn weights(device: &Device) -> VarBuilder<'static> {
    COMPARISON.with_borrow(|comparison| match comparison {
        Some(shared) => VarBuilder::from_varmap(&shared.weights, DType::F32, device),
        None => VarBuilder::zeros(DType::F32, device),
    })
}

/// An input of zeros, or of values between -1 and 1 while versions are compared.
pub(crate) fn input(shape: impl Into<Shape>, device: &Device) -> Result<Tensor> {
    let shape = shape.into();
    if !is_compared() {
        return Tensor::zeros(shape, DType::F32, device);
    }
    Tensor::arange(1_f32, 1.0 + shape.elem_count() as f32, device)?.sin()?.reshape(shape)
}

/// `length` times token 0, or tokens below 4 while versions are compared.
#[allow(dead_code, reason = "the programs of some packages read no tokens")]
pub(crate) fn prompt(length: usize, device: &Device) -> Result<Tensor> {
    let token = |position: u32| if is_compared() { position * position % 7 % 4 } else { 0 };
    Tensor::from_iter((0..length as u32).map(token), device)?.unsqueeze(0)
}

/// `measured`, or the smaller number `compared` while versions are compared.
pub(crate) fn size(measured: usize, compared: usize) -> usize {
    if is_compared() { compared } else { measured }
}

/// Adds a result to those that are compared. A memory test does not compute it.
pub(crate) fn compare(result: impl FnOnce() -> Result<Tensor>) -> Result<()> {
    if !is_compared() {
        return Ok(());
    }
    let result = result()?.to_dtype(DType::F32)?.detach();
    COMPARISON.with_borrow_mut(|comparison| {
        comparison.as_mut().expect("it has begun").results.push(result);
    });
    Ok(())
}

/// Asserts that both programs compute the same results.
pub(crate) fn assert_same_values(
    before: impl Fn() -> anyhow::Result<()>,
    after: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    COMPARISON.set(Some(Comparison { weights: VarMap::new(), results: Vec::new() }));
    // The first run only names the weights.
    before()?;
    let take = || {
        COMPARISON.with_borrow_mut(|comparison| {
            std::mem::take(&mut comparison.as_mut().expect("it has begun").results)
        })
    };
    take();
    let weights = COMPARISON
        .with_borrow(|comparison| comparison.as_ref().expect("it has begun").weights.all_vars());
    for weight in weights {
        weight.set(&weight.randn_like(0.0, 0.3)?)?;
    }
    before()?;
    let expected = take();
    after()?;
    let changed = take();
    assert_eq!((changed.len(), expected.is_empty()), (expected.len(), false));
    for (changed, expected) in changed.iter().zip(&expected) {
        let most = |tensor: &Tensor| tensor.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>();
        let (difference, size) = (most(&(changed - expected)?)?, most(expected)?);
        assert!(size > 0.0, "all values are zero: {expected}");
        assert!(difference <= 1e-5 * size, "a difference of {difference} in values of {size}");
    }
    Ok(())
}

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

#[test]
#[should_panic(expected = "a difference of")]
fn a_change_of_a_value_is_found() {
    let program = |factor: f64| {
        move || {
            let weight = weights(&Device::Cpu).get((4, 4), "weight")?;
            compare(|| weight * factor)?;
            anyhow::Ok(())
        }
    };
    assert_same_values(program(1.0), program(1.001)).expect("the programs run");
}

#[test]
#[should_panic(expected = "all values are zero")]
fn values_that_no_program_computed_are_not_compared() {
    let program = || {
        compare(|| Tensor::zeros(4, DType::F32, &Device::Cpu))?;
        anyhow::Ok(())
    };
    assert_same_values(program, program).expect("the programs run");
}
