//! Tests on several real GPUs, without GPUs. A fake `nvidia-smi` lists them, and a test executable
//! that measures nothing replaces one that a CUDA compiler would build. Its environment, and the
//! tests that run at the same time, are as on a machine with GPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use memcheck_core::device::{Family, Need};
use memcheck_core::limits::{Layer, Limits};
use memcheck_core::wire::protocol::{Entry, Listing, VERSION};
use serde_json::{Value, json};

use crate::fixture::{Project, Run, memcheck_with};

const TWO: &str = "GPU 0: NVIDIA H200 (UUID: GPU-aaaa)\nGPU 1: NVIDIA H200 (UUID: GPU-bbbb)\n";
const SLICED: &str = "GPU 0: NVIDIA H200 (UUID: GPU-aaaa)\n  MIG 1g.18gb     Device  0: (UUID: MIG-1)\n  \
    MIG 1g.18gb     Device  1: (UUID: MIG-2)\nGPU 1: NVIDIA H200 (UUID: GPU-bbbb)\n";

/// The replacement of a test executable. It lists tests. When it runs a test, it records its
/// environment. A lock detects two tests at once on one GPU.
const EXECUTABLE: &str = r#"
use std::io::Write;

fn main() {
    if std::env::var_os("MEMCHECK_LIST").is_some() {
        return println!("{}", include_str!("../listing.json"));
    }
    let test = std::env::args().nth(1).unwrap();
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| "unset".to_owned());
    let visible = variable("CUDA_VISIBLE_DEVICES");
    let first = visible.split(',').next().unwrap().replace('/', "_");
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open("log").unwrap();
    let job = variable("MEMCHECK_JOB");
    let device = between(&job, "\"device\":\"");
    let line = format!("{test} {visible} {device} {}\n", variable("MEMCHECK_CUPTI"));
    log.write_all(line.as_bytes()).unwrap();
    // Held until this process ends, whichever way.
    let gpu = std::fs::File::create(format!("gpu.{first}")).unwrap();
    assert!(gpu.try_lock().is_ok(), "another test is on {first}");
    match test.as_str() {
        "dies" => std::process::abort(),
        "hangs" => std::thread::sleep(std::time::Duration::from_secs(600)),
        _ => std::thread::sleep(std::time::Duration::from_millis(300)),
    }
    let report = include_str!("../report.json").replace("TEST", &test);
    let at = between(&job, "\"report\":\"");
    std::fs::write(at, report).unwrap();
}

fn between<'a>(text: &'a str, start: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split('"').next().unwrap()
}
"#;

/// `t0` to `t5`, one that dies and one that hangs.
const TESTS: [&str; 8] = ["dies", "hangs", "t0", "t1", "t2", "t3", "t4", "t5"];

fn entry(name: &str, package: &Path) -> Entry {
    Entry {
        name: name.to_owned(),
        module: "mem".to_owned(),
        case: BTreeMap::new(),
        file: "tests/mem.rs".into(),
        line: 1,
        ignored: name.starts_with(['d', 'h']),
        need: Need::Any,
        deviceless: false,
        attribute: Layer { baseline: Some(false), ..Layer::default() },
        scaling: Vec::new(),
        manifest_dir: package.to_owned(),
        snapshot: format!("mem__{name}"),
    }
}

/// The report of a passed test. `TEST` in it is replaced by the name.
fn report() -> Value {
    let mut report = memcheck_core::wire::example::report();
    let record = &mut report["record"];
    let mut space = record["spaces"]["host"].take();
    space["metrics"]["peak_allocated"] = json!(1_024);
    for (field, value) in [
        ("package", json!("gpus")),
        ("test", json!("TEST")),
        ("device", json!("cuda")),
        ("family", json!("cuda")),
        ("judged", json!(["cuda:0"])),
        ("limits", json!(Limits::resolve(Family::Cuda, []))),
        ("spaces", json!({"cuda:0": space})),
    ] {
        record[field] = value;
    }
    report
}

/// A package with that executable, and a stub of the runtime with only the features that
/// `cargo memcheck` switches on.
fn project() -> Project {
    let project = Project::bare("");
    let manifest = format!(
        "[package]\nname = \"{}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [dev-dependencies]\nmemcheck-runtime = {{ path = \"runtime\" }}\n\
         [[test]]\nname = \"mem\"\nharness = false\n",
        project.name()
    );
    project.write("Cargo.toml", &manifest);
    std::fs::remove_file(project.path().join("Cargo.lock")).expect("the lock file is removed");
    project.write(
        "runtime/Cargo.toml",
        "[package]\nname = \"memcheck-runtime\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [features]\ncuda = []\n",
    );
    project.write("runtime/src/lib.rs", "");
    let listing = Listing {
        memcheck: VERSION,
        built_for: vec!["cuda".to_owned()],
        tests: TESTS.map(|name| entry(name, project.path())).into(),
    };
    project.write("listing.json", &json!(listing).to_string());
    project.write("report.json", &report().to_string());
    project.write("tests/mem.rs", EXECUTABLE);
    write_program(&project, "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'");
    project
}

