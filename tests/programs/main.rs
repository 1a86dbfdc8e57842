//! The memory tests that the functional tests run, one module for each of their files: programs that
//! leak, are clean, or meet a fault. Those with a baseline run with another folder for it, because no
//! test must write next to their sources.

mod bad_binaries;
mod baselines;
mod c_heap;
mod cases;
mod compare;
mod configuration;
mod exit_codes;
mod fit;
mod forks;
mod further_runs;
mod growth;
mod hardware;
mod hostile;
mod insta;
mod live;
mod profile;
mod read_only;
mod relations;
mod report_page;
mod report_reader;
mod reports;
mod retained;
mod runner;
mod shards;
mod soak;
mod terminal;
mod unstable;
mod unwritten;
mod user_code;
mod values;
