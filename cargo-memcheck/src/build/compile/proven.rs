//! Builds until every artifact is proven to be made from the present sources: one that cargo calls
//! fresh without such a proof is removed, so that cargo makes it again.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use memcheck_core::input;

use super::cargo::CargoOutput;
use super::{BuildError, directories};
use crate::build::leg::DeviceKind;
use crate::build::provenance::{Cause, Compilers, Records, SourceTree, Stale, check, units};
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
    let failed = |error| BuildError::Records(own.clone(), error);
    let mut records = Records::open(&own).map_err(failed)?;
    let made = [target.as_path(), &intermediate];
    // The target directory can be a link.
    let canonical = |folder: &Path| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mounts = input::read_text(Path::new("/proc/self/mountinfo"), input::OWN);
    let mounts = mounts.unwrap_or_default();
    let is_apart = |folder: &&Path| {
        let (folder, root) = (canonical(folder), canonical(root));
        !folder.starts_with(&root) || is_mounted(&folder, &root, &mounts)
    };
    let is_shared = made.iter().any(is_apart);
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
        notes(&stale).iter().for_each(|note| eprint_line!("{note}"));
        let removed = stale.iter().try_for_each(Stale::remove);
        removed.context("removing what must be built again")?;
        let (again, left) = checked()?;
        if let Some(Stale { name, why, .. }) = left.into_iter().next() {
            return Err(BuildError::Stale(name, why.to_string()).into());
        }
        output = again;
    }
    // A build that failed leaves the records as they were.
    records.write().map_err(failed)?;
    Ok(output)
}

/// True if a directory in the folder of the workspace is another mount, such as a volume of a
/// container, which other checkouts can have at the same path. `mounts` is Linux's list of them.
fn is_mounted(folder: &Path, root: &Path, mounts: &str) -> bool {
    // The fifth word is the place, in which a space is `\040`.
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let mut places = places.map(|place| place.replace("\\040", " "));
    places.any(|place| {
        let place = Path::new(&place);
        place != root && place.starts_with(root) && folder.starts_with(place)
    })
}

/// A line for each reason, with the packages that it is the reason for.
fn notes(stale: &[Stale]) -> Vec<String> {
    let mut reasons: Vec<(&Cause, Vec<&str>)> = Vec::new();
    for Stale { name, why, .. } in stale {
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) if names.contains(&name.as_str()) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let note = |(why, names): (&Cause, Vec<&str>)| {
        let (is, them) = match names.split_last() {
            Some((last, rest @ [_, ..])) => ("are", format!("{} and {last}", rest.join(", "))),
            _ => ("is", names.join("")),
        };
        escape::line(&format!("note: {them} {is} built again, because {why}"))
    };
    reasons.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_inside_the_workspace_is_another_mount() {
        let mounts =
            "36 35 0:1 / /a rw - ext4 x rw\n37 36 0:2 /v /a/my\\040app/target rw - ext4 x rw\n";
        let mounted = |folder: &str| is_mounted(Path::new(folder), Path::new("/a/my app"), mounts);
        assert!(mounted("/a/my app/target") && mounted("/a/my app/target/memcheck/sim"));
        assert!(!mounted("/a/my app/other"));
        // The workspace itself can be a mount.
        assert!(!is_mounted(Path::new("/a/target"), Path::new("/a"), "36 35 0:1 / /a rw\n"));
        let own = input::read_text(Path::new("/proc/self/mountinfo"), input::OWN).unwrap();
        assert!(
            own.lines().all(|line| line.split(' ').nth(4).is_some_and(|it| it.starts_with('/')))
        );
    }

    #[test]
    fn packages_with_one_reason_have_one_line() {
        let stale = |name: &str, path: &str| Stale::example(name, Cause::Changed(path.into()));
        let one = notes(&[stale("app", "a.rs"), stale("app", "a.rs")]);
        let because = "because cargo cannot see whether a.rs has changed since the build";
        assert_eq!(one, [format!("note: app is built again, {because}")]);
        let several = notes(&["x", "y", "z"].map(|name| stale(name, "a.rs")));
        assert_eq!(several, [format!("note: x, y and z are built again, {because}")]);
        assert_eq!(notes(&[stale("x", "a.rs"), stale("y", "b.rs")]).len(), 2);
    }
}
