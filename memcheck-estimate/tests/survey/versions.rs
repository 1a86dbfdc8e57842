//! The table of several versions of candle: the figures that differ, and the call sites that hold
//! the difference at the peak.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::one_request::OneRequest;
use super::tables::{Table, cell, grouped};

/// The models of one version of candle-transformers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CandleVersion {
    candle: String,
    models: Vec<OneRequest>,
    /// The call sites at the peak of a prompt, for models whose figures differ.
    peaks: BTreeMap<String, Vec<PeakSite>>,
}

/// A call site that holds memory at the peak.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PeakSite {
    /// The file of candle and the line.
    site: String,
    /// The operation and its tensor.
    label: String,
    bytes: u64,
}

const HEAD: &str = "\
| architecture | figure | 0.9.2 | 0.10.2 | 0.11.1 | call sites of the difference |
|---|---|---|---|---|---|
";

/// The most call sites of a line.
const SITES: usize = 8;

type Figure = (&'static str, fn(&OneRequest) -> Option<u64>);

const FIGURES: [Figure; 4] = [
    ("weights", |one| one.weights),
    ("tables", |one| one.tables),
    ("peak of a prompt", |one| one.prompt_peak),
    ("a token", |one| one.bytes_per_token),
];

impl CandleVersion {
    fn model(&self, name: &str) -> Option<&OneRequest> {
        self.models.iter().find(|model| model.name == name)
    }

    pub(crate) fn is(&self, candle: &str) -> bool {
        self.candle == candle
    }

    pub(crate) fn models(&self) -> &[OneRequest] {
        &self.models
    }
}

/// The table of these versions, from old to new.
pub(crate) fn table(versions: &[CandleVersion]) -> Table {
    let models = versions.iter().flat_map(|version| &version.models);
    let names: BTreeSet<&str> = models.map(|model| model.name.as_str()).collect();
    Table::new(HEAD, names.into_iter().flat_map(|name| lines(name, versions)).collect())
}

fn lines(name: &str, versions: &[CandleVersion]) -> Vec<String> {
    let models: Vec<_> = versions.iter().map(|version| version.model(name)).collect();
    let is_new = models.iter().any(Option::is_none);
    let line = |&(figure, read): &Figure| {
        let figures: Vec<Option<u64>> = models.iter().map(|model| read((*model)?)).collect();
        let known: BTreeSet<u64> = figures.iter().copied().flatten().collect();
        let is_shown = known.len() > 1 || is_new && figure == "peak of a prompt";
        let cells = figures.iter().map(|&figure| cell(figure)).collect::<Vec<_>>().join(" | ");
        let sites = if known.len() > 1 { differences(name, versions) } else { String::new() };
        is_shown.then(|| format!("| `{name}` | {figure} | {cells} | {sites} |"))
    };
    FIGURES.iter().filter_map(line).collect()
}

/// The call sites with more or less bytes than in the version before.
fn differences(name: &str, versions: &[CandleVersion]) -> String {
    let of_pair = |pair: &[CandleVersion]| {
        let (before, after) = (sites(&pair[0], name), sites(&pair[1], name));
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let mut changes: Vec<(i128, String)> = Vec::new();
        for key in keys {
            let (old, new) = (before.get(key).copied(), after.get(key).copied());
            let change = new.map_or(0, |it| it.0) - old.map_or(0, |it| it.0);
            let site = new.filter(|it| it.0 > 0).or(old).map_or("", |it| it.1);
            if change != 0 {
                changes.push((change, format!("`{site}` {}", key.1)));
            }
        }
        changes.sort_by_key(|(change, site)| (-change.abs(), site.clone()));
        let shown = changes.iter().take(SITES).map(|(change, site)| {
            let sign = if *change < 0 { '−' } else { '+' };
            format!("{sign}{} {site}", grouped(change.unsigned_abs() as u64))
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        (!shown.is_empty()).then(|| format!("{}: {shown}", pair[1].candle))
    };
    versions.windows(2).filter_map(of_pair).collect::<Vec<_>>().join("; ")
}

/// A file, and the operation with its tensor.
type Key<'a> = (&'a str, &'a str);

/// The bytes of each file and operation, with the call site that has most of them. Lines differ from
/// version to version.
fn sites<'a>(version: &'a CandleVersion, name: &str) -> BTreeMap<Key<'a>, (i128, &'a str)> {
    let mut sites: BTreeMap<Key<'a>, (i128, &'a str)> = BTreeMap::new();
    // The largest are the first.
    for peak in version.peaks.get(name).into_iter().flatten() {
        let file = peak.site.rsplit_once(':').map_or(peak.site.as_str(), |(file, _)| file);
        sites.entry((file, peak.label.as_str())).or_insert((0, &peak.site)).0 +=
            i128::from(peak.bytes);
    }
    sites
}
