//! The reference must agree with the program about figures, baselines, `Trial`, values of flags and
//! the other commands. Unsafe code must be only in the places that CONTRIBUTING.md lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use memcheck_core::measurement::record::{Facts, Metrics};
use memcheck_core::runs::plan::Explain;
use serde_json::json;

use crate::documentation::{flags, reference, rows, section};
use crate::fixture::{memcheck, workspace};

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// The words of a text in backticks, without arguments.
fn quoted(text: &str) -> Vec<String> {
    let name = |word: &str| word.split(['(', '<']).next().unwrap_or_default().to_owned();
    text.split('`').skip(1).step_by(2).map(name).collect()
}

/// The names in the first column of a table.
fn names(page: &str, heading: &str) -> Vec<String> {
    rows(page, heading).iter().flat_map(|row| quoted(cells(row)[0])).collect()
}

/// The names of all fields, in order.
fn fields(value: &serde_json::Value) -> BTreeSet<String> {
    value.as_object().expect("a JSON object").keys().cloned().collect()
}

fn source(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).expect(path)
}

/// The figures of the first space of a committed baseline.
fn baseline_figures(suffix: &str) -> BTreeSet<String> {
    let folder = "tests/tests/workloads/snapshots/workloads__forms__full_control";
    let snapshot = source(&format!("{folder}@{suffix}.snap"));
    let (_, body) = snapshot.rsplit_once("---\n").expect("a body");
    let figures = body.lines().skip(1).take_while(|line| !line.contains("peak_holders"));
    figures.filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned())).collect()
}

/// The functions in the simulated device's tables of refused functions.
fn refused_calls() -> BTreeSet<String> {
    let folder = workspace().join("memcheck-sim/src/unsupported");
    let files =
        std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path());
    let names = files.flat_map(|path| {
        let text = std::fs::read_to_string(path).expect("a source");
        let tables: Vec<String> = text
            .split("unsupported! {")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once(';')?.1.split_once('}')?.0.to_owned()))
            .collect();
        tables
            .into_iter()
            .flat_map(|table| table.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    });
    names.collect()
}

#[test]
fn the_reference_lists_every_call_that_the_simulated_device_refuses() {
    let (program, page) = (refused_calls(), source("docs/reference/calls.md"));
    let documented: BTreeSet<String> =
        page.lines().skip_while(|line| !line.starts_with("## ")).flat_map(quoted).collect();
    assert!(program.contains("cuMemCreate"), "{program:?}");
    let differing: Vec<_> = program.symmetric_difference(&documented).collect();
    assert!(differing.is_empty(), "calls.md and the program differ: {differing:?}");
}

const METRICS: &str = "| metric | unit | when it is read | B | meaning |\n";

#[test]
fn the_reference_lists_every_metric_and_the_baselines_that_contain_it() {
    let metrics = Metrics {
        reserved: Some(0),
        peak_reserved: Some(0),
        device_used: Some(0),
        ..Metrics::default()
    };
    let page = reference();
    let documented: BTreeSet<String> = names(&page, METRICS).into_iter().collect();
    assert_eq!(documented, fields(&json!(metrics)));
    let documented = |wanted: &[&str]| -> BTreeSet<String> {
        let rows = rows(&page, METRICS).into_iter().map(cells);
        rows.filter(|row| wanted.contains(&row[3])).flat_map(|row| quoted(row[0])).collect()
    };
    assert_eq!(documented(&["every"]), baseline_figures("cpu"));
    assert_eq!(documented(&["every", "GPU"]), baseline_figures("cuda"));
}

#[test]
fn every_fact_of_a_baseline_is_in_the_reference() {
    let facts = Facts {
        memcheck: 1,
        candle: String::new(),
        profile: String::new(),
        iterations: 10,
        warmup: 2,
        threads: Some(1),
        dtype: Some(String::new()),
        arch: Some(String::new()),
        features: Some(String::new()),
    };
    let documented = names(&reference(), "| fact | meaning |\n");
    assert_eq!(documented.into_iter().collect::<BTreeSet<_>>(), fields(&json!(facts)));
}

/// The public functions that a source defines with this indent.
fn functions(source: &str, indent: &str) -> BTreeSet<String> {
    let starts = ["pub fn ", "pub async fn "].map(|start| format!("{indent}{start}"));
    let defined = source
        .lines()
        .filter_map(|line| starts.iter().find_map(|start| line.strip_prefix(start.as_str())));
    defined.filter_map(|rest| rest.split(['(', '<']).next()).map(str::to_owned).collect()
}

#[test]
fn every_method_of_a_trial_and_every_item_of_the_runtime_is_in_the_reference() {
    let page = reference();
    let methods = names(&page, "| method of `Trial` | meaning |\n");
    let mut trial = functions(&source("memcheck-runtime/src/trial.rs"), "    ");
    for file in ["counters", "devices"] {
        let source = source(&format!("memcheck-runtime/src/trial/{file}.rs"));
        trial.extend(functions(&source, "    "));
    }
    assert_eq!(methods.into_iter().collect::<BTreeSet<_>>(), trial);

    let documented = names(&page, "| item of `memcheck_runtime` | meaning |\n");
    let lib = source("memcheck-runtime/src/lib.rs");
    let exported = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';')?.rsplit("::").next())
        .flat_map(|names| names.trim_matches(['{', '}']).split(", "))
        // These two have their own sections.
        .filter(|name| !["mem_test", "Trial"].contains(name))
        .map(str::to_owned)
        .collect();
    assert_eq!(documented.into_iter().collect::<BTreeSet<_>>(), exported);
}

