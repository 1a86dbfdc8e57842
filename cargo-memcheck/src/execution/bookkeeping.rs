//! Findings about the workspace: targets that were not built, baselines that belong to no test, and
//! overrides that match no test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::judgement::finding::{Code, Finding, Level};
use memcheck_core::judgement::location;
use memcheck_core::request::config::{Override, Subject};
use memcheck_core::wire::protocol::Entry;

use crate::baselines::{self, SnapshotFile, SourceFunctions};
use crate::build::workspace::TestPackage;
use crate::discovery::listing::ListedExecutable;
use crate::discovery::session::{LegTests, Session, TestSource};
use crate::execution::note::Note;
use crate::invocation::options::baselines_flag;
use crate::invocation::printed::PrintedCommand;

/// `legs` must contain the tests of all legs.
pub(crate) fn notes(session: &Session, legs: &[LegTests]) -> std::io::Result<Vec<Note>> {
    let level = |code| session.options.levels.of(code);
    let mut notes: Vec<Note> = not_built(legs)
        .into_iter()
        .map(|(package, finding)| Note {
            package,
            path: None,
            finding,
            level: level(Code::NotBuilt),
        })
        .collect();
    let prune = PrintedCommand::PruneBaselines.quoted(baselines_flag(session.roots()));
    for (package, file) in stale(session, legs)? {
        let shown = file.path.strip_prefix(session.workspace.root()).unwrap_or(&file.path);
        let finding =
            Finding::new(Code::StaleBaseline, format!("{} belongs to no test", shown.display()))
                .hint(match session.source {
                    TestSource::Archive(_) => {
                        format!("{prune} removes it on a machine with the sources")
                    }
                    TestSource::Workspace => format!("{prune} removes it"),
                });
        let level = level(Code::StaleBaseline);
        notes.push(Note { package, path: Some(file.path), finding, level });
    }
    notes.extend(unmatched_overrides(session, legs));
    notes.retain(|note| note.level != Level::Allow);
    Ok(notes)
}

fn not_built(legs: &[LegTests]) -> Vec<(String, Finding)> {
    let mut seen = BTreeSet::new();
    let targets = legs.iter().flat_map(|leg| &leg.built.not_built);
    targets
        // Several legs can lack the same target.
        .filter(|target| seen.insert((&target.package, &target.target)))
        .map(|target| {
            let features = target.required.join(",");
            let plural = if target.required.len() == 1 { "" } else { "s" };
            let finding = Finding::new(
                Code::NotBuilt,
                format!(
                    "test target `{}` of {} was not built: it needs the feature{plural} {features}",
                    target.target, target.package
                ),
            )
            .hint(format!("--features {features}"));
            (target.package.clone(), finding)
        })
        .collect()
}

/// Checks a package and a family only if all of their tests were listed, and shared sources only if
/// those of every package were.
pub(crate) fn stale(
    session: &Session,
    legs: &[LegTests],
) -> std::io::Result<Vec<(String, SnapshotFile)>> {
    if session.names_targets() {
        return Ok(Vec::new());
    }
    let workspace = &session.workspace;
    let (known, places) = (known(session, legs), places(session, legs));
    // A file is counted for the innermost folder only. In a source tree the search for files ends
    // at the manifest of the next package, but an archive has no manifests.
    let innermost = |file: &SnapshotFile| {
        let path = session.roots().in_workspace(&file.path);
        let around = places.iter().filter(|(_, folder, _)| path.starts_with(folder));
        around.map(|(_, folder, _)| folder.as_os_str().len()).max()
    };

    let mut stale = Vec::new();
    for (name, folder, families) in &places {
        if families.is_empty() {
            continue;
        }
        let files = baselines::accepted(session.roots(), folder, workspace.target_directory())?;
        stale.extend(
            files
                .into_iter()
                .filter(|file| innermost(file) == Some(folder.as_os_str().len()))
                .filter(|file| file.family.is_some_and(|family| families.contains(&family)))
                .filter(|file| !known.contains(&file.path))
                .filter(|file| !is_still_written(file, session.written(file), &known))
                .map(|file| ((*name).to_owned(), file)),
        );
    }
    Ok(stale)
}

/// With the families whose tests were all listed.
fn places<'a>(
    session: &'a Session,
    legs: &[LegTests],
) -> Vec<(&'a str, PathBuf, BTreeSet<Family>)> {
    let mut places: Vec<(&str, PathBuf, BTreeSet<Family>)> = Vec::new();
    for (index, package) in session.packages.iter().enumerate() {
        // False if the tests of one executable could not be listed.
        let said_all = |leg: &LegTests| {
            let carried = leg.carried.iter().filter(|carried| carried.binary.package == index);
            carried.into_iter().all(ListedExecutable::is_complete)
        };
        let of_package = |leg: &&LegTests| {
            said_all(leg)
                && leg.built.not_built.iter().all(|target| target.package != package.name())
        };
        let families = legs.iter().filter(of_package).map(|leg| leg.leg.family()).collect();
        places.push((package.name(), session.baselines_of(package), families));
    }
    let shared = places
        .iter()
        .map(|(_, _, families)| families.clone())
        .reduce(|all, families| &all & &families)
        // A package that is not selected can use the shared sources too.
        .filter(|_| session.workspace.test_packages().len() == session.packages.len())
        .filter(|_| session.workspace.is_virtual());
    places.extend(
        shared.map(|families| ("workspace", session.workspace.root().to_owned(), families)),
    );
    places
}

