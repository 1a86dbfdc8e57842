//! The features of the packages that are on for one kind of device only. By default, builds for a
//! GPU have the package's own feature for CUDA, because without it they would run another program
//! than its users do.

mod choice;
mod enabled;
mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use cargo_metadata::{Package, PackageId};

use super::cudarc::CUDARC;
use super::{RUNTIME, TestPackage, Workspace, WorkspaceError};
use crate::build::leg::DeviceKind;
use crate::invocation::options::{FeatureChoice, PackageFeatures};
use crate::invocation::values::CargoOptions;
use choice::OwnFeature;
use enabled::Graph;

pub(super) use entry::FeatureEntry;

/// The features of a package for a kind of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceFeatures {
    pub(crate) names: Vec<String>,
    /// Why these: the flag, the variable or the key that lists them, or the default.
    pub(crate) by: &'static str,
}

/// The origin of a feature that no list names.
const OWN: &str = "the package's own for CUDA; --no-package-cuda leaves it off";

impl TestPackage {
    /// The features that are on for this kind of device, as an argument of `--features`.
    pub(crate) fn own_features(&self, kind: DeviceKind) -> Vec<String> {
        let features = self.features.get(&kind).into_iter().flat_map(|features| &features.names);
        features.map(|feature| qualified(self, feature)).collect()
    }

    /// True if no list of the user names them.
    pub(crate) fn has_own_by_default(&self, kind: DeviceKind) -> bool {
        self.features.get(&kind).is_some_and(|features| features.by == OWN)
    }

    /// For the header of a baseline. `None` if there are none.
    pub(crate) fn feature_fact(&self, kind: DeviceKind) -> Option<String> {
        let names = &self.features.get(&kind)?.names;
        (!names.is_empty()).then(|| names.join(","))
    }
}

/// With the name of the package, so that it means no other selected package. A feature of a
/// dependency has a name already.
fn qualified(package: &TestPackage, feature: &str) -> String {
    match feature.contains('/') {
        true => feature.to_owned(),
        false => format!("{}/{feature}", package.name()),
    }
}

impl Workspace {
    /// Sets the features of `packages` for each of `kinds`. Returns the graph with those for a GPU,
    /// if there are any, and a note for each package whose feature is not clear.
    pub(crate) fn switch_on(
        &self,
        packages: &mut [TestPackage],
        (chosen, kinds): (&PackageFeatures, &[DeviceKind]),
        flags: &CargoOptions,
    ) -> Result<(Option<Self>, Vec<String>), WorkspaceError> {
        let mut notes = Vec::new();
        let graph = Graph::new(self.metadata());
        for &kind in kinds {
            let choice = match kind {
                DeviceKind::Cpu => &chosen.cpu,
                DeviceKind::Sim => &chosen.sim,
                DeviceKind::Cuda => &chosen.cuda,
            };
            let sets: Vec<DeviceFeatures> = match choice {
                FeatureChoice::None => continue,
                FeatureChoice::Listed { features, by } => listed(packages, features, by),
                FeatureChoice::Own => {
                    packages.iter().map(|package| own(&graph, package, &mut notes)).collect()
                }
            };
            if *choice == FeatureChoice::Own {
                self.note_libraries(&graph, packages, &sets, &mut notes);
            }
            for (package, features) in packages.iter_mut().zip(sets) {
                if !features.names.is_empty() {
                    package.features.insert(kind, features);
                }
            }
        }
        let on_gpu = packages.iter().flat_map(|package| {
            let gpus = [DeviceKind::Sim, DeviceKind::Cuda];
            gpus.into_iter().flat_map(|kind| package.own_features(kind))
        });
        let on_gpu: Vec<String> = on_gpu.collect();
        if on_gpu.is_empty() {
            return Ok((None, notes));
        }
        let mut with = flags.clone();
        with.features.extend(on_gpu);
        let with = Self::load(&with)?;
        // A feature can add a crate of candle, which needs its own feature of the runtime.
        for package in packages {
            let again = with.members().into_iter().find(|it| it.id == package.package.id);
            if let Some(again) = again.and_then(|again| with.test_package(again)) {
                package.candle_features = again.candle_features;
            }
        }
        Ok((Some(with), notes))
    }
}

