//! Packs the data of the script into text that no reader of HTML can take for markup: JSON,
//! compressed with deflate and encoded as base64. The browser unpacks it when a test is opened.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde_json::Value;

use crate::system::escape::{Form, escape};

/// Every text in the data is escaped for people, because it comes from tests.
pub(super) fn pack(data: &impl Serialize) -> anyhow::Result<String> {
    let mut data = serde_json::to_value(data)?;
    escape_all(&mut data);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data.to_string().as_bytes())?;
    Ok(STANDARD.encode(encoder.finish()?))
}

fn escape_all(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape(text, Form::Text),
        Value::Array(items) => items.iter_mut().for_each(escape_all),
        Value::Object(fields) => {
            let escaped = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                escape_all(&mut value);
                (escape(&name, Form::Text), value)
            });
            *fields = escaped.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The data of every test in a page, as text.
#[cfg(test)]
pub(in crate::presentation::presenters) fn unpack(page: &str) -> Vec<Value> {
    let scripts = page.split("<script type=\"application/json\" id=\"").skip(1);
    scripts
        .map(|script| {
            let (_, rest) = script.split_once('>').unwrap();
            let (packed, _) = rest.split_once("</script>").unwrap();
            let compressed = STANDARD.decode(packed).unwrap();
            serde_json::from_reader(flate2::read::ZlibDecoder::new(compressed.as_slice())).unwrap()
        })
        .collect()
}

/// The text that a reader of a page can see: the page without its script and style, followed by the
/// data as JSON.
#[cfg(test)]
pub(in crate::presentation::presenters) fn readable(page: &str) -> String {
    let markup = without_assets(page);
    let data: Vec<String> = unpack(page).iter().map(Value::to_string).collect();
    format!("{markup}\n{}", data.join("\n"))
}

/// The part of a page that depends on the run.
#[cfg(test)]
pub(in crate::presentation::presenters) fn without_assets(page: &str) -> String {
    page.replacen(super::assets::SCRIPT, "", 1).replacen(super::assets::STYLE, "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_unpacked_as_it_was_and_its_text_is_escaped() {
        let data = serde_json::json!({"a\u{1b}": ["</script>", 1, null, {"b": "\u{202e}x"}]});
        let packed = pack(&data).unwrap();
        assert!(!packed.contains(['<', '&', '\n']), "{packed}");
        let page = format!("<script type=\"application/json\" id=\"t0\">{packed}</script>");
        let expected = serde_json::json!({"a\\u{1b}": ["</script>", 1, null, {"b": "\\u{202e}x"}]});
        assert_eq!(unpack(&page), [expected]);
    }
}
