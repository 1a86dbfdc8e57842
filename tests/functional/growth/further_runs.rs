//! The run that decides the growth may end in unexpected ways, and other runs come after it. None
//! of this may hide growth.

use crate::fixture::{Project, Run};

const TESTS: &str = r#"
/// Keeps 4 KiB in every iteration from `first` on, and calls `end` at the beginning of each.
fn leaks(trial: &mut Trial, first: usize, end: impl Fn(usize)) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|i| {
        end(i);
        if i >= first {
            kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B")]
fn leaks_late(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, 40, |_| {})
}

#[mem_test(max_growth = "0 B")]
fn leaks_late_and_panics(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, 20, |i| assert!(i < 50, "no batch {i}"))
}

#[mem_test(max_growth = "0 B")]
fn leaks_late_and_aborts(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, 20, |i| if i == 100 { std::process::abort() })
}

#[mem_test(max_growth = "0 B")]
fn leaks_late_and_exits(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, 20, |i| if i == 100 { std::process::exit(0) })
}

#[mem_test(max_growth = "0 B")]
fn leaks_at_once_and_aborts(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, 0, |i| if i == 20 { std::process::abort() })
}

/// It panics beyond the iterations that were asked for.
#[mem_test(max_growth = "0 B")]
fn clean_and_panics(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, usize::MAX, |i| assert!(i < 50, "no batch {i}"))
}

/// The cache still fills when no more iterations are allowed.
#[mem_test(max_growth = "0 B", max_rss_growth = "1 GB", max_iterations = 300)]
fn fills_a_cache(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut cache = std::collections::BTreeMap::new();
    let mut key = 1u32;
    trial.iterate(|_| {
        key = key.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if !cache.contains_key(&(key >> 25)) {
            cache.insert(key >> 25, Tensor::zeros(1024, DType::F32, &device)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", max_rss_growth = "1 GB")]
fn leaks_late_with_a_limit_of_resident_memory(trial: &mut Trial) -> candle_core::Result<()> {
    leaks(trial, 20, |_| {})
}
"#;

fn leak_has_a_line(run: &Run, test: &str) {
    let finding = &run.test(test)["findings"][0];
    assert_eq!(finding["code"], "leak", "{test}: {finding}");
    assert!(finding["bytes_per_iteration"].as_u64() >= Some(4_096), "{test}: {finding}");
    let site = finding["sites"][0].to_string();
    assert!(site.contains("tests/mem.rs"), "{test}: {finding}");
}

#[test]
fn growth_is_not_hidden_by_the_end_of_the_run_that_decides_it() {
    let project = Project::new(TESTS);
    for explain in ["failed", "always"] {
        let run = project.run(&["--explain", explain]).exits(100);
        for test in
            ["leaks_late", "leaks_late_and_panics", "leaks_late_with_a_limit_of_resident_memory"]
        {
            leak_has_a_line(&run, test);
        }
        for (test, code) in [
            ("leaks_late_and_aborts", "crashed"),
            ("leaks_late_and_exits", "not-measured"),
            ("leaks_at_once_and_aborts", "crashed"),
        ] {
            let finding = &run.test(test)["findings"][0];
            assert_eq!(finding["code"], code, "{test}: {finding}");
            let message = finding["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("in further iterations"), "{test}: {message}");
        }
        let clean = run.test("clean_and_panics");
        assert_eq!(clean["status"], "passed", "{clean}");
        let open = &run.test("fills_a_cache")["findings"][0];
        assert_eq!(open["code"], "undecided", "{open}");
    }
}

const GPUS: &str = r#"
/// A second GPU, opened in iteration `opened`, on which a tensor is kept in each one from `first` on.
fn second(trial: &mut Trial, opened: usize, first: usize) -> candle_core::Result<()> {
    let (mut device, mut kept) = (None, Vec::new());
    trial.iterate(|i| {
        if i == opened {
            device = Some(Device::new_cuda(1)?);
        }
        if let Some(device) = device.as_ref().filter(|_| i >= first) {
            kept.push(Tensor::zeros(1024, DType::F32, device)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(device = "cuda", max_growth = "0 B")]
fn leaks_on_a_gpu_that_is_used_late(trial: &mut Trial) -> candle_core::Result<()> {
    second(trial, 0, 20)
}

#[mem_test(device = "cuda", max_growth = "0 B")]
fn leaks_on_a_gpu_that_is_opened_late(trial: &mut Trial) -> candle_core::Result<()> {
    second(trial, 30, 30)
}
"#;

#[test]
fn a_leak_on_a_gpu_that_is_first_used_beyond_the_measured_iterations_is_found() {
    let project = Project::new(GPUS);
    let run = project
        .memcheck(&["run", "--device", "sim:2xh200", "--message-format", "json", "--no-ci"])
        .exits(100);
    for test in ["leaks_on_a_gpu_that_is_used_late", "leaks_on_a_gpu_that_is_opened_late"] {
        leak_has_a_line(&run, test);
        assert_eq!(run.test(test)["findings"][0]["space"], "cuda:1");
        assert_eq!(run.test(test)["findings"][0]["bytes_per_iteration"], 4_096);
    }
}
