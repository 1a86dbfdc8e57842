//! Snippets of source around the lines that hold memory.

use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::judgement::location::Roots;
use serde::Serialize;

use super::super::ending::Extent;
use crate::invocation::options::baselines_flag;
use crate::presentation::origin::RunOrigin;
use crate::presentation::presenters::links::SourceLinks;
use crate::presentation::presenters::source_lines;

/// Lines before and after the line of interest.
const AROUND: usize = 3;
/// Lines after the first line of a block.
const BELOW: usize = 6;
const LONGEST_LINE: usize = 200;

/// The files of the workspace and the baselines that a page shows; `None` if no report needs them.
#[derive(Debug, Default)]
pub(in crate::presentation::presenters::exports) struct Sources {
    root: Option<PathBuf>,
    baselines: Option<PathBuf>,
    links: SourceLinks,
}

/// The numbers of lines before and after the line.
fn of_extent(extent: Extent) -> (usize, usize) {
    match extent {
        Extent::Around => (AROUND, AROUND),
        Extent::Below => (0, BELOW),
    }
}

/// The lines around one line, or below it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in super::super) struct Snippet {
    /// `src/model.rs:20`
    pub(in super::super) place: String,
    pub(in super::super) first: usize,
    pub(in super::super) lines: Vec<String>,
}

impl Sources {
    pub(in crate::presentation::presenters::exports) fn new(roots: Roots<'_>) -> Self {
        let Roots { workspace, baselines } = roots;
        Self {
            root: Some(workspace.to_owned()),
            baselines: Some(baselines.to_owned()),
            links: SourceLinks::default(),
        }
    }

    /// Lines refer to the web at the commit of the run, unless they refer to an editor.
    pub(in crate::presentation::presenters::exports) fn link_to_web(&mut self, run: &RunOrigin) {
        if self.links == SourceLinks::default() {
            self.links = SourceLinks::on_the_web(run.lines.as_deref());
        }
    }

    pub(in crate::presentation::presenters::exports) fn link_to_editor(&mut self, template: &str) {
        if let Some(root) = &self.root {
            self.links = SourceLinks::in_editor(template, root);
        }
    }

    pub(in crate::presentation::presenters::exports) fn links(&self) -> &SourceLinks {
        &self.links
    }

    /// Lines without a readable file are left out.
    pub(super) fn snippets(&self, lines: Vec<(String, u32, Extent)>) -> Vec<Snippet> {
        let snippet =
            |(file, line, extent): (String, u32, Extent)| self.snippet(&file, line, extent);
        lines.into_iter().filter_map(snippet).collect()
    }

    /// The line with its number and without the spaces at its start.
    pub(in crate::presentation::presenters::exports) fn line(
        &self,
        file: &str,
        line: u32,
    ) -> Option<String> {
        let text = self.read(file)?;
        let line = text.lines().nth((line as usize).checked_sub(1)?)?;
        Some(cut(line.trim()))
    }

    pub(in super::super) fn snippet(
        &self,
        file: &str,
        line: u32,
        extent: Extent,
    ) -> Option<Snippet> {
        let text = self.read(file)?;
        let line = line as usize;
        let (before, after) = of_extent(extent);
        let first = line.saturating_sub(before).max(1);
        let lines: Vec<String> =
            text.lines().skip(first - 1).take(line + after + 1 - first).map(cut).collect();
        let is_there = first + lines.len() > line;
        is_there.then(|| Snippet { place: format!("{file}:{line}"), first, lines })
    }

    fn read(&self, file: &str) -> Option<String> {
        source_lines::read(self.root.as_deref()?, file)
    }

    /// For a command about the baselines.
    pub(in crate::presentation::presenters::exports) fn baselines_flag(&self) -> Vec<String> {
        let folder = self.baselines.as_deref();
        self.root
            .as_deref()
            .map(|root| baselines_flag(Roots::new(root, folder)))
            .unwrap_or_default()
    }

    /// The text of a snapshot, whose path comes from a test process too.
    pub(super) fn snapshot(&self, path: &Path) -> Option<String> {
        input::read_text_inside(path, self.baselines.as_ref()?, input::SNAPSHOT).ok()
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_snippet_has_the_lines_around_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (1..=9).map(|line| format!("  line {line}\n")).collect();
        fs::write(folder.path().join("a.rs"), text).unwrap();
        let sources = Sources::new(Roots::new(folder.path(), None));
        let snippet = |line| sources.snippet("a.rs", line, Extent::Around);
        let middle = snippet(5).unwrap();
        assert_eq!((middle.first, middle.lines.len()), (2, 7));
        assert_eq!((middle.lines[3].as_str(), middle.place.as_str()), ("  line 5", "a.rs:5"));
        assert_eq!(snippet(1).map(|start| (start.first, start.lines.len())), Some((1, 4)));
        assert_eq!(snippet(9).map(|end| (end.first, end.lines.len())), Some((6, 4)));
        assert_eq!((snippet(10), snippet(0).map(|none| none.first)), (None, Some(1)));
        assert_eq!(sources.line("a.rs", 5).as_deref(), Some("line 5"));
        let below = sources.snippet("a.rs", 2, Extent::Below).unwrap();
        assert_eq!((below.first, below.lines.len()), (2, 7));
        let last = sources.snippet("a.rs", 9, Extent::Below).unwrap();
        assert_eq!((last.first, last.lines), (9, vec!["  line 9".to_owned()]));
        assert_eq!(sources.snippet("a.rs", 10, Extent::Below), None);
    }

    #[test]
    fn only_sources_of_the_workspace_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, secret) = (folder.path().join("ws"), folder.path().join("secret.rs"));
        fs::create_dir(&root).unwrap();
        fs::write(&secret, "secret").unwrap();
        fs::write(root.join("key.pem"), "secret").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("link.rs")).unwrap();
        let sources = Sources::new(Roots::new(&root, None));
        for file in ["../secret.rs", secret.to_str().unwrap(), "key.pem", "link.rs", "none.rs", ""]
        {
            assert_eq!(sources.read(file), None, "{file}");
        }
        assert_eq!(Sources::default().read("a.rs"), None);
    }
}
