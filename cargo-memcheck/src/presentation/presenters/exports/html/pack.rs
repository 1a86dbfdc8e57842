//! Packs the data of the script into text that no reader of HTML can take for markup: JSON,
//! compressed with deflate and encoded as base64. The browser unpacks it when a test is opened.

use std::io::{self, Write};

#[cfg(test)]
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderStringWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use memcheck_core::characters::{escaped, is_special};
use serde::Serialize;
use serde_json::Serializer;
#[cfg(test)]
use serde_json::Value;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

/// Every text in the data is escaped for people, because it comes from tests.
pub(super) fn pack(data: &impl Serialize) -> anyhow::Result<String> {
    let text = EncoderStringWriter::new(&STANDARD);
    let mut compressed = ZlibEncoder::new(text, Compression::best());
    data.serialize(&mut Serializer::with_formatter(&mut compressed, Escaped))?;
    Ok(compressed.finish()?.into_inner())
}

/// JSON whose texts show the characters that control a terminal or the direction of text. The
/// commands of a CI runner stay as they are, because a log cannot show the compressed data.
struct Escaped;

impl Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for part in fragment.split_inclusive(is_special) {
            let special = part.chars().next_back().filter(|last| is_special(*last));
            let plain = part.len() - special.map_or(0, char::len_utf8);
            to.write_all(&part.as_bytes()[..plain])?;
            special.map_or(Ok(()), |special| write_special(to, special))?;
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::Tab => to.write_all(b"    "),
            CharEscape::Backspace => write_special(to, '\x08'),
            CharEscape::FormFeed => write_special(to, '\x0c'),
            CharEscape::CarriageReturn => write_special(to, '\r'),
            CharEscape::AsciiControl(byte) => write_special(to, char::from(byte)),
            CharEscape::Quote
            | CharEscape::ReverseSolidus
            | CharEscape::Solidus
            | CharEscape::LineFeed => CompactFormatter.write_char_escape(to, escape),
        }
    }
}

fn write_special(to: &mut (impl Write + ?Sized), special: char) -> io::Result<()> {
    to.write_all(escaped(special).replace('\\', "\\\\").as_bytes())
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
            let mut data = String::new();
            let mut decoder = flate2::read::ZlibDecoder::new(compressed.as_slice());
            std::io::Read::read_to_string(&mut decoder, &mut data).unwrap();
            serde_json::from_str(&data).unwrap()
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

/// The part of a page that depends on the run, with plain spaces only.
#[cfg(test)]
pub(in crate::presentation::presenters) fn without_assets(page: &str) -> String {
    let page = page.replacen(super::assets::SCRIPT, "", 1);
    page.replacen(super::assets::STYLE, "", 1).replace('\u{a0}', " ")
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
