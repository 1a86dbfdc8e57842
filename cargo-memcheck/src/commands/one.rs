//! Selects the test of a command that takes exactly one.

use memcheck_core::wire::exit;

use crate::discovery::matching::{NoMatch, matching};
use crate::discovery::session::Chosen;
use crate::discovery::task::Task;
use crate::system::error::CommandError;

#[derive(Debug, thiserror::Error)]
pub(super) enum OneError {
    #[error("`{1}` matches {count} tests, but {0} needs exactly one:\n{list}", count = .2.len(), list = .2.join("\n"))]
    Several(&'static str, String, Vec<String>),
    #[error(transparent)]
    None(#[from] NoMatch),
}

impl CommandError for OneError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Several(..) => exit::USAGE,
            Self::None(none) => none.exit_code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Several(..) => Some(
                "write the whole path; -p and --test distinguish tests of the same name".to_owned(),
            ),
            Self::None(none) => none.hint(),
        }
    }
}

/// Once for each device that can run it. Of several matches, the one whose whole path is `name`.
pub(super) fn only(
    command: &'static str,
    name: &str,
    chosen: Vec<Chosen>,
) -> Result<Vec<Task>, OneError> {
    let run = matching(name, chosen)?;
    let id = |task: &Task| (task.binary.id.clone(), task.name().to_owned());
    let ids = |tasks: &[&Task]| {
        let mut ids: Vec<_> = tasks.iter().map(|task| id(task)).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    let all: Vec<&Task> = run.iter().collect();
    let exact: Vec<&Task> = run.iter().filter(|task| task.name() == name).collect();
    let meant = match (ids(&exact).as_slice(), ids(&all).as_slice()) {
        ([only], _) | ([], [only]) => only.clone(),
        (_, several) => {
            let lines = several.iter().map(|(binary, test)| format!("  {binary} {test}"));
            return Err(OneError::Several(command, name.to_owned(), lines.collect()));
        }
    };
    Ok(run.into_iter().filter(|task| id(task) == meant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::{TestSubject, example};

    fn chosen(names: &[&str]) -> Vec<Chosen> {
        let task = |name: &&str| {
            let mut task = example::task();
            if let TestSubject::Test(entry) = &mut task.subject {
                entry.name = (*name).to_owned();
            }
            task
        };
        vec![Chosen { run: names.iter().map(task).collect(), ..Chosen::default() }]
    }

    #[test]
    fn one_test_is_the_only_match_or_the_one_with_the_whole_path() {
        let names = |name, all: &[&str]| -> Vec<String> {
            let tasks = only("plan", name, chosen(all)).unwrap();
            tasks.iter().map(|task| task.name().to_owned()).collect()
        };
        assert_eq!(names("a::lay", &["a::layers"]), ["a::layers"]);
        assert_eq!(names("a::layers", &["a::layers", "a::layers_leaky"]), ["a::layers"]);
        // Once for each device.
        assert_eq!(names("a::b", &["a::b", "a::b"]), ["a::b", "a::b"]);
    }

    #[test]
    fn several_tests_or_none_are_refused() {
        let refused = |all: &[&str]| only("plan", "a::layer", chosen(all)).unwrap_err();
        let several = refused(&["a::layers", "a::layers_leaky"]);
        assert_eq!(several.exit_code(), exit::USAGE);
        assert_eq!(
            several.to_string(),
            "`a::layer` matches 2 tests, but plan needs exactly one:\n  app::mem a::layers\n  app::mem a::layers_leaky"
        );
        assert!(several.hint().unwrap().contains("the whole path"));
        let none = refused(&[]);
        assert_eq!(none.exit_code(), exit::NO_TESTS);
        assert_eq!(none.to_string(), "no memory test matches `a::layer`");
    }
}
