//! The tensors of a model's safetensors files: their names, and their shapes if the files are
//! there. Only the index of several files and the headers are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use candle_core::{Error, Shape};
use memcheck_core::size::{Size, exact};
use serde::Deserialize;
use serde_json::Value;

use crate::problem::Problem;

/// The largest index or header. safetensors has the limit of 100 MB for headers.
const MOST_BYTES: u64 = 100_000_000;

/// `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    metadata: IndexMetadata,
    /// The file of each tensor.
    weight_map: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct IndexMetadata {
    #[serde(default)]
    total_size: Option<Value>,
}

/// A tensor in the header of a file.
#[derive(Deserialize)]
struct Entry {
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The tensors of a model's files.
#[derive(Debug)]
pub(crate) struct TensorListing {
    /// The shapes by name. `None` if the file of a tensor is not there.
    shapes: BTreeMap<String, Option<Vec<u64>>>,
    /// The bytes of all tensors.
    pub(crate) bytes: u64,
}

impl TensorListing {
    /// Reads the index of several files, or the header of one file.
    pub(crate) fn read(path: &Path) -> Result<Self, Problem> {
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut start = [0; 1];
        let is_json = file.read(&mut start).is_ok_and(|read| read == 1) && start == *b"{";
        if is_json { Self::of_index(path) } else { Self::of_file(path) }
    }

    fn of_file(path: &Path) -> Result<Self, Problem> {
        let tensors = header(path).map_err(|error| unreadable(path, &error))?;
        let bytes = tensors.values().map(length).sum();
        let shapes = tensors.into_iter().map(|(name, entry)| (name, Some(entry.shape))).collect();
        Ok(Self { shapes, bytes })
    }

    fn of_index(path: &Path) -> Result<Self, Problem> {
        let text = first_bytes(path, 0, MOST_BYTES).map_err(|error| unreadable(path, &error))?;
        let index: Index = serde_json::from_slice(&text).map_err(|error| {
            Problem::invalid_question(format!(
                "{} is not an index of safetensors files: {error}",
                path.display()
            ))
            .hint("--weights model.safetensors.index.json, or a .safetensors file")
        })?;
        let mut shapes: BTreeMap<String, Option<Vec<u64>>> = BTreeMap::new();
        let mut found = 0_u64;
        let files: BTreeSet<&String> = index.weight_map.values().collect();
        for name in files {
            let Some(file) = beside(path, name) else {
                return Err(Problem::invalid_question(format!(
                    "{} names the file {name:?}, which is not in its folder",
                    path.display()
                )));
            };
            if !file.exists() {
                continue;
            }
            for (tensor, entry) in header(&file).map_err(|error| unreadable(&file, &error))? {
                found = found.saturating_add(length(&entry));
                shapes.insert(tensor, Some(entry.shape));
            }
        }
        let whole = index.weight_map.keys().all(|name| shapes.contains_key(name));
        for name in index.weight_map.into_keys() {
            shapes.entry(name).or_default();
        }
        // Some tools write a fraction.
        let total = index
            .metadata
            .total_size
            .and_then(|size| size.as_u64().or_else(|| size.as_f64().map(|size| size as u64)));
        let bytes = match (whole, total) {
            (true, _) => found,
            (false, Some(total)) => total,
            (false, None) => {
                return Err(Problem::invalid_question(format!(
                    "{} has no `total_size`, and its files are not there",
                    path.display()
                ))
                .hint("save the index and the files in one folder"));
            }
        };
        Ok(Self { shapes, bytes })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.shapes.keys().map(String::as_str)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.shapes.contains_key(name)
    }

