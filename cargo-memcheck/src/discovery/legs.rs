//! Builds and lists the legs of a session one after another, so that the first can run before the
//! second is built. Legs of one kind share the build and the list.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use crate::build::compile::{self, BuildGoal, Built};
use crate::build::leg::{DeviceKind, Leg};
use crate::build::toolchain::{Toolkit, gpu};
use crate::build::workspace::TestPackage;
use crate::discovery::archive::Unpacked;
use crate::discovery::listing::{self, DiscoverError, ListedExecutable};
use crate::discovery::session::{LegTests, Session, TestSource};
use crate::invocation::options::Options;
use crate::system::error::Failure;
use crate::system::files;
use crate::system::printing::eprint_line;

#[derive(Debug)]
pub(crate) struct Legs<'a> {
    session: &'a Session,
    toolkit: Option<Toolkit>,
    /// True if the build for the CPU uses the toolkit.
    cpu_has_toolkit: bool,
    built: BTreeMap<DeviceKind, Built>,
    carried: BTreeMap<DeviceKind, Vec<ListedExecutable>>,
}

impl<'a> Legs<'a> {
    /// An archive is listed at once, because an incomplete one must fail before the run begins.
    pub(crate) fn open(session: &'a Session) -> Result<Self, Failure> {
        let Session { workspace, packages, .. } = session;
        let has_kind = |kind| session.legs.iter().any(|leg| leg.kind == kind);
        let is_built = matches!(session.source, TestSource::Workspace);
        let simulated = is_built && has_kind(DeviceKind::Sim);
        // Without a CUDA compiler, the build scripts for the CPU find the simulated toolkit, too.
        let cpu_has_toolkit = is_built
            && has_kind(DeviceKind::Cpu)
            && workspace.always_has_cuda(packages)
            && gpu::nvcc().is_err();
        let toolkit = match simulated || cpu_has_toolkit {
            true => {
                Some(Toolkit::prepare(workspace.toolkit_directory(), workspace.cuda_version())?)
            }
            false => None,
        };
        if is_built && session.legs.iter().any(|leg| leg.kind != DeviceKind::Cpu) {
            for warning in session.graph_of_gpu().warnings_of_cudarc(packages) {
                eprint_line!("warning: {warning}");
            }
        }
        if is_built && has_kind(DeviceKind::Cuda) {
            for warning in workspace.warnings_of_loaded_cudarc(packages) {
                eprint_line!("warning: {warning}");
            }
        }
        if simulated && let Some(Err(why)) = toolkit.as_ref().map(|toolkit| &toolkit.nvml) {
            eprint_line!("note: no simulated NVML, `device_used` is not available: {why}");
        }
        let (built, carried) = (BTreeMap::new(), BTreeMap::new());
        let mut legs = Self { session, toolkit, cpu_has_toolkit, built, carried };
        if let TestSource::Archive(archive) = &session.source {
            for leg in &session.legs {
                legs.built.insert(leg.kind, archive.built(leg.kind, &session.packages));
                let tests = legs.tests(leg)?;
                listing::all_listed(&tests.carried)?;
                archive.check(leg.kind, &tests.carried)?;
            }
        }
        Ok(legs)
    }

    pub(crate) fn nvml(&self) -> Option<PathBuf> {
        let of_toolkit = || self.toolkit.as_ref().and_then(|toolkit| toolkit.nvml.clone().ok());
        self.session.source.archive().map_or_else(of_toolkit, Unpacked::nvml)
    }

    pub(crate) fn is_known(&self, leg: &Leg) -> bool {
        self.carried.contains_key(&leg.kind)
    }

    pub(crate) fn build(
        &mut self,
        leg: &Leg,
        packages: &[TestPackage],
        goal: BuildGoal<'_>,
    ) -> Result<Built, Failure> {
        if let Some(built) = self.built.get(&leg.kind) {
            return Ok(built.clone());
        }
        let Session { workspace, options, .. } = self.session;
        let toolkit = self.toolkit.as_ref().filter(|_| match leg.kind {
            DeviceKind::Sim => true,
            DeviceKind::Cpu => self.cpu_has_toolkit,
            DeviceKind::Cuda => false,
        });
        let subject = self.described(leg, goal);
        let build = (leg.kind, subject.as_str());
        let built = compile::build(workspace, packages, options, goal, build, toolkit)?;
        self.built.insert(leg.kind, built.clone());
        Ok(built)
    }

