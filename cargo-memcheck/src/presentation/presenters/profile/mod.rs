//! Prints a profile on stdout. For people it consists of the operation table, the holders of the
//! peak, a chart of live bytes and the growth; for machines it is one JSON object.

pub(super) mod columns;
mod growth;
mod holders;
mod json;
mod operations;
#[cfg(test)]
mod tests;
mod timeline;

use console::Term;
use memcheck_core::measurement::record::Record;
use memcheck_core::presentation::profile::Profile;
use memcheck_core::size::{both, exact};
use memcheck_core::space::Space;

pub(super) use growth::title as growth_title;
pub(super) use holders::{kind_name, when};

use super::{driver_lines, style};
use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::options::ReportingOptions;
use crate::invocation::values::{Format, ProfileLayout, Verbosity};
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::printing::{Stdout, eprint_line, print_lines};

#[derive(Debug)]
pub(crate) struct Profiler {
    layout: ProfileLayout,
    format: Format,
    verbosity: Verbosity,
    /// Columns. `None` if stdout is not a terminal; tables then have their full width.
    width: Option<usize>,
}

/// Columns, if stdout is not a terminal.
const WIDTH: usize = 100;

impl Profiler {
    pub(crate) fn new(reporting: &ReportingOptions, layout: ProfileLayout) -> Self {
        let width = Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let (format, verbosity) = (reporting.format, reporting.verbosity);
        Self { layout, format, verbosity, width }
    }

    /// The judged spaces; all others follow with `--verbose` and in JSON.
    fn profiles(&self, record: &Record) -> Vec<Profile> {
        let all = self.verbosity == Verbosity::Verbose || self.format == Format::Json;
        let others = record.spaces.keys().filter(|space| all && !record.judged.contains(space));
        let ProfileLayout { by, sort, .. } = self.layout;
        let of = |space: &Space| Profile::of(record, *space, by, sort);
        record.judged.iter().chain(others).filter_map(of).collect()
    }

    /// Each tensor has some small blocks, which are only of interest if they stay, or if there is nothing
    /// else.
    fn is_only_named(&self, profile: &Profile, record: &Record) -> bool {
        let grows = profile.table.total.surviving > 0;
        let has_others = record.judged.iter().any(|space| {
            *space != profile.space
                && record.spaces.get(space).is_some_and(|it| it.metrics.peak_allocated > 0)
        });
        let is_small = profile.space == Space::HostSmall;
        is_small && has_others && !grows && self.verbosity < Verbosity::Verbose
    }

    fn text(&self, task: &Task, outcome: &TestOutcome, record: &Record) -> Vec<String> {
        let mut lines = Vec::new();
        let is_small = |profile: &Profile| self.is_only_named(profile, record);
        let (small, shown): (Vec<Profile>, _) =
            self.profiles(record).into_iter().partition(is_small);
        for profile in shown {
            lines.push(style::strong(&format!(
                "{} on {}, {}: peak {}",
                task.name(),
                task.leg.name(),
                profile.space,
                both(profile.peak_allocated)
            )));
            lines.push(String::new());
            lines.extend(operations::lines(&profile, &self.layout, self.width, self.verbosity));
            if self.verbosity > Verbosity::Quiet {
                lines.extend(holders::lines(&profile, self.verbosity));
                lines.extend(timeline::lines(&profile, self.width.unwrap_or(WIDTH)));
                lines.extend(growth::lines(&profile, self.verbosity));
            }
            lines.extend(
                explain_peak_difference(&profile, record).map(|doubt| style::warning(&doubt)),
            );
            lines.push(String::new());
        }
        for profile in small {
            let (space, peak) = (profile.space, both(profile.peak_allocated));
            let text =
                format!("{space} (blocks below 1 KiB): peak {peak}; --verbose has its profile");
            lines.extend([style::dim(&text), String::new()]);
        }
        if self.verbosity > Verbosity::Quiet {
            let driver_figures = driver_lines::lines(outcome);
            if !driver_figures.is_empty() {
                lines.extend(driver_figures);
                lines.push(String::new());
            }
        }
        lines
    }
}

/// Peaks differ if several threads allocate at once: their events are not in the order of the
/// counter's changes.
pub(super) fn explain_peak_difference(profile: &Profile, record: &Record) -> Option<String> {
    let measured = record.spaces.get(&profile.space)?;
    let counted = measured.metrics.peak_allocated;
    (counted != profile.peak_allocated).then(|| {
        format!(
            "note: peak_allocated is {} B; several threads allocated at the same time, or the \
             peak was reset",
            exact(counted)
        )
    })
}

impl Presenter for Profiler {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let record = outcome.report.as_ref().map(|report| &report.record);
        if self.format == Format::Json {
            let profiles = record.map(|record| self.profiles(record)).unwrap_or_default();
            return json::profile(task, outcome, &profiles);
        }
        let Some(record) = record else { return };
        let lines = self.text(task, outcome, record);
        print_lines(&lines.iter().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>());
        if record.attribution.is_none() {
            eprint_line!(
                "{} the run has no call stacks, so it has no profile",
                style::warning("warning:")
            );
        }
        let hint = record.attribution.as_ref().and_then(|attribution| attribution.hint.as_ref());
        if let Some(hint) = hint {
            eprint_line!("{} {hint}", style::hint("hint:"));
        }
    }

    fn finished(&mut self, tally: &Tally, exit_code: u8) {
        if self.format == Format::Json {
            super::JsonLines::new(Stdout).finished(tally, exit_code);
        }
    }
}
