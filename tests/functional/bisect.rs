//! `bisect`: the commit, or the update of a dependency, that changed a figure.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{Project, Run, cargo, memcheck_signaled, share_build, workspace};

/// A test that holds `count` tensors of 4 KiB.
fn test(count: &str) -> String {
    format!(
        "use candle_core::{{DType, Device, Tensor}};\nuse memcheck_runtime::mem_test;\n\n\
         #[mem_test]\nfn holds(device: &Device) -> candle_core::Result<()> {{\n    \
         let _kept = Tensor::zeros(({count}, 1024), DType::F32, device)?;\n    Ok(())\n}}\n"
    )
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    let mut command = Command::new("git");
    for date in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        command.env(date, "2026-11-20T12:00:00Z");
    }
    let output = command.args(identity).args(arguments).current_dir(folder).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn commit(project: &Project, message: &str) {
    git(project.path(), &["add", "--all", "."]);
    git(project.path(), &["commit", "--quiet", "--message", message]);
    git(project.path(), &["tag", &message.replace(' ', "-")]);
}

fn worktree(project: &Project) -> PathBuf {
    project.path().parent().expect("a folder").join(format!(".{}-memcheck-base", project.name()))
}

/// Neither a worktree nor the state of a bisection is left.
#[track_caller]
fn assert_clean(project: &Project) {
    assert_eq!(git(project.path(), &["worktree", "list"]).lines().count(), 1);
    assert!(!worktree(project).exists() && !project.has(".git/BISECT_LOG"));
    let left = std::fs::read_dir(project.path().join(".git/worktrees"));
    assert_eq!(left.map_or(0, Iterator::count), 0);
    assert_eq!(git(project.path(), &["status", "--porcelain"]), "");
}

/// The ids of commits depend on the path of the runtime in the manifest.
pub(crate) fn without_commits(text: &str) -> String {
    let is_id = |word: &str| word.len() == 10 && word.chars().all(|c| c.is_ascii_hexdigit());
    let without = |word: &str| match word.trim_matches(['(', ')', ',']) {
        id if is_id(id) => word.replace(id, "COMMIT"),
        _ => word.to_owned(),
    };
    text.split(' ').map(without).collect::<Vec<_>>().join(" ")
}

/// The reference shows this output, without the lines of the run at the good revision.
#[track_caller]
fn assert_documented(command: &str, run: &Run) {
    let of_run = |line: &&str| {
        // Tests that run at the same time wait for each other.
        let is_wait = line.trim_start().starts_with("Blocking waiting");
        !is_wait && !line.starts_with("ok: ") && !line.contains("pending snapshot")
    };
    let steps: String = run.stderr.lines().filter(of_run).map(|line| format!("{line}\n")).collect();
    let output = format!("{command}\n{steps}{}", run.stdout);
    let page = std::fs::read_to_string(workspace().join("docs/reference/compare.md"));
    let page = page.expect("the page of the reference");
    assert!(without_commits(&page).contains(&without_commits(&output)), "{output}");
}

