//! Of `functional/cases.rs`: tests over cases, and blocks that a capacity refuses.

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// The block is `rows` times 1,024 elements of `dtype`, and `rows` is 1 or 4.
mod model {
    use super::*;

    #[mem_test(cases(dtype = [f32, bf16], rows = [1, 4]), max_growth = "0 B")]
    pub(super) fn forward(trial: &mut Trial) -> Result<()> {
        let (dtype, rows): (DType, usize) = (trial.case("dtype")?, trial.case("rows")?);
        let device = trial.device().clone();
        trial.iterate(|_| Tensor::zeros((rows, 1024), dtype, &device).map(drop))
    }
}

/// The name of its snapshot would be longer than the name of a file can be.
#[mem_test(cases(name = ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]))]
fn long_value(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, &device).map(drop))
}

/// The same with a capacity.
mod small {
    use super::*;

    #[mem_test(
        cases(dtype = [f32, bf16], length = [1, 4]),
        fits = "1 B",
        max_growth = "0 B",
        baseline = false
    )]
    pub(super) fn forward(trial: &mut Trial) -> Result<()> {
        let (dtype, length): (DType, usize) = (trial.case("dtype")?, trial.case("length")?);
        let device = trial.device().clone();
        trial.iterate(|_| Tensor::zeros((length, 1024), dtype, &device).map(drop))
    }
}

#[mem_test(cases(n = [1, 2]), baseline = false)]
#[ignore = "later"]
fn ignored(_trial: &mut Trial) {}

#[mem_test(cases(n = [1, -2]), baseline = false)]
#[should_panic(expected = "boom")]
fn panics(trial: &mut Trial) {
    panic!("boom {}", trial.case::<i32>("n").unwrap());
}

#[mem_test(cases(batch = [few], seq = [128]), baseline = false)]
fn unknown(trial: &mut Trial) -> Result<()> {
    let names: Vec<_> = trial.cases().collect();
    assert_eq!(names, [("batch", "few"), ("seq", "128")]);
    trial.case::<usize>("size").map(drop)
}

#[mem_test(cases(batch = [few]), baseline = false)]
fn unread(trial: &mut Trial) -> Result<()> {
    trial.case::<usize>("batch").map(drop)
}

#[mem_test(baseline = false)]
fn without(trial: &mut Trial) -> Result<()> {
    trial.case::<usize>("batch").map(drop)
}

/// 1.5 GiB in two blocks.
fn two_blocks(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        let first = Tensor::zeros((1 << 30,), DType::U8, &device)?;
        let second = Tensor::zeros((1 << 29,), DType::U8, &device)?;
        drop((first, second));
        Result::Ok(())
    })
}

#[mem_test(fits = "1 GiB", max_growth = "0 B", baseline = false)]
fn above_its_capacity(trial: &mut Trial) -> Result<()> {
    two_blocks(trial)
}

#[mem_test(fits = "24 GiB", max_growth = "0 B", baseline = false)]
fn within_its_capacity(trial: &mut Trial) -> Result<()> {
    two_blocks(trial)
}
