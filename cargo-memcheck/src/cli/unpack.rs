//! The flags of those who read archives.

use std::path::PathBuf;

/// What is run instead of what cargo builds.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Archives")]
pub(crate) struct ArchiveFlags {
    /// Run what is in this archive, which `archive` wrote, without cargo and without sources.
    #[arg(long, value_name = "FILE")]
    pub(crate) archive_file: Option<PathBuf>,
    /// Directory that the archive is extracted to, and that stays (without it: a temporary one).
    #[arg(long, value_name = "DIR", requires = "archive_file")]
    pub(crate) extract_to: Option<PathBuf>,
    /// Where the sources of the workspace are on this machine, for tests that read files of theirs.
    #[arg(long, value_name = "PATH", requires = "archive_file")]
    pub(crate) workspace_remap: Option<PathBuf>,
    /// Archive of line tables, which `archive --line-tables FILE` wrote.
    #[arg(long, value_name = "FILE", requires = "archive_file")]
    pub(crate) line_tables: Option<PathBuf>,
}
