//! Packs the executables, the baselines and the configuration into an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use memcheck_core::device::Request;
use memcheck_core::judgement::location::Roots;
use memcheck_core::wire::protocol::{self, Entry};

use super::manifest::{
    self, ArchivedExecutable, Build, Manifest, Tables, TestTable, WITH_PATHS, WORKSPACE,
};
use super::strip::Stripper;
use super::write::{self, ArchiveEntry, EntrySource};
use super::{ArchiveError, metadata};
use crate::baselines::{self, SourceFunctions};
use crate::build::compile::NotBuilt;
use crate::build::leg::DeviceKind;
use crate::build::workspace::{TestPackage, Workspace, commit, uncommitted};
use crate::discovery::listing::LISTING;
use crate::invocation::values::CargoOptions;
use crate::system::binary::Binary;
use crate::system::elf::ElfTarget;
use crate::system::error::Failure;
use crate::system::libraries::Linked;
use crate::system::process::Interrupt;
use crate::system::temporary::TemporaryFolder;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineTables {
    Keep,
    Strip,
    Separate(PathBuf),
}

impl LineTables {
    pub(crate) fn read(text: &str) -> Self {
        match text {
            "keep" => Self::Keep,
            "strip" => Self::Strip,
            path => Self::Separate(path.into()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct PackedFrom<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) roots: Roots<'a>,
    pub(crate) packages: &'a [TestPackage],
    pub(crate) cargo: &'a CargoOptions,
    pub(crate) devices: Vec<Request>,
    pub(crate) configuration: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) kind: DeviceKind,
    pub(crate) folder: PathBuf,
    /// The tests are `None` if this machine cannot start the executable.
    pub(crate) binaries: Vec<(Binary, Option<Vec<Entry>>)>,
    pub(crate) not_built: Vec<NotBuilt>,
    pub(crate) nvml: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) executables: usize,
    pub(crate) baselines: usize,
    /// Bytes.
    pub(crate) size: u64,
    /// Bytes.
    pub(crate) tables: Option<u64>,
}

#[derive(Debug, Default)]
struct Contents {
    entries: Vec<ArchiveEntry>,
    tables: Vec<ArchiveEntry>,
    hasher: DefaultHasher,
    stripper: Stripper,
}

impl Contents {
    /// A second file of the same name must have the same content, otherwise one of the two would be
    /// missing.
    fn file(&mut self, name: PathBuf, file: &Path) -> Result<(), ArchiveError> {
        match self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.source) {
            Some(EntrySource::File(known)) => match has_same_content(known, file) {
                Ok(true) => Ok(()),
                Ok(false) => Err(ArchiveError::SameName(known.clone(), file.to_owned())),
                Err(error) => Err(ArchiveError::Io(file.to_owned(), error)),
            },
            Some(EntrySource::Text(_)) => Ok(()),
            None => {
                self.entries
                    .push(ArchiveEntry { name, source: EntrySource::File(file.to_owned()) });
                Ok(())
            }
        }
    }

    /// Unless line tables are kept, packs a stripped copy in `folder`.
    fn executable(
        &mut self,
        name: &Path,
        path: &Path,
        line_tables: &LineTables,
        folder: &Path,
    ) -> Result<(), ArchiveError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| ArchiveError::Io(path, error)
        };
        let mut packed = path.to_owned();
        if *line_tables != LineTables::Keep {
            packed = folder.join(name);
            fs::create_dir_all(packed.parent().unwrap_or(folder)).map_err(io(&packed))?;
            self.stripper.strip(path, &packed)?;
        }
        if let LineTables::Separate(_) = line_tables {
            let apart = protocol::line_tables(&packed);
            self.stripper.line_tables(path, &apart)?;
            let name = protocol::line_tables(name);
            self.tables.push(ArchiveEntry { name, source: EntrySource::File(apart) });
        }
        hash_file(&mut self.hasher, &packed).map_err(io(&packed))?;
        self.file(name.to_owned(), &packed)
    }

    /// The output directory of a build script.
    fn tree(&mut self, name: &Path, folder: &Path) -> Result<(), ArchiveError> {
        let io = |error| ArchiveError::Io(folder.to_owned(), error);
        for entry in fs::read_dir(folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            let (name, path) = (name.join(entry.file_name()), entry.path());
            // Symbolic links are skipped, because they can lead out of the folder.
            let kind = entry.file_type().map_err(io)?;
            if kind.is_dir() {
                self.tree(&name, &path)?;
            } else if kind.is_file() {
                self.file(name, &path)?;
            }
        }
        Ok(())
    }
}

