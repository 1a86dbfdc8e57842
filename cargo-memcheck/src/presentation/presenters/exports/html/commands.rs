//! The next commands for a test, each with its purpose.

use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::next_step::{self, NextStep};

/// A command and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NextCommand {
    pub(super) purpose: &'static str,
    pub(super) command: String,
    /// True if all outputs advise it.
    advised: bool,
}

const AGAIN: &str = "run it again after the fix";
pub(super) const ACCEPT: &str = "accept the figures of this run, if they are intended";

/// The commands for the first page of the report: the first step, the one after that and, if there
/// are new figures, the one that accepts them.
pub(super) fn most_helpful(
    task: &Task,
    outcome: &TestOutcome,
    baselines: &[String],
) -> Vec<NextCommand> {
    let mut commands = next(task, outcome, baselines);
    let last = commands.iter().position(|next| next.purpose == ACCEPT).unwrap_or(1);
    commands.truncate(last + 1);
    commands
}

/// All commands that help with this outcome.
pub(super) fn next(task: &Task, outcome: &TestOutcome, baselines: &[String]) -> Vec<NextCommand> {
    let has_call_sites =
        outcome.report.as_ref().is_some_and(|report| report.record.attribution.is_some());
    let is_ignored = outcome.report.is_none() && task.subject.test().is_some_and(|it| it.ignored);
    let advised: Vec<NextStep> =
        next_step::advised(task, outcome).into_iter().map(|(_, step)| step).collect();
    let named = |step: NextStep| NextCommand {
        advised: advised.contains(&step),
        purpose: match &step {
            NextStep::Run if is_ignored => "run this ignored test",
            NextStep::Run if outcome.was_killed => "run this test again",
            NextStep::ShowBacktrace => "run it with its output and the backtrace of a panic",
            NextStep::ShowOutput => "run it with all of its output",
            NextStep::Repeat => "run it often, to see which figures differ",
            NextStep::Run => AGAIN,
            NextStep::Profile if has_call_sites => {
                "see all call sites and all holders at the peak in the terminal"
            }
            NextStep::Watch => "watch its memory until it ends",
            NextStep::Profile => "show the call sites that hold the memory",
            NextStep::Doctor => "check the device",
            NextStep::Review(_) => "review the figures of this run",
            NextStep::Accept(_) => ACCEPT,
            NextStep::Explain(_) => "read the explanation",
        },
        command: step.command(task, baselines),
    };
    next_step::all(task, outcome).into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{Code, Finding};

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn a_leak_is_run_again_profiled_and_explained() {
        let commands = next(&task(), &leaky(), &[]);
        let commands: Vec<&str> = commands.iter().map(|next| next.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "cargo memcheck run -p app --test mem a::b --exact --device cpu",
                "cargo memcheck profile -p app --test mem a::b --exact --device cpu",
                "cargo memcheck explain graph-kept",
            ]
        );
    }

    /// A phone shows them at once.
    #[test]
    fn the_advised_commands_of_a_regression_are_the_call_sites_and_the_acceptance() {
        let mut outcome = leaky();
        let advised = |outcome: &TestOutcome| -> Vec<&'static str> {
            let commands = next(&task(), outcome, &[]).into_iter().filter(|next| next.advised);
            commands.map(|next| next.purpose).collect()
        };
        let sites = "see all call sites and all holders at the peak in the terminal";
        assert_eq!(advised(&outcome), [AGAIN, sites]);
        outcome.verdict.findings = vec![Finding::new(Code::PeakRegression, "higher")];
        let report = outcome.report.as_mut().unwrap();
        report.pending = Some("memcheck/a__b@cpu.snap.new".into());
        assert_eq!(advised(&outcome), [sites, ACCEPT]);
    }
}
