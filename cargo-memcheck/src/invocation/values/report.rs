//! The reports of `--report`, and their files.

use std::path::{Path, PathBuf};

/// A report, and the file that it is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFile {
    pub(crate) kind: ReportKind,
    /// Path of the report.
    pub(crate) path: PathBuf,
}

/// Defines the kinds with their names in one list, so that no kind can be missing in
/// [`ReportKind::ALL`].
macro_rules! kinds {
    ($($kind:ident = $name:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ReportKind {
            $($kind),*
        }

        impl ReportKind {
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

kinds! {
    Junit = "junit",
    Json = "json",
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
}

impl ReportFile {
    /// The page at its default path: in the target directory, as far as it is known without cargo.
    fn html() -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let named = std::env::var_os("CARGO_TARGET_DIR").map(|target| here.join(target));
        let has_lock = |folder: &&Path| folder.join("Cargo.lock").is_file();
        let target = named
            .unwrap_or_else(|| here.ancestors().find(has_lock).unwrap_or(&here).join("target"));
        Self { kind: ReportKind::Html, path: target.join("memcheck/report.html") }
    }
}

/// The stated reports, and the page if `--open` needs one.
pub(crate) fn with_opened(mut reports: Vec<ReportFile>, open: bool) -> Vec<ReportFile> {
    if open && !reports.iter().any(|report| report.kind == ReportKind::Html) {
        reports.push(ReportFile::html());
    }
    reports
}

impl std::str::FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == ReportKind::Html.name() {
            return Ok(Self::html());
        }
        let known = ReportKind::ALL.map(ReportKind::name).join(", ");
        let (kind, path) = text
            .split_once('=')
            .ok_or_else(|| format!("write KIND=PATH, where KIND is one of {known}, or html"))?;
        let kind = ReportKind::ALL
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| format!("`{kind}` is not a kind of report: {known}"))?;
        if path.is_empty() {
            return Err(format!("`{}=` needs a path", kind.name()));
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
        assert_eq!(with_opened(Vec::new(), true), [page.clone()]);
        let own: ReportFile = "html=a.html".parse().unwrap();
        assert_eq!(with_opened(vec![own.clone()], true), [own]);
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
