//! The configuration file's structure. Parsing checks all values, so that errors have positions.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Override;
use super::devices::DeviceEntry;
use crate::device::Family;
use crate::judgement::finding::{Code, Level};
use crate::limits::Layer;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigFile {
    #[serde(default)]
    pub(super) device: DeviceEntry,
    pub(super) package_cuda: Option<bool>,
    #[serde(default, deserialize_with = "threads")]
    pub(super) threads: Option<u32>,
    pub(super) runner: Option<String>,
    pub(super) baselines: Option<PathBuf>,
    #[serde(default)]
    pub(super) default: Layer,
    #[serde(default, rename = "override")]
    pub(super) overrides: Vec<Override>,
    #[serde(default)]
    pub(super) findings: LevelTable,
}

fn threads<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match Option::deserialize(from)? {
        Some(0) => Err(Error::custom("`threads` must be at least 1")),
        number => Ok(number),
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct LevelTable(pub(super) BTreeMap<Code, Level>);

impl<'de> Deserialize<'de> for LevelTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct LevelTableReader;
        impl<'de> Visitor<'de> for LevelTableReader {
            type Value = LevelTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of findings and their levels")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<LevelTable, M::Error> {
                let mut levels = BTreeMap::new();
                while let Some(code) = map.next_key()? {
                    levels.insert(code, map.next_value_seed(LevelSeed(code))?);
                }
                Ok(LevelTable(levels))
            }
        }
        from.deserialize_map(LevelTableReader)
    }
}

/// Deserializes the level of this finding. It rejects levels that the finding cannot have.
struct LevelSeed(Code);

impl<'de> DeserializeSeed<'de> for LevelSeed {
    type Value = Level;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Level, D::Error> {
        let level = Level::deserialize(from)?;
        self.0.check_level(level).map_err(Error::custom)?;
        Ok(level)
    }
}

impl<'de> Deserialize<'de> for Override {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OverrideReader;
        impl<'de> Visitor<'de> for OverrideReader {
            type Value = Override;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Override, M::Error> {
                let mut selector = Selector::default();
                let limits = LimitEntries { map, selector: &mut selector };
                let layer = Layer::deserialize(MapAccessDeserializer::new(limits))?;
                let Selector { test, package, device } = selector;
                if test.is_none() && package.is_none() && device.is_none() {
                    return Err(Error::custom(
                        "the override needs a `test`, `package` or `device`; for every test, \
                         use [default]",
                    ));
                }
                Ok(Override { test, package, device, layer })
            }
        }
        from.deserialize_map(OverrideReader)
    }
}

#[derive(Default)]
struct Selector {
    test: Option<TestPattern>,
    package: Option<String>,
    device: Option<Family>,
}

/// The names of its fields, appended to the list of limits in error messages.
const SELECTOR_KEYS: &str = "`test`, `package`, `device`";

/// An `[[override]]` without its selectors. With serde's `flatten` errors would lose positions.
struct LimitEntries<'a, M> {
    map: M,
    selector: &'a mut Selector,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for LimitEntries<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        mut seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        loop {
            seed = match self.map.next_key_seed(Key(seed))? {
                None => return Ok(None),
                Some(ParsedKey::Limit(value)) => return Ok(Some(value)),
                Some(ParsedKey::Test(seed)) => {
                    self.selector.test = Some(self.map.next_value()?);
                    seed
                }
                Some(ParsedKey::Package(seed)) => {
                    self.selector.package = Some(self.map.next_value()?);
                    seed
                }
                Some(ParsedKey::Device(seed)) => {
                    self.selector.device = Some(self.map.next_value()?);
                    seed
                }
            };
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Keys that select tests are recognized here, all others by the deserializer of limits.
struct Key<K>(K);

/// A key that selects tests returns the unused deserializer of limits.
enum ParsedKey<K, V> {
    Test(K),
    Package(K),
    Device(K),
    Limit(V),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<K> {
    type Value = ParsedKey<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let Self(limit) = self;
        let key = String::deserialize(from)?;
        Ok(match key.as_str() {
            "test" => ParsedKey::Test(limit),
            "package" => ParsedKey::Package(limit),
            "device" => ParsedKey::Device(limit),
            _ => {
                let known = limit.deserialize(key.into_deserializer());
                ParsedKey::Limit(known.map_err(|error: D::Error| {
                    Error::custom(format!("{}, {SELECTOR_KEYS}", error.to_string().trim_end()))
                })?)
            }
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct TestPattern(String);

impl TestPattern {
    pub(super) fn is_match(&self, path: &str) -> bool {
        fast_glob::glob_match(&self.0, path)
    }

    /// The first bracket that is never closed. A glob with such a bracket matches no path.
    fn unclosed(&self) -> Option<char> {
        let mut open = Vec::new();
        let mut chars = self.0.chars();
        while let Some(c) = chars.next() {
            match (c, open.last()) {
                ('\\', _) => drop(chars.next()),
                (']', Some('[')) | ('}', Some('{')) => drop(open.pop()),
                (_, Some('[')) => {}
                ('[' | '{', _) => open.push(c),
                _ => {}
            }
        }
        open.pop()
    }
}

impl<'de> Deserialize<'de> for TestPattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let glob = Self(String::deserialize(from)?);
        match glob.unclosed() {
            Some(open) => {
                Err(Error::custom(format!("the glob `{}` does not close `{open}`", glob.0)))
            }
            None => Ok(glob),
        }
    }
}
