//! Flags that start the process of a test, for the commands that run one test.

/// Flags that start the process.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct LaunchFlags {
    /// Show the output of the test while it runs.
    #[arg(long, visible_alias = "nocapture")]
    pub(crate) no_capture: bool,
    /// Command that starts each process ("srun --gres=gpu:1").
    ///
    /// The command line of the process follows it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) runner: Option<String>,
}
