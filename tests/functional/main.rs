//! Functional tests: the real command over real test binaries.
//!
//! `fixture` makes small cargo projects outside the workspace, as a user has
//! them, and runs `cargo memcheck` in them; what the command says is read from
//! its JSON. They share one target directory, so that candle is built once.

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
