//! `cargo memcheck archive`: builds, and packs the executables that have memory tests.

use std::path::Path;

use anyhow::Context;
use memcheck_core::size::{Size, counted};
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Entry;

use crate::build::compile::{BuildGoal, target_directory};
use crate::build::leg::{DeviceKind, Leg};
use crate::discovery::archive::{self, ArchiveError, Leaf, LineTables, PackedFrom};
use crate::discovery::legs::Legs;
use crate::discovery::listing::{self, ListedExecutable};
use crate::discovery::session::Session;
use crate::invocation::cli::ArchiveArgs;
use crate::invocation::devices::Probe;
use crate::invocation::options::Flags;
use crate::presentation::presenters::{json, style};
use crate::system::binary::Binary;
use crate::system::error::Failure;
use crate::system::launcher::Launcher;
use crate::system::printing::eprint_line;
use crate::system::process::Interrupt;

pub(super) fn archive(args: &ArchiveArgs) -> Result<u8, Failure> {
    let ArchiveArgs { archive_file, line_tables, device, config_file, baselines, output, cargo } =
        args;
    let line_tables = LineTables::read(line_tables);
    if matches!(&line_tables, LineTables::Separate(path) if is_same(path, archive_file)) {
        return Err(ArchiveError::SameFile(archive_file.clone()).into());
    }
    let (config_file, probe) = (config_file.clone(), Probe::Compiler);
    let flags = Flags::new(output, cargo).devices(device)?;
    let session =
        Session::open(Flags { config_file, baselines: baselines.clone(), probe, ..flags })?;
    session.announce();
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut legs = Legs::open(&session)?;
    for leg in &session.legs {
        if leaves.iter().any(|leaf| leaf.kind == leg.kind) {
            continue;
        }
        let built = legs.build(leg, &session.packages, BuildGoal::Tests)?;
        let mut binaries = Vec::new();
        for binary in &built.binaries {
            match tests(&session, binary, leg)? {
                Some(tests) if tests.is_empty() => {}
                tests => binaries.push((binary.clone(), tests)),
            }
        }
        leaves.push(Leaf {
            kind: leg.kind,
            folder: target_directory(&session.workspace, leg.kind),
            binaries,
            not_built: built.not_built,
            nvml: legs.nvml().filter(|_| leg.kind == DeviceKind::Sim),
        });
    }
    if leaves.iter().all(|leaf| leaf.binaries.is_empty()) {
        return Err(ArchiveError::NoTests.into());
    }
    let interrupt = Interrupt::listen().context("listening for signals")?;
    let origin = PackedFrom {
        workspace: &session.workspace,
        roots: session.roots(),
        packages: &session.packages,
        cargo: &session.options.cargo,
        devices: session.legs.iter().flat_map(Leg::requests).collect(),
        configuration: session.options.configuration.text.as_deref(),
    };
    let packed = archive::pack(&origin, &leaves, archive_file, &line_tables, &interrupt)?;
    let mut files = vec![("archive", archive_file, packed.size)];
    if let (LineTables::Separate(path), Some(size)) = (&line_tables, packed.tables) {
        files.push(("line-tables", path, size));
    }
    let archive::Packed { executables, baselines, .. } = packed;
    let executables = counted(executables as u64, "test executable", "test executables");
    let baselines = counted(baselines as u64, "baseline", "baselines");
    eprint_line!("packed {executables} and {baselines}");
    for (what, path, size) in files {
        json::file(output.form.message_format, what, path, size);
        eprint_line!("{what}: {} ({})", path.display(), Size(size));
    }
    Ok(exit::OK)
}

/// The file need not exist.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let folder = std::fs::canonicalize(path.parent()?).ok()?;
        Some(folder.join(path.file_name()?))
    };
    one == other || whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// `None` if this machine cannot list it: it is for another one, or a library such as the driver is
/// missing.
fn tests(session: &Session, binary: &Binary, leg: &Leg) -> Result<Option<Vec<Entry>>, Failure> {
    if binary.foreign_target().is_some() {
        return Ok(None);
    }
    let binaries = std::slice::from_ref(binary);
    let search = &session.options.search;
    let listed = listing::discover(binaries, &session.packages, leg, &Launcher::None, search);
    let mut tests = Vec::new();
    for ListedExecutable { tests: of_executable, warning, unlisted, .. } in listed {
        match unlisted {
            // The machine that runs the archive may have them.
            Some(why) if why.is_missing_libraries() => {
                eprint_line!("note: {why}; the executable is packed without its number of tests");
                return Ok(None);
            }
            Some(why) => return Err(why.into()),
            None => tests.extend(of_executable),
        }
        if let Some(warning) = warning {
            eprint_line!("{} {warning}", style::warning("warning:"));
        }
    }
    Ok(Some(tests))
}