fn known(session: &Session, legs: &[LegTests]) -> BTreeSet<PathBuf> {
    let roots = session.roots();
    let of_leg = |leg: &LegTests| -> Vec<PathBuf> {
        let family = leg.leg.family();
        let laws = leg.carried.iter().flat_map(|carried| {
            memcheck_core::runs::relations::law_baselines(roots, &carried.tests, family)
        });
        leg.carried
            .iter()
            .flat_map(|carried| &carried.tests)
            .filter(|entry| entry.need.admits(family))
            .map(|entry| {
                let family = entry.family_on(family);
                location::baseline(roots, &entry.file, &entry.snapshot, family)
            })
            .chain(laws)
            .collect()
    };
    legs.iter().flat_map(of_leg).collect()
}

/// Then a `cfg` leaves the test out of this build. A case also counts by its function, unless the
/// build has other cases of it.
fn is_still_written(
    file: &SnapshotFile,
    written: SourceFunctions,
    known: &BTreeSet<PathBuf>,
) -> bool {
    written.test || (!has_sibling(&file.path, known) && written.function)
}

fn has_sibling(path: &Path, known: &BTreeSet<PathBuf>) -> bool {
    let function = |path: &Path| {
        let name = path.file_name()?.to_str()?.rsplit_once("__")?.0.to_owned();
        Some(path.with_file_name(name))
    };
    let own = function(path);
    own.is_some() && known.iter().any(|known| function(known) == own)
}

pub(crate) fn unmatched_overrides(session: &Session, legs: &[LegTests]) -> Vec<Note> {
    let level = session.options.levels.of(Code::UnmatchedOverride);
    if level == Level::Allow {
        return Vec::new();
    }
    let packages = session.workspace.test_packages();
    let listed: Vec<PackageTests<'_>> =
        packages.iter().map(|package| PackageTests::of(session, legs, package)).collect();
    let configuration = &session.options.configuration;
    let note = |number| Note {
        package: "workspace".to_owned(),
        // An archive is extracted to a different folder in each shard, so its path is omitted.
        // Otherwise the shards would disagree.
        path: configuration.path.clone().filter(|_| session.source.archive().is_none()),
        finding: Finding::new(
            Code::UnmatchedOverride,
            format!("[[override]] {number} of the configuration matches no test"),
        )
        .hint("`cargo memcheck list` shows the names of tests; the glob must match a whole name"),
        level,
    };
    matching_none(&configuration.config.overrides, &listed).into_iter().map(note).collect()
}

struct PackageTests<'a> {
    name: &'a str,
    /// All tests of the package were listed.
    whole: bool,
    tests: Vec<(&'a str, Family)>,
}

impl<'a> PackageTests<'a> {
    fn of(session: &Session, legs: &'a [LegTests], package: &'a TestPackage) -> Self {
        let name = package.name();
        let selected = session.packages.iter().position(|selected| selected.name() == name);
        let carried = || {
            let all = legs.iter().flat_map(|leg| &leg.carried);
            all.filter(|carried| Some(carried.binary.package) == selected)
        };
        let not_built = |leg: &LegTests| leg.built.not_built.iter().any(|t| t.package == name);
        let whole = selected.is_some()
            && !session.names_targets()
            && !legs.iter().any(not_built)
            && carried().all(ListedExecutable::is_complete);
        // Both families are included, because an override for a device that was not requested is
        // not a mistake.
        let families = [Family::Cpu, Family::Cuda].into_iter();
        let on = |entry: &'a Entry| {
            let admitted = families.clone().filter(|family| entry.need.admits(*family));
            admitted.map(|family| (entry.name.as_str(), entry.family_on(family)))
        };
        Self { name, whole, tests: carried().flat_map(|c| &c.tests).flat_map(on).collect() }
    }
}

/// 1-based. Only if all tests that an override can apply to were listed, because one of the others
/// could match.
fn matching_none(overrides: &[Override], packages: &[PackageTests<'_>]) -> Vec<u32> {
    let is_for =
        |o: &Override, package: &PackageTests<'_>| o.package().is_none_or(|p| p == package.name);
    let matches = |o: &Override, package: &PackageTests<'_>| {
        package
            .tests
            .iter()
            .any(|&(test, family)| o.matches(Subject { package: package.name, test, family }))
    };
    let matches_none = |o: &Override| {
        let mut could = packages.iter().filter(|package| is_for(o, package));
        could.all(|package| package.whole && !matches(o, package))
    };
    (1..).zip(overrides).filter(|(_, o)| matches_none(o)).map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use memcheck_core::request::config::Config;

    use super::*;

    #[test]
    fn an_override_matches_no_test_only_if_all_its_tests_were_listed() {
        let text = "[[override]]\ntest = \"llama::*\"\n[[override]]\ntest = \"gone\"\n\
                    [[override]]\npackage = \"alpha\"\ntest = \"gone\"\n\
                    [[override]]\npackage = \"alhpa\"\n\
                    [[override]]\ntest = \"parse\"\ndevice = \"cuda\"\n\
                    [[override]]\npackage = \"beta\"\n";
        let overrides = Config::parse(text).unwrap().overrides;
        let alpha = |whole| PackageTests {
            name: "alpha",
            whole,
            tests: vec![("llama::kv", Family::Cuda), ("parse", Family::Cpu)],
        };
        let beta = |whole| PackageTests { name: "beta", whole, tests: vec![] };
        let none = |packages: &[PackageTests<'_>]| matching_none(&overrides, packages);
        assert_eq!(none(&[alpha(true), beta(true)]), [2, 3, 4, 5, 6]);
        // Overrides 2, 5 and 6 can apply to tests of the other package.
        assert_eq!(none(&[alpha(true), beta(false)]), [3, 4]);
        assert_eq!(none(&[alpha(false), beta(true)]), [4, 6]);
        assert_eq!(none(&[alpha(false), beta(false)]), [4]);
    }
}
