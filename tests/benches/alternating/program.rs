//! Links a program, starts it, and sends requests to it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cargo_metadata::Message;

/// The number of times that each program is linked. The order of its functions differs each time.
/// One layout must do on other targets, because only the linker of this target is known to shuffle
/// functions.
pub(crate) const LAYOUTS: usize =
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) { 6 } else { 1 };

/// Links one example of this package with cargo. `arguments` are passed to the build.
pub(crate) fn link(example: &str, layout: usize, arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["rustc", "--package", "memcheck-tests", "--no-default-features"])
        .args(["--example", example, "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit());
    if layout > 0 {
        // The first layout has built the dependencies, so cargo has no progress to report from here
        // on.
        command.arg("--quiet");
    }
    command.args(["--", "-C", "strip=debuginfo"]);
    if LAYOUTS > 1 {
        let seed = layout + 1;
        command.args(["-C", &format!("link-arg=-Wl,--shuffle-sections=.text*={seed}")]);
    }
    let output = command.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "`{example}` does not build");
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.target.name == example
            && let Some(executable) = artifact.executable
        {
            return Ok(executable.into_std_path_buf());
        }
    }
    bail!("cargo reported no executable of `{example}`")
}

/// A process that waits for requests. Dropping this value ends the process.
pub(crate) struct Program {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts the process with one rayon thread and a heap that does not return memory to the
    /// system.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut process = command
            .env("RAYON_NUM_THREADS", "1")
            .envs(
                ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"]
                    .map(|name| (name, "1073741824")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let requests = process.stdin.take();
        let answers =
            BufReader::new(process.stdout.take().context("the program has no standard output")?);
        Ok(Self { process, requests, answers })
    }

    /// The time that the process takes for `iterations` of `workload`, by its own clock.
    pub(crate) fn time(&mut self, workload: &str, iterations: u64) -> anyhow::Result<Duration> {
        let requests = self.requests.as_mut().context("the program has ended")?;
        writeln!(requests, "{workload} {iterations}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let nanoseconds = answer.trim_end().parse().context("the program failed")?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process ends when its standard input ends. Its exit status does not matter, because
        // it has already answered.
        self.requests = None;
        let _ = self.process.wait();
    }
}
