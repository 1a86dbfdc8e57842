//! Limits across tests: a peak relative to that of another test, and the growth of figures over the
//! cases of one test. They are judged by a run, with baselines, by merged shards and under a plain
//! harness.

use candle_core::DType;
use memcheck_core::judgement::baseline::Laws;
use memcheck_core::judgement::snapshot::SnapshotParts;
use memcheck_core::shape::Metric;
use memcheck_core::space::Space;
use memcheck_tests::{bert, llama};
use serde_json::{Value, json};

use crate::fixture::{Programs, Run, workspace};

/// All tests but the twins, and the one that leaks.
const JUDGED: [&str; 4] =
    ["relations::train", "relations::linear", "relations::square", "relations::grid"];

const LAW: &str = "linear__law@cpu";

fn programs() -> Programs {
    Programs::of("relations").with_baselines()
}

/// A run of [`JUDGED`].
fn run(programs: &Programs, arguments: &[&str]) -> Run {
    programs.run("cpu", &[&JUDGED, arguments].concat())
}

fn law_of(test: &Value) -> &Value {
    &test["laws"][0]["law"]
}

/// The findings that every complete run of [`JUDGED`] must have.
#[track_caller]
fn assert_all_findings(run: &Run) {
    let greedy = run.test("train::greedy");
    let finding = &greedy["findings"][0];
    // 0.599 * 102,400 = 61,337.6.
    assert_eq!(
        (&finding["code"], &finding["figure"], &finding["limit"]),
        (&json!("peak-limit"), &json!(61_440), &json!(61_337))
    );
    assert_eq!(run.test("train::checkpointed")["status"], "passed");

    let square = run.test("square::seq_512");
    assert_eq!(
        (&square["findings"][0]["code"], law_of(&square)),
        (&json!("scaling"), &json!("4*seq^2"))
    );
    assert_eq!(square["laws"][0]["order"], "seq^2");
    for smaller in ["square::seq_64", "square::seq_256"] {
        assert_eq!(run.test(smaller)["status"], "passed", "only the largest case has the finding");
        assert!(run.test(smaller).get("laws").is_none());
    }
    let linear = run.test("linear::seq_512");
    assert_eq!((&linear["status"], law_of(&linear)), (&json!("passed"), &json!("4096 + 256*seq")));
    assert_eq!(linear["laws"][1]["law"], "0");
    for (dtype, bytes) in [("f32", 4 * 64), ("bf16", 2 * 64)] {
        let grid = run.test(&format!("grid::dtype_{dtype}_batch_4_seq_256"));
        assert_eq!(law_of(&grid), &format!("{bytes}*batch*seq"));
        assert_eq!(grid["laws"][0]["allowed"], "batch*seq");
    }
}

#[test]
fn the_law_of_a_leaking_test_is_not_pending() {
    let programs = programs();
    let run = programs.run("cpu", &["relations::leaks"]).exits(100);
    let largest = run.test("leaking::seq_256");
    // The growth has the permitted order, but it is still a leak.
    assert_eq!(law_of(&largest), "2097152");
    assert_eq!(largest["findings"][0]["code"], "leak");
    for figures in ["seq_256", "law"] {
        let pending = programs.pending(&format!("leaks__leaking__{figures}@cpu"));
        assert!(!programs.has(&pending), "{pending}");
    }
}

