//! The reports of `--report`, and their files.

use std::path::PathBuf;

/// A report, and the file that it is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFile {
    /// The kind, one of [`ReportFile::KINDS`].
    pub(crate) kind: &'static str,
    /// Path of the report.
    pub(crate) path: PathBuf,
}

impl ReportFile {
    /// The kinds of reports.
    pub(crate) const KINDS: [&'static str; 12] = [
        "junit",
        "json",
        "csv",
        "bencher",
        "sarif",
        "markdown",
        "html",
        "flamegraph",
        "trace",
        "pprof",
        "memory-viz",
        "memory-viz-json",
    ];
}

impl std::str::FromStr for ReportFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::KINDS.join(", ");
        let (kind, path) = text
            .split_once('=')
            .ok_or_else(|| format!("write KIND=PATH, where KIND is one of {known}"))?;
        let kind = Self::KINDS
            .into_iter()
            .find(|known| *known == kind)
            .ok_or_else(|| format!("`{kind}` is not a kind of report: {known}"))?;
        if path.is_empty() {
            return Err(format!("`{kind}=` needs a path"));
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
        assert_eq!((report.kind, report.path), ("junit", PathBuf::from("out/a=b.xml")));
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
