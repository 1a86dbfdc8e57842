//! Tests of written archives. `tests/functional/hostile_archives.rs` has those that the writer does
//! not write.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use memcheck_core::wire::exit;
use serde::{Deserialize, Serialize};

use super::super::check;
use super::super::write::{ArchiveEntry, EntrySource, measure, write};
use super::*;
use crate::system::error::CommandError;
use crate::system::process::INTERRUPTED;

#[derive(Debug, Serialize, Deserialize)]
struct Example {
    files: Vec<PackedFile>,
}

impl ArchivePage for Example {
    const NAME: &'static str = "example.json";
    const KIND: &'static str = "an example";

    fn files(&self) -> &[PackedFile] {
        &self.files
    }

    fn check(&self) -> Result<(), String> {
        check::files(&self.files).map(drop)
    }
}

fn text(name: &str) -> ArchiveEntry {
    ArchiveEntry { name: name.into(), source: EntrySource::Text("figures\n".repeat(1000)) }
}

fn file(name: &str, path: &Path) -> ArchiveEntry {
    ArchiveEntry { name: name.into(), source: EntrySource::File(path.to_owned()) }
}

fn packed(path: &Path, entries: &[ArchiveEntry]) -> u64 {
    let page = Example { files: measure(entries).unwrap() };
    write(path, "1", &page, entries, &Interrupt::default()).unwrap()
}

fn all(folder: &Path) -> Destination {
    Destination { folder: folder.to_owned(), wanted: |_| true }
}

fn extracted(path: &Path, folder: &Path) -> Result<Example, ArchiveError> {
    read::<Example>(path, &Interrupt::default(), |_, _| Ok(all(folder)))
}

fn refused(path: &Path, folder: &Path) -> (u8, String) {
    let error = extracted(path, folder).unwrap_err();
    (error.exit_code(), error.to_string())
}

#[test]
fn packed_files_are_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("new/a.tar.zst"), folder.path().join("to"));
    fs::create_dir(&to).unwrap();
    let long = format!("workspace/{}.snap", ["long"; 60].join("/"));
    let entries = [text("workspace/a.snap"), file("cpu/sh", Path::new("/bin/sh")), text(&long)];
    let size = packed(&path, &entries);
    assert_eq!(size, fs::metadata(&path).unwrap().len());
    let page = extracted(&path, &to).unwrap();
    assert_eq!(page.files.len(), 3);
    for name in ["workspace/a.snap", &long] {
        assert_eq!(fs::read_to_string(to.join(name)).unwrap(), "figures\n".repeat(1000), "{name}");
    }
    assert_eq!(fs::read(to.join("cpu/sh")).unwrap(), fs::read("/bin/sh").unwrap());
    let mode = |name: &str| fs::metadata(to.join(name)).unwrap().permissions().mode();
    assert_eq!(mode("cpu/sh") & 0o111, 0o111, "it can be started");
    assert_eq!(mode("workspace/a.snap") & 0o111, 0, "it is not a program");
    assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
}

#[test]
fn the_same_files_yield_the_same_archive() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| {
        let path = folder.path().join(name);
        packed(&path, &[text("a"), file("sh", Path::new("/bin/sh"))]);
        fs::read(path).unwrap()
    };
    assert_eq!(read("1"), read("2"));
}

#[test]
fn only_wanted_files_are_extracted_and_the_rest_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("a.tar.zst"), folder.path().join("to"));
    fs::create_dir(&to).unwrap();
    packed(&path, &[text("x"), text("tests/cpu.json"), text("y")]);
    let wanted = |name: &str| name.starts_with("tests/");
    let destination =
        |_: &ArchiveHeader, _: &Example| Ok(Destination { folder: to.clone(), wanted });
    read::<Example>(&path, &Interrupt::default(), destination).unwrap();
    assert!(to.join("tests/cpu.json").is_file());
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
}

#[test]
fn repeated_content_of_two_files_is_compressed() {
    let folder = tempfile::tempdir().unwrap();
    // 12 MiB of bytes that cannot be compressed, from a linear congruential generator. This is more
    // than the window that zstd chooses by default at this level.
    let mut state = 1_u64;
    let mut noise = Vec::new();
    while noise.len() < 12 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.extend_from_slice(&state.to_be_bytes()[..4]);
    }
    let source = folder.path().join("noise");
    fs::write(&source, &noise).unwrap();
    let packed = |count: usize| {
        let entries: Vec<ArchiveEntry> =
            (0..count).map(|n| file(&n.to_string(), &source)).collect();
        let path = folder.path().join(format!("{count}.tar.zst"));
        let size = packed(&path, &entries);
        let to = folder.path().join(format!("to-{count}"));
        fs::create_dir(&to).unwrap();
        extracted(&path, &to).unwrap();
        assert_eq!(fs::read(to.join((count - 1).to_string())).unwrap(), noise);
        size
    };
    let (one, three) = (packed(1), packed(3));
    assert!(one > 11 << 20, "{one}");
    assert!(three < one + one / 10, "{one} for one, {three} for three");
}

