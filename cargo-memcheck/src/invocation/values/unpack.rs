//! Flags of the commands that read archives.

use std::path::PathBuf;

use crate::invocation::features::ARCHIVES;

/// Flags for an archive, which replaces cargo's build.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Archives")]
pub(crate) struct UnpackOptions {
    /// Run the tests of this archive, made by `archive`, without cargo and without sources.
    #[arg(long, value_name = "FILE", hide = !ARCHIVES.is_built)]
    pub(crate) archive_file: Option<PathBuf>,
    /// Directory to extract the archive to, which is kept (default: a temporary directory).
    #[arg(long, value_name = "DIR", requires = "archive_file", hide = !ARCHIVES.is_built)]
    pub(crate) extract_to: Option<PathBuf>,
    /// Path of the workspace's sources on this machine, for tests that read source files.
    #[arg(long, value_name = "PATH", requires = "archive_file", hide = !ARCHIVES.is_built)]
    pub(crate) workspace_remap: Option<PathBuf>,
    /// Archive of line tables, made by `archive --line-tables FILE`.
    #[arg(long, value_name = "FILE", requires = "archive_file", hide = !ARCHIVES.is_built)]
    pub(crate) line_tables: Option<PathBuf>,
    /// `list --no-run`: nothing of the archive is started.
    #[arg(skip)]
    pub(crate) no_run: bool,
}
