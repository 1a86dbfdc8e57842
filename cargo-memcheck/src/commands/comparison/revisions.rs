//! Runs of other revisions, for `compare` and `bisect`.

use std::path::Path;

use crate::comparison::runs::{MeasuredTest, TestId};

use crate::invocation::values::Verbosity;
use crate::presentation::results::{self, Results};

/// The arguments of a `run` that writes nothing into its source tree. `own` is the tool's folder in
/// the target directory, `selected` are the tests, and `typed` are the arguments of the user.
pub(super) fn run_arguments(
    (own, results): (&Path, &Path),
    verbosity: Verbosity,
    selected: &[String],
    typed: &[String],
) -> Vec<String> {
    // Snapshots of a revision must not be taken for those of the user's own runs.
    let mut arguments: Vec<String> =
        ["run", "--ci", "--own-pending", "--annotations", "none", "-A"]
            .into_iter()
            .chain(["missing-baseline", "-A", "uncomparable-baseline", "-A", "improved"])
            .map(str::to_owned)
            .collect();
    if verbosity < Verbosity::Verbose {
        arguments.push("--quiet".to_owned());
    }
    if !typed.iter().any(|arg| arg.starts_with("--explain") || arg.starts_with("--repeat")) {
        // Only call sites explain a difference.
        arguments.extend(["--explain", "always"].map(str::to_owned));
    }
    arguments.push(format!("--target-dir={}", own.parent().unwrap_or(own).display()));
    arguments.push(format!("--results={}", results.display()));
    arguments.extend_from_slice(selected);
    arguments.extend_from_slice(typed);
    arguments
}

/// The arguments of `run` that a command of cargo needs to resolve the same dependencies. `--frozen`
/// becomes `--offline`, because the command writes the lock file.
pub(super) fn cargo_flags(typed: &[String]) -> Vec<String> {
    let is_offline = typed.iter().any(|arg| arg == "--offline" || arg == "--frozen");
    let config = typed.iter().enumerate().filter_map(|(at, argument)| match argument.as_str() {
        "--config" => typed.get(at + 1).map(String::as_str),
        _ => argument.strip_prefix("--config="),
    });
    let offline = is_offline.then(|| "--offline".to_owned());
    offline.into_iter().chain(config.map(|value| format!("--config={value}"))).collect()
}

/// The tests of a run, for a comparison.
pub(super) fn measured(results: &Results) -> Vec<MeasuredTest<'_>> {
    let test = |test: &'_ results::Test| TestId {
        package: test.task.package.clone(),
        binary: test.task.binary.id.clone(),
        test: test.task.name().to_owned(),
        device: test.task.leg.name(),
    };
    let measured = results.tests.iter().map(|it| MeasuredTest {
        id: test(it),
        verdict: &it.outcome.verdict,
        record: it.outcome.report.as_ref().map(|report| &report.record),
    });
    measured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_gets_the_flags_by_which_it_resolves() {
        let flags = |line: &str| {
            cargo_flags(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ")
        };
        assert_eq!(flags("--device cpu --frozen llama"), "--offline");
        let both = "--config a=1 --offline --config=b.toml --locked";
        assert_eq!(flags(both), "--offline --config=a=1 --config=b.toml");
        assert_eq!(flags("--device cpu"), "");
    }
}