fn write_program(project: &Project, name: &str, script: &str) {
    project.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    let path = project.path().join("bin").join(name);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))
        .expect("the program is executable");
}

/// The environment with which a test was started.
#[derive(Debug)]
struct Started {
    test: String,
    visible: String,
    device: String,
    cupti: String,
}

/// Runs the command with these GPUs. Returns its output and the environments of the tests.
fn run(
    project: &Project,
    list: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Run, Vec<Started>) {
    write_program(project, "nvidia-smi", &format!("cat <<'END'\n{list}END"));
    let bin = project.path().join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let nvcc = bin.join("nvcc").display().to_string();
    let own = [("PATH", path.as_str()), ("NVCC", nvcc.as_str())];
    let log = project.path().join("log");
    std::fs::write(&log, "").expect("an empty log");
    let all = [&["run", "--message-format", "json", "--no-ci"], arguments].concat();
    let run = memcheck_with(project.path(), &all, &[&own, variables].concat());
    let log = std::fs::read_to_string(&log).expect("a log");
    let started = log.lines().map(|line| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let [test, visible, device, cupti] = words.try_into().expect("four words");
        Started { test, visible, device, cupti }
    });
    let started = started.collect();
    (run, started)
}

fn visible(started: &[Started]) -> BTreeSet<&str> {
    started.iter().map(|started| started.visible.as_str()).collect()
}

/// The devices of the lines `run-started`.
fn devices(run: &Run) -> Vec<Value> {
    let lines = run.json().into_iter().filter(|line| line["type"] == "run-started");
    lines.map(|line| line["device"].clone()).collect()
}

/// The number of tests that ran on each GPU, by its index.
fn on_each(run: &Run) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for line in run.json().iter().filter(|line| line["type"] == "test-finished") {
        if let Some(index) = line["gpu"]["index"].as_u64() {
            *counts.entry(index).or_default() += 1;
        }
    }
    counts
}

#[test]
#[ignore = "slow: just all"]
fn tests_are_spread_over_the_gpus_and_each_has_its_gpu_to_itself() {
    let project = project();
    // Each test must see its own GPU first and the other one second.
    let (all, started) = run(&project, TWO, &["--device", "cuda"], &[]);
    let all = all.exits(0);
    assert_eq!(devices(&all), ["cuda"]);
    assert_eq!(started.len(), 6, "each test once: {started:?}");
    assert_eq!(visible(&started), ["GPU-aaaa,GPU-bbbb", "GPU-bbbb,GPU-aaaa"].into());
    assert!(started.iter().all(|started| started.device == "cuda"));
    let counts = on_each(&all);
    assert_eq!((counts.len(), counts.values().sum::<usize>()), (2, 6), "{counts:?}");
    for line in started {
        let finished = all.test(&line.test);
        let (index, uuid) = match line.visible.starts_with("GPU-a") {
            true => (0, "GPU-aaaa"),
            false => (1, "GPU-bbbb"),
        };
        let gpu = json!({"index": index, "name": "NVIDIA H200", "uuid": uuid});
        assert_eq!(finished["gpu"], gpu);
        // The figures are those of the first device that a test sees, on every GPU.
        assert_eq!((&finished["device"], &finished["leg"]), (&"cuda:0".into(), &"cuda".into()));
        assert_eq!(finished["metrics"]["cuda:0"]["peak_allocated"], 1024);
    }
    // Fewer threads than GPUs.
    let (one_thread, started) =
        run(&project, TWO, &["--device", "cuda", "--test-threads", "1"], &[]);
    assert_eq!(on_each(&one_thread.exits(0)), [(0, 6)].into());
    assert_eq!(visible(&started), ["GPU-aaaa,GPU-bbbb"].into());

    // Two named GPUs are one device. A test sees only the named GPUs.
    let named = ["--device", "cuda:1", "--device", "cuda:0"];
    let (two, started) = run(&project, TWO, &named, &[]);
    let two = two.exits(0);
    assert_eq!((devices(&two), started.len()), (vec!["cuda:1,cuda:0".into()], 6));
    assert_eq!(two.test("t0")["leg"], "cuda:1,cuda:0");
    assert_eq!(on_each(&two).len(), 2);
    let listed = [("MEMCHECK_DEVICE", "cuda:1,cuda:0")];
    assert_eq!(devices(&run(&project, TWO, &[], &listed).0.exits(0)), ["cuda:1,cuda:0"]);
    let (only, started) = run(&project, TWO, &["--device", "cuda:1"], &[]);
    let only = only.exits(0);
    assert_eq!((devices(&only), on_each(&only)), (vec!["cuda:1".into()], [(1, 6)].into()));
    assert_eq!(visible(&started), ["GPU-bbbb"].into());
    let none = run(&project, TWO, &["--device", "cuda:0", "--device", "cuda:2"], &[]).0;
    none.exits(105).prints("the driver lists 2 GPUs");

    assert_gpu_is_reused_after_a_crash(&project);
    assert_hidden_gpus_are_not_assigned(&project);
    assert_slices_are_assigned_alone(&project);
    assert_launchers_assign_gpus(&project);
    assert_cupti_is_found_in_wheels(&project);
}

