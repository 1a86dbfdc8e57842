//! The memory tests that the functional tests run, one module for each of their files: programs that
//! leak, are clean, or meet a fault. Those with a baseline run with another folder for it, because no
//! test must write next to their sources.

mod async_bodies;
mod bad_binaries;
mod baselines;
mod c_heap;
mod caches;
mod cases;
mod causes;
mod compare;
mod configuration;
mod descriptors;
mod exit_codes;
mod fit;
mod floods;
mod forks;
mod further_runs;
mod growth;
mod hardware;
mod hostile;
mod insta;
mod interrupts;
mod killed;
mod late;
mod limits;
mod live;
mod phases;
mod plain;
mod pools;
mod profile;
mod read_only;
mod relations;
mod replaced;
mod report_page;
mod report_reader;
mod reports;
mod retained;
mod runner;
mod shards;
mod soak;
mod terminal;
mod threads;
mod unstable;
mod unwritten;
mod user_code;
mod user_package;
mod values;

use std::path::PathBuf;

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::Trial;

/// The folder of the functional test that runs a program, for the files of the program.
fn folder() -> PathBuf {
    std::env::var_os("PROGRAMS_FOLDER").expect("a functional test runs this program").into()
}

/// Writes a file of that folder. It has its text as soon as it exists.
fn write(file: &str, text: impl std::fmt::Display) {
    let unfinished = folder().join(format!("{file}.unfinished"));
    std::fs::write(&unfinished, text.to_string()).expect("the file is written");
    std::fs::rename(unfinished, folder().join(file)).expect("the file is renamed");
}

/// The path of the report of the test.
fn report() -> PathBuf {
    // The initial environment of the process, because the runtime has removed the variable.
    let environment = std::fs::read_to_string("/proc/self/environ").unwrap();
    let job = environment.split('\0').find(|text| text.starts_with("MEMCHECK_JOB="));
    let job = job.expect("memcheck has started the test");
    let start = job.find("\"report\":\"").unwrap() + 10;
    job[start..].split('"').next().unwrap().into()
}

/// Keeps a tensor of 4,096 B in each iteration.
fn keep_a_tensor(trial: &Trial) -> Result<()> {
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(Tensor::zeros(1024, DType::F32, trial.device())?);
        Ok(())
    })
}
