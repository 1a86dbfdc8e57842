//! Finds the tests that match a name, for commands that work on a single test.

use memcheck_core::wire::exit;

use crate::discovery::session::Chosen;
use crate::discovery::task::Task;
use crate::system::error::CommandError;

#[derive(Debug, thiserror::Error)]
#[error("no memory test matches `{name}`{why}")]
pub(crate) struct NoMatch {
    name: String,
    why: &'static str,
}

impl CommandError for NoMatch {
    fn exit_code(&self) -> u8 {
        exit::NO_TESTS
    }

    fn hint(&self) -> Option<String> {
        Some("`cargo memcheck list` shows the tests".to_owned())
    }
}

pub(crate) fn matching(name: &str, chosen: Vec<Chosen>) -> Result<Vec<Task>, NoMatch> {
    let (mut run, mut ignored, mut elsewhere) = (Vec::new(), 0, 0);
    for of_leg in chosen {
        run.extend(of_leg.run);
        ignored += of_leg.ignored.len();
        elsewhere += of_leg.elsewhere.len();
    }
    let why = match (ignored, elsewhere) {
        _ if !run.is_empty() => return Ok(run),
        (1.., _) => ": the matching tests are ignored (--run-ignored all)",
        (_, 1..) => ": the matching tests are for another device (--device)",
        _ => "",
    };
    Err(NoMatch { name: name.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_tests_that_do_not_run_have_a_reason() {
        let task = crate::discovery::task::example::task;
        let why = |chosen| matching("a", vec![Chosen::default(), chosen]).unwrap_err().why;
        assert_eq!(why(Chosen::default()), "");
        let elsewhere = Chosen { elsewhere: vec![task()], ..Chosen::default() };
        assert!(why(elsewhere).contains("--device"));
        let ignored = || Chosen { ignored: vec![task()], ..Chosen::default() };
        assert!(why(ignored()).contains("--run-ignored all"));
        let runs = Chosen { run: vec![task()], ..ignored() };
        assert_eq!(matching("a", vec![ignored(), runs]).unwrap().len(), 1);
    }
}
