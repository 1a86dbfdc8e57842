//! Files of the tree and of results that have no end, or that nobody writes to: a link to a device,
//! a named pipe, a folder, a file with a hole. The command must refuse each at once, in bounded
//! memory. Only one function may read such files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::fixture::{Project, Run, command, started_by, workspace};

const TESTS: &str = "
#[mem_test(iterations = 1, warmup = 0)]
fn clean() {}
";

/// What is put in the place of a file, and the reason why it is refused.
const REFUSED: [(&str, &str); 4] = [
    ("device", "it is a character device, and only a regular file of at most "),
    ("pipe", "it is a named pipe, and only a regular file of at most "),
    ("folder", "it is a directory, and only a regular file of at most "),
    ("hole", "it has 1.00 TiB, and the most is "),
];

fn put(kind: &str, path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    remove(path);
    match kind {
        "device" => symlink("/dev/zero", path).expect("a link"),
        "folder" => fs::create_dir(path).expect("a folder"),
        // It takes no space.
        "hole" => fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("a file"),
        _ => {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.is_ok_and(|status| status.success()), "a pipe");
        }
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
}

/// Runs the command in 4 GB of address space. It takes a second, unless cargo waits for the builds of
/// other tests. A command that never ends is killed.
fn bounded(project: &Project, arguments: &[&str]) -> Run {
    let limits = "ulimit -v 4000000; exec timeout --signal KILL 600 \"$@\"";
    let mut command =
        started_by(("sh", &["-c", limits, "sh"]), &command(project.path(), arguments));
    Run::from_output(&command.output().expect("sh runs"))
}

#[test]
fn a_file_that_is_not_regular_or_too_large_is_refused_at_once() {
    let project = Project::new(TESTS);
    let run = ["run", "--device", "cpu", "--ci", "--message-format", "json"];
    let run = [&run[..], &["--results", "out/results"]].concat();
    project.memcheck(&run).exits(5);
    let path = |file: &str| project.path().join(file);

    // Results that another machine has sent name any path.
    let results = path("out/results/results.jsonl");
    let stored = fs::read_to_string(&results).expect("the results");
    let (before, after) = stored.split_once("\"snapshot\":\"").expect("a snapshot");
    let (_, after) = after.split_once('"').expect("its end");
    let named = path("out/pipe");
    put("pipe", &named);
    let report = ["report", "out/results", "--report", "html=out/report.html"];
    for snapshot in ["/dev/zero", named.to_str().expect("a name")] {
        fs::write(&results, format!("{before}\"snapshot\":\"{snapshot}\"{after}")).expect("a file");
        bounded(&project, &report).exits(5);
        assert!(project.read("out/report.html").contains("clean"));
    }

    for (kind, why) in REFUSED {
        put(kind, &results);
        bounded(&project, &report).exits(104).prints("cut off or damaged").prints(why);
        bounded(&project, &["report", "--merge", "out/results"]).exits(104).prints(why);
    }

    let baseline = path("tests/snapshots/mem__clean@cpu.snap");
    for (kind, why) in REFUSED {
        put(kind, &baseline);
        let run = bounded(&project, &run);
        let finding = &run.test("clean")["findings"][0];
        assert_eq!(finding["code"], "corrupt-baseline", "{}", run.stderr);
        let message = finding["message"].as_str().expect("a message");
        assert!(message.contains(&format!("cannot be used: {why}")), "{message}");
        // Nothing is put in its place.
        assert!(baseline.symlink_metadata().is_ok());
    }
    remove(&baseline);

    for (kind, why) in REFUSED {
        put(kind, &path(".config/memcheck.toml"));
        bounded(&project, &run).exits(96).prints("memcheck.toml: ").prints(why);
    }
    remove(&path(".config/memcheck.toml"));
}

/// The production code of a crate: the name of each file and its text. The targets of the fuzzer
/// are not a part of it.
pub(crate) fn product_sources(krate: &str) -> Vec<(String, String)> {
    let (mut folders, mut found) = (vec![workspace().join(krate).join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(workspace()).expect("a source").display().to_string();
            if path.is_dir() {
                folders.extend(Some(path).filter(|path| !path.ends_with("fuzzing")));
            } else if !name.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let own = text.split("mod tests {").next().unwrap_or_default();
                found.push((name, own.to_owned()));
            }
        }
    }
    assert!(!found.is_empty(), "{krate}");
    found
}

/// Files that another program can have written may only be read by `input`, which has limits.
/// These files read others.
const OTHER_READS: [(&str, &str); 11] = [
    ("memcheck-core/src/os.rs", "the opening of a file for that layer"),
    ("memcheck-conduct/src/os/mod.rs", "/proc"),
    ("memcheck-runtime/src/os/linux/mod.rs", "/proc and /sys"),
    ("memcheck-runtime/src/os/linux/mapped.rs", "a file that it has just created"),
    ("memcheck-conduct/src/symbols.rs", "executables are mapped, and only regular files"),
    ("cargo-memcheck/src/baselines/resolve.rs", "insta, after the text was read and parsed"),
    ("cargo-memcheck/src/discovery/archive/", "executables, and checked files of an archive"),
    ("cargo-memcheck/src/system/files.rs", "a file that it has just written, and its folder"),
    ("cargo-memcheck/src/system/process/ignored.rs", "/proc"),
    ("cargo-memcheck/src/system/temporary.rs", "the lock in a folder, without waiting"),
    ("cargo-memcheck/src/large_inputs.rs", "a test"),
];

#[test]
fn only_the_layer_for_input_reads_files() {
    let crates = ["cargo-memcheck", "memcheck-core", "memcheck-runtime", "memcheck-conduct"];
    let reads = [
        "fs::read(",
        "fs::read)",
        "fs::read_to_string",
        "File::open",
        ".read(true)",
        "Snapshot::from_file",
        "Loader::new",
    ];
    let mut found = Vec::new();
    for (name, own) in crates.into_iter().flat_map(product_sources) {
        let reads = reads.iter().filter(|read| own.contains(**read));
        found.extend(reads.map(|read| format!("{name}: {read}")));
    }
    for (file, why) in OTHER_READS {
        let count = found.len();
        found.retain(|read| !read.starts_with(file));
        assert!(found.len() < count, "{file} does not read files any more ({why})");
    }
    assert!(found.is_empty(), "use memcheck_core::input instead of {found:#?}");
}
