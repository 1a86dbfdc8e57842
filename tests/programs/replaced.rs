//! Of `functional/forks.rs`: a build replaces the executable while its tests run. The first of these
//! ordinary tests does so, in a copy.

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[test]
fn a_replaces_the_executable() {
    let own = std::env::current_exe().unwrap();
    assert!(own.ends_with("copied"), "{}", own.display());
    std::fs::remove_file(&own).unwrap();
    std::fs::write(&own, "not an executable").unwrap();
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn b_passes(trial: &mut Trial) -> Result<()> {
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
    println!("named {} {comm}", std::env::args().next().unwrap());
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(drop))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn c_leaks(trial: &mut Trial) -> Result<()> {
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(std::mem::forget))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn d_is_started_again(trial: &mut Trial) -> Result<()> {
    let none = tracing::subscriber::NoSubscriber::new();
    tracing::subscriber::set_global_default(none).unwrap();
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(drop))
}
