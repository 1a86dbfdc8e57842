//! `--runner`: the command that starts test processes, such as `srun` on a cluster. Its command
//! line is split with the rules of a shell, but a shell is not used.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::system::binary::Binary;

/// A launched process may have to wait in a queue before it answers.
pub(crate) const TURN: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Launcher {
    #[default]
    None,
    /// The command line of the process is appended to these words.
    Command(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a command line: a quote or a backslash is left open")]
pub(crate) struct LauncherError(String);

impl Launcher {
    /// Empty for no launcher. A relative program is resolved against `folder`, because tests start
    /// in other folders.
    pub(crate) fn read(text: &str, folder: &Path) -> Result<Self, LauncherError> {
        let mut words = shlex::split(text).ok_or_else(|| LauncherError(text.to_owned()))?;
        let Some(program) = words.first_mut() else { return Ok(Self::None) };
        // A name without a folder is searched for in `PATH`.
        if program.contains('/') && Path::new(program.as_str()).is_relative() {
            // Collecting the components removes a `./` from the path.
            let path: PathBuf = folder.join(&*program).components().collect();
            *program = path.display().to_string();
        }
        Ok(Self::Command(words))
    }

    /// A launcher may start it on another machine, where only its path is known.
    pub(crate) fn start(&self, binary: &Binary) -> Command {
        match self {
            Self::None => self.command(&binary.pinned_path()),
            Self::Command(_) => self.command(binary.path()),
        }
    }

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

    pub(crate) fn is_some(&self) -> bool {
        *self != Self::None
    }
}

pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    // A word with a zero byte cannot be quoted. It cannot be started either.
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
    fn an_empty_launcher_is_none_and_an_open_quote_is_an_error() {
        assert_eq!(Launcher::read("  ", Path::new("/ws")), Ok(Launcher::None));
        assert_eq!(line(""), "/t/mem");
        let error = Launcher::read("srun 'a", Path::new("/ws")).unwrap_err();
        assert!(error.to_string().contains("srun 'a"), "{error}");
    }
}
