//! Functional tests: the real command over real test binaries.
//!
//! `fixture` creates small cargo projects outside the workspace, like those of a user, and runs
//! `cargo memcheck` in them. The tests read its JSON output. The projects share one target
//! directory, so that candle is built once.

mod across;
mod archive;
mod bad_binaries;
mod bad_input;
mod baselines;
mod benches;
mod cases;
mod controls;
mod detection;
mod documentation;
mod estimate;
mod exactness;
mod fidelity;
mod fit;
mod fixture;
mod gpus;
mod growth;
mod guide;
mod hardware;
mod interrupts;
mod legs;
mod libraries;
mod links;
mod machine;
mod one_candle;
mod outputs;
mod outside;
mod plain;
mod plan;
mod profile;
mod real;
mod reference;
mod reports;
mod rooms;
mod runner;
mod shards;
mod simulated;
mod slurm;
mod strangers;
mod unchanged;
mod unstable;
