//! Archives that someone else has made to write outside their folder, to run a program, or to use
//! up memory, disk or time. Each must be refused before a program of it runs, and leave no file.

mod archives;
mod forge;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use memcheck_core::wire::protocol::{Listing, VERSION};
use serde_json::json;

use crate::fixture::{Run, command, memcheck_signaled, target};
use archives::hostile;
use forge::{Parts, Raw, bomb, compressed, entry};

/// The address space of the command, in KiB: a tenth of the memory that the bombs ask for.
const MEMORY: &str = "400000";
const NOT_MEASURED: u8 = 104;
const USAGE: u8 = 2;

/// A folder with a file that no archive may change, and a mark that the programs of archives leave.
struct Sentinel {
    folder: tempfile::TempDir,
}

impl Sentinel {
    fn new() -> Self {
        let sentinel = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["work", "tmp"] {
            fs::create_dir(sentinel.path(folder)).unwrap();
        }
        fs::write(sentinel.path("outside"), "unchanged").unwrap();
        sentinel
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn mark(&self) -> PathBuf {
        self.path("a-program-was-started")
    }

    /// The executable of the archives.
    fn script(&self) -> String {
        let listing = Listing { memcheck: VERSION, built_for: Vec::new(), tests: vec![entry()] };
        let listing = serde_json::to_string(&listing).unwrap();
        format!("#!/bin/sh\n: > {}\necho '{listing}'\n", self.mark().display())
    }

    fn parts(&self) -> Parts {
        Parts::new(&self.script())
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let own = command(&self.path("work"), arguments);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", MEMORY]);
        command.arg(own.get_program()).args(own.get_args()).current_dir(self.path("work"));
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // The address space holds a stack for each thread.
        command.env("TMPDIR", self.path("tmp")).env("RUST_MIN_STACK", "2000000");
        Run::from_output(&command.output().expect("cargo-memcheck runs"))
    }

    /// Every file below the folder with its contents.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn collect(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is_folder = path.symlink_metadata().unwrap().is_dir();
                let contents = if is_folder { Vec::new() } else { fs::read(&path).unwrap() };
                into.insert(path.clone(), contents);
                if is_folder {
                    collect(&path, into);
                }
            }
        }
        let mut files = BTreeMap::new();
        collect(self.folder.path(), &mut files);
        files
    }
}

