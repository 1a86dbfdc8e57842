//! The YAML of snapshots. A snapshot can come from a stranger, so the reader has limits, and it
//! refuses anchors, tags and duplicate keys, which neither insta nor memcheck writes.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::super::baseline::{Baseline, Figures, Holders, Laws};
    use super::super::snapshot::SnapshotParts;
    use super::read::MAX_BYTES;
    use super::*;

    fn value(text: &str) -> Result<Value, String> {
        read(text)
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        for (text, expected) in [
            ("a: 18446744073709551615", json!({"a": u64::MAX})),
            ("a: -1\nb: +7", json!({"a": -1, "b": 7})),
            ("a: 1.5\nb: 1e3", json!({"a": 1.5, "b": 1000.0})),
            ("a: '1'\nb: \"1\"\nc: !!x", json!(null)),
            ("a: '1'\nb: \"\\u001b\"", json!({"a": "1", "b": "\u{1b}"})),
            ("a: ~\nb: null\nc:", json!({"a": null, "b": null, "c": null})),
            ("a: true\nb: no\nc: 1_000", json!({"a": true, "b": "no", "c": "1_000"})),
            ("a: 0.11.1\nb: 010\nc: 0x10", json!({"a": "0.11.1", "b": "010", "c": "0x10"})),
            ("[1, {a: b}]", json!([1, {"a": "b"}])),
            ("a:\n- 1\n- b\n", json!({"a": [1, "b"]})),
        ] {
            let found = value(text);
            if expected.is_null() {
                assert!(found.is_err(), "{text}: {found:?}");
            } else {
                assert_eq!(found, Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn text_that_snapshots_never_have_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "it is empty"),
            ("# only a comment", "it is empty"),
            ("a: 1\na: 2", "line 2: the key `a` occurs twice"),
            ("a: &x 1\nb: *x", "line 1: it has an anchor"),
            ("a: !!str 1", "line 1: it has a tag"),
            ("a: 1\n---\nb: 1", "line 2: it has a second document"),
            ("? [a]\n: 1", "line 1: a key is not text"),
            ("a: [", "line 2: while parsing a node"),
            (&"- ".repeat(20), "line 1: it is nested too deeply"),
        ] {
            let error = value(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn hostile_text_is_refused_at_once() {
        let bomb = (1..20).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            let last = n - 1;
            format!("{text}a{n}: &a{n} [*a{last}, *a{last}, *a{last}]\n")
        });
        let unit = |part: &str| part.repeat(200_000 / part.len());
        let mut texts: Vec<String> = [
            "[", "{", "- ", "? ", "&a ", "a: ", "[[]", "'", "\"", "- [\n", "!a ", "*a ", "#", "\t",
        ]
        .into_iter()
        .map(unit)
        .collect();
        texts.extend([bomb, "a: ".to_owned() + &unit("["), "x".repeat(MAX_BYTES + 1)]);
        for text in texts {
            let start: String = text.chars().take(8).collect();
            for whole in [
                text.clone(),
                format!("---\n{text}\n---\nhost:\n"),
                format!("---\ninfo:\n  memcheck: 1\n---\n{text}\n"),
            ] {
                let before = Instant::now();
                let baseline = Baseline::from_text(&whole);
                let time = before.elapsed();
                assert!(matches!(baseline, Baseline::Corrupt(_)), "{start:?}: {baseline:?}");
                // A reader without limits needs a minute.
                assert!(time < Duration::from_secs(20), "{start:?} takes {time:?}");
            }
        }
    }

    #[test]
    fn a_written_string_is_read_as_the_same_string() {
        let special = "-?:,[]{}#&*!|>'\"%@`~=<\\ \n\r\t\u{0}\u{1b}\u{7f}\u{85}\u{9b}\u{a0}\u{2028}\u{202e}\u{2066}\u{feff}\u{fffe}\u{ffff}é😀a0.";
        let mut strings: Vec<String> = [
            "", "null", "0", "-1", "1.5", "1e5", ".5", "true", "~", "0x1f", ".nan", "a: b", "a #c",
            "---", "--- a", "...",
        ]
        .map(str::to_owned)
        .to_vec();
        for a in special.chars() {
            strings.extend([format!("{a}"), format!("{a}x"), format!("x{a}"), format!("x{a} y")]);
            strings.extend(special.chars().map(|b| format!("{a}{b}")));
        }
        for text in &strings {
            let map = BTreeMap::from([(text, BTreeMap::from([("b", text)]))]);
            let written = write(&map);
            assert_eq!(
                read::<Value>(&written),
                Ok(json!({text: {"b": text}})),
                "{text:?}: {written}"
            );
            let raw =
                |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2066}\u{2028}".contains(c);
            assert!(!written.contains(raw), "{written:?}");
            assert_eq!(written.lines().count(), 2, "{written:?}");
        }
        assert!(strings.len() > 1_000);
    }

    fn snapshots(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                snapshots(&path, found);
            } else if name.ends_with(".snap") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_snapshot_of_this_repository_is_read_and_written_again_without_a_change() {
        let mut found = Vec::new();
        snapshots(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
        let mut baselines = 0;
        for path in found {
            let text = std::fs::read_to_string(&path).unwrap();
            let Some(parts) = SnapshotParts::of(&text).ok().filter(SnapshotParts::is_memcheck)
            else {
                continue;
            };
            baselines += 1;
            let body = match Laws::from_yaml(parts.body) {
                Ok(laws) => laws.to_yaml(),
                Err(_) => {
                    let holders = Holders::from_yaml(parts.body);
                    Figures::from_yaml(parts.body).unwrap().to_yaml(&holders)
                }
            };
            assert_eq!(body, parts.body, "{}", path.display());
        }
        assert!(baselines > 100, "{baselines}");
    }
}
