//! Bodies that are `async fn`, such as a server on a runtime.

use crate::fixture::Programs;

fn assert_async_bodies_are_measured(device: &str) {
    let programs = Programs::of("async_bodies");
    let run = &programs.run(device, &["--max-iterations", "80"]).exits(100);
    let space = if device == "cpu" { "host" } else { "cuda:0" };
    for (test, marker) in
        [("server_that_keeps_answers", "answer"), ("tasks_that_never_end", "task")]
    {
        let line = run.test(test);
        assert_eq!(run.codes(test)[0], "leak", "{test}: {line}");
        let finding = &line["findings"][0];
        assert_eq!(finding["space"], space, "{test}");
        assert_eq!(finding["bytes_per_iteration"], 4_096, "{test}: {finding}");
        let site = &finding["sites"][0];
        assert_eq!(site["file"], programs.source(), "{test}: {site}");
        assert_eq!(site["line"], programs.line(marker), "{test}: {site}");
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
    let stays = format!("4,096 B (4.0 KiB) stay in cuda:0 after allocation 2 of 2 at {at} ");
    assert!(message.starts_with(&stays), "{message}");
    assert_eq!(finding["sites"][1]["line"], programs.line("input"), "{finding}");
}

#[test]
fn accept_proposes_a_tolerance_for_figures_that_differ() {
    let programs = Programs::of("async_bodies").with_baselines();
    let test = "async_bodies::differs_from_run_to_run";
    programs.memcheck(&["run", "--device", "cpu", "--ci", test]).exits(5);
    let proposed = "`peak_allocated` of host is 4,096 B (4.0 KiB) to 12,288 B (12.0 KiB) in 5 \
                    runs: set `tolerance = \"8192 B\"`, or make the test deterministic";
    programs.memcheck(&["accept", "--from", "results/pending"]).exits(0).prints(proposed);
    // A test whose figures are the same gets no proposal.
    let test = "async_bodies::is_the_same_in_each_run";
    programs.memcheck(&["run", "--device", "cpu", "--ci", test]).exits(5);
    let accepted = programs.memcheck(&["accept", "--from", "results/pending"]).exits(0);
    assert!(!accepted.stderr.contains("set `tolerance"), "{}", accepted.stderr);
}
