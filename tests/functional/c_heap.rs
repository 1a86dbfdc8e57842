//! The C heap of a package with a C library.

use serde_json::Value;

use crate::fixture::{Project, Run};

const MANIFEST: &str = "\
[dev-dependencies]
memcheck-runtime = { path = \"RUNTIME\" }
[build-dependencies]
cc = \"1\"
";

const BUILD: &str = "\
fn main() {
    cc::Build::new().file(\"native.c\").compile(\"native\");
    println!(\"cargo::rerun-if-changed=native.c\");
}
";

fn project() -> Project {
    let project = Project::package("c-heap", MANIFEST);
    project.write("build.rs", BUILD);
    project.write("native.c", include_str!("c_heap/native.c"));
    project.write("tests/mem.rs", include_str!("c_heap/mem.rs"));
    project.write("tests/own_malloc.rs", include_str!("c_heap/own_malloc.rs"));
    project
}

#[track_caller]
fn growth(run: &Run, test: &str) -> Value {
    run.test(test)["metrics"]["c-heap"]["growth"].clone()
}

#[test]
fn leaks_of_a_c_library_are_found_with_their_function() {
    let project = project();
    let run = project.run(&["--test", "mem"]).exits(100);
    for (test, bytes, function) in [
        ("leaks", 1_024, "leak_one_kib"),
        ("leaks_copies", 16, "copy_of_text"),
        ("appends", 1_000, "append"),
        ("leaks_beside_a_device", 1_024, "leak_one_kib"),
    ] {
        assert_eq!(run.codes(test), ["leak"], "{test}");
        let finding = &run.test(test)["findings"][0];
        assert_eq!((&finding["space"], &finding["limit"]), (&"c-heap".into(), &0.into()));
        assert_eq!(finding["bytes_per_iteration"], bytes, "{test}");
        assert_eq!(growth(&run, test), bytes, "{test}");
        let site = &finding["sites"][0];
        assert_eq!(site["function"], function, "{test}");
        assert_eq!(site["file"], "native.c", "{test}");
        assert!(site["line"].is_u64(), "{test}: {site}");
        let stack = site["stack"].to_string();
        assert!(stack.contains("tests/mem.rs"), "{test}: {stack}");
    }
    assert!(run.codes("leaks_less_than_its_limit").iter().all(|code| code == "missing-baseline"));
    assert_eq!(growth(&run, "leaks_less_than_its_limit"), 1_024);
    assert_eq!(run.test("leaks_without_a_limit")["metrics"]["c-heap"], Value::Null);
    assert_eq!(growth(&run, "leaks_in_rust"), 0);
    assert_eq!(run.test("leaks_in_rust")["status"], "passed");
    assert_eq!(growth(&run, "clean"), 0);
    assert_eq!(run.test("clean")["status"], "passed");
    // Another `malloc` than the probe's links, and is not taken for a C heap without growth.
    let own = project.run(&["--test", "own_malloc"]).exits(104);
    assert_eq!(own.codes("asks")[0], "not-measured");
    let finding = &own.test("asks")["findings"][0];
    assert!(finding["hint"].to_string().contains("`malloc` of its own"), "{finding}");
    assert_eq!(own.test("does_not_ask")["status"], "passed");
}

#[test]
fn a_clean_c_heap_is_the_same_in_thirty_runs() {
    let project = project();
    let run = project.run(&["--test", "mem", "--exact", "clean", "--repeat", "30"]).exits(0);
    assert_eq!(growth(&run, "clean"), 0);
    assert_eq!(run.summary()["repeat"]["runs"], 30);
}
