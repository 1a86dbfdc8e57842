//! `--soak`: leaks that begin late or are rare, which no other run finds.

use serde_json::{Value, json};

use crate::fixture::{Programs, Run};

const NAMES: [&str; 7] = [
    "leaks_rarely",
    "leaks_late",
    "clean",
    "grows_within_its_limit",
    "has_data_for_500_iterations",
    "dies_in_iteration_500",
    "does_not_iterate",
];

/// The figures of a test without its growth.
fn figures(run: &Run, test: &str) -> Value {
    let mut metrics = run.exact_metrics(test);
    for figures in metrics.as_object_mut().unwrap().values_mut() {
        figures.as_object_mut().unwrap().remove("growth");
    }
    metrics
}

fn soaked(run: &Run, test: &str) -> (u64, f64, Value) {
    let soaked = run.test(test)["soaked"].clone();
    let number = |key: &str| soaked[key].as_f64().unwrap_or_else(|| panic!("{test}: {soaked}"));
    (number("iterations") as u64, number("seconds"), soaked["ended"].clone())
}

#[test]
fn a_soak_finds_late_and_rare_leaks_and_changes_no_other_figure() {
    let programs = Programs::of("soak");
    let threads = ["--test-threads", "4"];
    let short = programs.run("cpu", &threads).exits(0);
    for test in NAMES {
        assert_eq!(short.test(test)["status"], "passed", "{test}: {}", short.test(test));
        assert_eq!(short.test(test)["soaked"], Value::Null);
    }

    let run = programs.run("cpu", &["--soak", "4s", threads[0], threads[1]]).exits(100);
    for test in NAMES {
        if test != "dies_in_iteration_500" {
            // A space that the test first uses in the soak is judged too.
            let (soaked, short) = (figures(&run, test), figures(&short, test));
            for (space, figures) in short.as_object().expect("spaces") {
                assert_eq!(&soaked[space], figures, "{test}: {space}");
            }
        }
    }
    for test in ["leaks_rarely", "leaks_late"] {
        assert!(run.codes(test).contains(&"leak".to_owned()), "{}", run.test(test));
        let finding = run.test(test)["findings"][0].clone();
        assert!(finding["bytes_per_iteration"].as_u64().unwrap() > 0, "{finding}");
        let growth = &run.test(test)["metrics"]["host"]["growth"];
        assert_eq!(&finding["bytes_per_iteration"], growth, "{finding}");
        let site = finding["sites"][0].clone();
        let place = format!("{}:{}", site["file"].as_str().unwrap(), site["line"]);
        assert!(place.contains(&format!("{}:", programs.source())), "{place}");
        assert_eq!(soaked(&run, test).2, Value::Null);
    }
    let rate = run.test("leaks_rarely")["metrics"]["host"]["growth"].as_u64().unwrap();
    assert!((25..=50).contains(&rate), "{rate} is far from 65,536 / 2,000");

    for test in ["clean", "grows_within_its_limit"] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
        let (iterations, seconds, ended) = soaked(&run, test);
        assert!(iterations > 500, "{test}: {iterations}");
        assert!(
            (3.9..20.0).contains(&seconds) && ended == Value::Null,
            "{test}: {seconds} {ended}"
        );
    }
    let growth = |run: &Run, test| run.test(test)["metrics"]["host"]["growth"].clone();
    let within = "grows_within_its_limit";
    assert_eq!(growth(&run, within), growth(&short, within));

    assert_eq!(run.codes("has_data_for_500_iterations"), ["undecided"]);
    let (iterations, _, ended) = soaked(&run, "has_data_for_500_iterations");
    assert_eq!((iterations, ended), (500, json!("the body returned an error: no data")));
    let died = run.test("dies_in_iteration_500")["findings"][0].clone();
    assert_eq!(died["code"], "crashed");
    assert!(died["message"].as_str().unwrap().starts_with("in the soak: "), "{died}");
    let (iterations, _, ended) = soaked(&run, "does_not_iterate");
    assert_eq!((iterations, ended), (0, json!("the body does not iterate")));

    // For people.
    let text =
        programs.memcheck(&["run", "soak::clean", "--device", "cpu", "--soak", "300ms", "--no-ci"]);
    let text = text.exits(0);
    assert!(text.stderr.contains("note: soak: "), "{}", text.stderr);
    // A machine that is busy can take longer than the 300ms.
    assert!(text.stderr.contains(" iterations in "), "{}", text.stderr);
}
