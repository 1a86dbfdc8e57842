//! `cargo memcheck explain`: prints the pages of findings and their causes on stdout, as Markdown unless
//! that is a terminal.

use std::borrow::Cow;

use memcheck_core::judgement::diagnosis::RULES;
use memcheck_core::judgement::finding::{Class, MARKS, TABLE};
use memcheck_core::wire::exit;

use crate::presentation::presenters::{cut, style};
use crate::system::error::{CommandError, Failure};
use crate::system::printing::{print, print_lines};

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
        Some(code) => {
            let page = page(code)?;
            match console::Term::stdout().size_checked() {
                Some((_, columns)) => print_lines(&for_a_terminal(page, columns.into())),
                None => print(page),
            }
        }
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

/// A page without the marks of Markdown. Pages consist of headings, paragraphs and blocks of code.
fn for_a_terminal(page: &str, columns: usize) -> Vec<String> {
    let width = columns.clamp(LEAST, MOST);
    let mut lines = Vec::new();
    for (number, part) in page.split("```").enumerate() {
        if number % 2 == 1 {
            // The first line has the name of the language.
            let code = part.lines().skip(1).map(|line| format!("    {line}"));
            lines.extend(code.chain([String::new()]));
            continue;
        }
        for paragraph in part.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
            match paragraph.strip_prefix('#') {
                Some(heading) => lines.push(style::strong(heading.trim_start_matches('#').trim())),
                None => {
                    lines.extend(items(paragraph).iter().flat_map(|item| wrapped(item, width)));
                    lines.push(String::new());
                }
            }
        }
    }
    lines.pop();
    lines
}

/// The items of a list, or else the paragraph, each in one line.
fn items(paragraph: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in paragraph.lines() {
        match items.last_mut().filter(|_| !line.starts_with(ITEM)) {
            Some(last) => *last += &format!(" {}", line.trim()),
            None => items.push(line.to_owned()),
        }
    }
    items
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let indent = if text.starts_with(ITEM) { "  " } else { "" };
    let options = cut::lines(width).subsequent_indent(indent);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

const ITEM: &str = "- ";

/// The columns of a page: longer lines are hard to read.
const MOST: usize = 100;
const LEAST: usize = 40;

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
    fn every_page_is_shown_in_a_terminal_without_marks_and_whole() {
        let pages = TABLE.iter().map(|row| row.page).chain(RULES.iter().map(|rule| rule.page));
        for page in pages.chain(MARKS.iter().map(|mark| mark.page)) {
            let lines = for_a_terminal(page, 60);
            let plain = |line: &String| {
                console::strip_ansi_codes(&crate::system::escape::terminal(line)).into_owned()
            };
            let lines: Vec<String> = lines.iter().map(plain).collect();
            for line in &lines {
                assert!(!line.starts_with('#') && !line.contains("```"), "{line}");
                assert!(line.starts_with("    ") || line.chars().count() <= 60, "{line}");
                let is_other = ["* ", "|", "> ", "1. "].iter().any(|mark| line.starts_with(mark));
                assert!(!is_other, "this needs a form of its own: {line}");
            }
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let is_mark = |word: &String| word.starts_with("```") || word.starts_with('#');
            let of_page = words(page).into_iter().filter(|word| !is_mark(word));
            assert_eq!(words(&lines.join("\n")), of_page.collect::<Vec<_>>());
        }
        let page = "# a\n\nx\ny\n\n- item\n  of a list\n- another\n";
        assert_eq!(for_a_terminal(page, 3)[1..], ["x y", "", "- item of a list", "- another"]);
        assert_eq!(wrapped("- one two three", 8), ["- one", "  two", "  three"]);
    }

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
