//! `cargo memcheck explain`: prints the pages of findings and their causes on stdout.

use memcheck_core::judgement::diagnosis::RULES;
use memcheck_core::judgement::finding::{Class, MARKS, TABLE};
use memcheck_core::wire::exit;

use crate::system::error::{CommandError, Failure};
use crate::system::printing::print;

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the code of a finding or of a cause")]
struct UnknownCode(String);

impl CommandError for UnknownCode {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        Some(match nearest(&self.0) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`cargo memcheck explain` lists the codes".to_owned(),
        })
    }
}

pub(super) fn explain(code: Option<&str>) -> Result<u8, Failure> {
    match code {
        Some(code) => print(page(code)?),
        None => print(&list()),
    }
    Ok(exit::OK)
}

fn page(code: &str) -> Result<&'static str, UnknownCode> {
    let mut pages = TABLE
        .iter()
        .map(|row| (row.name, row.page))
        .chain(RULES.iter().map(|rule| (rule.code, rule.page)))
        .chain(MARKS.iter().map(|mark| (mark.name, mark.page)));
    let page = pages.find(|(name, _)| *name == code).map(|(_, page)| page);
    page.ok_or_else(|| UnknownCode(code.to_owned()))
}

fn list() -> String {
    let mut text = String::new();
    for (class, title) in [
        (Class::Measured, "measured: exit code 100"),
        (Class::Instrument, "not measured: exit code 104"),
        (Class::Bookkeeping, "bookkeeping: a warning, exit code 5 if denied"),
    ] {
        text += &format!("{title}\n");
        for row in TABLE.iter().filter(|row| row.class == class) {
            text += &format!("  {:<24}{}\n", row.name, row.title);
        }
    }
    text += "causes of growth: named in a finding, and in a profile\n";
    for rule in RULES {
        text += &format!("  {:<24}{}\n", rule.code, rule.title);
    }
    text += "marks on the line of a test\n";
    for mark in MARKS {
        text += &format!("  {:<24}{}\n", mark.name, mark.title);
    }
    text
}

/// A code counts if its similarity, character by character, is above 0.6, or if one text contains
/// the other.
fn nearest(typed: &str) -> Option<&'static str> {
    let typed = typed.to_lowercase().replace('_', "-");
    let part = |name: &str| typed.len() >= 3 && (name.contains(&typed) || typed.contains(name));
    TABLE
        .iter()
        .map(|row| row.name)
        .chain(RULES.iter().map(|rule| rule.code))
        .chain(MARKS.iter().map(|mark| mark.name))
        .map(|name| (similar::TextDiff::from_chars(typed.as_str(), name).ratio(), name))
        .filter(|(ratio, name)| *ratio > 0.6 || part(name))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_and_near_misses_are_recognized() {
        for row in TABLE {
            assert!(list().contains(row.name));
            assert!(page(row.name).unwrap().contains(row.name));
        }
        for rule in RULES {
            assert!(list().contains(rule.code));
            assert!(page(rule.code).unwrap().contains(rule.code));
        }
        for mark in MARKS {
            assert!(list().contains(mark.name) && page(mark.name).unwrap().contains(mark.name));
        }
        assert_eq!(nearest("unknown_value"), Some("unknown-values"));
        assert_eq!(nearest("graph_keep"), Some("graph-kept"));
        assert_eq!(nearest("leek"), Some("leak"));
        assert_eq!(nearest("peak_limit"), Some("peak-limit"));
        assert_eq!(nearest("zzzzzz"), None);
        assert_eq!(page("leek").unwrap_err().exit_code(), exit::USAGE);
    }
}
