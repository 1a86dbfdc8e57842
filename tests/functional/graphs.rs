//! CUDA graphs, run-time compilation and registered memory, as programs use them through cudarc.

use serde_json::Value;

use crate::fixture::Programs;

#[test]
fn graphs_programs_compiled_at_run_time_and_registrations_are_measured() {
    let programs = Programs::of_cuda("graphs");
    let run = programs.run("sim:t4", &[]).exits(100);
    let metrics = |test: &str, space: &str| run.test(test)["metrics"][space].clone();

    assert_eq!(run.codes("graphs_are_kept"), ["leak"]);
    let finding = run.test("graphs_are_kept")["findings"][0].clone();
    assert_eq!(
        (&finding["space"], &finding["bytes_per_iteration"]),
        (&"cuda:0/graph".into(), &7000.into())
    );
    let line = programs.line("first block");
    assert!(finding.to_string().contains(&format!("\"line\":{line},")), "{finding}");

    assert_eq!(run.codes("a_graph_is_replayed"), [""; 0]);
    let graph = metrics("a_graph_is_replayed", "cuda:0/graph");
    // Both operations have two numbers of 4 bytes.
    assert_eq!((&graph["peak_allocated"], &graph["retained"]), (&16.into(), &0.into()));

    for (test, bytes) in
        [("built_graphs_are_kept", 5000), ("executables_of_the_runtime_are_kept", 900)]
    {
        assert_eq!(run.codes(test), ["leak"]);
        let finding = run.test(test)["findings"][0].clone();
        let found = (&finding["space"], &finding["bytes_per_iteration"]);
        assert_eq!(found, (&"cuda:0/graph".into(), &bytes.into()));
    }
    for (test, peak) in [("an_executable_is_updated", 1000 + 3000), ("the_runtime_captures", 900)] {
        assert_eq!(run.codes(test), [""; 0], "{test}");
        let graph = metrics(test, "cuda:0/graph");
        assert_eq!((&graph["peak_allocated"], &graph["retained"]), (&peak.into(), &0.into()));
    }
    // The sweep refuses the allocation of the node, and the body returns the error.
    assert_eq!(run.codes("a_node_names_its_device"), [""; 0]);
    let sweep = &run.test("a_node_names_its_device")["fault_sweep"];
    let counts = ["allocations", "refused", "errors"].map(|name| sweep[name].clone());
    assert_eq!(counts, [1, 1, 1].map(Value::from), "{sweep}");

    assert_eq!(run.codes("a_graph_is_cloned"), ["not-measured"]);
    assert!(run.test("a_graph_is_cloned").to_string().contains("cuGraphClone"));

    assert_eq!(run.codes("a_kernel_is_compiled_at_run_time"), [""; 0]);
    assert_eq!(metrics("a_kernel_is_compiled_at_run_time", "cuda:0")["peak_allocated"], 400);

    assert_eq!(run.codes("registrations_are_kept"), ["leak"]);
    let finding = run.test("registrations_are_kept")["findings"][0].clone();
    assert_eq!(
        (&finding["space"], &finding["bytes_per_iteration"]),
        (&"cuda:0/pinned".into(), &2048.into())
    );
}
