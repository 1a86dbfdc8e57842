//! The reports of `--report`, and their files.

use std::path::PathBuf;

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

impl std::str::FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ReportKind::ALL.map(ReportKind::name).join(", ");
        let (kind, path) = text
            .split_once('=')
            .ok_or_else(|| format!("write KIND=PATH, where KIND is one of {known}"))?;
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
