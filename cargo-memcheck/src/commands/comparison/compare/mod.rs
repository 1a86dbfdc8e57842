//! `cargo memcheck compare`: prints the differences between two runs. A run is a directory of
//! results, or a revision whose tests are run first.

mod update;

use std::path::{Path, PathBuf};

use memcheck_core::wire::exit;

use super::revisions::{measured, run_arguments};
use crate::build::workspace::Places;
use crate::comparison::runs::compare as compare_runs;
use crate::execution::revision::{self, Checkout, RevisionError, RunOutput};
use crate::invocation::cli::CompareArgs;
use crate::invocation::values::{Format, ReportFile, Verbosity};
use crate::presentation::presenters::comparison::compare::{
    ComparedRuns, ComparisonReport, Side, print_json, print_text,
};
use crate::presentation::presenters::style;
use crate::presentation::results::{self, Results, ResultsError};
use crate::system::error::{CommandError, Failure};
use crate::system::printing::eprint_line;

#[derive(Debug, thiserror::Error)]
enum CompareError {
    #[error("{path} is a file and not a directory of results: an archive has tests, but no results", path = .0.display())]
    File(PathBuf),
    #[error("`{0}` is neither a directory of results nor a revision")]
    Unknown(String),
    #[error("a comparison has no `{0}` report: markdown, html, json")]
    Kind(&'static str),
    #[error("{path} is incomplete: {why}", path = .0.display(), why = .1)]
    Incomplete(PathBuf, String),
    #[error("arguments of `run` need a revision: both sides are directories of results")]
    NothingRuns,
    #[error("`--update` needs a revision, and `{0}` is a directory of results")]
    NotARevision(String),
}

impl CommandError for CompareError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Incomplete(..) => exit::NOT_MEASURED,
            Self::File(_) | Self::Unknown(_) | Self::Kind(_) => exit::USAGE,
            Self::NothingRuns | Self::NotARevision(_) => exit::USAGE,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::File(_) => {
                "`cargo memcheck run --archive-file FILE --results DIR` measures it; then compare \
                 DIR"
            }
            Self::Unknown(_) => "`cargo memcheck run --results DIR` writes results",
            Self::Incomplete(..) => "a comparison needs the results of the whole run",
            Self::NotARevision(_) => "without BASE it is HEAD",
            Self::Kind(_) | Self::NothingRuns => return None,
        };
        Some(hint.to_owned())
    }
}

/// One side as it was typed.
#[derive(Debug, PartialEq, Eq)]
enum Operand {
    Results(PathBuf),
    Revision(String),
    WorkingTree,
}

impl Operand {
    fn read(text: &str) -> Result<Self, CompareError> {
        let path = Path::new(text);
        if results::file(path).is_file() {
            return Ok(Self::Results(path.to_owned()));
        }
        match revision::resolve(text) {
            Some(_) => Ok(Self::Revision(text.to_owned())),
            None if path.is_dir() => Ok(Self::Results(path.to_owned())),
            None if path.exists() => Err(CompareError::File(path.to_owned())),
            None => Err(CompareError::Unknown(text.to_owned())),
        }
    }
}

/// Returns the reports with their paths.
fn reports(requested: &[ReportFile]) -> Result<Vec<(ComparisonReport, &Path)>, CompareError> {
    let report = |file: &ReportFile| ComparisonReport::from_kind(file.kind);
    requested
        .iter()
        .map(|file| Ok((report(file).ok_or(CompareError::Kind(file.kind.name()))?, &*file.path)))
        .collect()
}

pub(super) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let reports = reports(&args.report)?;
    let compared =
        if args.update.is_empty() { compare_sides(args)? } else { update::compare_update(args)? };
    match args.output.form.message_format {
        Format::Json => print_json(&compared),
        Format::Human => print_text(&compared),
    }
    compared.write(&reports)?;
    let fails = args.fail_on_regression && compared.comparison.worse() > 0;
    Ok(if fails { exit::FAILED } else { exit::OK })
}

