//! The update of dependencies that a comparison measured.

use memcheck_core::size::counted;
use serde::Serialize;

use crate::execution::lock_file::PackageChange;

/// The most updates that are a part of the name of the head.
const NAMED: usize = 3;

#[derive(Debug, Clone)]
pub(crate) struct UpdateReport {
    /// The updates as they were typed.
    pub(crate) typed: Vec<String>,
    /// The packages with these names whose version changed.
    pub(crate) requested: Vec<PackageChange>,
    /// Other packages whose version changed along.
    pub(crate) along: Vec<PackageChange>,
}

#[derive(Debug, Serialize)]
pub(super) struct UpdatedPackage<'a> {
    #[serde(flatten)]
    change: &'a PackageChange,
    requested: bool,
}

impl UpdateReport {
    /// True if the lock file is the same after the update.
    pub(super) fn is_empty(&self) -> bool {
        self.requested.is_empty() && self.along.is_empty()
    }

    /// `pool 0.1.2 and ring 1.1.0`, the new versions, for the name of the head.
    pub(crate) fn described(&self) -> String {
        let version = |change: &PackageChange| match &change.to {
            Some(to) => format!("{} {to}", change.package),
            None => format!("no {}", change.package),
        };
        let names: Vec<String> = match self.requested.len() {
            0 => self.typed.clone(),
            _ => self.requested.iter().map(version).collect(),
        };
        if names.len() > NAMED {
            return counted(names.len() as u64, "update", "updates");
        }
        names.join(" and ")
    }

    /// Each change, with the word that introduces it.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&'static str, &PackageChange)> {
        let requested = self.requested.iter().map(|change| ("updated", change));
        requested.chain(self.along.iter().map(|change| ("also changed", change)))
    }

    /// All changes, for JSON.
    pub(super) fn packages(&self) -> Vec<UpdatedPackage<'_>> {
        let requested = self.requested.iter().map(|change| (change, true));
        let all = requested.chain(self.along.iter().map(|change| (change, false)));
        all.map(|(change, requested)| UpdatedPackage { change, requested }).collect()
    }
}
