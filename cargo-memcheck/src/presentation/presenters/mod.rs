//! The presenters print and write the results, and make no decisions. stdout carries only results
//! for machines and the results of commands such as `profile`; all other text goes to stderr. All
//! receive the same events, in the order of the run.

mod annotations;
mod brief;
mod broadcast;
#[cfg(feature = "comparison")]
pub(crate) mod comparison;
pub(crate) mod cut;
mod driver_lines;
#[cfg(feature = "estimates")]
pub(crate) mod estimates;
#[cfg(any(test, fuzzing))]
pub(crate) mod every;
#[cfg(test)]
pub(crate) mod example;
#[cfg(feature = "exports")]
mod exports;
mod failure;
mod findings;
#[cfg(all(test, feature = "exports"))]
mod first_command;
#[cfg(feature = "exports")]
mod frames;
#[cfg(all(test, feature = "exports"))]
mod headline;
#[cfg(test)]
mod hostile;
pub(crate) mod json;
mod junit;
mod kinds;
mod links;
mod live;
mod next_step;
mod notes;
mod panics;
mod places;
pub(crate) mod profile;
#[cfg(test)]
pub(crate) mod recorded;
pub(crate) mod reports;
mod source_lines;
mod stopped;
pub(crate) mod style;
mod summary;
mod terminal;

pub(crate) use broadcast::Broadcast;
pub(crate) use failure::{failure, reported};
pub(crate) use json::JsonLines;
pub(crate) use stopped::{interrupted, stopped};
pub(crate) use summary::Unselected;
