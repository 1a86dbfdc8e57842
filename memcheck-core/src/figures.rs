//! Exact integers, by memory space and name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::space::Space;

/// Figures of one run of a test, as a baseline keeps them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<Space, BTreeMap<String, u64>>);
