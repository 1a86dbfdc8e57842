//! Packages that use flash-attention build without CUTLASS and nvcc, and are measured.

use crate::fixture::{Project, memcheck};

pub(crate) const MANIFEST: &str = "\
candle-flash-attn = \"0.11.1\"
candle-flash-attn-v3 = \"0.11.1\"
[dev-dependencies]
memcheck-runtime = { path = \"RUNTIME\" }
";

#[test]
#[ignore = "slow: just all"]
fn flash_attention_builds_without_cutlass_and_its_memory_follows_its_formula() {
    let project = Project::bare(MANIFEST);
    project.write("tests/mem.rs", include_str!("flash_attention/mem.rs"));
    let arguments = ["run", "--device", "sim:h100", "--message-format", "json", "--no-ci"];
    let run = memcheck(project.path(), &arguments).exits(100);
    for test in ["version_2_computes", "version_3_computes", "flash", "plain"] {
        assert!(run.codes(test).is_empty(), "{test}: {:?}", run.codes(test));
    }
    let figure = |test: &str, figure: &str| {
        run.test(test)["metrics"]["cuda:0"][figure].as_u64().expect(figure)
    };
    // The input and the output in f16, and the sums of b * h * n rows in f32. No scores of n * n
    // elements.
    let (b, n, h, d) = (2, 512, 4, 64);
    let output = b * n * h * d * 2;
    assert_eq!(figure("flash", "peak_allocated"), 2 * output + b * h * n * 4);
    assert_eq!(figure("plain", "peak_allocated"), 2 * output + b * h * n * n * 2);
    assert_eq!(run.codes("keeps_its_outputs"), ["leak"]);
    let finding = run.test("keeps_its_outputs")["findings"][0].clone();
    assert_eq!(finding["bytes_per_iteration"], output);
}
