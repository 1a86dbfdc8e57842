//! Collects the pending snapshots that a command line selects.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::location::Roots;

use super::{SnapshotError, SnapshotFile, check_target, pending, pending_below};
use crate::build::workspace::Workspace;
use crate::invocation::cli::SnapshotArgs;
use crate::invocation::options::baselines;
use crate::invocation::values::{CargoOptions, Verbosity};
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

/// Without a named package, the snapshots next to sources that several packages share are included.
pub(crate) fn select_pending(
    args: &SnapshotArgs,
) -> Result<(Workspace, Vec<SnapshotFile>), Failure> {
    let manifest_path = args.manifest_path.clone();
    let workspace = Workspace::load(&CargoOptions { manifest_path, ..CargoOptions::default() })?;
    let baselines = baselines(&args.baselines, workspace.root())?;
    let roots = Roots::new(workspace.root(), baselines.as_deref());
    let folders: Vec<&Path> = workspace
        .named(&args.packages)?
        .into_iter()
        .filter_map(|package| package.manifest_path.parent())
        .map(|folder| folder.as_std_path())
        .collect();
    let shares = args.packages.is_empty() && workspace.is_virtual();
    let mut files = Vec::new();
    match &args.from {
        Some(from) if !from.is_dir() => {
            return Err(SnapshotError::NotADirectory(from.clone()).into());
        }
        Some(from) => {
            for file in below(from, roots.baselines)? {
                // If the folder of the sources does not exist, the snapshot belongs to another
                // workspace.
                let place = roots.in_workspace(&file.target);
                let of_sources = place.parent().and_then(Path::parent);
                let is_shared = shares && of_sources.is_some_and(Path::is_dir);
                if is_shared || folders.iter().any(|folder| place.starts_with(folder)) {
                    files.push(file);
                } else if args.packages.is_empty() {
                    return Err(SnapshotError::OtherWorkspace(file.path).into());
                }
            }
        }
        None => {
            for folder in folders.iter().copied().chain(shares.then(|| workspace.root())) {
                let found = pending(roots, folder, workspace.target_directory())
                    .map_err(|error| SnapshotError::Io(folder.to_owned(), error))?;
                files.extend(found);
            }
        }
    }
    files.retain(|file| file.is_named(&args.filters));
    files.sort();
    files.dedup();
    let inside = folders.into_iter().map(|folder| roots.mirrored(folder));
    let inside: Vec<PathBuf> = inside.chain([roots.baselines.to_owned()]).collect();
    for file in &files {
        check_target(file, &inside)?;
    }
    if files.is_empty() && args.output.verbosity() > Verbosity::Quiet {
        match roots.elsewhere() {
            Some(folder) => eprint_line!("no pending snapshots in {}", folder.display()),
            None => eprint_line!("no pending snapshots"),
        }
        let left = workspace.pending_directory();
        if args.from.is_none() && below(&left, roots.baselines).is_ok_and(|f| !f.is_empty()) {
            eprint_line!("hint: a run with --ci wrote some to {}: use --from", left.display());
        }
    }
    Ok((workspace, files))
}

fn below(folder: &Path, baselines: &Path) -> Result<Vec<SnapshotFile>, SnapshotError> {
    pending_below(folder, baselines).map_err(|error| SnapshotError::Io(folder.to_owned(), error))
}

pub(crate) fn shown(path: &Path, workspace: &Workspace) -> String {
    path.strip_prefix(workspace.root()).unwrap_or(path).display().to_string()
}
