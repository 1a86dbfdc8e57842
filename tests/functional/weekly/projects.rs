//! A package of the shape of each project that uses candle, in `projects/rows.tsv`: memcheck is
//! added with at most three edits, and measures the same bytes on `cpu` and on `sim`.
//! Ignored: `just projects` runs it, or one project of it.

mod adding;
mod package;
mod page;
mod repository;
mod rows;

use crate::fixture::{Project, Run};
use crate::lock_files;

use adding::{Edits, add_memcheck, run};
use rows::{OwnKernels, Shape};

/// Selects a project.
const VARIABLE: &str = "PROJECT";

const MOST_EDITS: usize = 3;

/// The bytes of `template/model.rs` in f32: the weights and the inputs.
const SETUP: u64 = 4 * (64 * 128 + 128 * 32 + 16 * 64);
/// What a program with its own feature for CUDA allocates more.
const WORKSPACE: u64 = 4 * 1024;
const OUTPUT: u64 = 4 * 16 * 32;
/// The scores, their exponentials and the weights of the softmax are live with the output.
const FORWARD: u64 = 3 * 4 * 16 * 128 + OUTPUT;
/// The buffer of the own kernel.
const BUFFER: u64 = 4 * 1000;

fn figure(run: &Run, test: &str, space: &str, name: &str) -> u64 {
    let metrics = run.test(test)["metrics"][space].clone();
    metrics[name].as_u64().unwrap_or_else(|| panic!("{test}: no {name} in {space}: {metrics}"))
}

/// The differences between a run and the closed formulas.
fn differences(shape: &Shape, run: &Run, device: &str) -> Vec<String> {
    if run.code != 100 {
        return vec![format!("exit code {}:\n{}\n{}", run.code, run.stdout, run.stderr)];
    }
    let space = if device == "cpu" { "host" } else { "cuda:0" };
    let workspace = if shape.is_for_cuda(device) { WORKSPACE } else { 0 };
    let setup = SETUP + workspace;
    let mut expected = vec![
        ("drops_outputs", "setup", setup),
        ("drops_outputs", "growth", 0),
        ("drops_outputs", "peak_allocated", setup + FORWARD),
        ("keeps_outputs", "growth", OUTPUT),
    ];
    let launches = shape.kernels != OwnKernels::None && device != "cpu";
    if launches {
        expected.push(("launches_its_kernel", "peak_allocated", BUFFER));
        expected.push(("launches_its_kernel", "growth", 0));
    }
    let mut differences: Vec<String> = expected
        .into_iter()
        .map(|(test, name, value)| (test, name, value, figure(run, test, space, name)))
        .filter(|(_, _, value, measured)| value != measured)
        .map(|(test, name, value, measured)| {
            format!("{test}: {name} of {space} is {measured}, expected {value}")
        })
        .collect();
    let mut codes = vec![("keeps_outputs", &["leak"][..]), ("drops_outputs", &[])];
    if launches {
        codes.push(("launches_its_kernel", &[]));
    }
    for (test, codes) in codes {
        if run.codes(test) != codes {
            differences.push(format!("{test}: findings {:?}, expected {codes:?}", run.codes(test)));
        }
    }
    let leak = run.test("keeps_outputs")["findings"][0].clone();
    if leak["bytes_per_iteration"] != OUTPUT || leak["space"] != space {
        differences.push(format!("keeps_outputs: another leak: {leak}"));
    }
    if launches && matches!(shape.kernels, OwnKernels::Launchers { .. }) {
        let notes = run.test("launches_its_kernel")["notes"].to_string();
        if !notes.contains("launches of your own kernels: not simulated") {
            differences.push(format!("launches_its_kernel: no note about launches: {notes}"));
        }
    }
    differences
}

/// Measures a package, and returns its line of the table.
fn measure(shape: &Shape) -> Result<String, String> {
    let project = Project::named(&format!("project-{}", shape.name().replace('.', "-")));
    package::write(shape, &project);
    let (Edits { made, commands, lines }, on_cpu) = add_memcheck(shape, &project);
    let mut wrong = differences(shape, &on_cpu, "cpu");
    if wrong.is_empty() {
        wrong.extend(differences(shape, &run(shape, &project, "sim:t4"), "sim"));
    }
    if made != shape.edits || made.len() > MOST_EDITS {
        wrong.push(format!("edits {made:?}, expected {:?}: {commands:?}", shape.edits));
    }
    if !wrong.is_empty() {
        return Err(format!("{}: {}", shape.project, wrong.join("\n")));
    }
    let candle = lock_files::versions(&project.read("Cargo.lock"), "candle-core");
    let candle = candle.into_iter().collect::<Vec<_>>().join(", ");
    let toolchain = package::toolchain(shape).map_or(String::new(), |it| format!(", Rust {it}"));
    let edits = made.join(", ");
    let commands: String = commands.iter().map(|command| format!("; {command}")).collect();
    Ok(format!("{}: candle {candle}{toolchain}: {edits} ({lines} lines{commands})", shape.project))
}

#[test]
#[ignore = "weekly: just projects"]
fn each_project_adds_memcheck_with_three_edits_and_is_measured() {
    let wanted = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    let is_wanted = |shape: &&Shape| wanted.as_ref().is_none_or(|name| name == shape.name());
    let shapes = Shape::all();
    let selected: Vec<&Shape> = shapes.iter().filter(is_wanted).collect();
    assert!(!selected.is_empty(), "{VARIABLE}={wanted:?} is not a project");
    let mut failed = Vec::new();
    for shape in selected {
        match measure(shape) {
            Ok(line) => println!("{line}"),
            Err(why) => {
                println!("FAILED {why}");
                failed.push(shape.project);
            }
        }
    }
    assert_eq!(failed, [""; 0]);
}