    /// Returns candle's error for a tensor that the files do not have, or not in this shape.
    pub(crate) fn check(&self, name: &str, shape: &Shape) -> candle_core::Result<()> {
        let Some(stored) = self.shapes.get(name) else {
            return Err(Error::CannotFindTensor { path: name.to_owned() });
        };
        let Some(stored) = stored else { return Ok(()) };
        let same = stored.len() == shape.rank()
            && stored.iter().zip(shape.dims()).all(|(&stored, &dim)| stored == dim as u64);
        if same {
            return Ok(());
        }
        let dims: Vec<usize> = stored.iter().map(|&dim| dim.try_into().unwrap_or(0)).collect();
        Err(Error::UnexpectedShape {
            msg: format!("shape mismatch for {name}"),
            expected: shape.clone(),
            got: dims.into(),
        })
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::invalid_question(format!("{}: {error}", path.display()))
        .hint("--weights model.safetensors.index.json, or a .safetensors file")
}

fn length(entry: &Entry) -> u64 {
    entry.data_offsets.1.saturating_sub(entry.data_offsets.0)
}

/// Returns the path of a file in the folder of the index; `None` for a name that leads elsewhere.
fn beside(index: &Path, name: &str) -> Option<std::path::PathBuf> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Some(index.with_file_name(name)),
        _ => None,
    }
}

fn first_bytes(path: &Path, from: usize, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(from as u64 + most).read_to_end(&mut bytes)?;
    Ok(bytes.split_off(from.min(bytes.len())))
}

/// Reads the header of a safetensors file: its length in eight bytes, then JSON.
fn header(path: &Path) -> io::Result<BTreeMap<String, Entry>> {
    let mut start = [0; 8];
    File::open(path)?.read_exact(&mut start)?;
    let length = u64::from_le_bytes(start);
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    if length > MOST_BYTES {
        let reason = format!("a header of {} B is larger than {}", exact(length), Size(MOST_BYTES));
        return Err(invalid(reason));
    }
    let text = first_bytes(path, start.len(), length)?;
    if (text.len() as u64) < length {
        return Err(invalid("the file ends within its header".to_owned()));
    }
    let mut tensors: BTreeMap<String, Value> =
        serde_json::from_slice(&text).map_err(|error| invalid(format!("the header: {error}")))?;
    tensors.remove("__metadata__");
    let entries = tensors.into_iter().map(|(name, entry)| {
        serde_json::from_value(entry)
            .map(|entry| (name, entry))
            .map_err(|error| invalid(format!("the header: {error}")))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use memcheck_core::wire::estimate::{Answer, Why};

    use super::*;

    #[test]
    fn a_file_of_an_index_is_in_its_folder() {
        let index = Path::new("/models/model.safetensors.index.json");
        let inside = beside(index, "model-1.safetensors").unwrap();
        assert_eq!(inside, Path::new("/models/model-1.safetensors"));
        for outside in ["../a", "/etc/passwd", "a/b", "", "."] {
            assert!(beside(index, outside).is_none(), "{outside}");
        }
    }

    #[test]
    fn a_tensor_must_be_in_the_files_with_its_shape() {
        let shapes = [("a".to_owned(), Some(vec![2, 3])), ("b".to_owned(), None)].into();
        let listing = TensorListing { shapes, bytes: 24 };
        let check = |name: &str, shape: (usize, usize)| listing.check(name, &shape.into());
        assert!(check("a", (2, 3)).is_ok() && check("b", (9, 9)).is_ok());
        assert!(check("a", (3, 2)).unwrap_err().to_string().contains("shape mismatch for a"));
        assert!(check("c", (2, 3)).unwrap_err().to_string().contains("cannot find tensor c"));
    }

    #[test]
    fn a_file_that_is_not_of_a_model_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut cut = 500_u64.to_le_bytes().to_vec();
        cut.extend(b"{}");
        let elsewhere = br#"{ "weight_map": { "a": "../../etc/passwd" } }"#;
        let alone = br#"{ "weight_map": { "a": "missing.safetensors" } }"#;
        for (name, bytes, text) in [
            ("cut.safetensors", &cut[..], "the file ends within its header"),
            ("huge.safetensors", &[0xff; 16], "is larger than 95.4 MiB"),
            ("empty.safetensors", b"", "failed to fill whole buffer"),
            ("list.json", b"{}", "is not an index of safetensors files"),
            ("elsewhere.json", elsewhere, "which is not in its folder"),
            ("alone.json", alone, "has no `total_size`"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let Answer::Refused(refusal) = TensorListing::read(&path).unwrap_err().answer() else {
                panic!("{name}");
            };
            assert_eq!(refusal.why, Why::Question, "{name}");
            assert!(refusal.message.contains(text), "{name}: {refusal:?}");
        }
    }
}
