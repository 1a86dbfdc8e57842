//! `cargo memcheck prune`: removes baselines that belong to no test.

use anyhow::Context;
use memcheck_core::wire::exit;

use crate::baselines::{SnapshotError, selected};
use crate::discovery::legs;
use crate::discovery::session::Session;
use crate::execution::bookkeeping;
use crate::invocation::cli::PruneArgs;
use crate::invocation::options::{Flags, Mode, OptionsError};
use crate::invocation::values::{RunIgnored, Verbosity};
use crate::presentation::presenters::{interrupted, json};
use crate::system::error::Failure;
use crate::system::printing::eprint_line;
use crate::system::process::Interrupt;

/// In CI it only lists the baselines, because the source tree must not change.
pub(super) fn prune(args: &PruneArgs) -> Result<u8, Failure> {
    let PruneArgs { dry_run, select, runner, ci, baselines, output, cargo } = args;
    let refused =
        [(select.exact, "--exact"), (select.run_ignored != RunIgnored::Default, "--run-ignored")];
    if let Some((_, flag)) = refused.into_iter().find(|(given, _)| *given) {
        return Err(OptionsError::Prune(flag).into());
    }
    let flags = Flags::new(output, cargo).select(select)?.runner(runner.as_deref())?;
    let session = Session::open(Flags { ci: ci.clone(), baselines: baselines.clone(), ..flags })?;
    session.announce();
    let dry_run = *dry_run || session.options.mode == Mode::Ci;
    let (_, legs) = legs::discover(&session)?;
    if session.options.cargo.names_targets() {
        eprint_line!(
            "warning: not all targets were built, so stale baselines cannot be determined"
        );
    }
    for target in legs.iter().flat_map(|leg| &leg.built.not_built) {
        eprint_line!(
            "warning: `{}` of {} was not built; the baselines of that package stay",
            target.target,
            target.package
        );
    }
    let stale = bookkeeping::stale(&session, &legs).context("looking for baselines")?;
    let filters = &session.options.selection.filters;
    let quiet = session.options.reporting.verbosity == Verbosity::Quiet;
    let mut removed = 0;
    for (_, file) in stale.iter().filter(|(_, file)| file.is_named(filters)) {
        if Interrupt::has_come() {
            return Err(interrupted());
        }
        let shown = selected::shown(&file.path, &session.workspace);
        let action = if dry_run { "stale" } else { "removed" };
        json::snapshot(args.output.form.message_format, action, &file.path);
        if !dry_run {
            std::fs::remove_file(&file.path)
                .map_err(|error| SnapshotError::Io(file.path.clone(), error))?;
        }
        if !quiet {
            eprint_line!("{} {shown}", if dry_run { "would remove" } else { "removed" });
        }
        removed += 1;
    }
    if removed == 0 && !quiet {
        eprint_line!("no stale baselines");
    }
    Ok(exit::OK)
}