    /// `the tests for sim:h200 (leg 1 of 2)`.
    fn described(&self, leg: &Leg, goal: BuildGoal<'_>) -> String {
        let legs = &self.session.legs;
        let number = legs.iter().position(|known| known == leg).filter(|_| legs.len() > 1);
        let place = number.map(|number| format!(" (leg {} of {})", number + 1, legs.len()));
        format!("{} for {}{}", goal.described(), leg.name(), place.unwrap_or_default())
    }

    pub(crate) fn tests(&mut self, leg: &Leg) -> Result<LegTests, Failure> {
        let packages = &self.session.packages;
        let mut built = self.build(leg, packages, BuildGoal::Tests)?;
        let carried = match self.carried.get(&leg.kind) {
            Some(carried) => carried.clone(),
            None => {
                let mut carried = self.list(leg, &built)?;
                let foreign = self.foreign(&carried);
                if !foreign.is_empty() {
                    built = self.build_again(leg, &foreign)?;
                    carried = self.list(leg, &built)?;
                    self.refuse_foreign(&mut carried);
                }
                carried
            }
        };
        self.carried.insert(leg.kind, carried.clone());
        Ok(LegTests { leg: leg.clone(), built, carried })
    }

    /// The executables with a test of another checkout, whose cargo has written them into the same
    /// target directory. The tests of an archive were built in another folder.
    fn foreign<'l>(&self, carried: &'l [ListedExecutable]) -> Vec<&'l ListedExecutable> {
        let is_built = self.session.source.archive().is_none();
        let is_foreign = |listed: &&ListedExecutable| {
            let own = self.session.packages[listed.binary.package].folder();
            is_built && listed.foreign_folder(own).is_some()
        };
        carried.iter().filter(is_foreign).collect()
    }

    /// Cargo builds an executable again if it is missing.
    fn build_again(&mut self, leg: &Leg, foreign: &[&ListedExecutable]) -> Result<Built, Failure> {
        for executable in foreign {
            eprint_line!(
                "note: {} is built again, because it is that of another checkout with this target \
                 directory",
                executable.binary.id
            );
            let path = executable.binary.path();
            files::remove(path).with_context(|| path.display().to_string())?;
        }
        // Otherwise `build` would return the former one.
        self.built.remove(&leg.kind);
        self.build(leg, &self.session.packages, BuildGoal::Tests)
    }

    fn refuse_foreign(&self, carried: &mut [ListedExecutable]) {
        for listed in carried {
            let own = self.session.packages[listed.binary.package].folder();
            if let Some(folder) = listed.foreign_folder(own) {
                let error = DiscoverError::OtherCheckout(listed.binary.id.clone(), folder);
                listed.tests.clear();
                listed.unlisted = Some(Arc::new(error));
            }
        }
    }

    fn list(&self, leg: &Leg, built: &Built) -> Result<Vec<ListedExecutable>, Failure> {
        let Session { packages, options, .. } = self.session;
        let Options { scheduling, search, .. } = options;
        let archive = self.session.source.archive();
        if let Some(listed) = archive.and_then(|archive| archive.listed(leg.kind, built)) {
            return Ok(listed?);
        }
        let mut carried =
            listing::discover(&built.binaries, packages, leg, &scheduling.launcher, search);
        for listed in carried.iter_mut().filter(|_| archive.is_some()) {
            let error = listed.unlisted.take().and_then(Arc::into_inner);
            listed.unlisted = error.map(|error| Arc::new(error.of_archive()));
        }
        for warning in carried.iter().filter_map(|carried| carried.warning.as_ref()) {
            eprint_line!("warning: {warning}");
        }
        Ok(carried)
    }
}

/// # Errors
/// Also if the tests of an executable are not known.
pub(crate) fn discover(session: &Session) -> Result<(Option<PathBuf>, Vec<LegTests>), Failure> {
    let mut legs = Legs::open(session)?;
    let tests: Vec<LegTests> =
        session.legs.iter().map(|leg| legs.tests(leg)).collect::<Result<_, _>>()?;
    tests.iter().try_for_each(|tests| listing::all_listed(&tests.carried))?;
    Ok((legs.nvml(), tests))
}
