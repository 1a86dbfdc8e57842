//! A place that holds bytes, as a finding reports it.

use serde::{Deserialize, Serialize};

use crate::growth::survivors::Pattern;
use crate::measurement::stack::Frame;

/// A place that holds bytes: a call site, or a block size if the call site is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Site {
    /// The innermost function of the program under test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The line of the dependency that allocated, if the program's line called one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The path of `tracing` spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The operation of candle that allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Shape and element type of the tensors, if known: `[8,128] f32`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// Size of one block in bytes, if all have the same size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Bytes that the place holds at the end or at the peak.
    pub bytes: u64,
    /// Number of blocks that the place holds, or of its allocations.
    pub count: u64,
    /// Bytes that the place adds in an iteration; 0 if the finding is not about growth.
    pub bytes_per_iteration: u64,
    /// The kind of growth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The kind of growth with its figures, or the purpose of the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The call stack without frames of plumbing, the innermost frame first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
    /// The number of outermost frames of [`Self::stack`] that are outside of an iteration. Not in
    /// files, because only the headline of a finding depends on it.
    #[serde(skip)]
    pub outside: usize,
}

impl Site {
    /// The place as `src/model.rs:42`, or the innermost function without a line of the program.
    pub fn place(&self) -> Option<String> {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let file = self.file.as_ref().map(|file| format!("{file}{line}"));
        file.or_else(|| self.stack.first().map(|frame| frame.shown()))
    }
}

/// The line of a dependency.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Via {
    /// The source file, beginning with the folder of the package's version.
    pub file: String,
    /// The line number.
    pub line: u32,
    /// The function that has the line.
    pub function: String,
}
