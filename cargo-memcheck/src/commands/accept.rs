//! `cargo memcheck accept`: makes pending snapshots the baselines.

use memcheck_core::wire::exit;

use crate::baselines;
use crate::baselines::selected;
use crate::invocation::cli::SnapshotArgs;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::json;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

/// If one of the snapshots is invalid, none is accepted.
pub(super) fn accept(args: &SnapshotArgs) -> Result<u8, Failure> {
    let (workspace, files) = selected::select_pending(args)?;
    let checked = files
        .into_iter()
        .map(|file| baselines::check(&file.path).map(|checked| (file, checked)))
        .collect::<Result<Vec<_>, _>>()?;
    let verbosity = args.output.verbosity();
    for (file, checked) in &checked {
        let changes =
            (verbosity == Verbosity::Verbose).then(|| baselines::diff::text(file, checked));
        baselines::accept(file, checked)?;
        json::snapshot(args.output.form.message_format, "accepted", &file.target);
        if verbosity > Verbosity::Quiet {
            eprint_line!("accepted {}", selected::shown(&file.target, &workspace));
        }
        if let Some(changes) = changes {
            eprint_line!("{changes}");
        }
    }
    Ok(exit::OK)
}