/// The folder of the archives. They stay there, so that time and memory can be measured.
fn forged() -> PathBuf {
    let folder = target().join("functional/hostile-archives");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(name: &str, bytes: &[u8]) -> String {
    let path = forged().join(format!("{}.tar.zst", name.replace(' ', "-")));
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn an_archive_that_is_not_changed_is_listed_with_and_without_its_programs() {
    let sentinel = Sentinel::new();
    let archive = write("valid", &sentinel.parts().zstd());
    let before = sentinel.files();
    let table = sentinel.run(&["list", "--archive-file", &archive, "--no-run"]).exits(0);
    assert!(table.stdout.contains("forged"), "{}", table.stdout);
    assert_eq!(sentinel.files(), before, "the programs of the archive were started");
    let started = sentinel.run(&["list", "--archive-file", &archive]).exits(0);
    assert!(sentinel.mark().exists(), "the hostile archives could not show that they were started");
    assert_eq!(started.stdout, table.stdout);
    // The other machine need not be of the same kind.
    let mut parts = sentinel.parts();
    parts.set("/target", json!("s390x-linux"));
    let archive = write("other-machine", &parts.zstd());
    sentinel.run(&["list", "--archive-file", &archive, "--no-run"]).exits(0);
    sentinel.run(&["list", "--archive-file", &archive]).exits(2).prints("was built for s390x");
    // Two names that differ in case are two files here.
    let mut parts = sentinel.parts();
    parts.add("workspace/DATA", false, b"data");
    let archive = write("two-cases", &parts.zstd());
    sentinel.run(&["list", "--archive-file", &archive]).exits(0);
    // An executable that could not be listed must not be missing without a message.
    let mut parts = sentinel.parts();
    let table = json!({"memcheck": VERSION, "executables": [null]}).to_string();
    parts.files[0] = Raw::file(b"tests/cpu.json", 0o644, table.as_bytes());
    parts.set("/files/0/bytes", json!(table.len()));
    let archive = write("unlisted", &parts.zstd());
    let unlisted = sentinel.run(&["list", "--archive-file", &archive, "--no-run"]);
    unlisted.exits(104).prints("app::mem: the archive does not list the tests");
}

#[test]
#[ignore = "slow: just all"]
fn a_hostile_archive_writes_nothing_and_runs_nothing() {
    let sentinel = Sentinel::new();
    let archives = hostile(&sentinel);
    assert!(archives.len() >= 100, "{}", archives.len());
    let before = sentinel.files();
    for (name, code, bytes) in archives {
        let archive = write(name, &bytes);
        let list = ["list", "--archive-file", &archive];
        // Extraction to a folder that does not exist, and the start of the archive alone.
        for more in [&["--extract-to", "new/there"][..], &["--no-run"]] {
            let run = sentinel.run(&[&list[..], more].concat());
            let may_pass = more == ["--no-run"];
            assert!(
                run.code == i32::from(code) || (may_pass && run.code == 0),
                "{name} {more:?}: exit {}\n{}",
                run.code,
                run.stderr
            );
            let control = |c: char| c.is_control() && c != '\n';
            let printed = run.stdout.contains(control) || run.stderr.contains(control);
            assert!(!printed, "{name}: {:?}", run.stderr);
            assert!(!run.stderr.contains("\n::"), "{name}: {:?}", run.stderr);
            assert_eq!(sentinel.files(), before, "{name} {more:?}");
        }
    }
}

#[test]
fn line_tables_of_a_hostile_archive_are_refused() {
    let sentinel = Sentinel::new();
    let archive = write("with-line-tables", &sentinel.parts().zstd());
    let before = sentinel.files();
    let tables = |name: &str, id: &str| {
        let mut parts = sentinel.parts();
        parts.header["id"] = id.into();
        (parts.files, parts.page) = (Vec::new(), json!({"files": []}));
        parts.add(name, false, b"data");
        // The entries are those of an archive, except for the name of the header.
        let mut tar = parts.tar();
        let header = Raw::file(b"memcheck-line-tables.json", 0o644, b"");
        let size = tar::Header::from_byte_slice(&tar[..512]).entry_size().unwrap();
        let header = header.change(|header| header.set_size(size));
        tar[..512].copy_from_slice(header.header.as_bytes());
        write("line-tables", &compressed(&tar))
    };
    let run =
        |tables: &str| sentinel.run(&["run", "--archive-file", &archive, "--line-tables", tables]);
    for name in ["cpu/mem", "workspace/data", "/tmp/written", "cpu/../mem.debug", "cpu/mem.debug/a"]
    {
        let refused = run(&tables(name, "1")).exits(NOT_MEASURED);
        refused.prints("is refused");
        assert_eq!(sentinel.files(), before, "{name}");
    }
    run(&tables("cpu/mem.debug", "2")).exits(USAGE).prints("of another archive");
    assert_eq!(sentinel.files(), before);
    run(&tables("cpu/mem.debug", "1"));
    assert!(sentinel.mark().exists(), "valid line tables are extracted");
}

#[test]
fn ctrl_c_ends_the_extraction_and_leaves_no_folder() {
    let sentinel = Sentinel::new();
    let bytes: u64 = 1000 << 20;
    let mut parts = sentinel.parts();
    parts.add("workspace/large", false, b"");
    parts.set("/files/3/bytes", json!(bytes));
    let large = parts.files.pop().unwrap().change(|header| header.set_size(bytes));
    parts.files.push(large);
    parts.end.clear();
    let archive = write("interrupted", &bomb(&parts.tar(), 0, bytes + 1024, 27));
    let before = sentinel.files();
    let arguments = ["list", "--archive-file", &archive, "--extract-to", "new/there"];
    let file = "new/there/workspace/large";
    let signal = crate::fixture::interrupt();
    let run = memcheck_signaled(&sentinel.path("work"), &arguments, file, signal);
    run.exits(130).prints("interrupted");
    assert_eq!(sentinel.files(), before);
}
