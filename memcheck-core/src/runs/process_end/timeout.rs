//! The time-out of a test that took too long: its value and its source.

use std::time::Duration;

use crate::limits::{Setting, Source};

/// The place where the time-out was set, in the words of that place.
pub(super) fn origin(timeout: &Setting<Duration>) -> String {
    let value = humantime::format_duration(timeout.value);
    match &timeout.source {
        Source::BuiltIn => "the default of `timeout`".to_owned(),
        Source::Default => {
            format!("`timeout = \"{value}\"` in `[default]` of the configuration file")
        }
        Source::Attribute => format!("`timeout = \"{value}\"` in its attribute"),
        Source::Override(number) => {
            format!("`timeout = \"{value}\"` in `[[override]]` {number} of the configuration file")
        }
        Source::Environment => format!("`MEMCHECK_TIMEOUT={value}`"),
        Source::Flag => format!("`--timeout {value}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_the_words_of_its_place() {
        let of = |source| origin(&Setting { value: Duration::from_secs(90), source });
        assert_eq!(of(Source::BuiltIn), "the default of `timeout`");
        assert_eq!(of(Source::Attribute), "`timeout = \"1m 30s\"` in its attribute");
        let file = "of the configuration file";
        assert_eq!(of(Source::Default), format!("`timeout = \"1m 30s\"` in `[default]` {file}"));
        assert_eq!(
            of(Source::Override(3)),
            format!("`timeout = \"1m 30s\"` in `[[override]]` 3 {file}")
        );
        assert_eq!(of(Source::Environment), "`MEMCHECK_TIMEOUT=1m 30s`");
        assert_eq!(of(Source::Flag), "`--timeout 1m 30s`");
    }
}
