//! Parses the arguments after `--`, which are written for the test harness.
//!
//! Each test runs in a separate process, so the command must apply the arguments that select tests.
//! It passes on the arguments that only change the output of the harness.

/// The arguments after `--`, sorted by purpose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LibtestArgs {
    /// Further filters.
    pub(crate) filters: Vec<String>,
    /// Filters of the tests to leave out.
    pub(crate) skip: Vec<String>,
    /// `--exact`.
    pub(crate) exact: bool,
    /// `--ignored`.
    pub(crate) ignored: bool,
    /// `--include-ignored`.
    pub(crate) include_ignored: bool,
    /// `--nocapture`, `--no-capture`.
    pub(crate) no_capture: bool,
    /// `--test-threads`.
    pub(crate) test_threads: Option<String>,
    /// Arguments for the harness of each test.
    pub(crate) passed_on: Vec<String>,
}

/// Flags that the command applies, because they select tests or change how tests are run.
const UNDERSTOOD: &[&str] = &[
    "--exact",
    "--skip",
    "--ignored",
    "--include-ignored",
    "--nocapture",
    "--no-capture",
    "--test-threads",
];
/// Flags that are passed on to the harness of each test.
const PASSED_ON: &[&str] = &["--show-output", "--quiet", "-q", "--test"];
/// Flags for the harness that have a value. The value must not be taken for a filter.
const WITH_VALUE: &[&str] = &["--color", "-Z"];
/// Flags that the harness accepts only with `-Z unstable-options`.
const UNSTABLE: &[&str] =
    &["--report-time", "--ensure-time", "--force-run-in-process", "--shuffle", "--shuffle-seed"];
/// Flags with which the harness does not run the test, or does not report it in the usual way.
const NOT_A_RUN: &[&str] =
    &["--list", "--bench", "--help", "-h", "--format", "--logfile", "--exclude-should-panic"];

/// Why arguments after `--` are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LibtestError {
    /// With this flag the harness would not run the test as usual.
    #[error("`{0}` after `--` would stop the harness from running the test")]
    NotARun(String),
    /// The harness does not have this flag, and would end without a test.
    #[error("the test harness has no flag `{0}` (after `--`)")]
    Unknown(String),
    /// The harness accepts the flag only with `-Z unstable-options`.
    #[error("`{0}` after `--` is not stable")]
    Unstable(String),
    /// An option lacks its value.
    #[error("`{0}` after `--` needs a value")]
    NoValue(String),
}

impl crate::system::error::CommandError for LibtestError {
    fn exit_code(&self) -> u8 {
        memcheck_core::wire::exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotARun(_) => Some("`cargo memcheck list` prints the tests".to_owned()),
            Self::Unknown(_) => Some(format!(
                "it accepts {}; flags of cargo memcheck come before `--`",
                [UNDERSTOOD, PASSED_ON, WITH_VALUE, UNSTABLE].concat().join(", ")
            )),
            Self::Unstable(_) => Some(
                "with a nightly compiler, the harness accepts it after `-Z \
                 unstable-options`"
                    .into(),
            ),
            Self::NoValue(_) => None,
        }
    }
}

