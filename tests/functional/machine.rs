//! Another machine, which has neither cargo nor rustc nor the sources. The programs are scripts
//! there, which leave a mark if they are started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fixture::{Project, Run, memcheck_with};

/// A folder, and a search path on which cargo and rustc leave a mark.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        for program in ["cargo", "rustc", "git"] {
            machine.program(program, &format!(": > {}\nexit 1", machine.mark().display()));
        }
        machine
    }

    /// Adds a shell script to the search path.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let path = self.path().join("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn mark(&self) -> PathBuf {
        self.path().join("a-program-was-started")
    }

    pub(crate) fn copy_from(&self, from: &Project, file: &str) {
        fs::copy(from.path().join(file), self.path().join(file)).expect("the file is copied");
    }

    /// Runs `cargo memcheck` on this machine. It must not have started cargo.
    pub(crate) fn memcheck(&self, arguments: &[&str]) -> Run {
        let run = self.with_programs_in("bin", arguments);
        assert!(!self.mark().exists(), "cargo, rustc or git was started");
        run
    }

    /// The same without a cargo.
    pub(crate) fn without_cargo(&self, arguments: &[&str]) -> Run {
        self.with_programs_in("nowhere", arguments)
    }

    /// The same with `folder` as the whole search path.
    pub(crate) fn with_programs_in(&self, folder: &str, arguments: &[&str]) -> Run {
        let path = |name: &str| self.path().join(name).display().to_string();
        fs::create_dir_all(path("tmp")).unwrap();
        let variables = [
            ("PATH", path(folder)),
            ("CARGO", path(&format!("{folder}/cargo"))),
            ("RUSTC", path(&format!("{folder}/rustc"))),
            ("TMPDIR", path("tmp")),
            // Clears the paths that cargo, or an exported toolkit, has set for this test.
            ("LD_LIBRARY_PATH", String::new()),
        ];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        memcheck_with(self.path(), arguments, &variables)
    }

    /// `run` of an archive, with JSON on stdout.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let all = ["run", "--archive-file", "a.tar.zst", "--message-format", "json", "--no-ci"];
        self.memcheck(&[&all[..], arguments].concat())
    }
}
