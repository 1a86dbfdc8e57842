//! Addresses of lines of the sources: in an editor, or on the web at the commit of a run.

use std::path::{Component, Path};

use crate::build::workspace::escaped;

/// An address with `{file}`, relative to the workspace, and `{line}`; `None` if none is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourceLinks(Option<String>);

impl SourceLinks {
    /// Pages on the web, as results have them. Results from elsewhere could name any address, and a
    /// browser runs some of them.
    #[cfg(feature = "exports")]
    pub(super) fn on_the_web(template: Option<&str>) -> Self {
        Self(template.filter(|it| it.starts_with("https://")).map(str::to_owned))
    }

    /// Lines of files on this machine, in the editor that answers to this address with `{path}` and
    /// `{line}`.
    pub(super) fn in_editor(template: &str, root: &Path) -> Self {
        let file = format!("{}/{{file}}", escaped(&root.to_string_lossy()));
        Self(Some(template.replace("{path}", &file)))
    }

    #[cfg(feature = "exports")]
    pub(super) fn template(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The address of a line, if it is one of the workspace.
    pub(super) fn of(&self, file: &str, line: u32) -> Option<String> {
        let template = self.0.as_ref()?;
        let mut parts = Path::new(file).components();
        let is_inside = !file.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
        is_inside.then(|| {
            template.replace("{file}", &escaped(file)).replace("{line}", &line.to_string())
        })
    }
}

#[cfg(all(test, feature = "exports"))]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_workspace_has_an_address_and_no_other_one() {
        let web = "https://github.com/o/n/blob/abc/{file}#L{line}";
        let web = SourceLinks::on_the_web(Some(web));
        assert_eq!(
            web.of("src/a b.rs", 7).as_deref(),
            Some("https://github.com/o/n/blob/abc/src/a%20b.rs#L7")
        );
        for file in ["/etc/passwd", "../a.rs", "", "src/../../a.rs"] {
            assert_eq!(web.of(file, 1), None, "{file}");
        }
        for template in [None, Some("javascript:alert({line})"), Some("http://host/{file}")] {
            assert_eq!(SourceLinks::on_the_web(template).of("a.rs", 1), None, "{template:?}");
        }
        let editor = SourceLinks::in_editor("vscode://file{path}:{line}", Path::new("/w s"));
        assert_eq!(editor.of("a.rs", 3).as_deref(), Some("vscode://file/w%20s/a.rs:3"));
    }
}
