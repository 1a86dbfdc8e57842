//! Memory tests beside insta: the assertions of a test's own body, and the list with which
//! `cargo insta test --unreferenced=delete` decides what to delete.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::fixture::{Programs, Project};

const RUNTIME_AND_INSTA: &str = "
[dev-dependencies]
insta = { version = \"1.49\", default-features = false, features = [\"yaml\"] }
memcheck-runtime = { path = \"RUNTIME\" }
";

const TESTS: &str = "
use candle_core::{DType, Device, Tensor};
use memcheck_runtime::mem_test;

fn sum(device: &Device, elements: usize) -> candle_core::Result<String> {
    Ok(Tensor::ones(elements, DType::F32, device)?.sum_all()?.to_vec0::<f32>()?.to_string())
}

#[mem_test]
fn right(device: &Device) -> candle_core::Result<()> {
    let sum = sum(device, 8)?;
    insta::allow_duplicates! { insta::assert_snapshot!(sum, @\"8\") };
    Ok(())
}

#[mem_test]
fn wrong(device: &Device) -> candle_core::Result<()> {
    let sum = sum(device, 8)?;
    insta::allow_duplicates! { insta::assert_snapshot!(sum, @\"9\") };
    Ok(())
}
";

#[test]
fn an_assertion_of_insta_in_a_body_decides_the_test() {
    let project = Project::bare(RUNTIME_AND_INSTA);
    project.write("tests/mem.rs", TESTS);
    for explain in ["never", "failed"] {
        let run = project.run(&["--explain", explain]).exits(100);
        assert_eq!(run.codes("wrong"), ["test-failed"]);
        assert_eq!(run.codes("right"), ["missing-baseline"]);
    }
    let output = project.cargo_test().arg("wrong").output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("test-failed"), "{text}");
    // insta must not start cargo in the body: its answer would be part of the figures.
    project.memcheck(&["accept"]).exits(0);
    let output = project.cargo_test().arg("right").output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_list_of_referenced_snapshots_has_the_baselines_of_all_devices_and_laws() {
    let programs = Programs::of("insta").with_baselines();
    let list = programs.path().join("references");
    let mut tests = programs.cargo_test();
    tests.arg("insta::").env("INSTA_SNAPSHOT_REFERENCES_FILE", &list);
    let output = tests.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let listed: BTreeSet<PathBuf> = programs.read("references").lines().map(Into::into).collect();
    let cases = ["64", "128", "256"].map(|seq| format!("listed__seq_{seq}"));
    let expected: BTreeSet<PathBuf> = ["right", "listed__law"]
        .into_iter()
        .chain(cases.iter().map(String::as_str))
        .flat_map(|test| ["cpu", "cuda"].map(|family| format!("{test}@{family}")))
        .map(|name| programs.path().join(programs.baseline(&name)))
        .collect();
    assert_eq!(listed, expected);
}
