//! `cargo memcheck init`: adds the dependency, a first memory test and a workflow to a package. It
//! shows all changes first, and asks before it writes.

use std::path::{Path, PathBuf};

use anyhow::Context;
use console::{Key, Term};
use memcheck_core::wire::exit;
use similar::TextDiff;

use crate::build::starter::{self, ChangedFile, Starter, StarterError};
use crate::build::workspace::Workspace;
use crate::invocation::cli::InitArgs;
use crate::invocation::printed::PrintedCommand;
use crate::presentation::presenters::style;
use crate::system::error::{CommandError, Failure};
use crate::system::files;
use crate::system::printing::{eprint_line, eprint_lines};

#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("{} exists already, and init replaces no file", .0.display())]
    Exists(PathBuf),
    #[error("init asks before it writes, but there is no terminal to ask on")]
    NoTerminal,
}

impl CommandError for InitError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Exists(_) => "--name gives the new file another name".to_owned(),
            Self::NoTerminal => "--yes writes these files without a question".to_owned(),
        })
    }
}

/// A file that init writes.
#[derive(Debug)]
struct PlannedFile {
    path: PathBuf,
    /// `None` if it does not exist yet.
    before: Option<String>,
    text: String,
}

pub(super) fn init(args: &InitArgs) -> Result<u8, Failure> {
    let workspace = Workspace::outline(&args.workspace.cargo())?;
    let starter = Starter::find(&workspace, args)?;
    let files = plan(&starter, args)?;
    show(&starter, &files);
    if !args.yes {
        let term = Term::stderr();
        if !(term.is_term() && console::user_attended()) {
            return Err(InitError::NoTerminal.into());
        }
        eprint_line!("write these files? [y/N]");
        if !is_yes(&term.read_key().context("reading a key")?) {
            eprint_line!("no file was changed");
            return Ok(exit::DENIED);
        }
    }
    for file in &files {
        let written = files::replace(&file.path, file.text.as_bytes());
        written.with_context(|| format!("writing {}", file.path.display()))?;
    }
    if let Some(update) = starter.update() {
        eprint_line!("Cargo.lock has candle of the registry, and this makes it follow the patch:");
        eprint_line!("  {}", style::hint(&update));
    }
    let next = PrintedCommand::RunFirstTest.with(["-p", starter.package()]);
    eprint_line!("done; run the test with {}", style::hint(&next));
    Ok(exit::OK)
}

fn is_yes(key: &Key) -> bool {
    matches!(key, Key::Char('y' | 'Y'))
}

/// The manifests come last, so that a package is never left with a dependency but without a test.
fn plan(starter: &Starter, args: &InitArgs) -> Result<Vec<PlannedFile>, Failure> {
    let mut files = Vec::new();
    let test = starter.folder().join("tests").join(format!("{}.rs", args.name));
    let test = new_file(test, starter.test()).map_err(InitError::Exists)?;
    files.push(test);
    if !args.no_workflow {
        let root = repository(starter.workspace_root());
        let path = root.join(".github/workflows/memcheck.yml");
        match workflow(path, starter, args) {
            Ok(workflow) => files.push(workflow),
            Err(why) => eprint_line!("{why}"),
        }
    }
    let manifests = starter.manifests(args)?.into_iter();
    files.extend(manifests.map(|ChangedFile { path, before, text }| PlannedFile {
        path,
        before: Some(before),
        text,
    }));
    Ok(files)
}

/// The error is the reason why there is no new workflow.
fn workflow(path: PathBuf, starter: &Starter, args: &InitArgs) -> Result<PlannedFile, String> {
    let exists = |path: PathBuf| format!("{} exists already and stays as it is", path.display());
    // One workflow runs the tests of all packages. It exists if init has run for another package.
    let planned = new_file(path, String::new()).map_err(exists)?;
    let source = starter.command_source(args).ok_or_else(|| {
        "no workflow is written, because CI could not install the command: --git names the \
         repository of memcheck, and so does the git remote `origin` of the clone that --path names"
            .to_owned()
    })?;
    Ok(PlannedFile { text: starter::workflow(&source), ..planned })
}

/// The error is the path of a file that exists.
fn new_file(path: PathBuf, text: String) -> Result<PlannedFile, PathBuf> {
    match path.symlink_metadata() {
        Ok(_) => Err(path),
        Err(_) => Ok(PlannedFile { path, before: None, text }),
    }
}

/// GitHub reads workflows at the root of the repository.
fn repository(workspace: &Path) -> &Path {
    let is_root = |folder: &&Path| folder.join(".git").exists();
    workspace.ancestors().find(is_root).unwrap_or(workspace)
}

fn show(starter: &Starter, files: &[PlannedFile]) {
    eprint_line!("{}", starter.described());
    for PlannedFile { path, before, text } in files {
        let word = if before.is_some() { "change" } else { "create" };
        eprint_line!("{}", style::strong(&format!("{word} {}", path.display())));
        let before = before.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(before, text.as_str());
        let changes = diff.unified_diff().context_radius(2).to_string();
        let lines: Vec<String> = changes.lines().map(colored).collect();
        eprint_lines(&lines);
    }
}

fn colored(line: &str) -> String {
    match line.chars().next() {
        Some('+') => style::good(line),
        Some('-') => style::warning(line),
        _ => line.to_owned(),
    }
}

impl CommandError for StarterError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        StarterError::hint(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_is_a_yes() {
        assert!(is_yes(&Key::Char('y')) && is_yes(&Key::Char('Y')));
        for key in [Key::Enter, Key::Char('n'), Key::Escape] {
            assert!(!is_yes(&key), "{key:?}");
        }
    }

    #[test]
    fn an_existing_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mem.rs");
        assert!(new_file(path.clone(), String::new()).is_ok());
        std::fs::write(&path, "").unwrap();
        let error = InitError::Exists(new_file(path, String::new()).unwrap_err());
        assert!(error.hint().is_some_and(|hint| hint.contains("--name")));
        assert!(error.to_string().contains("exists already"), "{error}");
    }

    #[test]
    fn a_workflow_belongs_to_the_root_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("rust");
        std::fs::create_dir_all(&workspace).unwrap();
        assert_eq!(repository(&workspace), workspace);
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(repository(&workspace), folder.path());
    }
}
