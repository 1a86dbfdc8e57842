//! Proves that cargo's artifacts are made from the present sources of this checkout. Cargo compares
//! modification times, so that it takes an artifact for fresh if a source was restored with an older
//! time, or if another checkout with the same target directory has built it. The command keeps the
//! contents of the sources of each artifact that it saw cargo make (`records`), and compares them
//! with those of every artifact that cargo calls fresh. Cargo must make an artifact without such a
//! proof again.
//!
//! Only packages in folders of this machine are looked at: cargo never changes a package of a
//! registry or a git repository. What rustc and build scripts do not list, such as a file that a
//! procedural macro reads without cargo's knowledge, is not an input for cargo either.

mod compilers;
mod contents;
mod file_state;
mod outputs;
mod records;
mod units;

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) use compilers::Compilers;
pub(crate) use file_state::FileState;
pub(super) use records::{Record, Records};
pub(super) use units::{Unit, is_local, units};

use contents::InputContents;

use crate::system::files;

/// The greatest delay of a file system's clock: a file gets the time of the latest tick.
const TICK: Duration = Duration::from_millis(10);

/// The folder of the workspace, and whether other checkouts can share its artifacts.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceTree<'a> {
    /// The folder of the workspace.
    pub(super) root: &'a Path,
    /// True if artifacts are outside this folder, so that other checkouts can have the same
    /// directory.
    pub(super) is_shared: bool,
    /// The directories that cargo writes to.
    pub(super) made: [&'a Path; 2],
}

impl SourceTree<'_> {
    /// The folder that the names of a package's artifacts do not depend on: cargo names them after
    /// the path of the package in its workspace, or after the whole path if it is elsewhere.
    fn base(self, unit: &Unit) -> PathBuf {
        if unit.folder.starts_with(self.root) { self.root.to_owned() } else { unit.folder.clone() }
    }

    /// True if another checkout could have made an artifact with the same name. A checkout can also
    /// use the target directory inside this one, as a worktree in the folder of its repository does.
    fn is_ambiguous(self, unit: &Unit) -> bool {
        unit.folder.starts_with(self.root) && (self.is_shared || !unit.is_made_in(self.root))
    }
}

/// An artifact that cargo calls fresh, although it is not proven to be made from these sources.
#[derive(Debug)]
pub(super) struct Stale {
    /// Of the package.
    pub(super) name: String,
    pub(super) why: Cause,
    outputs: Vec<PathBuf>,
}

impl Stale {
    #[cfg(test)]
    pub(super) fn example(name: &str, why: Cause) -> Self {
        Self { name: name.to_owned(), why, outputs: Vec::new() }
    }

    /// Cargo makes an artifact again if a file of it is missing. `cargo clean --package` would remove
    /// the targets of the same names of other packages too.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.outputs.iter().try_for_each(|output| files::remove(output))
    }
}

/// The reason to doubt that an artifact is made from the present sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// This file has other contents than at the build, or it can have them. Cargo does not see it.
    Changed(PathBuf),
    /// This program, rustc or a wrapper of it, is another one than at the build, or compiles it only
    /// now, or only then.
    OtherCompiler(PathBuf),
    /// It was made from the sources in this folder.
    OtherCheckout(PathBuf),
    /// Cargo has no list of its sources.
    Unlisted,
    /// Another program than this command has made it, from the sources of a checkout that cannot be
    /// determined.
    UnknownCheckout,
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(path) => {
                write!(f, "cargo cannot see whether {} has changed since the build", path.display())
            }
            Self::OtherCompiler(path) => {
                write!(
                    f,
                    "cargo does not compare {} with the compiler of the build",
                    path.display()
                )
            }
            Self::OtherCheckout(folder) => {
                write!(f, "the build is that of the checkout in {}", folder.display())
            }
            Self::Unlisted => f.write_str("a list of sources is missing"),
            Self::UnknownCheckout => {
                f.write_str("another checkout with this target directory can have made the build")
            }
        }
    }
}

/// Compares the artifacts of a build, which began at a time, with the records, and adds those that
/// are proven. Returns the others.
pub(super) fn check(
    records: &mut Records,
    units: &[Unit],
    tree: SourceTree<'_>,
    compilers: &Compilers,
    began: SystemTime,
) -> Vec<Stale> {
    let mut contents = InputContents::new(records.files());
    let mut stale = Vec::new();
    for unit in units {
        let mut record = Record {
            base: tree.base(unit),
            outputs: unit
                .outputs
                .iter()
                .map(|path| (path.clone(), OutputState::of(path)))
                .collect(),
            inputs: unit.inputs.iter().map(|path| (path.clone(), contents.of(path))).collect(),
            compilers: compilers.of(unit).map(|path| (path.clone(), contents.of(path))).collect(),
        };
        let is_new = unit.is_new(began);
        let why = if is_new { None } else { doubt(records.of(unit), &record, unit, tree) };
        if is_new {
            // A file that changed while cargo ran can be newer than the artifact. It must not be
            // taken for the source of this artifact in the next run either.
            record.inputs.retain(|path, _| is_older(path, since_epoch(began)));
            record.compilers.retain(|path, _| is_older(path, since_epoch(began)));
        }
        if why.is_none() && unit.listing.is_some() {
            records.put(unit, record)
        } else {
            // The artifact will be removed, or it has no list of sources to compare.
            records.remove(unit)
        }
        if let Some(why) = why {
            stale.push(Stale {
                name: unit.name.clone(),
                why,
                outputs: unit.all_outputs(&tree.made),
            });
        }
    }
    stale
}

/// The reason to doubt that an artifact is made from the present sources.
fn doubt(known: Option<&Record>, now: &Record, unit: &Unit, tree: SourceTree<'_>) -> Option<Cause> {
    if unit.listing.is_none() {
        return Some(Cause::Unlisted);
    }
    match known.filter(|known| known.outputs == now.outputs) {
        Some(known) if known.base != now.base => Some(Cause::OtherCheckout(known.base.clone())),
        Some(known) => known.difference(now, unit),
        // Cargo ran without this command.
        None if tree.is_ambiguous(unit) => Some(Cause::UnknownCheckout),
        None => unit.changed_since_listing(tree.root).map(Cause::Changed),
    }
}

/// The identity of a file that cargo has made. Not its inode and its ctime, because a cache of a CI
/// restores the target directory with other ones.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct OutputState {
    modified: (i64, i64),
    size: u64,
}

impl OutputState {
    fn of(path: &Path) -> Option<Self> {
        match FileState::of(path)? {
            FileState::Absent => None,
            FileState::There { modified, size, .. } => Some(Self { modified, size }),
        }
    }
}

fn is_older(path: &Path, than: Duration) -> bool {
    FileState::of(path).is_some_and(|state| is_before(state.changed(), than))
}

/// False for times that the file system's clock cannot tell apart. `Duration::MAX` is never before.
fn is_before(time: Duration, other: Duration) -> bool {
    time.saturating_add(TICK) < other
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
