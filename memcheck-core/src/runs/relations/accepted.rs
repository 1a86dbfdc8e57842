//! The baseline of the laws of a test. It is a snapshot in the same folder as those of its cases
//! and has insta's format, so that `review` and `cargo insta` can show it.

use std::io;

use crate::judgement::baseline::{Laws, other_conditions};
use crate::judgement::snapshot::SnapshotParts;
use crate::measurement::record::Facts;

/// Parses the file with the accepted laws of a test. `None` if there is none. The error completes "the baseline of the law …".
pub fn accepted_laws(read: io::Result<String>, now: &Facts) -> Option<Result<Laws, String>> {
    let unreadable = |why: String| format!("cannot be read: {why}");
    let text = match read {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(unreadable(error.to_string()))),
    };
    Some(parse(&text).map_err(unreadable).and_then(|(facts, laws)| {
        match other_conditions(&facts, now) {
            None => Ok(laws),
            Some(conditions) => Err(format!("was {conditions}, so it cannot be compared")),
        }
    }))
}

fn parse(text: &str) -> Result<(Facts, Laws), String> {
    let parts = SnapshotParts::of(text).map_err(|error| error.to_string())?;
    let header = parts.info.as_deref().ok_or("its header has no `info`")?;
    let facts = serde_json::from_str(header).map_err(|error| error.to_string())?;
    let laws = Laws::from_yaml(parts.body).map_err(|error| error.to_string())?;
    Ok((facts, laws))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::judgement::snapshot::NewSnapshot;

    use super::*;

    #[test]
    fn a_baseline_that_cannot_be_used_is_an_error_with_its_reason() {
        let facts = |candle: &str| -> Facts {
            let header = r#"{"memcheck":1,"profile":"debug","iterations":10,"warmup":2"#;
            serde_json::from_str(&format!(r#"{header},"candle":"{candle}"}}"#)).unwrap()
        };
        let read = |text: &str, now: &str| accepted_laws(Ok(text.to_owned()), &facts(now));
        let absent = || Err(io::ErrorKind::NotFound.into());
        assert_eq!(accepted_laws(absent(), &facts("0.11.1")), None);
        let laws = Laws::from_yaml("laws:\n  host:\n    growth: '0'").unwrap();
        let (facts_then, body) = (facts("0.10.0"), laws.to_yaml());
        let source = Path::new("mem.rs");
        let kept = NewSnapshot { source, line: None, facts: &facts_then, body: &body };
        assert_eq!(read(&kept.text(), "0.10.0"), Some(Ok(laws)));
        let other = read(&kept.text(), "0.11.1").unwrap().unwrap_err();
        assert_eq!(
            other,
            "was measured with another version of candle (0.10.0 -> 0.11.1), so it cannot be compared"
        );
        for read in [Ok("torn".to_owned()), Err(io::Error::other("it is a named pipe"))] {
            let torn = accepted_laws(read, &facts("0.11.1")).unwrap().unwrap_err();
            assert!(torn.starts_with("cannot be read: "), "{torn}");
        }
    }
}
