//! What follows `--`: arguments of the test harness.
//!
//! Each test runs in a process of its own, so what selects tests has to be
//! understood here; what only changes how the harness prints is passed on.

/// The arguments after `--`, sorted by what they are for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LibtestArgs {
    /// Further filters.
    pub(crate) filters: Vec<String>,
    /// Tests to leave out.
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
    /// What the harness itself is given.
    pub(crate) passed_on: Vec<String>,
}

/// Why arguments after `--` are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LibtestError {
    /// Listing, benchmarks and output formats are not for test runs.
    #[error("`{0}` after `--` would stop the harness from running the test")]
    NotARun(String),
    /// An option without its value.
    #[error("`{0}` after `--` needs a value")]
    NoValue(String),
}

impl crate::error::Expected for LibtestError {
    fn exit_code(&self) -> u8 {
        memcheck_core::exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        matches!(self, Self::NotARun(_)).then(|| "to see the tests: `cargo memcheck list`".into())
    }
}

impl LibtestArgs {
    /// Sorts the arguments.
    pub(crate) fn read(args: &[String]) -> Result<Self, LibtestError> {
        let mut read = Self::default();
        let mut args = args.iter();
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
                // What stands behind them is no filter.
                "--color" | "--shuffle-seed" | "-Z" => {
                    let value = value()?;
                    read.passed_on.extend([name.to_owned(), value]);
                }
                "--list" | "--bench" | "--help" | "-h" | "--format" | "--logfile" => {
                    return Err(LibtestError::NotARun(name.to_owned()));
                }
                _ if name.starts_with('-') => read.passed_on.push(arg.clone()),
                _ => read.filters.push(arg.clone()),
            }
        }
        Ok(read)
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
    fn what_selects_is_understood_and_the_rest_is_passed_on() {
        let args = read("llama --skip=a --skip b --exact --ignored --test-threads 3 --show-output")
            .unwrap();
        assert_eq!(args.filters, ["llama"]);
        assert_eq!(args.skip, ["a", "b"]);
        assert!(args.exact && args.ignored);
        assert_eq!(args.test_threads.as_deref(), Some("3"));
        assert_eq!(args.passed_on, ["--show-output"]);
    }

    #[test]
    fn what_would_run_nothing_is_refused() {
        assert!(matches!(read("--list"), Err(LibtestError::NotARun(_))));
    }

    #[test]
    fn a_value_of_an_option_is_no_filter() {
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
