//! The limits of a test: one layer per source, resolved once into [`Limits`].
//!
//! A [`Layer`] holds the values of one source: an attribute, a table of the configuration, the
//! environment or the command line. [`Limits`] holds the values in force for one test on one
//! device. Each value keeps its source, so that `list --verbose` and the record can show both.

pub mod kinds;
mod table;

use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, LimitKind, Number, Optional, Room, Share,
    Switch, Time,
};
use crate::device::Family;
use crate::size::Size;
use crate::space::Space;
use crate::sweep::FaultSweep;
use crate::tolerance::Tolerance;
use crate::values::Contents;
use crate::with_limits;

/// Default limit of growth: 1 MiB (1024² bytes) in an iteration, because guides to profiling memory
/// in PyTorch call more than 1 MB per iteration a leak.
pub const DEFAULT_MAX_GROWTH: u64 = 1 << 20;
/// Default limit of the bytes that can stay on a GPU after the test body has returned.
pub const DEFAULT_MAX_RETAINED_DEVICE: u64 = 0;
/// Default limit of the bytes that can stay on the host after the test body has returned.
///
/// It is a noise floor for the memory that a library keeps after its first use (thread pools,
/// lazily built tables). Only blocks of at least 1 KiB count.
pub const DEFAULT_MAX_RETAINED_HOST: u64 = 64 << 10;
/// Default number of measured iterations.
pub const DEFAULT_ITERATIONS: u32 = 10;
/// Default number of iterations before the measured ones.
pub const DEFAULT_WARMUP: u32 = 2;
/// Default maximum of measured iterations, for a test that the first iterations leave undecided.
pub const DEFAULT_MAX_ITERATIONS: u32 = 1_000;
/// Default time for which an undecided test is followed.
pub const DEFAULT_EVIDENCE: Duration = Duration::from_secs(10);
/// Default time-out of a test.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The source of a value, ordered from the weakest to the strongest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The built-in default.
    BuiltIn,
    /// `[default]` of the configuration.
    Default,
    /// The attribute of the test.
    Attribute,
    /// The `[[override]]` of the configuration with this number, counted from 1.
    Override(u32),
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Default => f.write_str("[default]"),
            Self::Attribute => f.write_str("attribute"),
            Self::Override(number) => write!(f, "[[override]] {number}"),
            Self::Environment => f.write_str("environment"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// A value and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// The source of the value.
    pub source: Source,
}

/// Makes the types of this module from the table.
macro_rules! define {
    ($(
        $(#[$doc:meta])+
        $name:ident $(or $mib:ident)?: $kind:ty,
        $($variable:literal,)? programs: $programs:literal, default: $default:expr;
    )*) => {
        /// The limits that one source states for a test; `None` if it does not state one.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Layer {
            $($(#[$doc])+ pub $name: Option<<$kind as LimitKind>::Stated>,)*
        }

        /// The limits in force for one test on one device. A record that was written before a
        /// limit existed has the built-in limit.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Limits {
            $($(#[$doc])+ pub $name: Setting<<$kind as LimitKind>::InForce>,)*
        }

        /// The keys of the limits in a configuration file, with both spellings of a size.
        pub const KEYS: &[&str] = &[$(stringify!($name), $(stringify!($mib),)?)*];

        impl Layer {
            /// The limits that also hold for a program, which has neither iterations nor a
            /// baseline.
            pub fn for_program(self) -> Self {
                Self {
                    $($name: self.$name.filter(|_| $programs).and_then(<$kind>::for_program),)*
                }
            }

            /// The names of the limits that are stated.
            pub fn names(&self) -> impl Iterator<Item = &'static str> {
                let stated = [$(self.$name.is_some().then_some(stringify!($name)),)*];
                stated.into_iter().flatten()
            }

            /// Takes the value of `key` from a configuration file.
            fn take<'de, M: MapAccess<'de>>(&mut self, key: Key, map: &mut M) -> Result<(), M::Error> {
                match key.0 {
                    $(
                        stringify!($name) => map.next_value_seed(IntoField::<$kind> {
                            field: &mut self.$name,
                            name: stringify!($name),
                        }),
                        $(stringify!($mib) => map.next_value_seed(IntoMib {
                            field: &mut self.$name,
                            name: stringify!($name),
                        }),)?
                    )*
                    other => Err(M::Error::unknown_field(other, KEYS)),
                }
            }
        }

        impl Serialize for Layer {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.names().count()))?;
                $(
                    if let Some(stated) = &self.$name {
                        map.serialize_entry(stringify!($name), &<$kind>::to_wire(stated))?;
                    }
                )*
                map.end()
            }
        }

        impl Limits {
            /// Resolves the limits; a later layer is stronger than an earlier one.
            pub fn resolve<'a>(
                family: Family,
                layers: impl IntoIterator<Item = (Source, &'a Layer)>,
            ) -> Self {
                fn built_in<T>(default: impl Fn(Family) -> T, family: Family) -> Setting<T> {
                    Setting { value: default(family), source: Source::BuiltIn }
                }
                let mut limits = Self { $($name: built_in($default, family),)* };
                for (source, layer) in layers {
                    $(
                        if let Some(stated) = layer.$name.clone() {
                            let value = <$kind>::in_force(stated);
                            limits.$name = Setting { value, source: source.clone() };
                        }
                    )*
                }
                limits
            }

            /// Name, value as text, and source of every limit, for `list --verbose`.
            pub fn rows(&self) -> Vec<(&'static str, String, String)> {
                vec![$((
                    stringify!($name),
                    <$kind>::show(&self.$name.value),
                    self.$name.source.to_string(),
                ),)*]
            }
        }
    };
}

