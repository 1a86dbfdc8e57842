//! Of `functional/hostile.rs`: tests whose output, spans and errors are hostile text.

use candle_core::{DType, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Leaks in a span with a hostile name and prints hostile text.
#[mem_test(baseline = false, max_growth = "0 B")]
fn leaky(trial: &mut Trial) -> candle_core::Result<()> {
    println!("\x1b[32mgreen\x1b[0m \x1b]52;c;cm0gLXJmIH4=\x07 \x1b]0;title\x07\x1b[2J \u{9b}6n");
    println!("::error::printed\n   ::set-env name=PATH::/evil\nx ##[add-path]/evil\rmore");
    eprintln!("\u{202e}<script>alert(1)</script> ]]> \u{fffe} ![x](https://evil.example)");
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        let _span = tracing::info_span!("a\x1b]0;title\x07\n::error::span <script>|").entered();
        kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn wrong() -> Result<(), String> {
    Err("\x1b[2Jwrong\r\n::error::returned\n##[error]returned".to_owned())
}