/// Values and default of a flag.
type FlagValues = (Vec<String>, Option<String>);

/// Values and default of each flag, as the help lists them.
fn values(help: &str) -> BTreeMap<String, FlagValues> {
    let mut known: BTreeMap<String, FlagValues> = BTreeMap::new();
    let mut flag = None;
    for line in help.lines().map(str::trim) {
        if line.starts_with('-') && line.contains("--") {
            flag = flags(line).into_iter().next();
        }
        let Some(flag) = &flag else { continue };
        let mut found = FlagValues::default();
        if let Some(list) = bracketed(line, "[possible values: ") {
            found.0 = list.split(", ").map(str::to_owned).collect();
        } else if let Some((value, _)) =
            line.strip_prefix("- ").and_then(|value| value.split_once(':'))
        {
            found.0.push(value.to_owned());
        } else if let Some(default) = bracketed(line, "[default: ") {
            found.1 = Some(default.to_owned());
        }
        if found != FlagValues::default() {
            let (values, default) = known.entry(flag.clone()).or_default();
            values.extend(found.0);
            *default = found.1.or(default.take());
        }
    }
    known
}

fn bracketed<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix(']')
}

#[test]
fn every_value_and_default_of_a_flag_is_in_the_reference() {
    let page = reference();
    let table: BTreeMap<String, (Vec<String>, Vec<String>)> =
        rows(&page, "| flag | values | default |\n")
            .into_iter()
            .map(cells)
            .flat_map(|row| {
                let documented = (quoted(row[1]), quoted(row[2]));
                quoted(row[0]).into_iter().map(move |flag| (flag, documented.clone()))
            })
            .collect();
    for command in ["run", "profile"] {
        let help = memcheck(&workspace(), &[command, "--help"]).exits(0).stdout;
        let defined = values(&help);
        assert!(defined.len() > 3, "{help}");
        for (flag, (values, default)) in defined {
            let (documented, defaults) = table
                .get(&flag)
                .unwrap_or_else(|| panic!("{flag} of {command} is not in the reference"));
            assert_eq!(*documented, values, "{flag} of {command}");
            if let Some(default) = default {
                assert_eq!(*defaults, [default], "{flag} of {command}");
            }
        }
        for flag in
            table.keys().filter(|flag| !["--by", "--sort", "--top"].contains(&flag.as_str()))
        {
            assert!(
                command != "run" || flags(&help).contains(flag),
                "{flag} is not a flag of {command}"
            );
        }
    }
    // `--help` does not show this default: the flag is an `Option`, so that the variable applies if
    // the flag is missing.
    assert_eq!(json!(table["--explain"].1), json!([Explain::default()]));
}

#[test]
fn every_other_command_is_in_the_reference_with_its_own_flags() {
    let page = reference();
    let section = section(&page, "## The other commands");
    let commands = names(section, "| command | what it does |\n");
    let help = memcheck(&workspace(), &["--help"]).exits(0).stdout;
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let defined: Vec<&str> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !["run", "profile"].contains(name))
        .collect();
    assert_eq!(commands, defined);

    let of_run = flags(&memcheck(&workspace(), &["run", "--help"]).exits(0).stdout);
    let rows: Vec<Vec<&str>> =
        rows(section, "| flag | of | meaning |\n").into_iter().map(cells).collect();
    // A command with its own table is compared with that table.
    let has_table = |command: &String| page.contains(&format!("| flag of `{command}` |"));
    for command in commands.into_iter().filter(|command| !has_table(command)) {
        let help = memcheck(&workspace(), &[&command, "--help"]).exits(0).stdout;
        let own: BTreeSet<String> = flags(&help).difference(&of_run).cloned().collect();
        let documented: BTreeSet<String> = rows
            .iter()
            .filter(|row| quoted(row[1]).contains(&command))
            .flat_map(|row| flags(row[0]))
            .collect();
        assert_eq!(documented, own, "{command}");
    }
}

/// Collects the source files below a folder that have unsafe code.
fn unsafe_files(folder: &Path, root: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            unsafe_files(&path, root, into);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let code = |line: &&str| !line.trim_start().starts_with("//");
        let marks = ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern ", "(unsafe)"];
        if text.lines().filter(code).any(|line| marks.iter().any(|mark| line.contains(mark))) {
            let below = path.strip_prefix(root).expect("below the root");
            into.insert(below.display().to_string());
        }
    }
}

#[test]
fn unsafe_code_is_only_in_the_places_that_contributing_lists() {
    let page = source("CONTRIBUTING.md");
    for (before, package) in [
        ("Unsafe code stays in `memcheck-runtime`", "memcheck-runtime"),
        ("in `memcheck-ledger`", "memcheck-ledger"),
        ("`memcheck-conduct` (", "memcheck-conduct"),
        ("`cargo-memcheck` (", "cargo-memcheck"),
    ] {
        let (_, below) = page.split_once(before).expect("a rule");
        let (list, _) = below.split_once(')').expect("a list of places");
        let places = quoted(list);
        let root = workspace().join(package).join("src");
        let mut found = BTreeSet::new();
        unsafe_files(&root, &root, &mut found);
        let is_in =
            |file: &str, place: &str| file == place || file.starts_with(&format!("{place}/"));
        for file in &found {
            assert!(
                places.iter().any(|place| is_in(file, place)),
                "{file} is in none of {places:?}"
            );
        }
        for place in &places {
            assert!(found.iter().any(|file| is_in(file, place)), "{place} has no unsafe code");
        }
    }
}
