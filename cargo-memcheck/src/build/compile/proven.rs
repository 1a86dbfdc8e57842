//! Builds until every artifact is proven to be made from the present sources: a package of which
//! cargo calls another artifact fresh is cleaned and built again.

use std::process::Command;
use std::time::SystemTime;

use anyhow::Context;
use cargo_metadata::PackageId;

use super::cargo::CargoOutput;
use super::{BuildError, directories};
use crate::build::leg::DeviceKind;
use crate::build::provenance::{Checkout, Records, Stale, check, units};
use crate::build::workspace::{Workspace, cargo};
use crate::invocation::values::CargoOptions;
use crate::system::error::Failure;
use crate::system::escape;
use crate::system::printing::eprint_line;
use crate::system::process::{self, ShortRun};

/// `run` runs cargo, and its output is not that of a failed build.
pub(super) fn build(
    workspace: &Workspace,
    flags: &CargoOptions,
    kind: DeviceKind,
    run: impl Fn() -> Result<CargoOutput, Failure>,
) -> Result<CargoOutput, Failure> {
    let root = workspace.root();
    let target = directories::target_directory(workspace, kind);
    let intermediate = directories::build_directory(workspace, kind);
    let intermediate = intermediate.unwrap_or_else(|| workspace.build_directory().to_owned());
    let own = intermediate.join("memcheck");
    let mut records = Records::open(&own).with_context(|| own.display().to_string())?;
    let made = [target.as_path(), &intermediate];
    let is_shared = made.iter().any(|directory| !directory.starts_with(root));
    let mut checked = || -> Result<(CargoOutput, Vec<Stale>), Failure> {
        let began = SystemTime::now();
        let output = run()?;
        let units = units(&output.own, &output.scripts, root, &made);
        let stale = check(&mut records, &units, Checkout { root, is_shared }, began);
        Ok((output, stale))
    };
    let (mut output, stale) = checked()?;
    if !stale.is_empty() {
        for Stale { name, why, .. } in &stale {
            let why = escape::line(&why.to_string());
            eprint_line!("note: {name} is built again, because {why}");
        }
        let packages: Vec<_> = stale.iter().map(|stale| &stale.package).collect();
        clean(workspace, flags, kind, &packages)?;
        let (again, left) = checked()?;
        if let Some(Stale { name, why, .. }) = left.into_iter().next() {
            return Err(BuildError::Stale(name, why.to_string()).into());
        }
        output = again;
    }
    records.write().with_context(|| own.display().to_string())?;
    Ok(output)
}

/// Removes what cargo has made of packages.
pub(crate) fn clean(
    workspace: &Workspace,
    flags: &CargoOptions,
    kind: DeviceKind,
    packages: &[&PackageId],
) -> Result<(), Failure> {
    let mut command = Command::new(cargo());
    command.arg("clean").args(flags.for_clean());
    for package in packages {
        command.arg("--package").arg(&package.repr);
    }
    directories::set(&mut command, workspace, kind);
    let output = process::short(&command, ShortRun::TRUSTED).map_err(BuildError::Cargo)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(BuildError::Clean(why).into());
    }
    Ok(())
}
