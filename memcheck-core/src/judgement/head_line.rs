//! A line of the program that a finding names.

use serde::{Deserialize, Serialize};

/// A line of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadLine {
    /// The source file.
    pub file: String,
    /// The line number.
    pub line: u32,
    /// The function that has the line; `None` if only a file and a line are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
}
