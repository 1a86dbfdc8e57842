//! Reads the packed data of the HTML report.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(crate) fn base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("base64")
}

/// The data of the run, followed by that of each test.
pub(crate) fn report_data(page: &str) -> Vec<Value> {
    let scripts = page.split("<script type=\"application/json\" id=\"").skip(1);
    let data = scripts.map(|script| {
        let (_, rest) = script.split_once('>').expect("the end of the tag");
        let (packed, _) = rest.split_once('<').expect("the end of the data");
        let compressed = base64(packed);
        serde_json::from_reader(flate2::read::ZlibDecoder::new(compressed.as_slice()))
            .expect("JSON")
    });
    data.collect()
}