#[test]
fn other_files_and_truncated_archives_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.zst");
    let to = || tempfile::tempdir_in(folder.path()).unwrap().keep();
    assert_eq!(refused(&path, &to()).0, exit::USAGE);
    assert_eq!(refused(folder.path(), &to()).0, exit::USAGE);
    fs::write(&path, "no archive").unwrap();
    assert_eq!(refused(&path, &to()).0, exit::USAGE);
    packed(&path, &[text("a")]);
    let whole = fs::read(&path).unwrap();
    for cut in [whole.len() / 2, whole.len() - 1, 20] {
        fs::write(&path, &whole[..cut]).unwrap();
        let (code, message) = refused(&path, &to());
        assert_eq!(code, exit::NOT_MEASURED, "{cut}: {message}");
        assert!(message.contains("cut off or damaged"), "{message}");
    }
    for at in [whole.len() / 2, whole.len() - 2] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        fs::write(&path, damaged).unwrap();
        assert_eq!(refused(&path, &to()).0, exit::NOT_MEASURED, "{at}");
    }
}

#[test]
fn a_name_that_a_reader_would_refuse_is_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.zst");
    for name in ["/etc/a", "../a", "a\u{1b}[2J"] {
        let entries = [text(name)];
        let page = Example { files: measure(&entries).unwrap() };
        let error = write(&path, "1", &page, &entries, &Interrupt::default()).unwrap_err();
        assert_eq!(error.exit_code(), exit::USAGE, "{error}");
    }
    let name = PathBuf::from(OsStr::from_bytes(b"a\xff"));
    let source = EntrySource::Text(String::new());
    let error = measure(&[ArchiveEntry { name, source }]).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_signal_ends_reading_and_writing_after_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("a.tar.zst"), folder.path().join("to"));
    fs::create_dir(&to).unwrap();
    let large = folder.path().join("large");
    // The file is sparse, so no data is written to the disk.
    File::create(&large).unwrap().set_len(64 << 20).unwrap();
    let entries = [file("large", &large)];
    packed(&path, &entries);
    let interrupt = Interrupt::default();
    let error = read::<Example>(&path, &interrupt, |_, _| {
        interrupt.set();
        Ok(all(&to))
    });
    assert_eq!(error.unwrap_err().exit_code(), INTERRUPTED);
    assert_eq!(fs::metadata(to.join("large")).unwrap().len(), 0);
    let page = Example { files: measure(&entries).unwrap() };
    let error = write(&folder.path().join("b"), "1", &page, &entries, &interrupt).unwrap_err();
    assert_eq!(error.exit_code(), INTERRUPTED);
    assert!(!folder.path().join("b").exists());
}

#[test]
fn an_archive_that_needs_more_than_the_free_space_is_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    let free = statvfs(folder.path()).unwrap();
    let free = free.blocks_available() * free.fragment_size();
    let file = |bytes| PackedFile { name: "a".to_owned(), bytes, executable: false };
    check_space(folder.path(), [file(1)].iter()).unwrap();
    let error = check_space(folder.path(), [file(free), file(1 << 40)].iter()).unwrap_err();
    assert_eq!(error.exit_code(), exit::INTERNAL);
    assert!(error.to_string().contains("of free space"), "{error}");
}

#[test]
fn the_version_is_found_although_the_rest_is_unknown_or_cut_off() {
    let of = |json: &str| ArchiveVersion::read(json.as_bytes()).map(|v| (v.version, v.memcheck));
    let known = Some((1, "0.1.0".to_owned()));
    assert_eq!(of(r#"{"version":1,"memcheck":"0.1.0","id":"1","files":3,"target":"x86"#), known);
    assert_eq!(of(r#"{"new":[{"a":1}],"memcheck":"0.1.0","version":1,"#), known);
    for json in ["", "{}", "[]", r#"{"version":1}"#, r#"{"version":"1","memcheck":"0.1.0"}"#] {
        assert_eq!(of(json), None, "{json}");
    }
}
