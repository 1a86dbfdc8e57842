//! Identifies CUDA sources by their text, so that the simulated device computes a kernel only if it
//! knows the source. A version does not suffice: a git revision, a fork or a patch has the version
//! of other sources.

mod table;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The identity of a CUDA source: a hash of its text, and of the text of each header that it
/// includes with quotes. It recognizes sources, and does not protect against forged ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity(u64);

/// A source of candle whose kernels or launchers the simulated device knows.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownSource {
    /// Its identity.
    pub identity: Identity,
    /// The package that it belongs to.
    pub package: &'static str,
    /// Its path in the package.
    pub file: &'static str,
    /// The versions of the package that contain it.
    pub versions: &'static [&'static str],
}

impl KnownSource {
    /// The name of the file without its extension.
    pub fn stem(&self) -> &'static str {
        let name = self.file.rsplit('/').next().unwrap_or(self.file);
        name.strip_suffix(".cu").unwrap_or(name)
    }
}

/// The known sources, in the order of their packages and files.
pub fn all() -> &'static [KnownSource] {
    table::KNOWN
}

/// The known source with this identity.
pub fn known(identity: Identity) -> Option<&'static KnownSource> {
    all().iter().find(|source| source.identity == identity)
}

impl Identity {
    /// The identity of the source at `path`, whose headers are next to the file that includes them
    /// or in one of `folders`. `read` returns the bytes of a file. A header that it does not have,
    /// such as one of CUDA, is part of the identity by its name only.
    ///
    /// Returns `None` if the source itself cannot be read.
    pub fn of(
        path: &Path,
        folders: &[PathBuf],
        mut read: impl FnMut(&Path) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let text = read(path)?;
        let mut hash = Hash::new();
        let name = path.file_name().unwrap_or_default();
        hash.file(&name.to_string_lossy(), Some(&text));
        let mut hashed = BTreeSet::from([path.to_owned()]);
        headers(path, &text, folders, &mut read, &mut hashed, &mut hash);
        Some(Self(hash.0))
    }

    /// The identity with this number.
    const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// Hashes the headers of a file in the order of their first mention.
fn headers(
    path: &Path,
    text: &[u8],
    folders: &[PathBuf],
    read: &mut impl FnMut(&Path) -> Option<Vec<u8>>,
    hashed: &mut BTreeSet<PathBuf>,
    hash: &mut Hash,
) {
    for name in quoted_includes(text) {
        let own = path.parent().unwrap_or(Path::new(""));
        let places = std::iter::once(own).chain(folders.iter().map(PathBuf::as_path));
        let found = places.map(|folder| folder.join(&name)).find_map(|path| {
            let text = read(&path)?;
            Some((path, text))
        });
        match found {
            Some((path, text)) => {
                if hashed.insert(path.clone()) {
                    hash.file(&name, Some(&text));
                    headers(&path, &text, folders, read, hashed, hash);
                }
            }
            None => hash.file(&name, None),
        }
    }
}

/// The names in `#include "name"`, also in a part that a condition leaves out.
fn quoted_includes(text: &[u8]) -> Vec<String> {
    let lines = text.split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    let name = |line: std::borrow::Cow<'_, str>| {
        let rest = line.trim().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        let (name, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    };
    lines.filter_map(name).collect()
}

/// FNV-1a with 64 bits.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Lengths separate the files, so that text cannot move from one to the next.
    fn file(&mut self, name: &str, text: Option<&[u8]>) {
        self.bytes(&(name.len() as u64).to_le_bytes());
        self.bytes(name.as_bytes());
        self.bytes(&text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
        self.bytes(text.unwrap_or_default());
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that is not an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the identity of a source")]
pub struct IdentityError(String);

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
        number.map(Self).ok_or_else(|| IdentityError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn identity(files: &[(&str, &str)]) -> Identity {
        let files: HashMap<PathBuf, &str> =
            files.iter().map(|(path, text)| (path.into(), *text)).collect();
        let read = |path: &Path| files.get(path).map(|text| text.as_bytes().to_vec());
        Identity::of(Path::new("src/a.cu"), &["include".into()], read).unwrap()
    }

    #[test]
    fn each_change_of_a_source_or_of_a_header_is_another_identity() {
        let source = "#include \"b.cuh\"\n # include  \"c.cuh\" // c\n#include <cuda.h>\nint x;\n";
        let base =
            [("src/a.cu", source), ("src/b.cuh", "#include \"c.cuh\"\n"), ("include/c.cuh", "c")];
        let known = identity(&base);
        assert_eq!(known, identity(&base));
        let mut seen = BTreeSet::from([known]);
        let changed: [(usize, (&str, &str)); 5] = [
            (0, ("src/a.cu", &source.replace("x", "y"))),
            (1, ("src/b.cuh", "#include \"c.cuh\"\n\n")),
            (2, ("include/c.cuh", "C")),
            (2, ("elsewhere/c.cuh", "c")),
            (0, ("src/a.cu", &source.replace("<cuda.h>", "\"cuda.h\""))),
        ];
        for (at, file) in changed {
            let mut files = base;
            files[at] = file;
            assert!(seen.insert(identity(&files)), "{file:?}");
        }
        // The path does not count, and a header that includes itself ends.
        let read = |path: &Path| path.ends_with("x.cu").then(|| b"#include \"x.cu\"".to_vec());
        let of = |path: &str| Identity::of(Path::new(path), &[], read);
        assert_eq!(of("/a/x.cu"), of("b/x.cu"));
        assert_eq!(of("/a/none.cu"), None);
    }

    #[test]
    fn an_identity_is_written_and_read() {
        let known = identity(&[("src/a.cu", "int x;")]);
        assert_eq!(known.to_string().parse(), Ok(known));
        for text in ["", "1", "000000000000000g", "00000000000000001"] {
            assert!(text.parse::<Identity>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_known_source_is_found_by_its_identity() {
        let identities: BTreeSet<Identity> = all().iter().map(|source| source.identity).collect();
        assert_eq!(identities.len(), all().len(), "an identity occurs twice");
        for source in all() {
            assert_eq!(known(source.identity), Some(source));
            assert!(!source.versions.is_empty() && !source.stem().contains(['/', '.']));
        }
        assert_eq!(known(Identity(0)), None);
    }
}
