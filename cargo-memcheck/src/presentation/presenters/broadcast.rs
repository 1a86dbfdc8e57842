//! Distributes the events of a run to all presenters, and writes the report files at the end of the
//! run. A presenter that panics does not keep the others from their events.

use std::path::PathBuf;

use memcheck_core::wire::exit;

use super::annotations::GithubAnnotations;
use super::reports::{self, OpenReport, ReportError};
use super::style;
use super::terminal::Terminal;
use crate::invocation::options::{Annotations, ReportContext, ReportingOptions};
use crate::invocation::values::{Verbosity, page};
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::error::{Failure, Reported};
use crate::system::panics::{self, caught};
use crate::system::printing::{self, eprint_line};
use crate::system::process::{INTERRUPTED, Interrupt};
use crate::system::shell;

pub(crate) struct Broadcast {
    presenters: Vec<Box<dyn Presenter>>,
    reports: Vec<OpenReport>,
    failure: Option<Reported>,
    verbosity: Verbosity,
    /// The page to show in a browser.
    opens: Option<PathBuf>,
}

impl Broadcast {
    /// `on_stdout` is the presenter that writes to stdout.
    pub(crate) fn new(
        report_context: &ReportContext<'_>,
        legs: usize,
        on_stdout: Option<Box<dyn Presenter>>,
    ) -> Self {
        let roots = report_context.roots;
        let mut presenters: Vec<Box<dyn Presenter>> =
            vec![Box::new(Terminal::new(report_context, legs))];
        if report_context.reporting.annotations == Annotations::Github {
            presenters.push(Box::new(GithubAnnotations::new(roots)));
        }
        presenters.extend(on_stdout);
        let mut reports = reports::open(&report_context.reporting.reports, Some(roots));
        if let Some(editor) = &report_context.reporting.editor {
            reports.iter_mut().for_each(|(_, report)| report.link_to_editor(editor));
        }
        let verbosity = report_context.reporting.verbosity;
        let ReportingOptions { reports: files, open, .. } = report_context.reporting;
        let page = page(files).filter(|_| *open);
        let opens = page.map(|file| file.path.clone());
        Self { presenters, reports, failure: None, verbosity, opens }
    }

    pub(crate) fn notify(&mut self, mut what: impl FnMut(&mut dyn Presenter)) {
        let Self { presenters, reports, failure, verbosity: _, opens: _ } = self;
        let presenters = presenters.iter_mut().map(|presenter| presenter.as_mut());
        let reports = reports.iter_mut().map(|(_, report)| report.as_mut() as &mut dyn Presenter);
        for presenter in presenters.chain(reports) {
            if let Err(panicked) = caught(|| what(presenter)) {
                keep(failure, panicked);
            }
        }
    }

    /// The first panic of a presenter.
    pub(crate) fn failure(&self) -> Option<&Reported> {
        self.failure.as_ref()
    }

    /// Reports come first, because the exit code in the summary depends on their success. `lost` is
    /// a file of results that could not be written.
    pub(crate) fn finish(
        mut self,
        tally: &Tally,
        exit_code: u8,
        lost: Option<(PathBuf, anyhow::Error)>,
    ) -> u8 {
        let (mut tally, mut exit_code) = (tally.clone(), exit_code);
        // A thread that was not waited for can have panicked.
        let failure =
            self.failure.take().or_else(|| panics::first().map(|it| (&Failure::from(it)).into()));
        if let Some(failure) = failure {
            exit_code = failure.exit_code;
            tally.failure = Some(failure);
        }
        exit_code = printing::exit_code(exit_code);
        if let Some((path, error)) = lost {
            super::failure(&ReportError(path, format!("{error:#}")).into());
            exit_code = if exit_code == exit::OK { exit::REPORT } else { exit_code };
        }
        let (code, written) = reports::finish(self.reports, &tally, exit_code);
        exit_code = code;
        // A signal may have arrived while the reports were written.
        tally.interrupted |= Interrupt::has_come();
        if tally.interrupted && tally.failure.is_none() {
            exit_code = INTERRUPTED;
        }
        super::json::close();
        for presenter in &mut self.presenters {
            if let Err(panicked) = caught(|| presenter.finished(&tally, exit_code)) {
                keep(&mut self.failure, panicked);
                exit_code = exit::PANIC;
            }
        }
        if self.verbosity > Verbosity::Quiet {
            for file in &written {
                eprint_line!("report: {}", style::hint(&shell::word(&file.to_string_lossy())));
            }
        }
        #[cfg(feature = "exports")]
        if let Some(page) = self.opens.filter(|page| written.contains(page))
            && let Err(error) = super::exports::open_page(&page)
        {
            let (word, page) = (style::warning("warning:"), page.display());
            eprint_line!("{word} no browser could open {page}: {error}; BROWSER can name one");
        }
        exit_code
    }
}

fn keep(first: &mut Option<Reported>, panicked: panics::Panicked) {
    let failure = Failure::from(panicked);
    super::failure(&failure);
    first.get_or_insert((&failure).into());
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::example::leaky;
    use super::*;
    use crate::discovery::task::{Task, TestOutcome, example::task};

    struct Bad;

    impl Presenter for Bad {
        fn test_finished(&mut self, _task: &Task, outcome: &TestOutcome) {
            let record = &outcome.report.as_ref().unwrap().record;
            panic!("index {} is out of bounds", record.spaces.len());
        }
    }

    #[derive(Default)]
    struct Seen {
        tests: usize,
        exit_code: Option<u8>,
        failure: Option<Reported>,
    }

    #[derive(Default, Clone)]
    struct Counting(Rc<RefCell<Seen>>);

    impl Presenter for Counting {
        fn test_finished(&mut self, _task: &Task, _outcome: &TestOutcome) {
            self.0.borrow_mut().tests += 1;
        }

        fn finished(&mut self, tally: &Tally, exit_code: u8) {
            let mut seen = self.0.borrow_mut();
            (seen.exit_code, seen.failure) = (Some(exit_code), tally.failure.clone());
        }
    }

    #[test]
    fn a_panic_of_a_presenter_ends_the_run_with_its_own_code_and_the_others_continue() {
        let others = Counting::default();
        let mut broadcast = Broadcast {
            presenters: vec![Box::new(Bad), Box::new(others.clone())],
            reports: Vec::new(),
            failure: None,
            verbosity: Verbosity::Normal,
            opens: None,
        };
        broadcast.notify(|to| to.test_finished(&task(), &leaky()));
        assert!(broadcast.failure().unwrap().message.contains("out of bounds"));
        let tally = Tally { failed: 1, ..Tally::default() };
        assert_eq!(broadcast.finish(&tally, exit::FAILED, None), exit::PANIC);
        let seen = others.0.take();
        assert_eq!((seen.tests, seen.exit_code), (1, Some(exit::PANIC)));
        assert!(seen.failure.unwrap().hint.unwrap().contains("report it"));
    }
}
