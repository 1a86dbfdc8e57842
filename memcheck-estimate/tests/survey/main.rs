//! The survey of `docs/survey.md`: every architecture from its tiny configuration, with the memory of
//! one request, of 64 requests to one model, of loading, and of refused allocations.
//!
//! `just survey` builds the test for the simulated device and compares all rows. `cargo test` measures a
//! sample on the CPU, and compares the figures that do not depend on the device. It also compares the
//! page with the files of the same figures. With the variable `SURVEY`, both write instead.

#[allow(dead_code, reason = "other tests write other headers")]
#[path = "../gguf/file.rs"]
mod file;
#[allow(dead_code, reason = "other tests use other layouts")]
#[path = "../gguf/layouts.rs"]
mod layouts;
mod needed;
mod one_request;
mod rows;
mod tables;
#[path = "../tiny/mod.rs"]
mod tiny;
mod versions;

use std::path::{Path, PathBuf};

use candle_core::{Device, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::file::Q8_0;
use self::one_request::OneRequest;
use self::rows::{GgufRow, PublishedRow, TinyRow, gguf_rows, published_rows, tiny_row, tiny_rows};
use self::tables::tables;
use self::versions::CandleVersion;

/// The architectures that `cargo test` measures: without state, with a cache that is cleared at the
/// first position, one that grows, one that refuses, and one whose state has one size.
const SAMPLE: [&str; 5] = ["bert", "llama", "mistral", "rwkv7", "t5"];

const OF_GGUF: [&str; 9] =
    ["gemma3", "glm4", "lfm2", "llama", "phi2", "phi3", "qwen2", "qwen3", "qwen3moe"];

/// The contents of `docs/survey.json`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Survey {
    tiny: Vec<TinyRow>,
    gguf: Vec<GgufRow>,
    published: Vec<PublishedRow>,
}

impl Survey {
    fn measure(device: &Device) -> Result<Self> {
        let tiny = tiny_rows(device);
        let gguf = gguf_rows(|name| layouts::tiny(name, Q8_0).write(), &OF_GGUF, device)?;
        let published = published_rows(device)?;
        Ok(Self { tiny, gguf, published })
    }

    fn read() -> Self {
        read("survey.json")
    }

    fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("JSON") + "\n"
    }

    /// The page with these figures.
    fn written_to(&self, page: &str) -> String {
        let mut tables = tables(&self.tiny, &self.published, &self.gguf);
        tables.push(versions::table(&read_versions()));
        tables.iter().fold(page.to_owned(), |page, table| table.written_to(&page))
    }
}

/// The figures of `just survey-versions`.
fn read_versions() -> Vec<CandleVersion> {
    read("survey-versions.json")
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(docs(name)).expect("the figures");
    serde_json::from_str(&text).expect("the form of the figures")
}

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// The figures of a row that are the same on each device.
fn of_every_device(row: &TinyRow) -> (Option<u64>, Option<u64>, &str, &str, Option<u64>) {
    let (request, refused) = (&row.request, [&row.uncleared.refused, &row.cleared.refused]);
    let file = row.host.map(|host| host.file);
    (request.weights, request.needed, refused[0], refused[1], file)
}

fn compare_sample(survey: &Survey) {
    for name in SAMPLE {
        let measured = tiny_row(name, &Device::Cpu);
        let documented = survey.tiny.iter().find(|row| row.request.name == name);
        let documented = documented.expect("a row");
        assert_eq!(of_every_device(&measured), of_every_device(documented), "{name}");
        // The buffer has the bytes of the file, and the rest is the same.
        let host = measured.host.expect("it loads");
        let buffer = host.buffered - host.mapped;
        assert!(buffer >= host.file && buffer < host.file + 4096, "{name}: {host:?}");
    }
}

/// The last version is the one of the other tables.
fn assert_last_version(survey: &Survey) {
    let versions = read_versions();
    let last = versions.iter().find(|version| version.is("0.11.1")).expect("the last version");
    let requests: Vec<&OneRequest> = survey.tiny.iter().map(|row| &row.request).collect();
    assert_eq!(last.models().iter().collect::<Vec<_>>(), requests);
}

/// The formula is a lower bound of code without fused operations.
fn assert_needed(survey: &Survey) {
    let published = survey.published.iter().map(|row| &row.request);
    for row in survey.tiny.iter().map(|row| &row.request).chain(published) {
        if let Some((peak, needed)) = row.prompt_peak.zip(row.needed) {
            assert!(peak >= needed, "{row:?}");
        }
    }
}

// All of this is one test, because figures of the host include the allocations of all threads.
#[test]
fn the_survey_has_the_figures_of_every_architecture() -> Result<()> {
    needed::assert_steps();
    let writes = std::env::var_os("SURVEY").is_some();
    if candle_core::utils::cuda_is_available() {
        let measured = Survey::measure(&Device::new_cuda(0)?)?;
        if writes {
            std::fs::write(docs("survey.json"), measured.json())?;
        }
        let documented = Survey::read();
        for (one, other) in measured.tiny.iter().zip(&documented.tiny) {
            assert_eq!(one, other, "`SURVEY=write just survey` writes the figures again");
        }
        assert!(measured == documented, "`SURVEY=write just survey` writes the figures again");
    }
    let documented = Survey::read();
    let page = std::fs::read_to_string(docs("survey.md"))?;
    let written = documented.written_to(&page);
    if writes {
        std::fs::write(docs("survey.md"), &written)?;
    }
    assert!(writes || page == written, "the page has other figures than the files");
    assert_needed(&documented);
    assert_last_version(&documented);
    if !candle_core::utils::cuda_is_available() {
        compare_sample(&documented);
    }
    Ok(())
}
