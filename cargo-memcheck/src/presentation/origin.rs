//! The run that results and reports belong to.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::discovery::session::Session;
use crate::system::{escape, shell};

/// Which run this is. What is not known is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunOrigin {
    /// The name of the workspace's package or, if it has several and none at its root, of its folder.
    pub(crate) project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// The address of a line of the sources at the commit, with `{file}` and `{line}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lines: Option<String>,
    /// As it was typed.
    pub(crate) command: String,
    /// Of memcheck.
    pub(crate) version: String,
    /// RFC 3339, in UTC.
    pub(crate) started: String,
}

impl RunOrigin {
    pub(crate) fn of(session: &Session) -> Self {
        let words =
            std::env::args_os().skip(1).map(|word| shell::argument(&word.to_string_lossy()));
        Self {
            project: session.workspace.name(),
            commit: session.commit(),
            branch: session.branch(),
            lines: session.line_address(),
            command: std::iter::once("cargo".to_owned()).chain(words).collect::<Vec<_>>().join(" "),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }

    /// The names and values that are known, for reports that have pairs.
    pub(crate) fn properties(&self) -> Vec<(&'static str, String)> {
        let Self { project, commit, branch, lines: _, command, version, started } = self;
        [
            ("project", Some(project)),
            ("commit", commit.as_ref()),
            ("branch", branch.as_ref()),
            ("command", Some(command)),
            ("version", Some(version)),
            ("started", Some(started)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, escape::line(value?))))
        .collect()
    }
}

#[cfg(test)]
pub(crate) fn example() -> RunOrigin {
    RunOrigin {
        project: "app".to_owned(),
        commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        branch: Some("main".to_owned()),
        lines: Some("https://github.com/o/n/blob/0123456/{file}#L{line}".to_owned()),
        command: "cargo memcheck --ci".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: "2026-11-29T08:00:00Z".to_owned(),
    }
}
