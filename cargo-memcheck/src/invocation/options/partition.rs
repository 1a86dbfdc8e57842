//! `--partition hash:M/N`: distributes the tests over several machines by a hash of package and
//! test, so that a test stays in its part when others are added. The hash is implemented here
//! because it must be the same in every version of the tool.

use serde::{Deserialize, Serialize};

use super::OptionsError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Partition {
    of: u64,
    /// From 0.
    part: u64,
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hash:{}/{}", self.part + 1, self.of)
    }
}

impl From<Partition> for String {
    fn from(partition: Partition) -> Self {
        partition.to_string()
    }
}

impl TryFrom<String> for Partition {
    type Error = OptionsError;

    fn try_from(text: String) -> Result<Self, OptionsError> {
        Self::read(&text)
    }
}

impl Partition {
    /// `hash:M/N`, where M starts at 1.
    pub(super) fn read(text: &str) -> Result<Self, OptionsError> {
        text.strip_prefix("hash:")
            .and_then(|parts| parts.split_once('/'))
            .and_then(|(part, of)| Some((part.parse::<u16>().ok()?, of.parse::<u16>().ok()?)))
            .filter(|(part, of)| (1..=*of).contains(part))
            .map(|(part, of)| Self { part: u64::from(part) - 1, of: u64::from(of) })
            .ok_or_else(|| OptionsError::Partition(text.to_owned()))
    }

    pub(crate) fn all(self) -> impl Iterator<Item = Self> {
        (0..self.of).map(move |part| Self { part, ..self })
    }

    pub(crate) fn contains_test(self, package: &str, test: &str) -> bool {
        let bytes = package.bytes().chain([0]).chain(test.bytes());
        fnv1a(bytes) % self.of == self.part
    }
}

/// The same in every version of the tool.
pub(crate) fn hash(text: &str) -> u64 {
    fnv1a(text.bytes())
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_in_exactly_one_part() {
        let parts: Vec<_> =
            (1..=3).map(|part| Partition::read(&format!("hash:{part}/3")).unwrap()).collect();
        let mut sizes = [0; 3];
        for number in 0..300 {
            let test = format!("module::test_{number}");
            let holding: Vec<_> =
                (0..3).filter(|&part| parts[part].contains_test("app", &test)).collect();
            assert_eq!(holding.len(), 1);
            sizes[holding[0]] += 1;
        }
        assert!(sizes.iter().all(|&size| size > 60), "{sizes:?}");
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(fnv1a("foobar".bytes()), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a("app\0llama::kv_cache".bytes()), 0xa442_d0d7_504f_5449);
        assert!(Partition::read("hash:1/3").unwrap().contains_test("app", "llama::kv_cache"));
    }

    #[test]
    fn a_partition_is_printed_as_it_is_parsed_and_lists_all_parts() {
        let part = Partition::read("hash:2/3").unwrap();
        assert_eq!(Partition::try_from(String::from(part)).unwrap(), part);
        let all: Vec<String> = part.all().map(|part| part.to_string()).collect();
        assert_eq!(all, ["hash:1/3", "hash:2/3", "hash:3/3"]);
    }

    #[test]
    fn an_invalid_partition_is_refused() {
        for text in ["", "1/2", "hash:0/2", "hash:3/2", "hash:1", "count:1/2", "hash:1/0"] {
            assert!(Partition::read(text).is_err(), "{text}");
        }
    }
}
