//! The results of each format in `recorded/formats`: those of the present one are read with all
//! their figures, and the others are refused by name.

use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::measurement::record;
use memcheck_core::wire::{exit, protocol};
use serde_json::Value;

use super::line::ResultLine;
use super::run::VERSION;
use super::*;
use crate::system::error::CommandError;

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded/formats")
}

fn present() -> String {
    format!("{VERSION}.{}.{}", protocol::VERSION, record::VERSION)
}

/// The first value of `kept` that `read` lacks or has differently, with its place.
fn lost(kept: &Value, read: &Value, at: &str) -> Option<String> {
    match (kept, read) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().find_map(|(name, value)| {
            let at = format!("{at}/{name}");
            match read.get(name) {
                Some(read) => lost(value, read, &at),
                None => Some(format!("{at} is missing")),
            }
        }),
        (Value::Array(kept), Value::Array(read)) if kept.len() == read.len() => {
            let pairs = kept.iter().zip(read).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (kept, read))| lost(kept, read, &format!("{at}/{index}")))
        }
        _ if kept == read => None,
        _ => Some(format!("{at}: {kept:.200} was read as {read:.200}")),
    }
}

/// A later version may add fields. It must not read a figure as another one, or leave it out.
#[test]
fn results_of_this_format_are_read_with_all_their_figures() {
    let folder = formats().join(present());
    let text = input::read_text(&file(&folder), input::RESULTS)
        .expect("a change of the format adds a result in recorded/formats");
    let results = read(&folder).unwrap();
    assert_eq!(results.incomplete, None);
    let mut tests = results.tests.into_iter();
    let mut figures = 0;
    for line in text.lines() {
        let kept: Value = serde_json::from_str(line).unwrap();
        let read = match kept.as_object().unwrap().keys().next().unwrap().as_str() {
            "test" => ResultLine::Test(tests.next().unwrap()),
            _ => ResultLine::<Test>::parse(line).unwrap(),
        };
        let read = serde_json::to_value(&read).unwrap();
        assert_eq!(lost(&kept, &read, ""), None);
        let spaces = kept["test"]["outcome"]["report"]["record"]["spaces"].as_object();
        figures += spaces.into_iter().flatten().count();
    }
    assert!(figures >= 2 && tests.next().is_none(), "{figures}");
}

#[test]
fn results_of_an_earlier_format_are_refused_by_its_name_with_the_next_step() {
    let mut refused = 0;
    for entry in formats().read_dir().unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !folder.is_dir() || name == present() {
            continue;
        }
        let error = read(&folder).unwrap_err();
        assert_eq!(error.exit_code(), exit::USAGE, "{name}");
        let shown = error.to_string();
        assert!(shown.contains(&format!("cargo-memcheck 0.1.0 (format {name})")), "{shown}");
        assert!(shown.ends_with(&format!("(format {})", present())), "{shown}");
        assert!(error.hint().unwrap().starts_with("run the tests again"), "{:?}", error.hint());
        refused += 1;
    }
    assert!(refused >= 2, "{refused}");
}
