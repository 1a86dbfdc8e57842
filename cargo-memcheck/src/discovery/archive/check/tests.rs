//! Each page here differs in one place from one that is accepted.

use serde_json::{Value, json};

use super::*;
use crate::discovery::archive::format::ArchivePage;
use crate::system::elf::ElfTarget;

fn page() -> Value {
    let file =
        |name: &str, executable: bool| json!({"name": name, "bytes": 3, "executable": executable});
    let package = |id: &str, path: &str| {
        json!({
            "name": id, "version": "1.0.0", "id": id, "dependencies": [], "targets": [],
            "features": {}, "manifest_path": path,
        })
    };
    json!({
        "target": ElfTarget::here().unwrap(), "commit": "0123", "uncommitted": null, "profile": "dev", "features": ["a"],
        "devices": ["cpu", "sim:h200"], "names_targets": false, "packages": ["app"],
        "baselines": {"tests/snapshots/mem__a@cpu.snap": {"test": true, "function": true}},
        "metadata": {
            "packages": [package("app", "/build/app/Cargo.toml"), package("far", "/x/../y/Cargo.toml")],
            "workspace_members": ["app"], "resolve": null, "version": 1,
            "workspace_root": "/build/app", "target_directory": "/build/app/target",
        },
        "builds": [{
            "kind": "Cpu", "not_built": [], "nvml": "cpu/nvml/libnvml.so", "tests": "tests/cpu.json",
            "executables": [{
                "id": "app::mem", "package": "app", "file": "cpu/mem", "tests": 1,
                "environment": [["A", "b"]], "out_dir": ["/build/app/target/out", "cpu/out/0"],
            }],
        }],
        "files": [
            file("tests/cpu.json", false), file("workspace/.config/memcheck.toml", false),
            file("cpu/mem", true), file("cpu/out/0/a", false), file("cpu/nvml/libnvml.so", true),
        ],
    })
}

fn checked(mut page: Value) -> Result<(), String> {
    page["metadata"] = Value::String(page["metadata"].to_string());
    serde_json::from_value::<Manifest>(page).unwrap().check()
}

#[test]
fn a_page_that_leads_out_of_the_archive_is_refused() {
    assert_eq!(checked(page()), Ok(()));
    let executable = "/builds/0/executables/0";
    let with = |pointer: &str| format!("{executable}{pointer}");
    let metadata = "/metadata/packages/0/manifest_path";
    let changes = [
        ("/files/2/name", json!("/usr/bin/id"), "an absolute path"),
        ("/files/2/name", json!("cpu/../../mem"), "not a normalised path"),
        ("/files/2/name", json!("mem"), "not in a folder of an archive"),
        ("/files/2/name", json!("other/mem"), "not in a folder of an archive"),
        ("/files/2/name", json!("cpu/out/0/a"), "listed twice"),
        ("/files/2/name", json!("cpu/out"), "is a file, not a folder"),
        ("/files/2/name", json!("cpu/mem2"), "not a file of the archive"),
        ("/files/2/executable", json!(false), "not an executable"),
        ("/files/0/bytes", json!(TABLE_LIMIT + 1), "instead of at most"),
        ("/files/1/bytes", json!(CONFIGURATION_LIMIT + 1), "instead of at most"),
        (&with("/file"), json!("/usr/bin/id"), "not a file of the archive"),
        (&with("/file"), json!("cpu/../cpu/mem"), "not a file of the archive"),
        (&with("/file"), json!("tests/cpu.json"), "not an executable"),
        (&with("/package"), json!("gone"), "its package is not in the archive"),
        (&with("/id"), json!("app\u{1b}]0;title\u{7}"), "a control character"),
        (&with("/environment/0/0"), json!("A=B"), "an invalid variable"),
        (&with("/environment/0/1"), json!("a\0b"), "an invalid variable"),
        (&with("/out_dir/1"), json!("/tmp"), "an absolute path"),
        (&with("/out_dir/1"), json!("workspace"), "not a folder for cpu"),
        ("/builds/0/nvml", json!("/lib/libc.so.6"), "not a file of the archive"),
        ("/builds/0/nvml", json!("tests/cpu.json"), "NVML is not in the folder"),
        ("/builds/0/tests", json!("../tests.json"), "not the place of a table"),
        ("/builds/0/kind", json!("Sim"), "not the place of a table"),
        ("/devices/0", json!("sim:no-such-card"), "no-such-card"),
        ("/commit", json!("0123\n::error::injected"), "a control character"),
        ("/uncommitted", json!("0\n1"), "a control character"),
        ("/profile", json!("dev\u{1b}[2J"), "a control character"),
        ("/features/0", json!("a\r"), "a control character"),
        ("/baselines", json!({"../a.snap": {"test": true, "function": true}}), "not a normalised"),
        ("/packages/0", json!("gone"), "not described"),
        (metadata, json!("/etc/Cargo.toml"), "not in the workspace"),
        (metadata, json!("/build/app/../x/Cargo.toml"), "not a normalised path"),
        (metadata, json!("/build/app/a/../../../x/Cargo.toml"), "not a normalised path"),
        (metadata, json!("/build/app//Cargo.toml"), "not a normalised path"),
        (metadata, json!("/build/app"), "the name is empty"),
        ("/metadata/workspace_root", json!("build/app"), "not the path of a workspace"),
        ("/metadata/workspace_root", json!("/build/../app"), "not the path of a workspace"),
        ("/metadata/packages/0/description", json!("a".repeat(3 << 20)), "cargo's metadata has"),
        ("/metadata/packages/0/name", json!(7), "cargo's metadata"),
    ];
    for (pointer, value, why) in changes {
        let mut page = page();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match page.pointer_mut(parent).unwrap() {
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
            object => object[key] = value,
        }
        let error = checked(page).expect_err(pointer);
        assert!(error.contains(why), "{pointer}: {error}");
        assert!(!error.contains(char::is_control), "{pointer}: {error:?}");
    }
}

#[test]
fn two_builds_for_one_kind_are_refused() {
    let mut page = page();
    let build = page["builds"][0].clone();
    page["builds"].as_array_mut().unwrap().push(build);
    assert!(checked(page).unwrap_err().contains("two builds"));
}
