//! Links in the terminal from lines of the program to the file or to the editor (OSC 8).

use std::path::{Path, PathBuf};

use crate::build::workspace::escaped;
use crate::presentation::presenters::links::SourceLinks;
use crate::system::escape;

/// The links of a terminal that shows them.
#[derive(Debug)]
pub(super) struct Hyperlinks {
    root: PathBuf,
    links: SourceLinks,
}

impl Hyperlinks {
    /// `None` if stderr is not a terminal that is known to show links. An editor that the user names is
    /// enough, because most other terminals ignore the sequence.
    pub(super) fn new(root: &Path, editor: Option<&str>) -> Option<Self> {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_terminal = console::Term::stderr().is_term();
        let shows = is_terminal && (editor.is_some() || is_known(&get));
        let file = format!("file://{}/{{file}}", escaped(&root.to_string_lossy()));
        let links = match editor {
            Some(editor) => SourceLinks::in_editor(editor, root),
            None => SourceLinks::in_editor(&file, root),
        };
        shows.then(|| Self { root: root.to_owned(), links })
    }

    /// The text with a link for each `src/model.rs:20` that exists.
    pub(super) fn linked(&self, text: &str) -> String {
        let words = text.split(' ').map(|word| {
            let place = word.trim_matches(['(', ')', ',']);
            let address = place.rsplit_once(':').and_then(|(file, line)| {
                let address = self.links.of(file, line.parse().ok()?)?;
                self.root.join(file).is_file().then_some(address)
            });
            match address {
                Some(address) => word.replace(place, &escape::linked(&address, place)),
                None => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// By the variables that terminals set, as rustc and cargo do it.
fn is_known(get: &dyn Fn(&str) -> Option<String>) -> bool {
    if let Some(forced) = get("FORCE_HYPERLINK") {
        return forced != "0";
    }
    let program = get("TERM_PROGRAM").unwrap_or_default();
    let term = get("TERM").unwrap_or_default();
    let vte = get("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "zed"];
    let terms = ["kitty", "alacritty", "foot", "wezterm", "ghostty"];
    // VTE had a bug before 0.50.
    vte.is_some_and(|version| version >= 5_000)
        || programs.contains(&program.as_str())
        || terms.iter().any(|name| term.contains(name))
        || ["WT_SESSION", "KONSOLE_VERSION", "DOMTERM"].iter().any(|name| get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_files_that_exist_have_links() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.rs"), "").unwrap();
        let root = folder.path();
        let links = SourceLinks::in_editor("x://{path}:{line}", root);
        let links = Hyperlinks { root: root.to_owned(), links };
        let shown = |text: &str| escape::terminal(&links.linked(text));
        let link = format!("\x1b]8;;x://{}/a.rs:7\x1b\\a.rs:7\x1b]8;;\x1b\\", root.display());
        assert_eq!(shown("  a.rs:7 (mem::step)"), format!("  {link} (mem::step)"));
        assert_eq!(
            shown("f (b.rs:1), called from (a.rs:7),"),
            format!("f (b.rs:1), called from ({link}),")
        );
        for text in ["b.rs:7", "/etc/passwd:1", "a.rs", "a.rs:x", "grows by 1: 2", ""] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn a_terminal_is_known_by_its_variables() {
        let known = |name: &'static str, value: &'static str| {
            is_known(&|asked| (asked == name).then(|| value.to_owned()))
        };
        let some = [
            ("VTE_VERSION", "6003"),
            ("TERM_PROGRAM", "vscode"),
            ("TERM", "xterm-kitty"),
            ("WT_SESSION", "x"),
            ("FORCE_HYPERLINK", "1"),
        ];
        assert!(some.iter().all(|(name, value)| known(name, value)));
        for (name, value) in [("VTE_VERSION", "4800"), ("TERM", "xterm"), ("FORCE_HYPERLINK", "0")]
        {
            assert!(!known(name, value), "{name}={value}");
        }
    }
}