#[test]
fn peaks_and_laws_are_judged_across_tests() {
    let programs = programs();
    let reports = ["junit=junit.xml", "markdown=page.md", "html=page.html"];
    let reports = reports.map(|report| ["--report", report]).concat();
    let run = run(&programs, &reports).exits(100);
    assert_all_findings(&run);
    assert_eq!(run.summary()["failed"], 2);
    let run = run.prints("peak = 4.00 KiB + 256 B*seq").prints("growth = 0 B");
    // Another run explains the finding, so it has the call site of the scores of the largest case.
    let scores = &run.test("square::seq_512")["findings"][0]["sites"][0];
    assert_eq!((&scores["operation"], &scores["bytes"]), (&json!("zeros"), &json!(4 * 512 * 512)));
    assert!(!run.test("train::greedy")["findings"][0]["sites"].as_array().unwrap().is_empty());
    let junit = programs.read("junit.xml");
    assert!(junit.contains("name=\"host.peak_allocated.law\" value=\"4096 + 256*seq\""), "{junit}");
    assert!(programs.read("page.md").contains("peak = 4.00 KiB + 256 B*seq"));
    let data = crate::report_data::report_data(&programs.read("page.html"));
    let laws = data[0]["laws"].as_array().expect("laws");
    let law = laws.iter().find(|law| law["text"] == "peak = 4.00 KiB + 256 B*seq");
    let law = law.unwrap_or_else(|| panic!("{laws:#?}"));
    let at = |point: &serde_json::Value| {
        (point["at"].as_u64().unwrap(), point["value"].as_u64().unwrap())
    };
    for (at, value) in law["points"].as_array().unwrap().iter().map(at) {
        assert_eq!(value, 4096 + 256 * at);
    }
    assert!(
        law["points"].as_array().unwrap().len() >= 3 && law["curve"].as_array().unwrap().len() >= 3
    );

    // A test that broke a limit must not leave pending figures, and its law must not be pending
    // either.
    for failed in ["train__greedy", "square__seq_512", "square__law"] {
        assert!(!programs.has(&programs.pending(&format!("{failed}@cpu"))), "{failed}");
    }
    // A run of one case has too few values to find a law. It must leave the pending law as it is.
    programs.run("cpu", &["--exact", "relations::linear::seq_64"]).exits(0);
    let review = programs.memcheck(&["review", "linear::law"]).exits(5);
    review.prints("peak_allocated: 4096 + 256*seq");
    programs.memcheck(&["accept"]).exits(0);
    let law = programs.baseline(LAW);
    let accepted = programs.read(&law);
    assert!(
        accepted.contains("laws:\n  host:\n    peak_allocated: 4096 + 256*seq\n"),
        "{accepted}"
    );
    assert!(programs.has(&programs.baseline("grid__law_dtype_bf16@cpu")));

    // A test that runs alone is judged with the baselines of the others.
    let alone = ["train::checkpointed", "linear::seq_64", "grid::dtype_f32_batch_1_seq_64"];
    let alone = alone.map(|test| format!("relations::{test}"));
    let alone: Vec<&str> = alone.iter().map(String::as_str).collect();
    let run = programs.run("cpu", &[&["--ci", "--exact"][..], &alone].concat()).exits(0);
    assert_eq!(law_of(&run.test("linear::seq_64")), "4096 + 256*seq");
    assert_eq!(law_of(&run.test("grid::dtype_f32_batch_1_seq_64")), "256*batch*seq");
    let plain = programs.baseline("train__plain@cpu");
    let figures = programs.read(&plain);
    programs.write(&plain, &figures.replace("102400", "102399"));
    let checkpointed = ["--exact", "relations::train::checkpointed"];
    let run = programs.run("cpu", &checkpointed).exits(100);
    assert_eq!(run.codes("train::checkpointed"), ["peak-limit"], "0.6 * 102,399 = 61,439.4");

    // Without a baseline the limit cannot be judged, which must not pass in CI.
    std::fs::remove_file(programs.path().join(plain)).unwrap();
    let run = programs.run("cpu", &[&checkpointed[..], &["--ci"]].concat()).exits(5);
    assert_eq!(run.codes("train::checkpointed"), ["uncomparable-baseline"]);
    run.prints(
        "`max_peak` (`0.6 x plain`) is not judged: `relations::train::plain` did not run here and \
         has no",
    );
    let other = programs.baseline("linear__seq_128@cpu");
    let one = programs.read(&other);
    programs.write(&other, &one.replace("profile: debug", "profile: release"));
    let run = programs.run("cpu", &["--exact", "relations::linear::seq_64"]).exits(0);
    assert_eq!(run.codes("linear::seq_64"), ["uncomparable-baseline"]);
    programs.write(&other, &one);

    // First the accepted law has a lower order, which is a finding. Then it only has other
    // coefficients, which is pending.
    programs.write(&law, &accepted.replace("4096 + 256*seq", "'135168'"));
    let run = programs.run("cpu", &["relations::linear"]).exits(100);
    assert_eq!(run.codes("linear::seq_512"), ["scaling"]);
    run.prints("grew with 1, and grows with seq now: 4.00 KiB + 256 B*seq, was 132.0 KiB");
    programs.memcheck(&["reject"]).exits(0);
    programs.write(&law, &accepted.replace("256*seq", "128*seq"));
    programs.run("cpu", &["relations::linear"]).exits(0);
    programs.memcheck(&["review"]).exits(5).prints("+     peak_allocated: 4096 + 256*seq");
    programs.memcheck(&["accept"]).exits(0);
    assert_eq!(programs.read(&law), accepted);
}

