//! The C heap of a package with a C library.

use serde_json::Value;

use crate::fixture::{Programs, Project, Run};

fn programs() -> Programs {
    Programs::of("c_heap")
}

#[track_caller]
fn growth(run: &Run, test: &str) -> Value {
    run.test(test)["metrics"]["c-heap"]["growth"].clone()
}

#[test]
fn leaks_of_a_c_library_are_found_with_their_function() {
    let programs = programs();
    let run = programs.run("cpu", &[]).exits(100);
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
        assert_eq!(site["file"], "tests/programs/c_heap/native.c", "{test}");
        assert!(site["line"].is_u64(), "{test}: {site}");
        let stack = site["stack"].to_string();
        assert!(stack.contains(&programs.source()), "{test}: {stack}");
    }
    // Without debug information, the function has no line, and the line of its caller is shown.
    let site = &run.test("leaks_without_lines")["findings"][0]["sites"][0];
    assert_eq!(
        (&site["operation"], &site["file"]),
        (&"leak_2000".into(), &programs.source().into())
    );
    assert!(run.codes("leaks_less_than_its_limit").is_empty());
    assert_eq!(growth(&run, "leaks_less_than_its_limit"), 1_024);
    assert_eq!(run.test("leaks_without_a_limit")["metrics"]["c-heap"], Value::Null);
    assert_eq!(growth(&run, "leaks_in_rust"), 0);
    assert_eq!(run.test("leaks_in_rust")["status"], "passed");
    assert_eq!(growth(&run, "clean"), 0);
    assert_eq!(run.test("clean")["status"], "passed");
    // Another `malloc` than the probe's links, and is not taken for a C heap without growth.
    let own = Programs::in_target("own_malloc", "own_malloc");
    let all = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
    let own = own.memcheck(&all).exits(104);
    assert_eq!(own.codes("asks")[0], "not-measured");
    let finding = &own.test("asks")["findings"][0];
    assert!(finding["hint"].to_string().contains("`malloc` of its own"), "{finding}");
    assert_eq!(own.test("does_not_ask")["status"], "passed");
}

#[test]
#[ignore = "slow: just all"]
fn a_clean_c_heap_is_the_same_in_thirty_runs() {
    let arguments = ["--exact", "c_heap::clean", "--repeat", "30"];
    let run = programs().run("cpu", &arguments).exits(0);
    assert_eq!(growth(&run, "clean"), 0);
    assert_eq!(run.summary()["repeat"]["runs"], 30);
}

#[test]
fn the_memory_of_the_process_is_reported_and_its_growth_is_judged() {
    let names = ["maps_pages", "resident_memory_is_bounded", "maps_a_file"];
    let filters = names.map(|name| format!("c_heap::{name}"));
    let run = programs().run("cpu", &filters.each_ref().map(String::as_str)).exits(100);
    assert_eq!(run.codes("maps_pages"), ["growth-limit"]);
    let finding = &run.test("maps_pages")["findings"][0];
    assert_eq!((&finding["space"], &finding["limit"]), (&"process".into(), &16_384.into()));
    let bytes = finding["bytes_per_iteration"].as_u64().expect("bytes");
    // The system counts pages of other memory too.
    assert!((65_536 - 2_048..65_536 + 2_048).contains(&bytes), "{finding}");
    assert_eq!(growth(&run, "maps_pages"), 0);
    assert_eq!(run.test("resident_memory_is_bounded")["status"], "passed");
    let of_process = |test| run.test(test)["metrics"]["process"].clone();
    assert_eq!(of_process("maps_pages")["growth"], bytes);
    assert_eq!(of_process("maps_a_file")["growth"], Value::Null);
    for test in names {
        let (metrics, series) = (of_process(test), run.test(test)["iterations"].clone());
        let series = series.as_array().expect("series").iter().find(|it| it["space"] == "process");
        for figure in ["rss_anon", "rss_file", "swap"] {
            let series = series.expect("the process")[figure].as_array().expect(figure).clone();
            assert_eq!((series.len(), series.last()), (10, metrics.get(figure)), "{figure}");
            assert!(metrics[format!("peak_{figure}")].as_u64() >= metrics[figure].as_u64());
        }
        assert!(metrics["rss_anon"].as_u64() > Some(0) && metrics["rss_file"].as_u64() > Some(0));
    }
    let line = run.test("maps_a_file");
    assert_eq!(line["marks"].as_array().map(Vec::len), Some(12));
    assert!(line["marks"][11]["process"]["rss_file"].as_u64() > Some(262_144), "{line}");
    let [file] = &line["mapped_files"].as_array().expect("files")[..] else { panic!("{line}") };
    assert!(file["path"].as_str().is_some_and(|path| path.ends_with(".safetensors")), "{file}");
    // 256 x 256 x 4 bytes and a header, in whole pages.
    assert_eq!((&file["bytes"], &file["resident"]), (&266_240.into(), &266_240.into()));
}

const TOKENIZERS: &str = "\
[dev-dependencies]
memcheck-runtime = { path = \"RUNTIME\" }
anyhow = \"1\"
tokenizers = { version = \"0.23.2\", default-features = false, features = [\"onig\"] }
";

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    #[test]
    #[ignore = "downloads and compiles onig"]
    fn tokenizers_with_onig_are_clean_and_their_c_functions_are_named() {
        let project = Project::package("onig", TOKENIZERS);
        project.write("tests/mem.rs", include_str!("c_heap/onig.rs"));
        let run = project.run(&["--test", "mem", "-A", "missing-baseline"]).exits(100);
        assert_eq!(run.test("tokenizers_with_onig")["status"], "passed");
        assert_eq!(growth(&run, "tokenizers_with_onig"), 0);
        assert_eq!(run.codes("keeps_tokenizers"), ["leak"]);
        let finding = &run.test("keeps_tokenizers")["findings"][0];
        assert_eq!(finding["space"], "c-heap");
        // onig is compiled without debug information.
        let site = &finding["sites"][0];
        assert!(site["operation"].is_string() && site["file"].is_null(), "{site}");
    }
}
