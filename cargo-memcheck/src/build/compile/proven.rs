//! Builds until every artifact is proven to be made from the present sources: one that cargo calls
//! fresh without such a proof is removed, so that cargo makes it again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;

use super::cargo::CargoOutput;
use super::{BuildError, directories};
use crate::build::leg::DeviceKind;
use crate::build::provenance::{Compilers, Records, SourceTree, Stale, check, units};
use crate::build::workspace::Workspace;
use crate::invocation::options::Options;
use crate::system::error::Failure;
use crate::system::escape;
use crate::system::printing::eprint_line;

/// `run` runs cargo, and its output is not that of a failed build.
pub(super) fn build(
    workspace: &Workspace,
    kind: DeviceKind,
    options: &Options,
    run: impl Fn() -> Result<CargoOutput, Failure>,
) -> Result<CargoOutput, Failure> {
    let root = workspace.root();
    let compilers = Compilers::named(workspace, &options.cargo);
    let target = directories::target_directory(workspace, kind);
    let intermediate = directories::build_directory(workspace, kind);
    let intermediate = intermediate.unwrap_or_else(|| workspace.build_directory().to_owned());
    let own = intermediate.join("memcheck");
    let mut records = Records::open(&own, options.reporting.verbosity)
        .with_context(|| own.display().to_string())?;
    let made = [target.as_path(), &intermediate];
    // The target directory can be a link.
    let canonical = |folder: &Path| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let is_shared = made.iter().any(|folder| !canonical(folder).starts_with(canonical(root)));
    let mut checked = || -> Result<(CargoOutput, Vec<Stale>), Failure> {
        let began = SystemTime::now();
        let output = run()?;
        let units = units(&output.own, &output.scripts, root, &made);
        let stale =
            check(&mut records, &units, SourceTree { root, is_shared, made }, &compilers, began);
        Ok((output, stale))
    };
    let (mut output, stale) = checked()?;
    if !stale.is_empty() {
        let mut names = BTreeSet::new();
        for Stale { name, why, .. } in stale.iter().filter(|stale| names.insert(&stale.name)) {
            let why = escape::line(&why.to_string());
            eprint_line!("note: {name} is built again, because {why}");
        }
        let removed = stale.iter().try_for_each(Stale::remove);
        removed.context("removing what must be built again")?;
        let (again, left) = checked()?;
        if let Some(Stale { name, why, .. }) = left.into_iter().next() {
            return Err(BuildError::Stale(name, why.to_string()).into());
        }
        output = again;
    }
    records.write().with_context(|| own.join("sources.json").display().to_string())?;
    Ok(output)
}
