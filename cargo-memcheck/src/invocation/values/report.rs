//! The reports of `--report`, and their files.

#[cfg(feature = "exports")]
use std::path::Path;
use std::path::PathBuf;

use crate::invocation::features::EXPORTS;

/// A report, and the file that it is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFile {
    pub(crate) kind: ReportKind,
    /// Path of the report.
    pub(crate) path: PathBuf,
}

/// A kind of report. JUnit and JSON belong to the gate; a build can leave out the exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportKind {
    Junit,
    Json,
    #[cfg(feature = "exports")]
    Export(ExportKind),
}

impl ReportKind {
    /// All kinds of this build.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let gate = [Self::Junit, Self::Json].into_iter();
        #[cfg(feature = "exports")]
        let gate = gate.chain(ExportKind::ALL.map(Self::Export));
        gate
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Junit => "junit",
            Self::Json => "json",
            #[cfg(feature = "exports")]
            Self::Export(kind) => kind.name(),
        }
    }
}

/// Defines the exports with their names in one list, so that no kind can be missing in
/// [`ExportKind::ALL`].
macro_rules! exports {
    ($($kind:ident = $name:literal,)*) => {
        /// A kind of report for people, or for the tools of another ecosystem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ExportKind {
            $($kind),*
        }

        impl ExportKind {
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// The name on the command line.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name),*
                }
            }
        }
    };
}

exports! {
    Csv = "csv",
    Bencher = "bencher",
    Sarif = "sarif",
    Markdown = "markdown",
    Html = "html",
    FlameGraph = "flamegraph",
    Trace = "trace",
    Pprof = "pprof",
    MemoryViz = "memory-viz",
    MemoryVizJson = "memory-viz-json",
    Badge = "badge",
}

#[cfg(feature = "exports")]
impl ReportFile {
    /// The page at its default path: in the target directory, as far as it is known without cargo.
    fn html() -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let named = std::env::var_os("CARGO_TARGET_DIR").map(|target| here.join(target));
        let has_lock = |folder: &&Path| folder.join("Cargo.lock").is_file();
        let target = named
            .unwrap_or_else(|| here.ancestors().find(has_lock).unwrap_or(&here).join("target"));
        Self {
            kind: ReportKind::Export(ExportKind::Html),
            path: target.join("memcheck/report.html"),
        }
    }
}

/// The page among the reports.
pub(crate) fn page(reports: &[ReportFile]) -> Option<&ReportFile> {
    reports.iter().find(|report| report.kind.name() == ExportKind::Html.name())
}

/// The stated reports, and the page if `--open` needs one.
#[cfg(feature = "exports")]
pub(crate) fn with_opened(mut reports: Vec<ReportFile>, open: bool) -> Vec<ReportFile> {
    if open && page(&reports).is_none() {
        reports.push(ReportFile::html());
    }
    reports
}

/// A build without pages has no `--open`.
#[cfg(not(feature = "exports"))]
pub(crate) fn with_opened(reports: Vec<ReportFile>, _open: bool) -> Vec<ReportFile> {
    reports
}

impl std::str::FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        #[cfg(feature = "exports")]
        if text == ExportKind::Html.name() {
            return Ok(Self::html());
        }
        let known = || ReportKind::all().map(ReportKind::name).collect::<Vec<_>>().join(", ");
        let (name, path) = text
            .split_once('=')
            .ok_or_else(|| format!("write KIND=PATH, where KIND is one of {}, or html", known()))?;
        let Some(kind) = ReportKind::all().find(|kind| kind.name() == name) else {
            let is_export = ExportKind::ALL.iter().any(|export| export.name() == name);
            return Err(match is_export {
                true => EXPORTS.refusal(&format!("the report `{name}`")),
                false => format!("`{name}` is not a kind of report: {}", known()),
            });
        };
        if path.is_empty() {
            return Err(format!("`{name}=` needs a path"));
        }
        Ok(Self { kind, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_kind_and_its_path() {
        let report: ReportFile = "junit=out/a=b.xml".parse().unwrap();
        assert_eq!((report.kind, report.path), (ReportKind::Junit, PathBuf::from("out/a=b.xml")));
        let page: ReportFile = "html".parse().unwrap();
        assert!(page.path.is_absolute() && page.path.ends_with("target/memcheck/report.html"));
        assert_eq!(with_opened(Vec::new(), true), [page]);
        let own = || "html=a.html".parse::<ReportFile>().unwrap();
        assert_eq!(with_opened(vec![own()], true), [own()]);
        for wrong in ["junit", "pdf=a", "json="] {
            assert!(wrong.parse::<ReportFile>().is_err(), "{wrong}");
        }
        let error = "pdf=a".parse::<ReportFile>().unwrap_err();
        assert!(
            error.contains("junit, json, csv, bencher, sarif, markdown, html, flamegraph, trace"),
            "{error}"
        );
    }
}