fn has_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    if one == other {
        return Ok(true);
    }
    // PERF: most files that differ have different sizes, and need not be read.
    let same_size = fs::metadata(one)?.len() == fs::metadata(other)?.len();
    Ok(same_size && fs::read(one)? == fs::read(other)?)
}

fn hash_file(hasher: &mut DefaultHasher, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => hasher.write(&buffer[..read]),
        }
    }
}

pub(crate) fn pack(
    origin: &PackedFrom<'_>,
    leaves: &[Leaf],
    archive: &Path,
    line_tables: &LineTables,
    interrupt: &Interrupt,
) -> Result<Packed, Failure> {
    let own = origin.workspace.own_directory();
    fs::create_dir_all(&own).with_context(|| own.display().to_string())?;
    let folder =
        TemporaryFolder::new(&own, "archive-").with_context(|| own.display().to_string())?;
    let target = target(leaves)?;
    let mut contents = Contents::default();
    // `list --no-run` reads no further than the tables and the configuration.
    for leaf in leaves {
        contents.entries.push(table(leaf)?);
    }
    let baselines = sources(origin, &mut contents)?;
    let mut builds = Vec::new();
    for leaf in leaves {
        builds.push(build(origin, leaf, line_tables, folder.path(), &mut contents)?);
    }
    let executables = builds.iter().map(|build: &Build| build.executables.len()).sum();
    // It only finds archives that were mixed up, so that a hash without cryptography suffices.
    let id = format!("{:016x}", contents.hasher.finish());
    let cargo = origin.cargo;
    let metadata = serde_json::to_string(&metadata::prune(origin.workspace.metadata()));
    let page = Manifest {
        target,
        commit: commit(origin.workspace.root()),
        uncommitted: uncommitted(origin.workspace.root()),
        profile: match (&cargo.profile, cargo.release) {
            (Some(profile), _) => profile.clone(),
            (None, true) => "release".to_owned(),
            (None, false) => "dev".to_owned(),
        },
        features: cargo.features.clone(),
        devices: origin.devices.clone(),
        metadata: metadata.context("reading the metadata of cargo")?,
        packages: origin.packages.iter().map(|p| p.package.id.repr.clone()).collect(),
        names_targets: cargo.names_targets(),
        baselines,
        builds,
        files: write::measure(&contents.entries)?,
    };
    let baselines = page.baselines.len();
    let mut packed = Packed { executables, baselines, size: 0, tables: None };
    if let LineTables::Separate(path) = line_tables {
        let page = Tables { files: write::measure(&contents.tables)? };
        packed.tables = Some(write::write(path, &id, &page, &contents.tables, interrupt)?);
    }
    // Last, so that there is an archive only if its line tables are complete.
    packed.size = write::write(archive, &id, &page, &contents.entries, interrupt)?;
    Ok(packed)
}

/// The tests as the executables listed them on this machine.
fn table(leaf: &Leaf) -> Result<ArchiveEntry, Failure> {
    let executables = leaf.binaries.iter().map(|(_, tests)| tests.clone()).collect();
    let table = TestTable { memcheck: protocol::VERSION, executables };
    let text = serde_json::to_string(&table).context("the tests")?;
    let name = PathBuf::from(manifest::test_table(leaf.kind));
    Ok(ArchiveEntry { name, source: EntrySource::Text(text) })
}

/// The first executable decides, because one build has one target.
fn target(leaves: &[Leaf]) -> Result<ElfTarget, ArchiveError> {
    let first = leaves.iter().flat_map(|leaf| &leaf.binaries).next();
    let (binary, _) = first.ok_or(ArchiveError::NoTests)?;
    ElfTarget::of(&binary.pinned_path())
        .map_err(|error| ArchiveError::Io(binary.path().to_owned(), error))
}

