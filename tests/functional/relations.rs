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

use crate::fixture::{Project, memcheck_with, workspace};

/// `plain` has a peak of 102,400 B, and 0.6 of that are the 61,440 B of the others. `linear` holds
/// 1,024 and `seq` times 64 elements of 4 B. `square`, its twin, holds a score for each pair of
/// positions. `grid` holds `batch` times `seq` times 64 elements.
const TESTS: &str = "
fn hold(trial: &mut Trial, bytes: usize) -> candle_core::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| Tensor::zeros(bytes / 4, DType::F32, &device).map(drop))
}

mod train {
    use super::*;

    #[mem_test]
    fn plain(trial: &mut Trial) -> candle_core::Result<()> {
        hold(trial, 102_400)
    }

    #[mem_test(max_peak = \"0.6 x plain\")]
    fn checkpointed(trial: &mut Trial) -> candle_core::Result<()> {
        hold(trial, 61_440)
    }

    #[mem_test(max_peak = \"0.599 x train::plain\")]
    fn greedy(trial: &mut Trial) -> candle_core::Result<()> {
        hold(trial, 61_440)
    }
}

#[mem_test(
    cases(seq = [64, 128, 256, 512]),
    scaling(peak_allocated <= \"seq\", growth <= \"1\")
)]
fn linear(trial: &mut Trial) -> candle_core::Result<()> {
    let (seq, device): (usize, _) = (trial.case(\"seq\")?, trial.device().clone());
    trial.iterate(|_| {
        let table = Tensor::zeros(1024, DType::F32, &device)?;
        Tensor::zeros((seq, 64), DType::F32, &device)?;
        drop(table);
        Ok(())
    })
}

#[mem_test(cases(seq = [64, 128, 256, 512]), scaling(peak_allocated <= \"seq\"))]
fn square(trial: &mut Trial) -> candle_core::Result<()> {
    let (seq, device): (usize, _) = (trial.case(\"seq\")?, trial.device().clone());
    trial.iterate(|_| Tensor::zeros((seq, seq), DType::F32, &device).map(drop))
}

#[mem_test(
    cases(dtype = [f32, bf16], batch = [1, 2, 4], seq = [64, 128, 256]),
    scaling(peak_allocated <= \"batch*seq\")
)]
fn grid(trial: &mut Trial) -> candle_core::Result<()> {
    let (batch, seq): (usize, usize) = (trial.case(\"batch\")?, trial.case(\"seq\")?);
    let (dtype, device): (DType, _) = (trial.case(\"dtype\")?, trial.device().clone());
    trial.iterate(|_| Tensor::zeros((batch, seq, 64), dtype, &device).map(drop))
}
";

const LAW: &str = "tests/snapshots/mem__linear__law@cpu.snap";

fn law_of(test: &Value) -> &Value {
    &test["laws"][0]["law"]
}

/// The findings that every complete run of `TESTS` must have.
#[track_caller]
fn assert_all_findings(run: &crate::fixture::Run) {
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
    let project = Project::new(
        "#[mem_test(cases(seq = [64, 128, 256]), scaling(growth <= \"1\"))]
fn leaking(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| Tensor::zeros(1 << 19, DType::F32, &device).map(|it| kept.push(it)))
}
",
    );
    let largest = project.run(&[]).exits(100).test("leaking::seq_256");
    // The growth has the permitted order, but it is still a leak.
    assert_eq!(law_of(&largest), "2097152");
    assert_eq!(largest["findings"][0]["code"], "leak");
    for figures in ["seq_256", "law"] {
        let pending = format!("tests/snapshots/mem__leaking__{figures}@cpu.snap.new");
        assert!(!project.has(&pending), "{pending}");
    }
}

#[test]
fn peaks_and_laws_are_judged_across_tests() {
    let project = Project::new(TESTS);
    let reports = ["junit=junit.xml", "markdown=page.md", "html=page.html"];
    let reports = reports.map(|report| ["--report", report]).concat();
    let run = project.run(&reports).exits(100);
    assert_all_findings(&run);
    assert_eq!(run.summary()["failed"], 2);
    let run = run.prints("peak = 4.0 KiB + 256 B*seq").prints("growth = 0 B");
    // Another run explains the finding, so it has the call site of the scores of the largest case.
    let scores = &run.test("square::seq_512")["findings"][0]["sites"][0];
    assert_eq!((&scores["operation"], &scores["bytes"]), (&json!("zeros"), &json!(4 * 512 * 512)));
    assert!(!run.test("train::greedy")["findings"][0]["sites"].as_array().unwrap().is_empty());
    let junit = project.read("junit.xml");
    assert!(junit.contains("name=\"host.peak_allocated.law\" value=\"4096 + 256*seq\""), "{junit}");
    assert!(project.read("page.md").contains("peak = 4.0 KiB + 256 B*seq"));
    let data = crate::report_data::report_data(&project.read("page.html"));
    let laws = data[0]["laws"].as_array().expect("laws");
    let law = laws.iter().find(|law| law["text"] == "peak = 4.0 KiB + 256 B*seq");
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
        assert!(!project.has(&format!("tests/snapshots/mem__{failed}@cpu.snap.new")), "{failed}");
    }
    // A run of one case has too few values to find a law. It must leave the pending law as it is.
    project.run(&["--exact", "linear::seq_64"]).exits(0);
    project.memcheck(&["review", "linear::law"]).exits(5).prints("peak_allocated: 4096 + 256*seq");
    project.memcheck(&["accept"]).exits(0);
    let accepted = project.read(LAW);
    assert!(
        accepted.contains("laws:\n  host:\n    peak_allocated: 4096 + 256*seq\n"),
        "{accepted}"
    );
    assert!(project.has("tests/snapshots/mem__grid__law_dtype_bf16@cpu.snap"));

    // A test that runs alone is judged with the baselines of the others.
    let alone = ["train::checkpointed", "linear::seq_64", "grid::dtype_f32_batch_1_seq_64"];
    let run = project.run(&[&["--ci", "--exact"][..], &alone].concat()).exits(0);
    assert_eq!(law_of(&run.test("linear::seq_64")), "4096 + 256*seq");
    assert_eq!(law_of(&run.test("grid::dtype_f32_batch_1_seq_64")), "256*batch*seq");
    let plain = "tests/snapshots/mem__train__plain@cpu.snap";
    let figures = project.read(plain);
    project.write(plain, &figures.replace("102400", "102399"));
    let run = project.run(&["--exact", "train::checkpointed"]).exits(100);
    assert_eq!(run.codes("train::checkpointed"), ["peak-limit"], "0.6 * 102,399 = 61,439.4");

    // Without a baseline the limit cannot be judged, which must not pass in CI.
    std::fs::remove_file(project.path().join(plain)).unwrap();
    let run = project.run(&["--ci", "--exact", "train::checkpointed"]).exits(5);
    assert_eq!(run.codes("train::checkpointed"), ["uncomparable-baseline"]);
    run.prints(
        "`max_peak` (`0.6 x plain`) is not judged: `train::plain` did not run here and has no",
    );
    let other = "tests/snapshots/mem__linear__seq_128@cpu.snap";
    let one = project.read(other);
    project.write(other, &one.replace("profile: debug", "profile: release"));
    let run = project.run(&["--exact", "linear::seq_64"]).exits(0);
    assert_eq!(run.codes("linear::seq_64"), ["uncomparable-baseline"]);
    project.write(other, &one);

    // First the accepted law has a lower order, which is a finding. Then it only has other
    // coefficients, which is pending.
    project.write(LAW, &accepted.replace("4096 + 256*seq", "'135168'"));
    let run = project.run(&["linear"]).exits(100);
    assert_eq!(run.codes("linear::seq_512"), ["scaling"]);
    run.prints("grew with 1, and grows with seq now: 4.0 KiB + 256 B*seq, was 132.0 KiB");
    project.memcheck(&["reject"]).exits(0);
    project.write(LAW, &accepted.replace("256*seq", "128*seq"));
    project.run(&["linear"]).exits(0);
    project.memcheck(&["review"]).exits(5).prints("+     peak_allocated: 4096 + 256*seq");
    project.memcheck(&["accept"]).exits(0);
    assert_eq!(project.read(LAW), accepted);

    // Without `scaling` the test has no law, so the baseline of the law is stale.
    let source = project.read("tests/mem.rs");
    let unbounded = source.replace("scaling(peak_allocated <= \"seq\", growth <= \"1\")", "");
    project.write("tests/mem.rs", &unbounded);
    let run = project.run(&["linear"]).exits(0);
    run.prints("mem__linear__law@cpu.snap belongs to no test");
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
    let project = Project::new(&format!(
        "{TESTS}
mod first {{
    use super::*;
    #[mem_test]
    fn twin(trial: &mut Trial) -> candle_core::Result<()> {{ hold(trial, 4096) }}
}}
mod second {{
    use super::*;
    #[mem_test]
    fn twin(trial: &mut Trial) -> candle_core::Result<()> {{ hold(trial, 4096) }}
    #[mem_test(device = \"cuda\")]
    fn on_a_gpu(trial: &mut Trial) -> candle_core::Result<()> {{ hold(trial, 4096) }}
}}
"
    ));
    for (limit, expected) in [
        ("0.6 x nothing", "mem has no test `nothing`: memcheck searches the same test target"),
        ("0.6 x linear", "has no test `linear`, but `linear::seq_"),
        ("0.6 x twin", "`twin` is one of `first::twin`, `second::twin`: write more of its path"),
        ("0.6 x on_a_gpu", "`second::on_a_gpu` does not run on cpu"),
        (
            "0.6 x checkpointed",
            "`train::checkpointed` is `0.6 x checkpointed`, which is a share of its own",
        ),
    ] {
        let run = project
            .run(&["--exact", "train::checkpointed", "--max-peak", limit])
            .exits(96)
            .prints(expected);
        assert!(!run.stdout.contains("test-finished"), "{}", run.stdout);
    }
    project.run(&["--max-peak", "60% x plain"]).exits(2).prints("`60%` is not a factor");
    project.run(&["--exact", "second::twin"]).exits(0);
    project.memcheck(&["accept"]).exits(0);
    let variables = [("MEMCHECK_MAX_PEAK", "0.7 x second::twin")];
    let arguments =
        ["run", "--device", "cpu", "--no-ci", "--message-format", "json", "first::twin"];
    let run = memcheck_with(project.path(), &arguments, &variables).exits(100);
    assert_eq!(run.test("first::twin")["findings"][0]["limit"], 2867, "0.7 * 4,096 = 2,867.2");

    // An override replaces the attribute. The two limits form a circle that cannot be satisfied.
    let limited = |limit: &str| {
        let text = format!("[[override]]\ntest = \"train::plain\"\nmax_peak = \"{limit}\"\n");
        project.write(".config/memcheck.toml", &text);
    };
    limited("1.6 x checkpointed");
    let run = project.run(&["train"]).exits(96);
    run.prints("`train::checkpointed` of `train::plain`, `train::plain` of `train::checkpointed`");
    // 1.7 * 0.6 > 1, so this circle can be satisfied.
    limited("1.7 x checkpointed");
    let run = project.run(&["train"]).exits(100);
    assert_eq!(run.test("train::plain")["status"], "passed");
    assert_eq!(run.summary()["failed"], 1);
    std::fs::remove_file(project.path().join(".config/memcheck.toml")).unwrap();

    // Shards leave these limits to the merge.
    for part in ["1", "2", "3"] {
        let (part, folder) = (format!("hash:{part}/3"), format!("shard-{part}"));
        let run = project.run(&[
            "--ci",
            "-W",
            "missing-baseline",
            "--partition",
            &part,
            "--results",
            &folder,
        ]);
        let run = run.exits(0).prints("judged by `cargo memcheck report --merge`");
        assert!(!run.stdout.contains("\"laws\""), "{}", run.stdout);
    }
    let merge = ["report", "--merge", "shard-1", "shard-2", "shard-3", "--message-format", "json"];
    let merged = project.memcheck(&merge).exits(100);
    assert_all_findings(&merged);
    let from = merged.summary()["pending"].as_array().unwrap().clone();
    let named = |name: &str| from.iter().any(|path| path.as_str().unwrap().contains(name));
    assert!(named("mem__linear__law@cpu.snap.new") && !named("mem__square__law"), "{from:?}");
    assert!(!named("mem__train__greedy") && named("mem__train__checkpointed"), "{from:?}");

    // Under a plain harness each test runs by itself and is judged with the baselines of the
    // others.
    let cargo_test = |filter: &str| {
        let output = project.cargo_test().arg(filter).output().expect("cargo runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let (passed, output) = cargo_test("train::checkpointed");
    assert!(passed, "a test without the baseline of its limit passes: {output}");
    project.run(&[]).exits(100);
    project.memcheck(&["accept"]).exits(0);
    for (filter, passes, expected) in [
        ("train::checkpointed", true, ""),
        ("train::greedy", false, "0.599 x train::plain, and `train::plain` peaks at 102,400 B"),
        ("linear", true, ""),
        ("square", false, "`peak_allocated` of host grows with seq^2 over the cases"),
    ] {
        let (passed, output) = cargo_test(filter);
        assert_eq!(passed, passes, "{filter}: {output}");
        assert!(output.contains(expected), "{output}");
    }
}
