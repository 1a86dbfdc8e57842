//! The files of `--report`. When a command starts, each file is replaced by a report without tests,
//! so that the report of an earlier commit cannot be taken for that of a run that did not start or
//! was killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::judgement::location::Roots;
use memcheck_core::wire::exit;

use super::json::JsonLines;
use super::junit::Junit;
use super::style;
use crate::invocation::values::{ReportFile, ReportKind};
use crate::presentation::events::ReportWriter;
use crate::presentation::origin::RunOrigin;
use crate::presentation::tally::Tally;
use crate::system::error::{CommandError, Reported};
use crate::system::files;
use crate::system::panics::caught;
use crate::system::printing::eprint_line;

#[derive(Debug, thiserror::Error)]
#[error("report {path}: {why}", path = .0.display(), why = .1)]
pub(super) struct ReportError(pub(super) PathBuf, pub(super) String);

impl CommandError for ReportError {
    fn exit_code(&self) -> u8 {
        exit::REPORT
    }
}

pub(super) type OpenReport = (PathBuf, Box<dyn ReportWriter>);

/// `roots` are for reports that show source and compare with baselines.
pub(super) fn open(reports: &[ReportFile], roots: Option<Roots<'_>>) -> Vec<OpenReport> {
    reports.iter().map(|report| (report.path.clone(), writer(report.kind, roots))).collect()
}

/// The writer of a kind of report.
pub(super) fn writer(kind: ReportKind, roots: Option<Roots<'_>>) -> Box<dyn ReportWriter> {
    match kind {
        ReportKind::Junit => Box::new(roots.map_or_else(Junit::default, Junit::new)),
        ReportKind::Json => Box::new(JsonLines::new(Vec::new())),
        #[cfg(feature = "exports")]
        ReportKind::Export(kind) => super::exports::writer(kind, roots),
    }
}

/// The run is known once its workspace is. An error is only a warning, because the report is written
/// again at the end.
pub(crate) fn begin(reports: &[ReportFile], run: Option<&RunOrigin>) {
    let unfinished = Reported {
        exit_code: exit::NOT_MEASURED,
        message: "the run has not ended: it still runs, it was killed, or it could not write its \
                  report"
            .to_owned(),
        hint: Some(
            "`cargo memcheck report` prints the tests that have ended, and takes --report too"
                .to_owned(),
        ),
    };
    let tally = Tally { failure: Some(unfinished), ..Tally::default() };
    for (path, mut report) in open(reports, None) {
        if is_special(&path) {
            continue;
        }
        run.into_iter().for_each(|run| report.run_started(run));
        report.finished(&tally, exit::NOT_MEASURED);
        if let Err(error) = write(&path, report.as_ref()) {
            let word = style::warning("warning:");
            eprint_line!("{word} {error}; if the file exists, it belongs to an earlier run");
        }
    }
}

/// For a command that ends before its first test. Returns its exit code.
pub(crate) fn without_tests(reports: &[ReportFile], tally: &Tally, exit_code: u8) -> u8 {
    finish(open(reports, None), tally, exit_code).0
}

/// Returns the exit code, and the files that were written.
pub(super) fn finish(reports: Vec<OpenReport>, tally: &Tally, exit_code: u8) -> (u8, Vec<PathBuf>) {
    let (mut code, mut files) = (exit_code, Vec::new());
    for (path, mut report) in reports {
        let written = caught(|| {
            report.finished(tally, exit_code);
            write(&path, report.as_ref())
        });
        match written {
            Ok(Ok(())) if is_special(&path) => {}
            Ok(Ok(())) => files.push(path),
            Ok(Err(error)) => {
                super::failure(&error.into());
                code = if code == exit::OK { exit::REPORT } else { code };
            }
            Err(panicked) => {
                super::failure(&panicked.into());
                code = exit::PANIC;
            }
        }
    }
    (code, files)
}

fn write(path: &Path, report: &dyn ReportWriter) -> Result<(), ReportError> {
    let error = |why: String| ReportError(path.to_owned(), why);
    let written = if is_special(path) {
        report.text().and_then(|text| Ok(fs::write(path, text)?))
    } else {
        files::replace_with(&behind_link(path), |to| report.write_to(to))
    };
    written.map_err(|why| error(format!("{why:#}")))
}