/// This function and those below use the package of the test above, because a build takes most of
/// the time.
fn assert_gpu_is_reused_after_a_crash(project: &Project) {
    let arguments = ["--device", "cuda", "--run-ignored", "all", "--timeout", "2s"];
    let (run, started) = run(project, TWO, &arguments, &[]);
    let run = run.exits(100);
    assert_eq!(
        (run.codes("dies"), run.codes("hangs")),
        (vec!["crashed".to_owned()], vec!["timed-out".to_owned()])
    );
    assert_eq!((started.len(), run.summary()["passed"].as_u64()), (8, Some(6)));
    // They ran on a GPU, which the result must name even without a report.
    assert_eq!(run.test("hangs")["gpu"]["name"], "NVIDIA H200");
    // While one test hangs on one GPU, the others run on the other.
    assert_eq!(on_each(&run).values().sum::<usize>(), 8);
}

fn assert_hidden_gpus_are_not_assigned(project: &Project) {
    let hidden = |words| [("CUDA_VISIBLE_DEVICES", words)];
    let (of_two, started) = run(project, TWO, &["--device", "cuda:0"], &hidden("1,0"));
    assert_eq!(on_each(&of_two.exits(0)), [(0, 6)].into());
    // The number is passed on as the user wrote it, because only the driver knows the GPU of a
    // number.
    assert_eq!(visible(&started), ["1"].into());
    let (swapped, started) = run(project, TWO, &["--device", "cuda"], &hidden("GPU-b,GPU-a"));
    let swapped = swapped.exits(0);
    assert_eq!(visible(&started), ["GPU-b,GPU-a", "GPU-a,GPU-b"].into());
    let indices_of = |uuid: &str| {
        let lines = swapped.json().into_iter().filter(|line| line["gpu"]["uuid"] == uuid);
        lines.map(|line| line["gpu"]["index"].clone()).collect::<Vec<_>>()
    };
    let (first, second) = (indices_of("GPU-bbbb"), indices_of("GPU-aaaa"));
    assert!(first.iter().all(|index| *index == 0) && !first.is_empty());
    assert!(second.iter().all(|index| *index == 1) && !second.is_empty());
}

fn assert_slices_are_assigned_alone(project: &Project) {
    // A slice hides every other device. Whole GPUs see each other, but not the slices.
    let (run, started) = run(project, SLICED, &["--device", "cuda"], &[]);
    let run = run.exits(0);
    assert_eq!(visible(&started), ["MIG-1", "MIG-2", "GPU-bbbb"].into());
    let counts = on_each(&run);
    assert_eq!((counts.len(), counts.values().sum::<usize>()), (3, 6), "{counts:?}");
    assert!(run.stdout.contains("NVIDIA H200 MIG 1g.18gb"), "{}", run.stdout);
}

fn assert_launchers_assign_gpus(project: &Project) {
    let launched = |device: &str| {
        let arguments = ["--runner", "env", "--device", device, "--test-threads", "4"];
        let (run, started) = run(project, TWO, &arguments, &[]);
        (run.exits(0), started)
    };
    // A named GPU must have only one test at a time, even with a launcher and four threads. The
    // lock of the executable checks that.
    let (run, started) = launched("cuda:1");
    assert_eq!(visible(&started), ["1"].into());
    assert_eq!(on_each(&run), [(1, 6)].into());
    let arguments = ["--runner", "env", "--device", "cuda"];
    let (given, started) = self::run(project, TWO, &arguments, &[]);
    assert!(given.exits(0).test("t0")["gpu"].is_null());
    assert_eq!(visible(&started), ["unset"].into());
}

fn assert_cupti_is_found_in_wheels(project: &Project) {
    let libraries = ["cuda_cupti/lib/libcupti.so.12", "cu13/lib/libcupti.so.13"];
    for library in libraries {
        project.write(&format!("venv/lib/python3.12/site-packages/nvidia/{library}"), "");
    }
    let venv = project.path().join("venv");
    let active = [("VIRTUAL_ENV", venv.to_str().expect("a path"))];
    let cupti = |arguments: &[&str]| {
        let arguments = [&["--device", "cuda", "--exact", "t0"], arguments].concat();
        let (run, mut started) = run(project, TWO, &arguments, &active);
        run.exits(0);
        started.pop().expect("a test").cupti
    };
    let found = cupti(&["--explain", "always"]);
    let expected = ["cu13/lib/libcupti.so.13", "cuda_cupti/lib/libcupti.so.12"];
    let folder = venv.join("lib/python3.12/site-packages/nvidia");
    // Python can have other libraries too, but those of the active environment must come first.
    let mut paths = found.split(':').map(std::path::Path::new);
    for library in expected {
        let next = paths.find(|path| path.starts_with(&venv));
        assert_eq!(next, Some(folder.join(library).as_path()), "{found}");
    }
    // A run that only counts must not load CUPTI.
    assert_eq!(cupti(&["--explain", "never"]), "unset");
}
