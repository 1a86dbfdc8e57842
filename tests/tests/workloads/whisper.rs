//! Whisper: the audio encoder and text decoder steps. The cache is reset after each recording.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::whisper::Whisper;

#[mem_test(max_growth = "0 B")]
fn transcribe(trial: &mut Trial) -> anyhow::Result<()> {
    let mut whisper = Whisper::tiny(trial.device())?;
    let inputs = whisper.inputs(1)?;
    trial.iterate(|_| {
        whisper.transcribe(&inputs, 4)?;
        Ok(())
    })
}
