//! Runs the CUDA tests of candle-core and candle-nn on the simulated device, with the values that it
//! computes by default. Their sources are those of the dependencies, which cargo has fetched.
//! `just candle-tests` prints the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Output;

use crate::fixture::Project;

/// The dependencies that the tests name, in addition to candle-core. The features are those with
/// which candle is compiled.
const DEPENDENCIES: &str = "\
[features]
default = [\"cuda\"]
# `test_device!` asks for this feature of the package that contains the test.
cuda = []
# The tests ask for these, too.
cutile = []
metal = []

[dev-dependencies]
anyhow = \"1\"
candle-nn = \"0.11.1\"
float8 = { version = \"0.7\", features = [\"num-traits\", \"rand_distr\"] }
half = { version = \"2.7\", default-features = false }
memcheck-runtime = { path = \"RUNTIME\" }
memcheck-sim = { path = \"RUNTIME/../memcheck-sim\" }
rand = \"0.9\"
";

/// Appended to each file. The linker must include the simulated device, so the test executable must
/// use it. The tests name cudarc, of which candle-core exports the version that it uses.
const LINKS_THE_DEVICE: &str = "
#[allow(unused_imports)]
use candle_core::cuda_backend::cudarc;
use memcheck_runtime as _;
#[test]
fn simulated_cuda_is_linked() {
    assert!(memcheck_sim::link() > 0);
}
";

/// Copies the files with CUDA tests into a package.
fn package() -> Project {
    let project = Project::package("candle-own-tests", DEPENDENCIES);
    for entry in std::fs::read_dir(memcheck_sources::folder("candle-core").join("tests"))
        .expect("candle-core has tests")
        .flatten()
    {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        // The tests of cutile need its compiler.
        if !name.ends_with("_tests.rs") || name.starts_with("cutile") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("the tests are readable");
        if ["test_device!", "feature = \"cuda\""].iter().any(|mark| text.contains(mark)) {
            project.write(&format!("tests/{name}"), &format!("{text}{LINKS_THE_DEVICE}"));
        }
    }
    let path = memcheck_sources::folder("candle-nn").join("tests/ops.rs");
    // candle-nn names candle-core so.
    let text = memcheck_sources::text(&path).replace("candle::", "candle_core::");
    project.write(&format!("tests/{NN}"), &format!("{text}{LINKS_THE_DEVICE}"));
    project
}

/// Builds the tests for the simulated device and runs those with CUDA in their name.
fn run(project: &Project) -> Output {
    let mut command = project.simulated_cargo();
    command
        .args(["test", "--tests", "--no-fail-fast"])
        .args(["--features", "memcheck-runtime/sim,memcheck-runtime/nn-cuda"])
        .args(["--", "cuda", "gpu"]);
    command.output().expect("cargo runs")
}

/// True for a test that passes, by file and test.
type Results = BTreeMap<(String, String), bool>;

/// Reads the lines of libtest. Each file's lines follow cargo's line about its executable, which
/// is on stderr; libtest's line about the number of tests separates them on stdout.
fn results(stdout: &str, files: &[String]) -> Results {
    let mut files = files.iter();
    let mut file = String::new();
    let mut results = Results::new();
    for line in stdout.lines() {
        if line.starts_with("running ") {
            file = files.next().cloned().unwrap_or_default();
        }
        let Some((name, result)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        if name != "simulated_cuda_is_linked" {
            results.insert((file.clone(), name.to_owned()), result == "ok");
        }
    }
    results
}

/// Returns the files of the test executables, in the order in which cargo runs them.
fn files(stderr: &str) -> Vec<String> {
    let running = stderr.lines().filter_map(|line| line.trim().strip_prefix("Running "));
    running
        .map(|line| {
            let path = line.trim_start_matches("unittests ");
            path.split_whitespace().next().unwrap_or_default().to_owned()
        })
        .collect()
}

fn table(results: &Results) -> String {
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for ((file, _), &passes) in results {
        let (passed, all) = counts.entry(file).or_default();
        *passed += u32::from(passes);
        *all += 1;
    }
    let mut text = format!("{:<32} {:>6} {:>6}\n", "file", "passed", "of");
    for (file, (passed, all)) in &counts {
        writeln!(text, "{file:<32} {passed:>6} {all:>6}").expect("a string can be written");
    }
    let passed = results.values().filter(|&&passes| passes).count();
    writeln!(text, "{:<32} {passed:>6} {:>6}", "all", results.len()).expect("as above");
    for ((file, name), _) in results.iter().filter(|(_, passes)| !**passes) {
        writeln!(text, "failed: {file} {name}").expect("as above");
    }
    text
}

/// The file with the tests of candle-nn.
const NN: &str = "nn_ops.rs";

/// The numbers of tests with `cuda` or `gpu` in their names that candle-core 0.11.1 and candle-nn
/// 0.11.1 have.
const TESTS: [usize; 2] = [109, 10];

#[test]
#[ignore = "slow: just all"]
fn candles_own_cuda_tests_pass_on_the_simulated_device() {
    let project = package();
    let output = run(&project);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let results = results(&stdout, &files(&stderr));
    println!("{}", table(&results));
    let of_nn = results.keys().filter(|(file, _)| file.ends_with(NN)).count();
    let all = [results.len() - of_nn, of_nn];
    assert!(results.values().all(|&passes| passes) && all == TESTS, "{all:?}\n{stdout}\n{stderr}");
}

#[test]
fn a_test_that_fails_is_counted_and_named() {
    let stdout = "\nrunning 1 test\ntest a_gpu ... ok\n\n\
                  running 2 tests\ntest b_gpu ... FAILED\ntest simulated_cuda_is_linked ... ok\n";
    let stderr = "   Running tests/a.rs (target/a-1)\n     Running tests/b.rs (target/b-2)\n";
    let table = table(&results(stdout, &files(stderr)));
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1..4], [["tests/a.rs", "1", "1"], ["tests/b.rs", "0", "1"], ["all", "1", "2"]]);
    assert_eq!(rows[4], ["failed:", "tests/b.rs", "b_gpu"]);
}
