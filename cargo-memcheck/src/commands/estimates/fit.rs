//! `cargo memcheck fit`: searches for the largest value of a case that each device has room for.

use memcheck_core::wire::exit;

use super::measuring_flags;
use crate::commands::prologue::Prologue;
use crate::execution::fit::{CaseSelection, FitError, SearchGoal, choose};
use crate::invocation::cli::FitArgs;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::estimates::fit as presenters;
use crate::presentation::presenters::interrupted;
use crate::system::error::Failure;

pub(super) fn fit(args: &FitArgs) -> Result<u8, Failure> {
    let [name] = args.test.select.filters.as_slice() else { return Err(FitError::NoName.into()) };
    let search = &args.search;
    let goal = SearchGoal {
        param: &search.param,
        range: search.from..=search.to,
        margin: search.margin.tolerance(),
        fits: search.fits.map(|capacity| capacity.bytes()),
    };
    goal.check()?;
    let prologue = Prologue::open(measuring_flags(&args.test, search.fits)?)?;
    let Some((runner, chosen)) = prologue.tests()? else { return Err(interrupted()) };
    let wanted = CaseSelection { name, param: &search.param, cases: &search.case };
    let tasks = choose(wanted, chosen)?;
    let reporting = &prologue.session.options.reporting;
    let mut all = Vec::new();
    for task in &tasks {
        let print_attempt = |attempt: &_| {
            if reporting.verbosity > Verbosity::Quiet {
                presenters::attempt(task, &search.param, attempt);
            }
        };
        match goal.search(&runner, task, print_attempt)? {
            Some(fitted) => all.push(fitted),
            None => return Err(interrupted()),
        }
    }
    presenters::fitted(reporting, &tasks, &goal, &all);
    let everywhere = all.iter().all(|fitted| fitted.largest().is_some());
    Ok(if everywhere { exit::OK } else { exit::FAILED })
}
