//! Bodies that are `async fn`, such as a server on a runtime.

use std::collections::HashSet;

use crate::fixture::{Programs, workspace};

/// The page of the documentation about servers.
fn page() -> String {
    std::fs::read_to_string(workspace().join("docs/reference/servers.md")).expect("the page")
}

/// The lines of a program, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty())
}

#[test]
fn the_server_of_the_documentation_is_the_one_that_is_measured() {
    let page = page();
    let blocks = page.split("```rust\n").skip(1).filter_map(|text| text.split("```").next());
    let servers: Vec<&str> = blocks.filter(|block| block.contains("async fn serve(")).collect();
    let [server] = servers[..] else { panic!("{} servers", servers.len()) };
    let program = workspace().join("tests/programs/async_bodies.rs");
    let program = std::fs::read_to_string(program).expect("the program");
    let measured: HashSet<&str> = code(&program).collect();
    let others: Vec<&str> = code(server).filter(|line| !measured.contains(line)).collect();
    // The test of the documentation has a baseline, and its model has no switch.
    let expected = [
        "#[mem_test(block_on = block_on, max_growth = \"0 B\")]",
        "let model = Arc::new(Mutex::new(Model::load(device)?));",
    ];
    assert_eq!(others, expected);
}

fn assert_async_bodies_are_measured(device: &str) {
    let programs = Programs::of("async_bodies");
    let run = &programs.run(device, &["--max-iterations", "80"]).exits(100);
    let space = if device == "cpu" { "host" } else { "cuda:0" };
    for (test, marker) in [
        ("server_that_keeps_answers", "answer"),
        ("tasks_that_never_end", "task"),
        ("tasks_on_threads_that_never_end", "task"),
    ] {
        let line = run.test(test);
        assert_eq!(run.codes(test)[0], "leak", "{test}: {line}");
        let finding = &line["findings"][0];
        assert_eq!(finding["space"], space, "{test}");
        assert_eq!(finding["bytes_per_iteration"], 4_096, "{test}: {finding}");
        let site = &finding["sites"][0];
        assert_eq!(site["file"], programs.source(), "{test}: {site}");
        assert_eq!(site["line"], programs.line(marker), "{test}: {site}");
        // Frees that come after the body, with the runtime, are not the cause of the growth.
        assert_eq!(finding["cause"]["code"], "tensor-kept", "{test}: {finding}");
    }
    // On the host the runtime counts too. Weights, input and output of a request have 4,096 B each.
    let server = run.test("server")["metrics"][space].clone();
    let setup = server["setup"].as_u64().unwrap();
    assert!((4_096..8_192).contains(&setup), "{server}");
    assert!(device == "cpu" || setup == 4_096, "{server}");
    let runtime = setup - 4_096;
    for (test, peak) in [
        ("server", 3 * 4_096),
        ("of_device", 4_096),
        ("of_cases::height_1", 4_096),
        ("of_cases::height_4", 4 * 4_096),
    ] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
        let metrics = &run.test(test)["metrics"][space];
        assert_eq!(metrics["peak_allocated"], peak + runtime, "{test}: {metrics}");
        assert_eq!(metrics["growth"], 0, "{test}: {metrics}");
    }
    assert_eq!(run.codes("allocates_no_memory"), [""; 0]);
    assert_eq!(run.codes("fails"), ["test-failed"]);
}

#[test]
fn async_bodies_are_measured_on_the_cpu() {
    assert_async_bodies_are_measured("cpu");
}

#[test]
fn async_bodies_are_measured_on_the_simulated_device() {
    assert_async_bodies_are_measured("sim");
}

#[test]
fn a_fault_sweep_refuses_the_allocations_of_async_bodies() {
    let programs = Programs::of("async_bodies");
    let arguments = ["async_bodies::server_without", "async_bodies::list_without"];
    let run = programs.run("sim", &arguments).exits(100);
    let server = run.test("server_without_memory");
    assert_eq!(run.codes("server_without_memory"), [""; 0], "{server}");
    let sweep = &server["fault_sweep"];
    assert_eq!((&sweep["refused"], &sweep["errors"]), (&2.into(), &2.into()), "{sweep}");
    assert_eq!(run.codes("list_without_memory"), ["fault-unsafe"]);
    let finding = run.test("list_without_memory")["findings"][0].clone();
    let (message, at) = (finding["message"].as_str().unwrap(), programs.site("refused"));
    let stays = format!("4,096 B (4.00 KiB) stay in cuda:0 after allocation 2 of 2 at {at} ");
    assert!(message.starts_with(&stays), "{message}");
    assert_eq!(finding["sites"][1]["line"], programs.line("input"), "{finding}");
}

#[test]
fn accept_proposes_a_tolerance_for_figures_that_differ() {
    let programs = Programs::of("async_bodies").with_baselines();
    let test = "async_bodies::differs_from_run_to_run";
    programs.memcheck(&["run", "--device", "cpu", "--ci", test]).exits(5);
    let proposed = "`peak_allocated` of host is 4,096 B (4.00 KiB) to 12,288 B (12.0 KiB) in 5 \
                    runs: set `tolerance = \"8192 B\"`, or make the test deterministic";
    programs.memcheck(&["accept", "--from", "results/pending"]).exits(0).prints(proposed);
    assert!(page().contains(proposed), "servers.md has no line with {proposed}");
    // A test whose figures are the same gets no proposal.
    let test = "async_bodies::is_the_same_in_each_run";
    programs.memcheck(&["run", "--device", "cpu", "--ci", test]).exits(5);
    let accepted = programs.memcheck(&["accept", "--from", "results/pending"]).exits(0);
    assert!(!accepted.stderr.contains("set `tolerance"), "{}", accepted.stderr);
}
