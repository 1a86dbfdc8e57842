//! The presenters print and write the results, and make no decisions. stdout carries only results
//! for machines and the results of commands such as `profile`; all other text goes to stderr. All
//! receive the same events, in the order of the run.

mod annotations;
mod bencher;
pub(crate) mod bisect;
mod broadcast;
pub(crate) mod compare;
mod csv;
mod driver_lines;
pub(crate) mod estimate;
#[cfg(any(test, fuzzing))]
pub(crate) mod every;
#[cfg(test)]
pub(crate) mod example;
mod failure;
mod findings;
pub(crate) mod fit;
mod flamegraph;
pub(crate) mod history;
#[cfg(test)]
mod hostile;
mod html;
pub(crate) mod json;
mod junit;
mod live;
mod markdown;
mod memory_viz;
mod next_step;
mod notes;
mod places;
mod plain_page;
pub(crate) mod plan;
mod pprof;
pub(crate) mod profile;
#[cfg(test)]
pub(crate) mod recorded;
pub(crate) mod reports;
mod sarif;
mod stopped;
pub(crate) mod style;
mod summary;
mod terminal;
mod trace;

pub(crate) use broadcast::Broadcast;
pub(crate) use failure::{failure, reported};
pub(crate) use json::JsonLines;
pub(crate) use stopped::{interrupted, stopped};
pub(crate) use summary::Unselected;
