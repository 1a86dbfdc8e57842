//! The figures of a test run: exact integers by memory space and name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::space::Space;

/// The figures of one run of a test, in the form that a baseline keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<Space, BTreeMap<String, u64>>);