with_limits!(all define);

impl Default for Limits {
    /// The built-in limits of a GPU, which are the stricter ones.
    fn default() -> Self {
        Self::resolve(Family::Cuda, [])
    }
}

impl Limits {
    /// The limit of the growth of a space; `None` if its growth is not judged.
    pub fn max_growth_of(&self, space: Space) -> Option<u64> {
        match space {
            Space::CHeap => self.max_c_growth.value,
            Space::Process => self.max_rss_growth.value,
            Space::Host | Space::HostSmall => {
                self.max_host_growth.value.or(Some(self.max_growth.value))
            }
            _ => Some(self.max_growth.value),
        }
    }

    /// True if the host is judged on every device.
    pub fn judges_host(&self) -> bool {
        self.max_host_growth.value.is_some() || self.max_host_peak.value.is_some()
    }
}

/// A key of a limit, checked while it is read so that an error has its place.
struct Key(&'static str);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let known = KEYS.iter().find(|key| **key == text);
        known.map(|key| Self(key)).ok_or_else(|| D::Error::unknown_field(&text, KEYS))
    }
}

/// Reads the value of a limit into its field, which must be empty. An error has the place of the
/// value.
struct IntoField<'a, K: LimitKind> {
    field: &'a mut Option<K::Stated>,
    name: &'static str,
}

impl<'de, K: LimitKind> DeserializeSeed<'de> for IntoField<'_, K> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        set_once(self.field, self.name, kinds::deserialize::<K, D>(from)?)
    }
}

/// The same for a size as a number of MiB.
struct IntoMib<'a, T> {
    field: &'a mut Option<T>,
    name: &'static str,
}

impl<'de, T: From<Size>> DeserializeSeed<'de> for IntoMib<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let size = Size::from_mib(f64::deserialize(from)?);
        let error = || D::Error::custom("expected a number of MiB, zero or more");
        set_once(self.field, self.name, size.ok_or_else(error)?.into())
    }
}

/// Sets a field. It is an error if the field already has a value.
fn set_once<T, E: Error>(field: &mut Option<T>, name: &str, value: T) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::custom(format_args!(
            "`{name}` and `{name}_mb` state the same limit: write one of them"
        ))),
    }
}

impl<'de> Deserialize<'de> for Layer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Layer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of limits")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Layer, M::Error> {
                let mut layer = Layer::default();
                while let Some(key) = map.next_key()? {
                    layer.take(key, &mut map)?;
                }
                Ok(layer)
            }
        }
        from.deserialize_map(Reader)
    }
}

fn default_max_retained(family: Family) -> u64 {
    match family {
        Family::Cuda => DEFAULT_MAX_RETAINED_DEVICE,
        Family::Cpu => DEFAULT_MAX_RETAINED_HOST,
    }
}

fn default_tolerance(family: Family) -> Tolerance {
    match family {
        Family::Cuda => Tolerance::NONE,
        Family::Cpu => Tolerance { percent: 1.0, bytes: 4 << 10 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_layer_overrides_an_earlier_one_and_its_source_is_kept() {
        let file = Layer { iterations: Some(20), warmup: Some(1), ..Layer::default() };
        let attribute = Layer { iterations: Some(30), ..Layer::default() };
        let flag = Layer { max_peak: Some(Size(7).into()), ..Layer::default() };
        let limits = Limits::resolve(
            Family::Cuda,
            [(Source::Default, &file), (Source::Attribute, &attribute), (Source::Flag, &flag)],
        );
        assert_eq!(limits.iterations, Setting { value: 30, source: Source::Attribute });
        assert_eq!(limits.warmup, Setting { value: 1, source: Source::Default });
        assert_eq!(limits.max_peak, Setting { value: Some(Size(7).into()), source: Source::Flag });
        assert_eq!(limits.max_growth, Setting { value: 1 << 20, source: Source::BuiltIn });
    }

    #[test]
    fn the_host_has_a_noise_floor_and_a_gpu_has_none() {
        let host = Limits::resolve(Family::Cpu, []);
        let gpu = Limits::resolve(Family::Cuda, []);
        assert_eq!(gpu.max_retained.value, 0);
        assert_eq!(gpu.tolerance.value, Tolerance::NONE);
        assert_eq!(host.max_retained.value, 65_536);
        assert_eq!(host.tolerance.value.to_string(), "1% | 4.00 KiB");
    }

    #[test]
    fn every_limit_has_a_row() {
        let json = serde_json::to_value(Limits::resolve(Family::Cpu, [])).unwrap();
        let rows = Limits::resolve(Family::Cpu, []).rows();
        assert_eq!(rows.len(), json.as_object().unwrap().len());
    }
}
