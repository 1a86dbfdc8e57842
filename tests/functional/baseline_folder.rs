//! Baselines in another folder than the sources, which mirrors the workspace. That merged shards and
//! a plain `cargo test` use it is in `relations`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture::{Programs, Project, own_directory, workspace};
use crate::report_data::report_data;

/// `path`, relative to the workspace, even if it is outside of it.
fn relative_to_workspace(path: &Path) -> PathBuf {
    let up = workspace().components().skip(1).map(|_| "..").collect::<PathBuf>();
    up.join(path.strip_prefix("/").expect("an absolute path"))
}

#[test]
fn the_flag_the_variable_and_the_configuration_name_the_folder_of_baselines() {
    let programs = Programs::of("baselines").with_baselines();
    let folder = programs.path().join("baselines");
    let run = ["run", "baselines::clean", "--device", "cpu", "--no-ci"];
    let new = programs.memcheck(&run).exits(0);
    // The flag is relative to the current folder, but the next command can be typed in another one.
    let flag = format!("--baselines {}", folder.display());
    new.prints(&format!("cargo memcheck review {flag}, or cargo memcheck accept {flag}"));
    assert!(programs.has(&programs.pending("clean@cpu")));
    assert!(!programs.have_snapshots());
    let review = programs.memcheck(&["review"]).exits(5);
    review.prints("cargo memcheck accept programs__baselines__clean@cpu.snap --baselines");
    programs.memcheck(&["accept"]).exits(0).prints(&programs.baseline("clean@cpu"));
    let none = programs.memcheck(&["accept"]).exits(0);
    none.prints(&format!("no pending snapshots in {}", folder.display()));

    let others = Programs::of("baselines");
    let clean = |variables: &[(&str, &str)]| {
        others.run_with("cpu", &["baselines::clean"], variables).exits(0).codes("clean")
    };
    let relative = relative_to_workspace(&folder).display().to_string();
    assert_eq!(clean(&[]), ["missing-baseline"]);
    assert_eq!(clean(&[("MEMCHECK_BASELINES", &relative)]), [""; 0]);
    others.configure(&format!("baselines = {relative:?}\n"));
    assert_eq!(clean(&[]), [""; 0]);
    assert_eq!(clean(&[("MEMCHECK_BASELINES", "/none")]), ["missing-baseline"]);
    assert!(!Path::new("/none").exists());
}

const CLEAN: &str = "#[mem_test(max_growth = \"0 B\")]
fn clean(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros(100_000, DType::F32, device).map(drop)
}
";
const SNAPSHOT: &str = "tests/snapshots/mem__clean@cpu.snap";

#[test]
fn every_command_that_uses_baselines_takes_those_of_the_folder() {
    let project = Project::new(CLEAN);
    let kept = own_directory(&project).join("kept");
    let _ = fs::remove_dir_all(&kept);
    let flag = ["--baselines", kept.to_str().expect("a path in UTF-8")];
    let memcheck = |arguments: &[&str]| project.memcheck(&[arguments, &flag].concat());

    // Pending snapshots of CI are accepted into a folder that does not exist yet.
    let new = project.run(&[&["--ci"], &flag[..]].concat()).exits(5);
    let pending = new.summary()["pending"][0].as_str().expect("a pending snapshot").to_owned();
    let from = pending.strip_suffix(&format!("/{SNAPSHOT}.new")).expect("a mirror");
    assert!(from.ends_with("memcheck/pending"), "{from}");
    assert!(!kept.exists());
    let accepted = ["accept", "mem::clean", "--from", from];
    memcheck(&accepted).exits(0);
    let snapshot = kept.join(SNAPSHOT);
    let text = fs::read_to_string(&snapshot).expect("the baseline");
    assert!(text.contains("source: tests/mem.rs") && text.contains("peak_allocated: 400000"));
    assert!(!project.has(SNAPSHOT));
    project.run(&[&["--ci"], &flag[..]].concat()).exits(0);

    // A link out of the folder is refused, as in the workspace.
    fs::remove_dir_all(kept.join("tests")).unwrap();
    project.run(&["--ci"]).exits(5);
    std::os::unix::fs::symlink(project.path(), kept.join("tests")).unwrap();
    memcheck(&accepted).exits(2).prints("because of a link to");
    fs::remove_file(kept.join("tests")).unwrap();
    memcheck(&accepted).exits(0);

    // A report reads only the folder that its own command line names.
    fs::write(&snapshot, text.replace("400000", "200000")).unwrap();
    project.run(&flag).exits(100);
    assert!(snapshot.with_extension("snap.new").exists());
    let baseline = |arguments: &[&str]| {
        let report = ["report", "--report", "html=report.html"];
        project.memcheck(&[&report, arguments].concat()).exits(100);
        let data = report_data(&project.read("report.html"));
        let rows = data[1]["figures"].as_array().expect("figures").clone();
        let peak = rows.into_iter().find(|row| row["name"] == "peak_allocated");
        peak.expect("the peak")["then"].clone()
    };
    assert_eq!((baseline(&flag), baseline(&[])), (200_000.into(), serde_json::Value::Null));
    memcheck(&["accept"]).exits(0);
    assert_eq!(fs::read_to_string(&snapshot).unwrap(), text);

    // An archive has the baselines of the folder, at the places of their sources.
    let archive = ["archive", "--device", "cpu", "--archive-file", "mem.tar.zst"];
    memcheck(&archive).exits(0).prints("and 1 baseline");
    let of_archive = ["--archive-file", "mem.tar.zst", "--results", "of-archive"];
    fs::write(&snapshot, text.replace("400000", "200000")).unwrap();
    assert_eq!(project.run(&of_archive).exits(0).codes("clean"), [""; 0]);
    let compared = project.run(&[&of_archive[..], &flag].concat()).exits(100);
    assert_eq!(compared.codes("clean"), ["peak-regression"]);
    let pending = project.path().join("of-archive/pending").join(SNAPSHOT);
    assert!(pending.with_extension("snap.new").exists());

    // Manifests of the workspace decide what belongs to a package.
    project.write("inner/Cargo.toml", "");
    let inner = kept.join("inner/tests/snapshots/mem__gone@cpu.snap");
    fs::create_dir_all(inner.parent().unwrap()).unwrap();
    fs::copy(&snapshot, &inner).unwrap();
    project.write("tests/mem.rs", &project.read("tests/mem.rs").replace("fn clean", "fn renamed"));
    let prune = ["prune", "--device", "cpu", "--no-ci"];
    project.memcheck(&prune).exits(0).prints("no stale baselines");
    let stale = project.run(&flag).exits(0);
    stale.prints(&format!("`cargo memcheck prune {}", flag.join(" ")));
    memcheck(&prune).exits(0).prints(&format!("removed {}", snapshot.display()));
    assert!(inner.exists() && !snapshot.exists());
}
