//! `cargo memcheck reject`: removes pending snapshots.

use memcheck_core::wire::exit;

use crate::baselines;
use crate::baselines::selected;
use crate::invocation::cli::SnapshotArgs;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::json;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

pub(super) fn reject(args: &SnapshotArgs) -> Result<u8, Failure> {
    let (workspace, files) = selected::select_pending(args)?;
    let verbosity = args.output.verbosity();
    for file in files {
        // A snapshot that cannot be read has no changes to show.
        let changes = (verbosity == Verbosity::Verbose)
            .then(|| baselines::check(&file.path).ok())
            .flatten()
            .map(|checked| baselines::diff::text(&file, &checked));
        baselines::reject(&file)?;
        json::snapshot(args.output.form.message_format, "rejected", &file.path);
        if verbosity > Verbosity::Quiet {
            eprint_line!("rejected {}", selected::shown(&file.path, &workspace));
        }
        if let Some(changes) = changes {
            eprint_line!("{changes}");
        }
    }
    Ok(exit::OK)
}
