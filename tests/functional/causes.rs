//! Leaks that resemble those of a cause, but lack its evidence, must have another cause, on the CPU
//! and on the simulated GPU. The leaks that have it are the corpus (`detection`).

use std::fmt::Write as _;

use memcheck_core::judgement::diagnosis::{RULES, RuleClass};
use memcheck_tests::scenarios;

use crate::fixture::{Programs, workspace};

const KEPT: &str = "tensor-kept";

/// The name of a program, the cause that it resembles, and the only cause that it may have.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("layers_beside_refused_frees", "free-without-context", KEPT),
    ("list_beside_reopened_devices", "device-recreated", KEPT),
    ("models_with_their_optimizers", "optimizer-recreated", KEPT),
    ("state_of_an_own_optimizer", "optimizer-recreated", KEPT),
    ("norms_of_gradients", "grad-store-kept", KEPT),
    ("copies_of_outputs", "variables-copied", KEPT),
    ("detached_outputs", "graph-kept", KEPT),
    ("views_of_almost_everything", "view-keeps-storage", KEPT),
    ("outputs_of_every_length", "cache-by-shape", KEPT),
    ("outputs_of_counted_lengths", "cache-by-shape", KEPT),
    ("forgotten_outputs_beside_a_list", "buffers-kept", KEPT),
    ("keys_of_each_token", "cache-grows", KEPT),
    ("keys_of_each_request", "cache-never-cleared", KEPT),
    ("quantized_layers", "buffers-kept", KEPT),
    ("probabilities_of_classes", "outputs-collected", KEPT),
    ("weights_that_are_loaded_again", "batches-kept", KEPT),
    ("noise_of_each_step", "batches-kept", KEPT),
    ("variables_from_data", "batches-kept", KEPT),
    ("batches_from_a_vec", KEPT, "batches-kept"),
    ("random_batches_of_a_channel", "batches-kept", KEPT),
];
/// Those that need a GPU.
const ON_GPU: [&str; 2] = ["layers_beside_refused_frees", "list_beside_reopened_devices"];

fn assert_causes(device: &str) {
    let programs = Programs::of("causes");
    let run = programs.run(device, &["--max-iterations", "16"]).exits(100);
    let measured = |name: &&(&str, &str, &str)| device != "cpu" || !ON_GPU.contains(&name.0);
    let mut wrong = Vec::new();
    for (name, resembled, cause) in PROGRAMS.iter().filter(measured) {
        let finding = &run.test(name)["findings"][0];
        let found = (finding["code"].as_str(), finding["cause"]["code"].as_str());
        if found != (Some("leak"), Some(*cause)) {
            wrong.push(format!("{name}, which resembles {resembled}: {found:?}, {finding}"));
        }
    }
    assert!(wrong.is_empty(), "on {device}:\n{}", wrong.join("\n"));
    // The list that can hold the tensors is named, and no other one. On a GPU, blocks of its length
    // are not followed.
    let evidence = |name: &str| {
        let cause = &run.test(name)["findings"][0]["cause"];
        cause["evidence"].as_str().expect("evidence").to_owned()
    };
    let at = format!("{}:{}", programs.source(), programs.line("adds to the list"));
    let list = format!("; {at} adds to a list, and the same function to a map: ");
    let counted = evidence("outputs_of_counted_lengths");
    assert_eq!(counted.contains(&list), device == "cpu", "{device}: `{list}` in {counted}");
    let keeper = |name: &str| {
        let at = &run.test(name)["findings"][0]["kept_through"];
        at["file"].as_str().map(|file| format!("{file}:{}", at["line"]))
    };
    let known = (device == "cpu").then_some(at);
    let remedy = |name: &str| {
        let cause = &run.test(name)["findings"][0]["cause"];
        cause["remedy"].as_str().expect("a remedy").to_owned()
    };
    let of_list = known.as_ref().map(|at| format!("remove entries from the list at {at}, or "));
    let counted = remedy("outputs_of_counted_lengths");
    assert!(counted.starts_with(of_list.as_deref().unwrap_or("find the owner: ")), "{counted}");
    let forgotten = remedy("forgotten_outputs_beside_a_list");
    assert!(forgotten.starts_with("find the owner: "), "{device}: {forgotten}");
    assert_eq!(keeper("outputs_of_counted_lengths"), known, "{device}");
    assert_eq!(keeper("forgotten_outputs_beside_a_list"), None, "{device}");
    let forgotten = evidence("forgotten_outputs_beside_a_list");
    assert!(!forgotten.contains("list"), "{device}: {forgotten}");
    let tests = PROGRAMS.iter().filter(measured).count();
    assert_eq!(run.summary()["failed"], tests, "each program is on the list");
}

#[test]
fn every_cause_of_growth_has_a_program_that_resembles_it() {
    for rule in RULES.iter().filter(|rule| rule.class == RuleClass::Mistake) {
        let resembles = |(_, resembled, _): &(_, &str, _)| *resembled == rule.code;
        assert!(PROGRAMS.iter().any(resembles), "{}", rule.code);
    }
}

/// Every cause of growth with the leaks of the corpus that have it, and the programs that resemble
/// these but must have another one.
fn table() -> String {
    let mut text = "| cause | leaks that have it | programs that resemble it, and have another cause |\n|---|---|---|\n".to_owned();
    for rule in RULES.iter().filter(|rule| rule.class == RuleClass::Mistake) {
        let names = |names: &mut dyn Iterator<Item = &str>| {
            names.map(|name| name.replace('_', " ")).collect::<Vec<_>>().join(", ")
        };
        let mut fires = scenarios::all().filter(|it| it.cause == rule.code).map(|it| it.name);
        let mut resembles =
            PROGRAMS.iter().filter(|(_, of, _)| *of == rule.code).map(|(name, ..)| *name);
        let (fires, resembles) = (names(&mut fires), names(&mut resembles));
        writeln!(text, "| `{}` | {fires} | {resembles} |", rule.code).expect("a text");
    }
    text
}

#[test]
fn the_evidence_has_the_table_of_causes_and_neighbours() {
    let page = std::fs::read_to_string(workspace().join("docs/evidence.md")).expect("a page");
    let expected = table();
    assert!(page.contains(&expected), "docs/evidence.md must have this table:\n{expected}");
}

#[test]
fn a_leak_without_the_evidence_of_a_cause_has_another_one_on_the_cpu() {
    assert_causes("cpu");
}

#[test]
fn a_leak_without_the_evidence_of_a_cause_has_another_one_on_the_simulated_gpu() {
    assert_causes("sim");
}
