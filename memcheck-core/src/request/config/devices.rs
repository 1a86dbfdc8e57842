//! The entry `device` of the configuration file: devices, or a table with devices and with features
//! for each kind of device.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::device::Request;

/// The features of the packages by kind of device. A list that is not set leaves the choice to the
/// command; an empty one switches nothing on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureLists {
    /// For the CPU.
    pub cpu: Option<Vec<String>>,
    /// For the simulated device.
    pub sim: Option<Vec<String>>,
    /// For real GPUs.
    pub cuda: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct DeviceEntry {
    pub(super) run: Vec<Request>,
    pub(super) features: FeatureLists,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceTable {
    #[serde(default)]
    run: Devices,
    #[serde(default)]
    cpu: KindTable,
    #[serde(default)]
    sim: KindTable,
    #[serde(default)]
    cuda: KindTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KindTable {
    features: Option<Vec<String>>,
}

/// `"sim"` or `["sim", "cpu"]`.
#[derive(Default)]
struct Devices(Vec<Request>);

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct DevicesVisitor;
        impl<'de> Visitor<'de> for DevicesVisitor {
            type Value = Devices;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a device or a list of devices")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Devices, E> {
                text.parse().map(|request| Devices(vec![request])).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Devices, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Devices)
            }
        }
        from.deserialize_any(DevicesVisitor)
    }
}

// With serde's `untagged` an error would be that of the whole entry, at its beginning.
impl<'de> Deserialize<'de> for DeviceEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct EntryVisitor;
        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = DeviceEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a device or a list of devices, or a table with `run` and features")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DeviceEntry, E> {
                let run = text.parse().map(|request| vec![request]).map_err(E::custom)?;
                Ok(DeviceEntry { run, ..DeviceEntry::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<DeviceEntry, A::Error> {
                let run = Deserialize::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(DeviceEntry { run, ..DeviceEntry::default() })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<DeviceEntry, M::Error> {
                let DeviceTable { run: Devices(run), cpu, sim, cuda } =
                    DeviceTable::deserialize(MapAccessDeserializer::new(map))?;
                let features =
                    FeatureLists { cpu: cpu.features, sim: sim.features, cuda: cuda.features };
                Ok(DeviceEntry { run, features })
            }
        }
        from.deserialize_any(EntryVisitor)
    }
}
