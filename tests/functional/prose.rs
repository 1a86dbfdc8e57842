//! The English of comments, pages and messages, by the words that make a sentence hard to read.
//!
//! A clause that begins with "what" or "where" has no noun, and "nobody" or "is no" turns a plain
//! statement around. The limits are twice the rates of cargo-mutants, nextest and insta. Reasons
//! ("because", "since") and obligations ("must", "should", "can") have a least rate.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::fixture::workspace;

/// Words per 1,000, with the most or the least that is allowed.
const MOST: [(&str, &[&str], f64); 5] = [
    ("what", &["what"], 2.0),
    ("said", &["say", "says", "said", "saying"], 0.4),
    ("where", &["where"], 3.0),
    ("nobody", &["nobody", "nothing"], 1.0),
    ("is no", &["is no", "are no", "was no"], 0.6),
];
const LEAST: [(&str, &[&str], f64); 2] =
    [("because", &["because", "since"], 1.2), ("must", &["should", "must", "can"], 5.0)];

/// The words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '\'' || c == '’';
    let words = text.split(|c: char| !letter(c)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The number of times that one of `phrases`, of one or two words, is in a text.
fn count(words: &[String], phrases: &[&str]) -> usize {
    let is = |window: &[String], phrase: &str| window.join(" ") == phrase;
    let of = |phrase: &str| {
        let length = phrase.split(' ').count();
        words.windows(length).filter(|window| is(window, phrase)).count()
    };
    phrases.iter().map(|phrase| of(phrase)).sum()
}

/// The rates of a text that are out of their limits. `least` is false for texts that state
/// neither reasons nor obligations.
fn beyond(name: &str, text: &str, least: bool) -> Vec<String> {
    let words = words(text);
    let rate =
        |phrases: &[&str]| 1_000.0 * count(&words, phrases) as f64 / words.len().max(1) as f64;
    let most = MOST.iter().filter(|(_, phrases, most)| rate(phrases) > *most);
    let few = LEAST.iter().filter(|(_, phrases, limit)| least && rate(phrases) < *limit);
    let line = |(word, phrases, limit): &(&str, &[&str], f64)| {
        format!("{name}: {:.1} times \"{word}\" per 1,000 words, limit {limit}", rate(phrases))
    };
    most.chain(few).map(line).collect()
}

/// The comment lines of a source file.
fn comments(source: &str) -> String {
    let lines = source.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    lines.map(|line| line.trim_start_matches(['/', '!'])).collect::<Vec<_>>().join("\n")
}

/// The text of a page outside code fences.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// Adds the string literals of production code, without those of attributes and documentation.
fn literals(tokens: TokenStream, into: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let attribute = tokens.next().map(|token| token.to_string()).unwrap_or_default();
                if attribute.replace(' ', "") == "[cfg(test)]" {
                    // The item that follows is a test: up to its body or its semicolon.
                    for token in tokens.by_ref() {
                        match token {
                            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                                break;
                            }
                            TokenTree::Punct(end) if end.as_char() == ';' => break,
                            _ => {}
                        }
                    }
                } else if attribute.starts_with("[error") || attribute.starts_with("[arg") {
                    // Messages of errors, and help.
                    literals(attribute.parse().expect("tokens"), into);
                }
            }
            TokenTree::Group(group) => literals(group.stream(), into),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.starts_with('"') || text.starts_with("r#") || text.starts_with("r\"") {
                    into.push(text.trim_matches(['r', '#', '"']).to_owned());
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The files below a folder with this extension, except in build directories, snapshots and
/// recordings.
fn files(folder: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    const OTHERS: [&str; 5] = ["target", ".git", "snapshots", "recordings", "book"];
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !OTHERS.contains(&name.as_str()) {
                files(&path, extension, into);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
}

fn all(folder: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    files(folder, extension, &mut paths);
    assert!(!paths.is_empty(), "{}: no files", folder.display());
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a text");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The crates whose messages users read.
const CRATES: [&str; 10] = [
    "cargo-memcheck",
    "memcheck-conduct",
    "memcheck-core",
    "memcheck-estimate",
    "memcheck-kernels",
    "memcheck-ledger",
    "memcheck-limits",
    "memcheck-macros",
    "memcheck-runtime",
    "memcheck-sim",
];

/// The messages of a crate: its string literals that are sentences or fragments of some words.
fn messages(name: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in all(&workspace().join(name).join("src"), "rs") {
        let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
        if !is_test {
            let tokens: TokenStream = text.parse().expect("a source file");
            literals(tokens, &mut messages);
        }
    }
    messages.retain(|message| message.split(' ').count() >= 4);
    messages
}

#[test]
fn comments_and_pages_are_plain_english() {
    let root = workspace();
    let comments: String = all(&root, "rs").iter().map(|(_, text)| comments(text) + "\n").collect();
    let pages: String = all(&root, "md").iter().map(|(_, text)| prose(text) + "\n").collect();
    let found = beyond("comments and pages", &(comments + &pages), true);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn messages_are_plain_english() {
    let mut all = String::new();
    for name in CRATES {
        let messages = messages(name);
        assert!(!messages.is_empty(), "{name} has no messages");
        all += &(messages.join("\n") + "\n");
    }
    let found = beyond("messages", &all, false);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_message_begins_with_its_subject() {
    const RIDDLES: [&str; 10] = [
        "what ",
        "whatever ",
        "who ",
        "whoever ",
        "where ",
        "that which ",
        "nobody ",
        "somebody ",
        "nothing ",
        "none of ",
    ];
    let mut found = Vec::new();
    for name in CRATES {
        for message in messages(name) {
            let text = message.trim_start().to_lowercase();
            if RIDDLES.iter().any(|riddle| text.starts_with(riddle)) {
                found.push(format!("{name}: {message}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_riddle_is_found() {
    let riddle = "What is meant is resolved once, where nobody says it is no riddle.";
    assert_eq!(beyond("text", riddle, true).len(), 7);
    let plain = "The parent resolves limits once, because a child cannot. It must and can.";
    assert_eq!(beyond("text", plain, true), Vec::<String>::new());
    let source =
        "#[doc = \"no\"] #[error(\"a b\")] fn f() { g(\"c\"); } #[cfg(test)] mod t { \"d\" }";
    let mut found = Vec::new();
    literals(source.parse().unwrap(), &mut found);
    assert_eq!(found, ["a b", "c"]);
}