impl Workspace {
    /// A package of tests has no feature of its own, but its library may have one. To switch that on
    /// is left to the user, because the tests do not name it.
    fn note_libraries<'a>(
        &'a self,
        graph: &Graph<'a>,
        packages: &[TestPackage],
        sets: &[DeviceFeatures],
        notes: &mut Vec<String>,
    ) {
        let is_on = |library: &PackageId| {
            let mut selected = packages.iter().zip(sets);
            selected.any(|(package, set)| package.package.id == *library && !set.names.is_empty())
        };
        for (package, set) in packages.iter().zip(sets) {
            let Some(known) = graph.package(&package.package.id) else { continue };
            if !set.names.is_empty() || choice::choose(graph, known) != OwnFeature::None {
                continue;
            }
            let libraries = self.members().into_iter().filter(|member| {
                graph.uses(known, member) && !is_on(&member.id) && !is_switched_by_runtime(member)
            });
            for library in libraries {
                if let OwnFeature::Chosen(feature) = choice::choose(graph, library) {
                    let name = &library.name;
                    let note = format!(
                        "feature `{feature}` of {name}, which {} uses, is off in the build for a \
                         GPU: `--features-gpu {name}/{feature}` switches it on, and \
                         `--no-package-cuda` leaves out this note",
                        package.name()
                    );
                    push_new(notes, note);
                }
            }
        }
    }
}

/// The runtime, and the crates of candle whose CUDA it switches on.
fn is_switched_by_runtime(member: &Package) -> bool {
    let name = member.name.as_str();
    name == RUNTIME || name.starts_with("candle-")
}

fn own<'a>(graph: &Graph<'a>, package: &TestPackage, notes: &mut Vec<String>) -> DeviceFeatures {
    let none = DeviceFeatures { names: Vec::new(), by: OWN };
    let Some(known) = graph.package(&package.package.id) else { return none };
    match choice::choose(graph, known) {
        OwnFeature::None => none,
        OwnFeature::Chosen(name) => DeviceFeatures { names: vec![name], ..none },
        OwnFeature::Unclear { features, why } => {
            push_new(notes, unclear(package.name(), &features, &why));
            none
        }
    }
}

/// Legs of several kinds lead to the same notes.
fn push_new(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

fn unclear(package: &str, features: &[String], why: &str) -> String {
    let quoted: Vec<String> = features.iter().map(|feature| format!("`{feature}`")).collect();
    let (what, is) = match features.len() {
        1 => ("feature", "is"),
        _ => ("features", "are"),
    };
    let first = features.first().map_or("", String::as_str);
    format!(
        "{what} {} of {package} {is} off in the build for a GPU, because {why}: \
         `--features-gpu {first}` switches {} on, and `--no-package-cuda` leaves out this note",
        quoted.join(", "),
        if features.len() == 1 { "it".to_owned() } else { format!("`{first}`") },
    )
}

/// A feature goes to each package that has it, or that it names. Without such a package it goes to
/// all, so that cargo decides.
fn listed(packages: &[TestPackage], features: &[String], by: &'static str) -> Vec<DeviceFeatures> {
    let mut sets = vec![DeviceFeatures { names: Vec::new(), by }; packages.len()];
    for feature in features {
        let of = |package: &TestPackage| -> Option<String> {
            if package.package.features.contains_key(feature) {
                return Some(feature.clone());
            }
            let (name, own) = feature.split_once('/')?;
            (name == package.name()).then(|| own.to_owned())
        };
        let owners: BTreeMap<usize, String> = packages
            .iter()
            .enumerate()
            .filter_map(|(number, package)| Some((number, of(package)?)))
            .collect();
        for (number, set) in sets.iter_mut().enumerate() {
            match owners.get(&number) {
                Some(own) => set.names.push(own.clone()),
                None if owners.is_empty() => set.names.push(feature.clone()),
                None => {}
            }
        }
    }
    for set in &mut sets {
        set.names.sort();
        set.names.dedup();
    }
    sets
}
