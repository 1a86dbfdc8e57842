use PACKAGE::Model;
use memcheck_runtime::{Trial, mem_test};

fn outputs(trial: &mut Trial, keeps: bool) -> CANDLE::Result<()> {
    let model = Model::new(&DEVICE)?;
    let inputs = model.inputs()?;
    let mut kept = Vec::new();
    trial.iterate(|_| {
        let output = model.forward(&inputs)?;
        if keeps {
            kept.push(output);
        }
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn keeps_outputs(trial: &mut Trial) -> CANDLE::Result<()> {
    outputs(trial, true)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn drops_outputs(trial: &mut Trial) -> CANDLE::Result<()> {
    outputs(trial, false)
}
