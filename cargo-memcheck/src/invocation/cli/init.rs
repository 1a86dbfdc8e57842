//! The arguments of `init`.

use std::path::PathBuf;

use super::WorkspaceFlags;

/// `cargo memcheck init`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct InitArgs {
    /// Package to add a memory test to (default: that of the current folder).
    #[arg(short = 'p', long = "package", value_name = "SPEC")]
    pub(crate) package: Option<String>,
    /// Folder of memcheck-runtime in a clone of memcheck (default: that of another package of the
    /// workspace).
    #[arg(long, value_name = "DIR", conflicts_with = "git")]
    pub(crate) path: Option<PathBuf>,
    /// Repository of memcheck (default: that of another package of the workspace; without one, the
    /// dependency is the version of this command).
    #[arg(long, value_name = "URL")]
    pub(crate) git: Option<String>,
    /// Name of the test file in `tests`, without `.rs`.
    #[arg(long, value_name = "NAME", default_value = "mem")]
    pub(crate) name: String,
    /// Write no workflow for GitHub Actions.
    #[arg(long)]
    pub(crate) no_workflow: bool,
    /// Write the files without a question.
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
}
