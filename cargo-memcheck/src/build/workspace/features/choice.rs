//! Chooses the feature of a package that switches candle's CUDA on, as its users do for a GPU. What
//! a feature enables decides, and not its name alone.

use std::collections::BTreeSet;

use cargo_metadata::Package;

use super::enabled::{Enabled, Graph};

/// The name of the feature in most packages.
const CUDA: &str = "cuda";

const CANDLE: [&str; 3] = ["candle-core", "candle-nn", "candle-transformers"];

/// Features of candle that need another library or another device than CUDA alone. Their names are
/// the same in the packages that pass them on.
const MORE: [&str; 5] = ["accelerate", "cudnn", "metal", "mkl", "nccl"];

/// Features that packages declare to exclude CUDA.
const EXCLUDING: [&str; 5] = ["cpu-only", "cpu_only", "metal", "no-cuda", "no_cuda"];

const SEVERAL: &str = "several features enable candle's CUDA";

/// What is known about the package's own feature for CUDA.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OwnFeature {
    /// The package has no such feature, or it is on already.
    None,
    Chosen(String),
    Unclear {
        features: Vec<String>,
        why: String,
    },
}

struct Candidate<'a> {
    name: &'a str,
    enabled: Enabled<'a>,
}

pub(super) fn choose<'a>(graph: &Graph<'a>, package: &'a Package) -> OwnFeature {
    let names = package.features.keys().map(String::as_str).filter(|name| *name != "default");
    let all = names.map(|name| Candidate { name, enabled: graph.enabled_by(package, name) });
    let (candidates, others): (Vec<_>, Vec<_>) = all.partition(Candidate::enables_cuda);
    if candidates.is_empty() {
        return unknown(graph, package, &others);
    }
    let is_on = |candidate: &Candidate<'_>| graph.is_on(package, candidate.name);
    let plain: Vec<&Candidate<'_>> =
        candidates.iter().filter(|it| it.needs_more().is_none()).collect();
    let least: Vec<&Candidate<'_>> =
        plain.iter().copied().filter(|it| it.is_least(&plain)).collect();
    let named = plain.iter().copied().find(|candidate| candidate.name == CUDA);
    let chosen = match (named, least.as_slice()) {
        (Some(named), _) => Ok(named),
        (None, [only]) => Ok(*only),
        (None, []) => {
            Err(candidates.iter().find_map(Candidate::needs_more).unwrap_or(SEVERAL.to_owned()))
        }
        (None, _) => Err(SEVERAL.to_owned()),
    };
    let unclear = |features: &[&Candidate<'_>], why: String| {
        let features = features.iter().map(|candidate| candidate.name.to_owned()).collect();
        OwnFeature::Unclear { features, why }
    };
    match chosen {
        Ok(chosen) if is_on(chosen) => OwnFeature::None,
        Ok(chosen) => {
            let excluding = EXCLUDING.into_iter().find(|name| graph.is_on(package, name));
            match excluding {
                Some(other) => unclear(&[chosen], format!("`{other}` is on")),
                None => OwnFeature::Chosen(chosen.name.to_owned()),
            }
        }
        // The user has chosen.
        Err(_) if candidates.iter().any(is_on) => OwnFeature::None,
        Err(why) => {
            let open: Vec<&Candidate<'_>> =
                if least.is_empty() { candidates.iter().collect() } else { least };
            unclear(&open, why)
        }
    }
}

/// A feature with the usual name may be about candle although that cannot be known: it enables
/// nothing, so that only the package's own code reads it, or dependencies that are not in the graph.
fn unknown(graph: &Graph<'_>, package: &Package, others: &[Candidate<'_>]) -> OwnFeature {
    let named = others.iter().find(|candidate| candidate.name == CUDA);
    let Some(named) = named.filter(|named| !graph.is_on(package, named.name)) else {
        return OwnFeature::None;
    };
    let enables_nothing = package.features.get(CUDA).is_some_and(Vec::is_empty);
    let unknown: Vec<String> =
        named.enabled.unknown.iter().map(|name| format!("`{name}`")).collect();
    let why = match (enables_nothing, unknown.is_empty()) {
        (true, _) => "it enables no feature of candle".to_owned(),
        (false, false) => format!("{} is not in the dependency graph", unknown.join(", ")),
        (false, true) => return OwnFeature::None,
    };
    OwnFeature::Unclear { features: vec![CUDA.to_owned()], why }
}

impl Candidate<'_> {
    fn enables_cuda(&self) -> bool {
        let Enabled { features, added, .. } = &self.enabled;
        let enables = |(of, feature): &(&str, String)| CANDLE.contains(of) && feature == CUDA;
        let is_about = |name: &str| name.starts_with("candle-") || name == super::CUDARC;
        let of_candle = || {
            let of_others = features.iter().filter(|(_, feature)| feature != "default");
            added.iter().copied().any(is_about) || of_others.map(|(of, _)| *of).any(is_about)
        };
        features.iter().any(enables) || self.name == CUDA && of_candle()
    }

    /// The reason why the feature must not be on without the user's word.
    fn needs_more(&self) -> Option<String> {
        let Enabled { features, added, .. } = &self.enabled;
        let is_more = |name: &str| MORE.contains(&name) || is_flash(name);
        let more = features.iter().map(|(_, feature)| feature.as_str()).find(|name| is_more(name));
        let more = more.or_else(|| added.iter().copied().find(|name| is_flash(name)));
        if let Some(more) = more {
            return Some(format!("`{more}` needs more than CUDA"));
        }
        let candle = added.iter().find(|name| CANDLE.contains(name))?;
        Some(format!("it adds the optional `{candle}`, which this run leaves out"))
    }

    /// True if the feature includes none of the others.
    fn is_least(&self, others: &[&Self]) -> bool {
        let own: &BTreeSet<String> = &self.enabled.own;
        !others.iter().any(|other| other.name != self.name && own.contains(other.name))
    }
}

/// `flash-attn` and `flash-attn-v3`, or a crate such as `candle-flash-attn`.
fn is_flash(name: &str) -> bool {
    name.replace('_', "-").contains("flash-attn")
}
