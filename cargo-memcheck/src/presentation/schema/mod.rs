//! The JSON schema of the stream of results, in draft 2020-12.
//!
//! It is written by hand, because the types of the stream belong to crates that every test
//! executable compiles. Tests compare it with real streams in both directions: each field that is
//! written must be in it, and each field in it must be written.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod validator;

/// The schema of a line of the stream.
pub(crate) const STREAM: &str = include_str!("stream.json");
