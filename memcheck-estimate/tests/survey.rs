//! The survey of `docs/survey.md`: every architecture from its tiny configuration, with the memory of
//! one request, and of 64 requests on one model that is not cleared.
//!
//! `just survey` builds the test for the simulated device and compares all rows. `cargo test` measures a
//! sample on the CPU, and compares the columns that do not depend on the device.

mod tiny;

use std::path::{Path, PathBuf};

use candle_core::{Device, Result};
use memcheck_core::wire::estimate::{Answer, Question};
use memcheck_estimate::{answer, architectures, requests};
use serde_json::{Value, json};
use tiny::{is_encoder, question};

/// The architectures that `cargo test` measures: without state, with a cache that is cleared at the
/// first position, one that grows, one that refuses, and one whose state has one size.
const SAMPLE: [&str; 5] = ["bert", "llama", "mistral", "rwkv7", "t5"];

const PROMPT: u64 = 32;
const PUBLISHED_PROMPT: u64 = 256;

/// A model that no card holds. The device also keeps its last refused request, which would be the
/// reason for the errors of other models.
const TOO_LARGE: &str = "qwen3-235b-a22b.json";
const TOKENS: u64 = 8;

/// Eight lengths, eight times.
fn lengths() -> Vec<usize> {
    (0..64).map(|request| 4 + request % 8 * 4).collect()
}

/// A row of the table. A figure that could not be measured is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
struct Row {
    name: String,
    weights: Option<u64>,
    tables: Option<u64>,
    prompt_peak: Option<u64>,
    bytes_per_token: Option<u64>,
    kept_after_8: Option<u64>,
    kept_after_64: Option<u64>,
    left: Option<u64>,
    refused: String,
}

/// The row of a model, without its requests.
fn one_request(name: &str, asked: &Question, generates: bool, device: &Device) -> Row {
    let mut row = Row { name: name.to_owned(), ..Row::default() };
    let after = |tokens| match answer(&Question { generate: tokens, ..asked.clone() }, device) {
        Answer::Measured(estimate) => estimate.inference.map(|it| it.cache_after),
        Answer::Refused(_) => None,
    };
    match answer(asked, device) {
        Answer::Measured(estimate) => {
            row.weights = Some(estimate.weights);
            row.tables = Some(estimate.tables);
            row.prompt_peak = estimate.inference.map(|inference| inference.prompt_peak);
            // The difference of two generations, because a prompt can leave more than its tokens.
            if generates {
                let cache = after(TOKENS).zip(after(2 * TOKENS));
                row.bytes_per_token = cache.map(|(one, two)| two.saturating_sub(one) / TOKENS);
            }
        }
        Answer::Refused(refusal) => row.refused = cause(&refusal.message),
    }
    row
}

/// The row of an architecture at its tiny size.
fn tiny_row(architecture: &str, device: &Device) -> Row {
    let asked = Question { seq: PROMPT, ..question(architecture) };
    let mut row = one_request(architecture, &asked, !is_encoder(architecture), device);
    match requests(&asked, &lengths(), device) {
        Ok(requests) => {
            let kept = |request: usize| requests.kept.get(request - 1).copied();
            (row.kept_after_8, row.kept_after_64) = (kept(8), kept(64));
            row.left = Some(requests.left);
            if let Some(error) = &requests.refused {
                row.refused = format!("request {}: {}", requests.kept.len() + 1, cause(error));
            }
        }
        Err(error) => row.refused = cause(&error),
    }
    row
}

/// The first words of an error, without the layouts of tensors.
fn cause(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    let line = line.strip_prefix("the model does not run: ").unwrap_or(line);
    let end = [" lstride", ", lhs:", " in broadcast", " lhs"]
        .iter()
        .filter_map(|end| line.find(end))
        .min();
    line[..end.unwrap_or(line.len())].replace('|', "/")
}