#[test]
#[ignore = "slow: just all"]
fn the_commit_that_raised_the_peak_is_found_among_twenty() {
    let project = Project::named("bisected");
    git(project.path(), &["init", "--quiet", "--initial-branch", "main"]);
    project.write("tests/mem.rs", &test("1"));
    commit(&project, "v0");
    for number in 1..=20 {
        match number {
            14 => project.write("tests/mem.rs", &test("3")),
            16 => project.write("tests/mem.rs", "this is not Rust\n"),
            17 => project.write("tests/mem.rs", &test("5")),
            _ => project.write("notes.txt", &number.to_string()),
        }
        commit(&project, &format!("v{number}"));
    }
    let bisect = |arguments: &[&str], run: &[&str]| {
        let arguments = [&["bisect", "holds"], arguments, &["--", "--device", "cpu"], run].concat();
        project.memcheck(&arguments)
    };
    let run = bisect(&["--good", "v0"], &[]).exits(0);
    let expected = "first bad commit: COMMIT v14 (Ann, 2026-11-20)\n";
    assert!(without_commits(&run.stdout).starts_with(expected), "{}", run.stdout);
    assert!(run.stdout.contains("20 commits from v0 to HEAD, 5 builds"), "{}", run.stdout);
    assert_documented("$ cargo memcheck bisect holds --good v0 -- --device cpu", &run);
    assert_clean(&project);

    // The first bad commit can be one that does not build, or the one after it.
    let run = bisect(&["--good", "v15", "--bad", "v18"], &[]).exits(0);
    assert!(run.stdout.contains("one of these 2 commits is the first bad one"), "{}", run.stdout);
    assert!(
        run.stdout.contains(" v16 (Ann, ") && run.stdout.contains("+8.00 KiB"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("3 commits from v15 to v18, 3 builds, 1 of them skipped"));
    run.prints("it does not build");

    // The last commit is measured, too.
    let json = ["--message-format", "json"];
    let last = bisect(&[&["--good", "v13", "--bad", "v14"], &json[..]].concat(), &[]).exits(0);
    last.summary();
    let line = &last.json()[0];
    assert_eq!((&line["type"], &line["builds"]), (&"bisection".into(), &2.into()));
    assert_eq!((&line["commits"][0]["subject"], &line["range"]), (&"v14".into(), &1.into()));
    let figures = line["changed"][0]["figures"].as_array().unwrap();
    let peak = figures.iter().find(|it| it["figure"] == "peak_allocated").expect("the peak");
    assert_eq!((&peak["base"], &peak["head"]), (&4_096.into(), &12_288.into()));
    bisect(&["--good", "v14", "--bad", "v15"], &[]).exits(2).prints("v15 is good");
    bisect(&["--good", "v14", "--bad", "v14"], &[]).exits(2).prints("no commit is between");
    bisect(&["--good", "v16", "--bad", "v18"], &[]).exits(101);
    assert_clean(&project);

    let steps = [&["bisect", "holds", "--good", "v0"][..], &["--", "--device", "cpu"]].concat();
    let begun = worktree(&project).join("tests/mem.rs");
    let begun = begun.to_str().expect("a path of text");
    memcheck_signaled(project.path(), &steps, begun, "-TERM").exits(130);
    assert_clean(&project);
}

/// A dependency in a directory instead of a registry.
fn vendor(project: &Project, name: &str, version: &str, count: usize) {
    let folder = format!("vendor/{name}-{version}");
    let manifest =
        format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2024\"\n");
    project.write(&format!("{folder}/Cargo.toml"), &manifest);
    let source = format!("#![no_std]\npub const COUNT: usize = {count};\n");
    project.write(&format!("{folder}/src/lib.rs"), &source);
    project.write(&format!("{folder}/.cargo-checksum.json"), "{\"files\":{}}");
}

#[test]
#[ignore = "slow: just all"]
fn the_update_that_raised_the_peak_is_found_among_twenty() {
    let names: Vec<String> = (1..=20).map(|number| format!("dep{number:02}")).collect();
    let list: String = names
        .iter()
        .map(|name| format!("{name} = {{ version = \"1\", registry = \"local\" }}\n"))
        .collect();
    let project = Project::bare(&format!(
        "{list}[dev-dependencies]\nmemcheck-runtime = {{ path = \"RUNTIME\" }}\n"
    ));
    // The last run of this test has updated it.
    project.copy_lock_file();
    project.write(
        ".cargo/config.toml",
        "[registries.local]\nindex = \"file:///registry-of-this-test\"\n\
         [source.local]\nregistry = \"file:///registry-of-this-test\"\nreplace-with = \"vendored\"\n\
         [source.vendored]\ndirectory = \"vendor\"\n",
    );
    project.write("tests/mem.rs", &test(&format!("{}::COUNT", names[12])));
    names.iter().for_each(|name| vendor(&project, name, "1.0.0", 1));
    let cargo = |arguments: &[&str]| {
        let mut command = cargo();
        command.args(arguments).arg("--offline").current_dir(project.path());
        share_build(&mut command);
        let output = command.output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    cargo(&["metadata", "--format-version", "1"]);
    for (number, name) in names.iter().enumerate() {
        vendor(&project, name, "1.1.0", if number == 12 { 3 } else { 1 });
    }
    git(project.path(), &["init", "--quiet", "--initial-branch", "main"]);
    commit(&project, "v0");
    let bisect = |arguments: &[&str]| {
        let arguments = [&["bisect", "holds", "--good", "v0"], arguments].concat();
        project.memcheck(&[&arguments[..], &["--", "--device", "cpu", "--offline"]].concat())
    };
    bisect(&["--lock"]).exits(2).prints("the same dependencies");
    let before = project.read("Cargo.lock");
    cargo(&[&["update"], names.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat());
    let updated = project.read("Cargo.lock");
    assert_ne!(before, updated);

    let run = bisect(&["--lock"]).exits(0);
    let first = run.stdout.lines().next().unwrap_or_default();
    assert_eq!(first, "first bad update: dep13 1.0.0 -> 1.1.0");
    assert!(run.stdout.contains("+8.00 KiB (+200.0%)"), "{}", run.stdout);
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("20 updates from v0 to HEAD, "), "{last}");
    let builds = last.split(", ").nth(1).and_then(|it| it.split(' ').next()).unwrap_or_default();
    assert!(builds.parse::<u32>().is_ok_and(|builds| builds <= 6), "{last}");
    assert_eq!(project.read("Cargo.lock"), updated, "the lock file of the user was changed");
    assert!(!worktree(&project).exists());
}
