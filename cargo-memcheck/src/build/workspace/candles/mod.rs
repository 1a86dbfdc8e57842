//! Several copies of candle-core in one dependency graph. Their types differ, so that a test cannot
//! use the runtime's device with a model of another copy, and memory of the others has no names.

mod source;
#[cfg(test)]
mod tests;
mod unify;

use cargo_metadata::{Package, PackageId};
use memcheck_core::measurement::cargo_lock::CANDLE;

use super::{RUNTIME, TestPackage, Workspace};

pub(crate) use source::CandleSource;

/// The copies of candle-core of a package that are not the runtime's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherCandle {
    package: String,
    /// The version and the source of the runtime's copy.
    of_runtime: String,
    /// The same of the other copies.
    others: Vec<String>,
    /// True if the sources of the workspace use others than the runtime's only. Then the tensors of
    /// the program are not those that the runtime knows.
    pub(crate) is_only: bool,
    /// The steps to a single copy.
    steps: Vec<String>,
}

impl OtherCandle {
    pub(crate) fn message(&self) -> String {
        let Self { package, of_runtime, others, is_only, .. } = self;
        let others = others.join(" and ");
        match is_only {
            true => format!(
                "{package} and {RUNTIME} use different copies of {CANDLE}, whose types differ: \
                 {package} has {others}, and {RUNTIME} has {of_runtime}"
            ),
            false => format!(
                "{package} has several copies of {CANDLE}, of which only that of {RUNTIME} is \
                 measured: {of_runtime}, beside {others}"
            ),
        }
    }

    pub(crate) fn hint(&self) -> String {
        self.steps.join("\n")
    }
}

impl Workspace {
    /// For each package that reaches a copy of candle-core which is not the runtime's.
    pub(crate) fn other_candles(&self, packages: &[TestPackage]) -> Vec<OtherCandle> {
        packages.iter().filter_map(|package| self.other_candle(package)).collect()
    }

    fn other_candle(&self, package: &TestPackage) -> Option<OtherCandle> {
        let runtime = self.dependency(&package.package.id, RUNTIME)?;
        let own = self.dependency(&runtime.id, CANDLE)?;
        let program = self.reached_by_program(&package.package.id);
        let is_other = |package: &&Package| package.name.as_str() == CANDLE && package.id != own.id;
        let others: Vec<&Package> = program.iter().copied().filter(is_other).collect();
        let first = *others.first()?;
        let described =
            |candle: &Package| format!("{} of {}", candle.version, CandleSource::of(candle));
        let named = self.named_by_sources(&program);
        let is_only = !named.is_empty() && !named.contains(&&own.id);
        let steps = unify::steps(self, runtime, (own, first), &program);
        Some(OtherCandle {
            package: package.name().to_owned(),
            of_runtime: described(own),
            others: others.iter().copied().map(described).collect(),
            is_only,
            steps,
        })
    }

    /// The copies of candle-core whose types the members of the workspace among `program` use: their
    /// own dependencies on candle's crates lead to them.
    fn named_by_sources<'a>(&'a self, program: &[&'a Package]) -> Vec<&'a PackageId> {
        let members = program.iter().filter(|it| self.metadata.workspace_members.contains(&it.id));
        let used = members.flat_map(|member| {
            let is_used = |package: &&&Package| {
                package.name.starts_with("candle-") && self.uses(&member.id, &package.id)
            };
            // The workspace can be that of candle itself.
            program.iter().filter(is_used).chain([member]).copied().collect::<Vec<_>>()
        });
        let core = |package: &'a Package| match package.name.as_str() {
            CANDLE => Some(package),
            name if name.starts_with("candle-") => self.dependency(&package.id, CANDLE),
            _ => None,
        };
        used.filter_map(core).map(|package| &package.id).collect()
    }

    fn uses(&self, package: &PackageId, other: &PackageId) -> bool {
        let mut nodes = self.metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        nodes.any(|node| node.id == *package && node.dependencies.contains(other))
    }

    /// The packages that are built for a package, without those that only the runtime needs.
    fn reached_by_program(&self, root: &PackageId) -> Vec<&Package> {
        self.reachable_without(root, |id| self.is_named(id, RUNTIME))
    }

    fn is_named(&self, id: &PackageId, name: &str) -> bool {
        self.metadata.packages.iter().any(|it| it.id == *id && it.name.as_str() == name)
    }
}
