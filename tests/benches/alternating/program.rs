//! How the programs are linked, started and asked.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cargo_metadata::Message;

/// How often each program is linked, its functions in another order each time.
/// Only the linker of this target is known to shuffle.
pub(crate) const LAYOUTS: usize =
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) { 6 } else { 1 };

/// Has cargo link one example of this package, with `arguments` for its build.
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
        // Dependencies are built by the first layout: from here on cargo has nothing to say.
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
    bail!("cargo built no `{example}`")
}

/// One process that waits for requests. Ends with this.
pub(crate) struct Program {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it, with one rayon thread and a heap that keeps what it once had.
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
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Self { process, requests, answers })
    }

    /// How long `iterations` of `workload` take in it, by its own clock.
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
        // The end of its input ends it. How is of no interest: it has answered.
        self.requests = None;
        let _ = self.process.wait();
    }
}