impl Row {
    /// The row of a table with these figures.
    fn markdown(&self, figures: &[Option<u64>]) -> String {
        let figures = figures.iter().map(|figure| figure.map_or_else(|| "—".to_owned(), grouped));
        let figures = figures.collect::<Vec<_>>().join(" | ");
        format!("| `{}` | {figures} | {} |", self.name, self.refused)
    }

    fn tiny(&self) -> String {
        let requests = [self.kept_after_8, self.kept_after_64, self.left];
        self.markdown(&[&self.published_figures()[..], &requests].concat())
    }

    fn published(&self) -> String {
        self.markdown(&self.published_figures())
    }

    fn published_figures(&self) -> [Option<u64>; 4] {
        [self.weights, self.tables, self.prompt_peak, self.bytes_per_token]
    }
}

/// Groups the digits of a number by three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| String::from_utf8_lossy(group).into_owned()).collect::<Vec<_>>().join(",")
}

const TINY: &str = "\
| architecture | weights | tables | peak of a prompt | a token | kept after 8 | after 64 | left | refused |
|---|---|---|---|---|---|---|---|---|
";

const PUBLISHED: &str = "\
| configuration | weights | tables | peak of a prompt | a token | refused |
|---|---|---|---|---|---|
";

/// Replaces the rows below a heading of a page.
fn with_rows(page: &str, heading: &str, rows: impl Iterator<Item = String>) -> String {
    let (before, below) = page.split_once(heading).expect("the table of the page");
    let after = below.lines().skip_while(|line| line.starts_with('|'));
    let lines = rows.chain(after.map(str::to_owned)).map(|line| line + "\n");
    format!("{before}{heading}{}", lines.collect::<String>())
}

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// The rows of the configurations in `configs`.
fn published_rows(device: &Device) -> Result<Vec<Row>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.retain(|path| !path.ends_with(TOO_LARGE));
    files.sort();
    let row = |path: &PathBuf| {
        let config: Value = serde_json::from_slice(&std::fs::read(path)?).expect("JSON");
        let model = config["model_type"].as_str().unwrap_or_default().to_owned();
        let asked = Question { config, seq: PUBLISHED_PROMPT, ..question("llama") };
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        Ok(one_request(&name, &asked, !is_encoder(&model), device))
    };
    files.iter().map(row).collect()
}

#[test]
fn the_survey_has_the_figures_of_every_architecture() -> Result<()> {
    let page = std::fs::read_to_string(docs("survey.md"))?;
    if !candle_core::utils::cuda_is_available() {
        for architecture in SAMPLE {
            let row = tiny_row(architecture, &Device::Cpu);
            let start = format!("| `{architecture}` ");
            let documented = page.lines().find(|line| line.starts_with(&start));
            let cells: Vec<_> = documented.expect("a row").split('|').map(str::trim).collect();
            let weights = grouped(row.weights.unwrap_or(0));
            assert_eq!((cells[2], cells[9]), (weights.as_str(), row.refused.as_str()));
        }
        return Ok(());
    }
    let device = Device::new_cuda(0)?;
    let tiny: Vec<Row> = architectures().into_iter().map(|name| tiny_row(name, &device)).collect();
    let published = published_rows(&device)?;
    let written = with_rows(&page, TINY, tiny.iter().map(Row::tiny));
    let written = with_rows(&written, PUBLISHED, published.iter().map(Row::published));
    let list = json!({ "tiny": tiny, "published": published });
    let list = serde_json::to_string_pretty(&list).expect("JSON") + "\n";
    if std::env::var_os("SURVEY").is_some() {
        std::fs::write(docs("survey.md"), written)?;
        std::fs::write(docs("survey.json"), list)?;
        return Ok(());
    }
    assert_eq!(page, written, "`SURVEY=write just survey` writes the tables again");
    assert_eq!(std::fs::read_to_string(docs("survey.json"))?, list);
    Ok(())
}