/// The accepted peak of a workload over its cases.
fn accepted_peak(workload: &str) -> String {
    let name = format!("tests/tests/workloads/snapshots/workloads__{workload}__law@cuda.snap");
    let text = std::fs::read_to_string(workspace().join(&name)).expect(&name);
    let laws = Laws::from_yaml(SnapshotParts::of(&text).expect(&name).body).expect(&name);
    laws.of_metric(Space::Cuda(0), Metric::PeakAllocated).expect(&name).to_string()
}

#[test]
fn the_accepted_laws_of_the_workloads_are_their_closed_formulas() {
    // BERT-base in f32, h = 768, a = 12: see `Bert::forward_peak_bytes`.
    let weights = 4 * bert::parameters(&candle_transformers::models::bert::Config::default());
    let (linear, square) = (4 * (8 * 768 + 2 * 12 + 1) + 3 * 4, 4 * 5 * 12);
    assert_eq!(
        accepted_peak("scaling__bert_forward"),
        format!("{} + {linear}*batch*seq + {square}*batch*seq^2", weights + 96)
    );
    // The tiny Llama in f32, h = 64, a = 4: see `Llama::prefill_peak_bytes`.
    let config = llama::tiny_config();
    let kept = 4 * llama::parameters(&config) + llama::rope_table_bytes(&config, DType::F32);
    let token = |batch| llama::kv_bytes_per_token(&config, batch, DType::F32);
    assert_eq!(
        accepted_peak("scaling__llama_prefill"),
        format!(
            "{kept} + {}*batch*seq + 1*seq^2 + {}*batch*seq^2",
            token(1) + 4 + 4 * 9 * 64,
            4 * 3 * 4
        )
    );
    // Two sequences after a prompt of 16: see `Llama::decode_peak_bytes`.
    let each = token(2) + 2 * 4 * (2 * 64 + 2 * 4);
    let rest = 2 * 17 * 4 + 16 * 16 + 2 * 512 * 4 + 2 * 6 * 64 * 4;
    assert_eq!(
        accepted_peak("scaling__llama_decode"),
        format!("{} + {each}*tokens for tokens >= 64", kept + 16 * each + rest)
    );
}

