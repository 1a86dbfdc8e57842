//! The description of a test that its attribute writes, and the register of all descriptions.

use std::collections::BTreeMap;
use std::path::Path;

use linkme::distributed_slice;
use memcheck_core::bound::Bound;
use memcheck_core::device::{Family, Need, Request};
use memcheck_core::limits::Layer;
use memcheck_core::shape::Scaling;
use memcheck_core::sweep::FaultSweep;
use memcheck_core::wire::protocol::family_on;

use crate::trial::{Case, Trial};

/// A memory test, as its attribute describes it.
#[derive(Debug)]
#[expect(missing_docs, reason = "written by the attribute's expansion alone")]
pub struct Description {
    pub name: &'static str,
    pub module: &'static str,
    /// Name and value of each parameter, as written in the attribute.
    pub case: &'static [(&'static str, &'static str)],
    pub file: &'static str,
    pub line: u32,
    pub package: &'static str,
    pub manifest_dir: &'static str,
    pub ignored: bool,
    pub should_panic: Option<&'static str>,
    pub deviceless: bool,
    pub need: Need,
    pub limits: fn() -> Layer,
    /// Figure and order of growth, as written in the attribute.
    pub scaling: &'static [(&'static str, &'static str)],
    /// The most live bytes in phases of the body, as written in the attribute.
    pub phases: &'static [(&'static str, u64)],
    pub body: fn(&mut Trial) -> Result<(), String>,
}

/// The memory tests of this binary.
#[distributed_slice]
pub static DESCRIPTIONS: [&'static Description];

/// Parses a bound of the attribute, which has already checked it.
pub fn bound(text: &str) -> Option<Bound> {
    text.parse().ok()
}

/// Parses a `fault_sweep` of the attribute, which has already checked it.
pub fn fault_sweep(text: &str) -> Option<FaultSweep> {
    text.parse().ok()
}

impl Description {
    /// The highest order of growth that each figure may have over the cases of the test. The
    /// attribute has already checked them.
    pub(crate) fn scaling(&self) -> Vec<Scaling> {
        let read = |&(metric, most): &(&str, &str)| {
            Some(Scaling { metric: metric.parse().ok()?, most: most.parse().ok()? })
        };
        self.scaling.iter().filter_map(read).collect()
    }

    /// The most live bytes in each limited phase, by name.
    pub(crate) fn max_peaks(&self) -> BTreeMap<String, u64> {
        self.phases.iter().map(|&(phase, bytes)| (phase.to_owned(), bytes)).collect()
    }

    /// The device of the test in a run on `request`.
    pub(crate) fn device_on(&self, request: &Request) -> Request {
        let family = request.family().unwrap_or(Family::Cpu);
        match family_on(self.deviceless, self.need, family) {
            Family::Cpu => Request::Cpu,
            Family::Cuda => request.clone(),
        }
    }

    /// The path of the test in the test harness: its module without the crate, and its name.
    pub(crate) fn path(&self) -> String {
        match self.module.split_once("::") {
            Some((_, module)) => format!("{module}::{}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// The name of the test's snapshots, without device and extension.
    pub(crate) fn snapshot_stem(&self) -> String {
        format!("{}__{}", self.module.replace("::", "__"), self.name)
    }

    /// The values of the test's case, by name.
    pub(crate) fn case(&self) -> BTreeMap<String, String> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        self.case.iter().map(owned).collect()
    }

    /// The values of the test's case, replaced by `values` if they name the same parameter.
    ///
    /// # Errors
    /// The name of a value that is not a parameter of the test.
    pub(crate) fn case_with<'a>(
        &self,
        values: &'a BTreeMap<String, String>,
    ) -> Result<Case, &'a str> {
        let mut case: Case =
            self.case.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        for (name, value) in values {
            let known = case.iter_mut().find(|(known, _)| known == name);
            known.ok_or(name.as_str())?.1 = value.clone();
        }
        Ok(case)
    }

    /// The folder that the compiler's path of the source file is relative to: the nearest ancestor
    /// of the package's folder in which that file exists.
    pub(crate) fn workspace(&self) -> &Path {
        let manifest_dir = Path::new(self.manifest_dir);
        manifest_dir
            .ancestors()
            .find(|folder| folder.join(self.file).is_file())
            .unwrap_or(manifest_dir)
    }
}
