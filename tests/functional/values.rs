//! Values of the simulated device: a sampler works with them, reads of unknown ones are marked, and
//! the setting that switches them off comes from every source.

use crate::fixture::{Project, Run, memcheck_with};

const MANIFEST: &str = "anyhow = \"1\"
candle-nn = \"0.11.1\"
candle-transformers = \"0.11.1\"
[dev-dependencies]
memcheck-runtime = { path = \"RUNTIME\" }
";

/// Line 12 samples on the host, and line 22 reads one number.
const TESTS: &str = "\
use candle_core::{DType, Device, Result, Tensor};
use candle_transformers::generation::LogitsProcessor;
use memcheck_runtime::{Trial, mem_test};

/// A model with one layer: the token's row of a table, times a matrix.
fn generate(device: &Device, mut token: u32) -> anyhow::Result<Vec<u32>> {
    let table = Tensor::arange(0f32, 64., device)?.reshape((8, 8))?.sin()?;
    let mut sampler = LogitsProcessor::new(7, Some(0.8), Some(0.9));
    let mut tokens = Vec::new();
    for _ in 0..6 {
        let logits = table.narrow(0, token as usize, 1)?.matmul(&table)?.get(0)?;
        token = sampler.sample(&logits)?;
        tokens.push(token);
    }
    Ok(tokens)
}

#[mem_test(baseline = false)]
fn read(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(4, DType::F32, trial.device())?;
    trial.iterate(|_| {
        let sum = ones.affine(2., 1.)?.sum_all()?.to_scalar::<f32>()?;
        println!(\"sum {sum}\");
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn sampler(trial: &mut Trial) -> anyhow::Result<()> {
    let expected = generate(&Device::Cpu, 3)?;
    trial.iterate(|_| {
        anyhow::ensure!(generate(trial.device(), 3)? == expected);
        Ok(())
    })
}

#[mem_test(baseline = false, values = \"never\")]
fn without_values(device: &Device) -> Result<()> {
    Tensor::ones(4, DType::F32, device)?.to_vec1::<f32>()?;
    Ok(())
}

#[mem_test(baseline = false)]
fn before_and_after_the_iterations(trial: &mut Trial) -> Result<()> {
    let fresh = Tensor::ones(4, DType::U32, trial.device())?;
    fresh.to_vec1::<u32>()?;
    trial.iterate(|_| fresh.affine(1., 1.).map(drop))?;
    fresh.to_vec1::<u32>()?;
    Ok(())
}

fn embed(id: u32, device: &Device) -> Result<()> {
    let table = Tensor::zeros((64, 8), DType::F32, device)?;
    table.embedding(&Tensor::new(&[3u32, id], device)?)?.to_vec2::<f32>()?;
    Ok(())
}

#[mem_test(baseline = false)]
fn an_id_outside(device: &Device) -> Result<()> {
    embed(64, device)
}

#[mem_test(baseline = false)]
fn an_id_inside(device: &Device) -> Result<()> {
    embed(63, device)
}

#[mem_test(max_growth = \"0 B\", baseline = false)]
fn kept_and_seen_late(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(4, DType::F32, trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|index| {
        kept.push(ones.affine(2., 1.)?);
        if index >= 12 {
            ones.to_vec1::<f32>()?;
        }
        Ok(())
    })
}
";

/// A kernel of PTX that a program writes itself, in three variants.
const KERNEL: &str = "\
use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
use candle_core::{Device, Tensor};
use memcheck_runtime::{mem_test, register_kernel};

/// Multiplies four numbers by 2.5.
fn scale(name: &str, device: &Device) -> anyhow::Result<Vec<f32>> {
    let ptx = format!(
        \".version 8.0\\n.target sm_75\\n.address_size 64\\n.visible .entry {name}(\\n\
         .param .u64 from,\\n.param .u64 to,\\n.param .f32 factor,\\n.param .u32 count\\n)\\n{{ ret; }}\"
    );
    let cuda = device.as_cuda_device()?;
    let function = cuda.get_or_load_custom_func(name, name, &ptx)?;
    let from = cuda.clone_htod(&[1f32, 2., 3., 4.])?;
    let to = cuda.alloc_zeros::<f32>(4)?;
    let mut launch = function.builder();
    launch.arg(&from).arg(&to).arg(&2.5f32).arg(&4u32);
    // SAFETY: the arguments are those of the kernel.
    unsafe { launch.launch(LaunchConfig::for_num_elems(4)) }?;
    Ok(cuda.clone_dtoh(&to)?)
}

#[mem_test(baseline = false, device = \"cuda\", iterations = 1, warmup = 0)]
fn registered(device: &Device) -> anyhow::Result<()> {
    register_kernel(\"scale\", |launch| {
        assert_eq!(launch.block()[0] * launch.grid()[0], 1024);
        let (factor, count) = (launch.value::<f32>(2)?, launch.value::<u32>(3)?);
        let numbers = launch.read::<f32>(0, count as usize)?;
        let scaled: Vec<f32> = numbers.into_iter().map(|number| number * factor).collect();
        launch.write(1, &scaled)
    });
    anyhow::ensure!(scale(\"scale\", device)? == [2.5, 5., 7.5, 10.]);
    Ok(())
}

#[mem_test(baseline = false, device = \"cuda\", iterations = 1, warmup = 0)]
fn unregistered(device: &Device) -> anyhow::Result<()> {
    scale(\"unregistered\", device).map(drop)
}

#[mem_test(baseline = false, device = \"cuda\", iterations = 1, warmup = 0)]
fn refused(device: &Device) -> anyhow::Result<()> {
    register_kernel(\"refused\", |launch| launch.value::<f64>(2).map(drop));
    scale(\"refused\", device).map(drop)
}
";

fn project() -> Project {
    let project = Project::bare(MANIFEST);
    project.write("tests/mem.rs", TESTS);
    project
}

fn run(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut all = vec!["run", "--device", "sim:t4", "--message-format", "json", "--no-ci"];
    all.extend(arguments);
    memcheck_with(project.path(), &all, variables)
}

#[test]
fn a_sampler_with_a_temperature_has_the_values_of_the_cpu() {
    let project = project();
    let known = run(&project, &["sampler", "read", "--strict-values"], &[]).exits(0);
    for test in ["sampler", "read"] {
        assert!(known.test(test).get("values").is_none(), "{}", known.stdout);
    }
    assert!(!known.stderr.contains("unknown"), "{}", known.stderr);

    // The probabilities are zeros, which the sampler refuses.
    let unknown = run(&project, &["sampler", "read", "kept", "--values", "never"], &[]).exits(100);
    assert_eq!(unknown.codes("sampler"), ["test-failed"]);
    let values = unknown.test("sampler")["values"].clone();
    assert_eq!(values["unknown_reads"], 1, "{values}");
    assert_eq!(values["at"], serde_json::json!(["tests/mem.rs:12"]));
    assert_eq!(values["sites"][0]["element"], "f32", "{values}");
    // Ten measured iterations and two before them, and not those that follow the test further.
    let values = unknown.test("read")["values"].clone();
    assert_eq!((&values["unknown_reads"], &values["unknown_bytes"]), (&12.into(), &48.into()));
    assert_eq!(values["at"], serde_json::json!(["tests/mem.rs:22"]));
    assert_eq!(unknown.test("read")["status"], "passed");
    assert_eq!(unknown.exact_metrics("read"), known.exact_metrics("read"));

    // Iterations beyond the measured ones decide the growth, so that their reads have a mark too.
    assert_eq!(unknown.codes("kept_and_seen_late"), ["leak"]);
    let values = unknown.test("kept_and_seen_late")["values"].clone();
    assert_eq!(values["unknown_reads"], 0, "{values}");
    assert!(values["further_unknown_reads"].as_u64() > Some(100), "{values}");
    assert_eq!(values["at"], serde_json::json!(["tests/mem.rs:75"]));

    let strict = ["sampler", "read", "kept", "--values", "never", "--strict-values"];
    let strict = run(&project, &strict, &[]).exits(104);
    let finding = strict.test("read")["findings"][0].clone();
    assert_eq!(finding["code"], "not-measured");
    let message = "the body read unknown values of device memory 12 times, as zeros: at \
                   tests/mem.rs:22 (f32)";
    assert_eq!(finding["message"], message);
    assert!(finding["hint"].as_str().unwrap().contains("strict_values"), "{finding}");
    assert_eq!(strict.codes("sampler")[..2], ["test-failed", "not-measured"]);
    let codes = strict.codes("kept_and_seen_late");
    assert!(codes.iter().any(|code| code == "not-measured"), "{codes:?}");
}

#[test]
fn the_line_of_a_test_and_its_reports_have_the_mark() {
    let project = project();
    let arguments = [
        "run",
        "--device",
        "sim:t4",
        "--no-ci",
        "read",
        "--values",
        "never",
        "--report",
        "html=r.html",
        "--report",
        "markdown=r.md",
        "--report",
        "junit=r.xml",
    ];
    let run = memcheck_with(project.path(), &arguments, &[]).exits(0);
    let line = run.stderr.lines().find(|line| line.contains("PASS")).unwrap();
    assert!(line.ends_with("growth 0 B  12 unknown reads"), "{line}");
    let note = "note: the body read unknown values of device memory 12 times, as zeros: at \
                tests/mem.rs:22 (f32): `cargo memcheck explain unknown-values`";
    let run = run.prints(note);
    assert_eq!(run.stderr.matches("unknown reads").count(), 1, "{}", run.stderr);
    assert!(project.read("r.html").contains(">12 unknown reads<"));
    assert!(project.read("r.md").contains("as zeros: at tests&#47;mem.rs:22 (f32)"));
    let property = "name=\"unknown_reads.at\" value=\"tests/mem.rs:22\"";
    assert!(project.read("r.xml").contains(property), "{}", project.read("r.xml"));
    let explained = memcheck_with(project.path(), &["explain", "unknown-values"], &[]).exits(0);
    assert!(explained.stdout.starts_with("# unknown-values"), "{}", explained.stdout);
}

const FAILED_ASSERT: &str = "the kernel is_u32_f32 got the id 64, which is not in 0..64";

#[test]
fn an_id_outside_of_its_dim_fails_with_the_kernel_and_the_id() {
    let project = project();
    let known = run(&project, &["an_id_"], &[]).exits(100);
    assert_eq!(known.test("an_id_inside")["status"], "passed");
    assert_eq!(known.codes("an_id_outside"), ["test-failed"]);
    let finding = known.test("an_id_outside")["findings"][0].clone();
    let text = |part: &str| finding[part].as_str().unwrap_or_default().to_owned();
    assert!(text("message").contains("CUDA_ERROR_ASSERT"), "{finding}");
    assert!(text("hint").starts_with(FAILED_ASSERT), "{finding}");
    // Without values, no kernel can compare the ids.
    let unknown = run(&project, &["an_id_", "--values", "never"], &[]).exits(0);
    assert_eq!(unknown.test("an_id_outside")["values"]["unknown_reads"], 12);
    // The CPU names the id in the error.
    let cpu = ["run", "--device", "cpu", "--message-format", "json", "--no-ci", "an_id_"];
    let cpu = memcheck_with(project.path(), &cpu, &[]).exits(100);
    assert_eq!(cpu.codes("an_id_outside"), ["test-failed"]);
    assert_eq!(cpu.test("an_id_inside")["status"], "passed");
    let message = cpu.test("an_id_outside")["findings"][0]["message"].to_string();
    assert!(message.contains("64"), "{message}");
}

#[test]
fn a_plain_cargo_test_prints_unknown_reads_and_failed_asserts() {
    let project = project();
    let features = "memcheck-runtime/sim,candle-nn/cuda,candle-transformers/cuda";
    let plain = |test: &str, values: &str| {
        let mut command = project.simulated_cargo();
        command
            .args(["test", "--test", "mem", "--features", features])
            .args(["--", "--exact", "--show-output", test])
            .env("MEMCHECK_DEVICE", "sim:t4")
            .env("MEMCHECK_VALUES", values);
        let output = command.output().expect("cargo runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let note = "note: the body read unknown values of device memory 12 times, as zeros: at \
                tests/mem.rs:22 (f32): `cargo memcheck explain unknown-values`";
    let (code, text) = plain("read", "never");
    assert!(code == Some(0) && text.contains(note), "{text}");
    let (code, text) = plain("read", "auto");
    assert!(code == Some(0) && !text.contains("unknown values"), "{text}");
    let (code, text) = plain("an_id_outside", "auto");
    assert!(code == Some(101) && text.contains(&format!("hint: {FAILED_ASSERT}")), "{text}");
    assert!(text.contains(&format!("memcheck-sim: {FAILED_ASSERT}")), "{text}");
}

#[test]
fn the_setting_comes_from_every_source() {
    let project = project();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| run(&project, arguments, variables);
    let reads = |run: &Run, test: &str| run.test(test)["values"]["unknown_reads"].clone();
    let attribute = run(&["without_values"], &[]).exits(0);
    assert_eq!(reads(&attribute, "without_values"), 12);
    let flag = run(&["without_values", "--values", "1 MiB"], &[]).exits(0);
    assert!(reads(&flag, "without_values").is_null());
    let never = ("MEMCHECK_VALUES", "never");
    let variable = run(&["before_and_after"], &[never]).exits(0);
    assert_eq!(reads(&variable, "before_and_after_the_iterations"), 2);
    let variables = [never, ("MEMCHECK_STRICT_VALUES", "true")];
    run(&["before_and_after"], &variables).exits(104);
    run(&["before_and_after", "--strict-values=false"], &variables).exits(0);
    let wrong = run(&["--values", "some"], &[]).exits(2);
    assert!(wrong.stderr.contains("neither `auto`, `never` nor a size"), "{}", wrong.stderr);

    let config = "[default]\nvalues = \"never\"\nstrict_values = true\n";
    project.write(".config/memcheck.toml", config);
    let strict = run(&["before_and_after"], &[]).exits(104);
    assert_eq!(strict.codes("before_and_after_the_iterations"), ["not-measured"]);
}

#[test]
fn a_host_function_computes_a_kernel_of_the_program() {
    let project = Project::bare(MANIFEST);
    project.write("tests/mem.rs", KERNEL);
    let known = run(&project, &["--strict-values"], &[]).exits(104);
    assert!(known.codes("registered").is_empty(), "{}", known.stdout);
    // Without a function, or with one that cannot compute the launch, the result is unknown.
    for test in ["unregistered", "refused"] {
        assert_eq!(known.codes(test), ["not-measured"]);
        assert_eq!(known.test(test)["values"]["unknown_reads"], 1);
    }
}
