//! Functional tests: the real command over real test binaries.
//!
//! `fixture` creates small cargo projects outside the workspace, like those of a user, and runs
//! `cargo memcheck` in them. The tests read its JSON output. The projects share one build
//! directory, so that candle is built once.

mod archive;
mod bad_binaries;
mod baselines;
mod benches;
mod bisect;
mod browser;
mod c_heap;
mod candle_features;
mod candle_tests;
mod cases;
mod compare;
mod comparisons;
mod configuration;
mod controls;
mod detection;
mod documentation;
mod estimate;
mod exactness;
mod exit_codes;
mod faults;
mod fidelity;
mod fit;
mod fixture;
mod flash_attention;
mod floods;
mod gpus;
mod graphs;
mod growth;
mod guide;
mod hardware;
mod hostile;
mod hostile_archives;
mod interrupts;
mod legs;
mod libraries;
mod links;
mod machine;
mod module_cycles;
mod one_candle;
mod outputs;
mod plain;
mod plan;
mod profile;
mod prose;
mod real;
mod rebuilds;
mod reference;
mod relations;
mod report_data;
mod report_page;
mod reports;
mod runner;
mod shards;
mod simulated;
mod slurm;
mod supply_chain;
mod terminal;
mod unstable;
mod unwritten;
mod user_code;
mod user_package;
mod values;