/// A report can be sent to a device or a pipe, and its name can be a link.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    if is_special(path) {
        return fs::write(path, text);
    }
    files::replace(&behind_link(path), text)
}

fn behind_link(path: &Path) -> PathBuf {
    match fs::canonicalize(path) {
        Ok(target) if path.is_symlink() => target,
        _ => path.to_owned(),
    }
}

/// `/dev/stdout` can be a regular file, which must keep its name.
fn is_special(path: &Path) -> bool {
    let below = |folder| path.starts_with(folder) && fs::symlink_metadata(path).is_ok();
    below("/dev")
        || below("/proc")
        || fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::example::leaky;
    use super::*;
    use crate::discovery::task::example::task;

    fn all(folder: &Path) -> Vec<ReportFile> {
        let file = |kind: ReportKind| ReportFile { kind, path: folder.join(kind.name()) };
        ReportKind::all().map(file).collect()
    }

    /// The texts of a report, which can be compressed.
    fn readable(bytes: &[u8]) -> String {
        let mut unpacked = Vec::new();
        match flate2::read::GzDecoder::new(bytes).read_to_end(&mut unpacked) {
            Ok(_) => String::from_utf8_lossy(&unpacked).into_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    #[test]
    fn a_report_of_an_earlier_run_is_replaced_when_a_run_starts() {
        let folder = tempfile::tempdir().unwrap();
        let reports = all(folder.path());
        let texts = || reports.iter().map(|report| readable(&fs::read(&report.path).unwrap()));
        let mut open = open(&reports, None);
        for (_, report) in &mut open {
            report.test_finished(&task(), &leaky());
        }
        let (code, files) = finish(open, &Tally { failed: 1, ..Tally::default() }, 100);
        assert_eq!((code, files.len()), (100, reports.len()));
        let earlier: Vec<String> = texts().collect();
        assert!(earlier.iter().all(|text| !text.contains("has not ended")));
        begin(&reports, None);
        for (report, text) in reports.iter().zip(texts()) {
            assert!(text.contains("the run has not ended"), "{}: {text}", report.kind.name());
            assert!(!text.contains("a::b"), "{}: {text}", report.kind.name());
        }
        let message = "the build failed <b>&".to_owned();
        let failure = Reported { exit_code: 101, message, hint: Some("a hint".to_owned()) };
        let tally = Tally { failure: Some(failure), ..Tally::default() };
        assert_eq!(without_tests(&reports, &tally, 101), 101);
        for (report, text) in reports.iter().zip(texts()) {
            assert!(text.contains("the build failed"), "{}: {text}", report.kind.name());
            assert!(!text.contains("has not ended"), "{}: {text}", report.kind.name());
        }
    }

    #[test]
    #[cfg(feature = "exports")]
    fn a_page_that_is_written_during_the_run_shows_project_commit_and_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let kind = ReportKind::Export(crate::invocation::values::ExportKind::Html);
        begin(
            &[ReportFile { kind, path: path.clone() }],
            Some(&crate::presentation::origin::example()),
        );
        let page = fs::read_to_string(path).unwrap();
        for text in [
            " of app",
            "<code>0123456789ab</code>",
            "<code>cargo memcheck --ci</code>",
            "has not ended",
        ] {
            assert!(page.contains(text), "{text} is not in the page");
        }
    }

    #[test]
    fn a_report_that_cannot_be_written_keeps_the_old_file_and_is_not_success() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "old").unwrap();
        let report =
            |path: &str| [ReportFile { kind: ReportKind::Junit, path: folder.path().join(path) }];
        assert_eq!(without_tests(&report("file/below"), &Tally::default(), exit::OK), exit::REPORT);
        assert_eq!(without_tests(&report("file/below"), &Tally::default(), 100), 100);
        assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "old");
        let full = [ReportFile { kind: ReportKind::Junit, path: "/dev/full".into() }];
        begin(&full, None);
        assert_eq!(without_tests(&full, &Tally::default(), exit::OK), exit::REPORT);
        assert!(is_special(Path::new("/dev/null")) && !is_special(Path::new("/dev/none/x")));
    }

    #[test]
    fn a_link_to_a_report_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.xml"), folder.path().join("b.xml"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}