impl LibtestArgs {
    /// Sorts the arguments.
    pub(crate) fn read(args: &[String]) -> Result<Self, LibtestError> {
        let mut read = Self::default();
        let mut args = args.iter();
        let mut unstable = None;
        while let Some(arg) = args.next() {
            let (name, inline) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let mut value = || {
                let value = inline.clone().or_else(|| args.next().cloned());
                value.ok_or_else(|| LibtestError::NoValue(name.to_owned()))
            };
            match name {
                "--exact" => read.exact = true,
                "--ignored" => read.ignored = true,
                "--include-ignored" => read.include_ignored = true,
                "--nocapture" | "--no-capture" => read.no_capture = true,
                "--skip" => read.skip.push(value()?),
                "--test-threads" => read.test_threads = Some(value()?),
                "--shuffle-seed" => {
                    unstable.get_or_insert_with(|| name.to_owned());
                    let value = value()?;
                    read.passed_on.extend([name.to_owned(), value]);
                }
                _ if WITH_VALUE.contains(&name) => {
                    let value = value()?;
                    read.passed_on.extend([name.to_owned(), value]);
                }
                _ if NOT_A_RUN.contains(&name) => {
                    return Err(LibtestError::NotARun(name.to_owned()));
                }
                _ if UNSTABLE.contains(&name) => {
                    unstable.get_or_insert_with(|| name.to_owned());
                    read.passed_on.push(arg.clone());
                }
                // `-Z` and its value can be one word.
                _ if name.starts_with("-Z") => read.passed_on.push(arg.clone()),
                _ if PASSED_ON.contains(&name) => read.passed_on.push(arg.clone()),
                _ if name.starts_with('-') => return Err(LibtestError::Unknown(name.to_owned())),
                _ => read.filters.push(arg.clone()),
            }
        }
        let allowed = read.passed_on.iter().any(|arg| arg.contains("unstable-options"));
        match unstable.filter(|_| !allowed) {
            Some(name) => Err(LibtestError::Unstable(name)),
            None => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<LibtestArgs, LibtestError> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        LibtestArgs::read(&args)
    }

    #[test]
    fn flags_that_select_tests_are_parsed_and_the_rest_is_passed_on() {
        let args = read("llama --skip=a --skip b --exact --ignored --test-threads 3 --show-output")
            .unwrap();
        assert_eq!(args.filters, ["llama"]);
        assert_eq!(args.skip, ["a", "b"]);
        assert!(args.exact && args.ignored);
        assert_eq!(args.test_threads.as_deref(), Some("3"));
        assert_eq!(args.passed_on, ["--show-output"]);
    }

    #[test]
    fn harness_flags_that_run_no_test_are_refused() {
        for name in NOT_A_RUN {
            assert_eq!(read(name), Err(LibtestError::NotARun((*name).to_owned())));
        }
    }

    #[test]
    fn an_unknown_harness_flag_is_refused_with_a_list_of_the_known_ones() {
        let error = read("llama --nonsense=3").unwrap_err();
        assert_eq!(error, LibtestError::Unknown("--nonsense".to_owned()));
        let hint = crate::system::error::CommandError::hint(&error).unwrap();
        for name in ["--exact", "--skip", "--show-output", "--color", "--shuffle"] {
            assert!(hint.contains(name), "{hint}");
        }
        assert_eq!(read("-x"), Err(LibtestError::Unknown("-x".to_owned())));
    }

    #[test]
    fn unstable_harness_flags_need_their_own_flag() {
        let unstable = Err(LibtestError::Unstable("--shuffle".to_owned()));
        assert_eq!(read("--shuffle"), unstable);
        assert_eq!(read("--shuffle --shuffle-seed 3"), unstable);
        let passed_on = read("--shuffle -Zunstable-options").unwrap().passed_on;
        assert_eq!(passed_on, ["--shuffle", "-Zunstable-options"]);
    }

    #[test]
    fn every_flag_that_is_named_is_taken() {
        for name in [UNDERSTOOD, PASSED_ON, WITH_VALUE, UNSTABLE].concat() {
            let line = format!("{name} 3 -Z unstable-options");
            assert!(read(&line).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_value_of_an_option_is_not_a_filter() {
        let args = read("--color always -Z unstable-options --shuffle-seed 7 llama").unwrap();
        assert_eq!(args.filters, ["llama"]);
        let passed_on = args.passed_on.join(" ");
        assert_eq!(passed_on, "--color always -Z unstable-options --shuffle-seed 7");
        assert_eq!(read("--color=never -Zunstable-options a").unwrap().filters, ["a"]);
        for option in ["--skip", "--test-threads", "--color", "-Z"] {
            let error = read(option).unwrap_err();
            assert_eq!(error, LibtestError::NoValue(option.to_owned()));
        }
    }
}
