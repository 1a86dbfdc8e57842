//! The targets of the fuzzer. Each reads an input as the command does, and passes it to all code
//! that uses such an input. The folder `fuzz` has the programs that call them with mutated inputs;
//! the unit test of this module calls them with the corpus.

mod archive;
mod machine;
pub(crate) mod report;
mod results;
mod snapshot;

pub use archive::archive;
pub use machine::machine;
pub use report::report;
pub use results::results;
pub use snapshot::snapshot;

#[cfg(test)]
mod tests;