fn build(
    origin: &PackedFrom<'_>,
    leaf: &Leaf,
    line_tables: &LineTables,
    folder: &Path,
    contents: &mut Contents,
) -> Result<Build, ArchiveError> {
    let kind = leaf.kind;
    let own = Path::new(manifest::folder(kind));
    let mut executables = Vec::new();
    for (binary, tests) in &leaf.binaries {
        let package = &origin.packages[binary.package].package.id.repr;
        let name = binary.path().file_name().unwrap_or_default();
        let file = own.join(name);
        contents.executable(&file, &binary.readable_path(), line_tables, folder)?;
        // Libraries below the target directory were built by cargo. All others belong to the system
        // and are not packed.
        if let Ok(linked) = Linked::of(binary, LISTING) {
            for library in linked.below(&leaf.folder) {
                let name = library.file_name().unwrap_or_default();
                contents.file(manifest::libraries(kind).join(name), library)?;
            }
        }
        let of_name = |wanted: &str| binary.environment.iter().find(|(name, _)| name == wanted);
        let out_dir = of_name("OUT_DIR").map(|(_, was)| {
            let now = format!("{}/out/{}", manifest::folder(kind), executables.len());
            (PathBuf::from(was), now)
        });
        if let Some((was, now)) = &out_dir {
            contents.tree(Path::new(now), was)?;
        }
        executables.push(ArchivedExecutable {
            id: binary.id.clone(),
            package: package.clone(),
            file: text(&file)?,
            tests: tests.as_ref().map(Vec::len),
            environment: binary
                .environment
                .iter()
                .filter(|(name, _)| !WITH_PATHS.contains(&name.as_str()))
                .cloned()
                .collect(),
            out_dir,
        });
    }
    let mut nvml = None;
    if let Some(library) = &leaf.nvml {
        let name = library.file_name().unwrap_or_default();
        let name = own.join("nvml").join(name);
        nvml = Some(text(&name)?);
        contents.file(name, library)?;
    }
    let (not_built, tests) = (leaf.not_built.clone(), manifest::test_table(kind));
    let of_kind = |package: &TestPackage| {
        let features = package.features.get(&kind)?;
        Some((package.package.id.repr.clone(), features.names.clone()))
    };
    let features = origin.packages.iter().filter_map(of_kind).collect();
    Ok(Build { kind, features, executables, not_built, nvml, tests })
}

fn text(name: &Path) -> Result<String, ArchiveError> {
    let text = name.to_str().map(str::to_owned);
    text.ok_or_else(|| ArchiveError::Name(name.to_owned(), "the name is not UTF-8".to_owned()))
}

fn sources(
    origin: &PackedFrom<'_>,
    contents: &mut Contents,
) -> Result<BTreeMap<String, SourceFunctions>, ArchiveError> {
    let workspace = origin.workspace;
    let root = workspace.root();
    if let Some(text) = origin.configuration {
        let name = PathBuf::from(manifest::configuration());
        contents.entries.push(ArchiveEntry { name, source: EntrySource::Text(text.to_owned()) });
    }
    let mut folders: BTreeSet<&Path> = BTreeSet::new();
    for package in origin.packages {
        if !package.folder().starts_with(root) {
            let name = package.name().to_owned();
            return Err(ArchiveError::OutsideWorkspace(name, root.to_owned()));
        }
        folders.insert(package.folder());
    }
    // The root of a virtual workspace can have baselines of sources that several packages share.
    folders.extend(workspace.is_virtual().then_some(root));
    let mut baselines = BTreeMap::new();
    for folder in folders {
        let files = baselines::accepted(origin.roots, folder, workspace.target_directory())
            .map_err(|error| ArchiveError::Io(folder.to_owned(), error))?;
        for file in files {
            let place = origin.roots.in_workspace(&file.path);
            let Ok(name) = place.strip_prefix(root) else { continue };
            contents.file(Path::new(WORKSPACE).join(name), &file.path)?;
            baselines.insert(self::text(name)?, SourceFunctions::of(&file, root));
        }
    }
    Ok(baselines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_libraries_with_one_name_are_packed_only_if_they_are_equal() {
        let folder = tempfile::tempdir().unwrap();
        let library = |part: &str, text: &str| {
            let path = folder.path().join(part).join("libshared.so");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let (first, copy, other) = (library("a", "one"), library("b", "one"), library("c", "two"));
        let name = || PathBuf::from("cpu/lib/libshared.so");
        let mut contents = Contents::default();
        for path in [&first, &first, &copy] {
            contents.file(name(), path).unwrap();
        }
        assert_eq!(contents.entries.len(), 1);
        let error = contents.file(name(), &other).unwrap_err();
        let paths = format!("{} and {}", first.display(), other.display());
        assert!(error.to_string().starts_with(&paths), "{error}");
        assert_eq!(contents.entries.len(), 1);
    }
}