fn compare_sides(args: &CompareArgs) -> Result<ComparedRuns, Failure> {
    let base = Operand::read(base(args))?;
    let head = match (&args.head, &base) {
        (Some(head), _) => Operand::read(head)?,
        (None, Operand::Results(_)) => Operand::Results(places(args)?.results_directory()),
        (None, _) => Operand::WorkingTree,
    };
    let runs = |operand: &Operand| !matches!(operand, Operand::Results(_));
    if !args.run.is_empty() && !runs(&base) && !runs(&head) {
        return Err(CompareError::NothingRuns.into());
    }
    let (base_results, base) = read(args, &base, "base")?;
    let (head_results, head) = read(args, &head, "head")?;
    let comparison =
        compare_runs(&measured(&base_results), &measured(&head_results), args.tolerance);
    Ok(ComparedRuns { base, head, update: None, comparison })
}

/// Only with `--update` none must be named.
fn base(args: &CompareArgs) -> &str {
    args.base.as_deref().unwrap_or("HEAD")
}

fn places(args: &CompareArgs) -> Result<Places, Failure> {
    Ok(Places::find(&args.workspace.cargo())?)
}

fn read(args: &CompareArgs, operand: &Operand, role: &str) -> Result<(Results, Side), Failure> {
    let (folder, name, commit) = match operand {
        Operand::Results(folder) => (folder.clone(), folder.display().to_string(), None),
        Operand::Revision(name) => {
            let places = places(args)?;
            let manifest = args.workspace.manifest_path.as_deref();
            let folders = (places.own_directory(), places.root());
            let checkout = Checkout::create(name, manifest, folders)?;
            let folder = run(args, &places, Some(&checkout), (name, role))?;
            (folder, name.clone(), Some(checkout.commit().to_owned()))
        }
        Operand::WorkingTree => {
            let folder = run(args, &places(args)?, None, ("the working tree", role))?;
            (folder, "the working tree".to_owned(), None)
        }
    };
    side(&folder, &name, commit)
}

/// Reads the results of a run.
fn side(folder: &Path, name: &str, commit: Option<String>) -> Result<(Results, Side), Failure> {
    let results = results::read(folder)?;
    // Missing tests would be reported as removed.
    if let Some(why) = &results.incomplete {
        return Err(CompareError::Incomplete(results::file(folder), why.clone()).into());
    }
    let commit = commit.or_else(|| results.run.commit().map(str::to_owned));
    let (name, tests) = (name.to_owned(), results.tests.len());
    Ok((results, Side { name, commit, tests }))
}

/// Prints a line about the comparison itself.
fn announce(args: &CompareArgs, text: &str) {
    if args.output.verbosity() > Verbosity::Quiet {
        eprint_line!("{}", style::strong(text));
    }
}

/// Runs the tests of a revision or of the working tree. Returns the folder of the results.
fn run(
    args: &CompareArgs,
    places: &Places,
    checkout: Option<&Checkout>,
    (name, role): (&str, &str),
) -> Result<PathBuf, Failure> {
    let own = places.own_directory();
    let results = own.join("compare").join(role);
    results::discard(&results)?;
    announce(args, &format!("{role}: running the tests of {name}"));
    let (folder, manifest, wrapped) = match checkout {
        Some(checkout) => (checkout.folder().to_owned(), checkout.arguments(), Some(own)),
        None => {
            let manifest = args.workspace.manifest_path.as_ref();
            let here = std::env::current_dir().map_err(anyhow::Error::from)?;
            (here, manifest.map(|path| format!("--manifest-path={}", path.display())), None)
        }
    };
    let manifest: Vec<String> = manifest.into_iter().collect();
    let arguments = run_arguments((own, &results), args.output.verbosity(), &manifest, &args.run);
    let code = revision::run(&folder, &arguments, wrapped, RunOutput::Stderr)?;
    // A run with failures has results, and one whose build failed has none.
    match results::read(&results) {
        Ok(_) => Ok(results),
        Err(ResultsError::None(_) | ResultsError::NoFolder(_)) => {
            Err(RevisionError::Run(name.to_owned(), code).into())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_results_or_a_revision_and_an_archive_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("run");
        std::fs::create_dir(&results).unwrap();
        std::fs::write(results::file(&results), "").unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        assert_eq!(Operand::read(&text(&results)).unwrap(), Operand::Results(results));
        let archive = folder.path().join("tests.tar.zst");
        std::fs::write(&archive, "").unwrap();
        let error = Operand::read(&text(&archive)).unwrap_err();
        assert!(error.to_string().contains("an archive has tests, but no results"), "{error}");
        assert!(error.hint().unwrap().contains("--archive-file"));
        let error = Operand::read("no such/thing").unwrap_err();
        assert_eq!(error.exit_code(), exit::USAGE);
    }
}
