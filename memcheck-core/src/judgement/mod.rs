//! The judgement: a record, a baseline and limits become a verdict with findings and their causes.

pub mod baseline;
pub mod blame;
pub mod diagnosis;
pub mod fault;
pub mod finding;
pub mod grown_holder;
pub mod head_line;
pub mod headline;
pub mod location;
mod named_lines;
pub mod proposal;
pub mod rise;
pub mod site;
pub mod snapshot;
pub mod verdict;

mod yaml;
