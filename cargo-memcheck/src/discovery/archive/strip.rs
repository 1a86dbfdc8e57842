//! Removes the line tables from executables. The symbols stay, so that call sites still have
//! function names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ArchiveError;
use crate::system::libraries::{SEARCH_PATH, in_front};
use crate::system::process::{self, ShortRun};

#[derive(Debug, Clone)]
pub(super) struct Objcopy {
    program: PathBuf,
    /// The toolchain's own program is linked with its libraries. `None` for a program of the
    /// system.
    libraries: Option<PathBuf>,
}

impl Objcopy {
    /// The toolchain's own program, then those of the system.
    fn candidates() -> Vec<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let ask_rustc = |what: &[&str]| {
            let mut command = Command::new(&rustc);
            command.args(what);
            let output = process::short(&command, ShortRun::TRUSTED).ok()?;
            Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
        };
        let own = ask_rustc(&["--print", "sysroot"]).zip(ask_rustc(&["--print", "target-libdir"]));
        let own = own.map(|(sysroot, of_target)| Self {
            // The tools of a target are next to its libraries.
            program: of_target.with_file_name("bin").join("rust-objcopy"),
            libraries: Some(sysroot.join("lib")),
        });
        let of_system =
            ["llvm-objcopy", "objcopy"].map(|name| Self { program: name.into(), libraries: None });
        own.into_iter().chain(of_system).collect()
    }

    fn run(&self, arguments: &[&str], from: &Path, to: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg(from).arg(to);
        if let Some(libraries) = &self.libraries {
            let path = in_front(libraries.clone()).unwrap_or_else(|_| OsString::new());
            command.env(SEARCH_PATH, path);
        }
        let name = self.program.display();
        let output = process::short(&command, ShortRun::TRUSTED)
            .map_err(|error| format!("{name}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Keeps the first candidate that works for all further files.
#[derive(Debug, Default)]
pub(super) struct Stripper {
    works: Option<Objcopy>,
}

impl Stripper {
    pub(super) fn strip(&mut self, from: &Path, to: &Path) -> Result<(), ArchiveError> {
        self.copy(&["--strip-debug"], from, to)
    }

    pub(super) fn line_tables(&mut self, from: &Path, to: &Path) -> Result<(), ArchiveError> {
        self.copy(&["--only-keep-debug"], from, to)
    }

    fn copy(&mut self, arguments: &[&str], from: &Path, to: &Path) -> Result<(), ArchiveError> {
        let candidates = match &self.works {
            Some(objcopy) => vec![objcopy.clone()],
            None => Objcopy::candidates(),
        };
        let mut why = Vec::new();
        for objcopy in candidates {
            match objcopy.run(arguments, from, to) {
                Ok(()) => {
                    self.works = Some(objcopy);
                    return Ok(());
                }
                Err(error) => why.push(error),
            }
        }
        Err(ArchiveError::Strip(from.to_owned(), why.join("; ")))
    }
}
