//! A device map as Hugging Face's accelerate writes it:
//! `{"model.embed_tokens": 0, "model.layers.0": 0, "lm_head": 1}`.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The device of each module, in the order of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceMap(pub Vec<(String, usize)>);

impl DeviceMap {
    /// The device of the module's own entry or else of the innermost module around it.
    pub fn device(&self, module: &str) -> Option<usize> {
        let inside = |name: &str| {
            name.is_empty()
                || module
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let matching = self.0.iter().filter(|(name, _)| inside(name));
        matching.max_by_key(|(name, _)| name.len()).map(|(_, device)| *device)
    }
}

impl Serialize for DeviceMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, device)| (name, device)))
    }
}

impl<'de> Deserialize<'de> for DeviceMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = DeviceMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of modules to device numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeviceMap, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(DeviceMap(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