#[test]
fn invalid_limits_across_tests_are_refused_before_any_test_runs() {
    let programs = programs();
    for (limit, expected) in [
        ("0.6 x nothing", "programs has no test `nothing`: memcheck searches the same test target"),
        ("0.6 x linear", "has no test `linear`, but `relations::linear::seq_"),
        (
            "0.6 x twin",
            "`twin` is one of `relations::first::twin`, `relations::second::twin`: write more of \
             its path",
        ),
        ("0.6 x on_a_gpu", "`relations::second::on_a_gpu` does not run on cpu"),
        (
            "0.6 x checkpointed",
            "`relations::train::checkpointed` is `0.6 x checkpointed`, which is a share of its own",
        ),
    ] {
        let run = programs
            .run("cpu", &["--exact", "relations::train::checkpointed", "--max-peak", limit])
            .exits(96)
            .prints(expected);
        assert!(!run.stdout.contains("test-finished"), "{}", run.stdout);
    }
    programs.run("cpu", &["--max-peak", "60% x plain"]).exits(2).prints("`60%` is not a factor");
    programs.run("cpu", &["--exact", "relations::second::twin"]).exits(0);
    programs.memcheck(&["accept"]).exits(0);
    let variables = [("MEMCHECK_MAX_PEAK", "0.7 x second::twin")];
    let first = programs.run_with("cpu", &["relations::first::twin"], &variables).exits(100);
    assert_eq!(first.test("first::twin")["findings"][0]["limit"], 2867, "0.7 * 4,096 = 2,867.2");

    // An override replaces the attribute. The two limits form a circle that cannot be satisfied.
    let limited = |limit: &str| {
        let test = "relations::train::plain";
        programs.configure(&format!("[[override]]\ntest = \"{test}\"\nmax_peak = \"{limit}\"\n"));
    };
    let train = || programs.run("cpu", &["relations::train"]);
    limited("1.6 x checkpointed");
    train().exits(96).prints(
        "`relations::train::checkpointed` of `relations::train::plain`, `relations::train::plain` \
         of `relations::train::checkpointed`",
    );
    // 1.7 * 0.6 > 1, so this circle can be satisfied.
    limited("1.7 x checkpointed");
    let satisfied = train().exits(100);
    assert_eq!(satisfied.test("train::plain")["status"], "passed");
    assert_eq!(satisfied.summary()["failed"], 1);
    programs.configure("");

    // Shards leave these limits to the merge.
    for part in ["1", "2", "3"] {
        let (part, folder) = (format!("hash:{part}/3"), format!("shard-{part}"));
        let as_shard = ["--ci", "-W", "missing-baseline", "--partition", &part];
        let shard = run(&programs, &[&as_shard[..], &["--results", &folder]].concat());
        let shard = shard.exits(0).prints("judged by `cargo memcheck report --merge DIR …`");
        assert!(!shard.stdout.contains("\"laws\""), "{}", shard.stdout);
    }
    let merge = ["report", "--merge", "shard-1", "shard-2", "shard-3", "--message-format", "json"];
    let merged = programs.memcheck(&merge).exits(100);
    assert_all_findings(&merged);
    let from = merged.summary()["pending"].as_array().unwrap().clone();
    let named = |name: &str| from.iter().any(|path| path.as_str().unwrap().contains(name));
    assert!(named("__linear__law@cpu.snap.new") && !named("__square__law"), "{from:?}");
    assert!(!named("__train__greedy") && named("__train__checkpointed"), "{from:?}");

    // Under a plain harness each test runs by itself and is judged with the baselines of the
    // others.
    let cargo_test = |filter: &str| {
        let filter = format!("relations::{filter}");
        let output = programs.cargo_test().arg(filter).output().expect("cargo runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let (passed, output) = cargo_test("train::checkpointed");
    assert!(passed, "a test without the baseline of its limit passes: {output}");
    run(&programs, &[]).exits(100);
    programs.memcheck(&["accept"]).exits(0);
    for (filter, passes, expected) in [
        ("train::checkpointed", true, ""),
        (
            "train::greedy",
            false,
            "0.599 x train::plain, and `relations::train::plain` peaks at 102,400 B",
        ),
        ("linear", true, ""),
        ("square", false, "`peak_allocated` of host grows with seq^2 over the cases"),
    ] {
        let (passed, output) = cargo_test(filter);
        assert_eq!(passed, passes, "{filter}: {output}");
        assert!(output.contains(expected), "{output}");
    }
}
