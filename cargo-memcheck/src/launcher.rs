//! `--runner`: the command that starts test processes, as `srun` does on a
//! cluster. Split as a shell would, and never handed to one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long what it starts may take to answer a question: it may have to wait
/// for its turn.
pub(crate) const TURN: Duration = Duration::from_secs(600);

/// Who starts a test process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// We do.
    #[default]
    None,
    /// This command, with the process's own command line behind its words.
    Command(Vec<String>),
}

/// Why a text is no command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a command line: a quote or a backslash is left open")]
pub(crate) struct LauncherError(String);

impl Launcher {
    /// Reads a command line; an empty one is none. A program that is named by a
    /// relative path lies below `folder`, wherever tests are started.
    pub(crate) fn read(text: &str, folder: &Path) -> Result<Self, LauncherError> {
        let mut words = shlex::split(text).ok_or_else(|| LauncherError(text.to_owned()))?;
        let Some(program) = words.first_mut() else { return Ok(Self::None) };
        if program.contains('/') && Path::new(program.as_str()).is_relative() {
            // Put together from its components, it has no `./` in it.
            let path: PathBuf = folder.join(&*program).components().collect();
            *program = path.display().to_string();
        }
        Ok(Self::Command(words))
    }

    /// Starts `program`, or the launcher with it as the first argument.
    pub(crate) fn command(&self, program: &Path) -> Command {
        match self {
            Self::None => Command::new(program),
            Self::Command(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]).arg(program);
                command
            }
        }
    }

    /// Whether somebody else starts test processes.
    pub(crate) fn is_some(&self) -> bool {
        *self != Self::None
    }
}

/// A command line as a shell would take it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    // Words with a zero byte cannot be quoted, and cannot be started either.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        shown(&Launcher::read(text, Path::new("/ws")).unwrap().command(Path::new("/t/mem")))
    }

    #[test]
    fn words_are_split_and_quoted_as_in_a_shell() {
        assert_eq!(line("srun --gres=gpu:1"), "srun '--gres=gpu:1' /t/mem");
        assert_eq!(line("srun --comment 'a b'"), "srun --comment 'a b' /t/mem");
        assert_eq!(line("./on node"), "/ws/on node /t/mem");
        assert_eq!(line("/bin/env -- a"), "/bin/env -- a /t/mem");
    }

    #[test]
    fn an_empty_one_is_none_and_an_open_quote_is_no_command_line() {
        assert_eq!(Launcher::read("  ", Path::new("/ws")), Ok(Launcher::None));
        assert_eq!(line(""), "/t/mem");
        let error = Launcher::read("srun 'a", Path::new("/ws")).unwrap_err();
        assert!(error.to_string().contains("srun 'a"), "{error}");
    }
}
