//! Continues each figure to a batch that candle cannot run, by its law over smaller batches.

use super::{Estimate, Inference, Training};
use crate::law::{self, Point, Sizes};

const BATCH: &str = "batch";

impl Estimate {
    /// The estimates may differ only in their batch. `None` if a figure has no exact law.
    pub fn at_batch(measured: &[Self], batch: u64) -> Option<Self> {
        let first = measured.first()?;
        let at = |figure: &dyn Fn(&Self) -> Option<u64>| -> Option<u64> {
            let point = |one: &Self| Some(Point { at: sizes(one.batch), value: figure(one)? });
            let points: Vec<Point> = measured.iter().map(point).collect::<Option<_>>()?;
            law::find(&points).ok()?.at(&sizes(batch))
        };
        let inference = match first.inference {
            None => None,
            Some(_) => {
                let extrapolate =
                    |figure: fn(&Inference) -> u64| at(&|one| one.inference.as_ref().map(figure));
                Some(Inference {
                    cache: extrapolate(|it| it.cache)?,
                    cache_after: extrapolate(|it| it.cache_after)?,
                    logits: extrapolate(|it| it.logits)?,
                    activations: extrapolate(|it| it.activations)?,
                    prompt_peak: extrapolate(|it| it.prompt_peak)?,
                    generation_peak: extrapolate(|it| it.generation_peak)?,
                })
            }
        };
        let training = match first.training {
            None => None,
            Some(_) => {
                let extrapolate =
                    |figure: fn(&Training) -> u64| at(&|one| one.training.as_ref().map(figure));
                Some(Training {
                    variables: extrapolate(|it| it.variables)?,
                    reached: extrapolate(|it| it.reached)?,
                    gradients: extrapolate(|it| it.gradients)?,
                    optimizer: extrapolate(|it| it.optimizer)?,
                    activations: extrapolate(|it| it.activations)?,
                    peak: extrapolate(|it| it.peak)?,
                })
            }
        };
        let load_peak = at(&|one| Some(one.load_peak))?;
        let of_inference = inference.map_or(0, |it| it.prompt_peak.max(it.generation_peak));
        let of_training = training.map_or(0, |it| it.peak);
        Some(Self {
            batch,
            weights: at(&|one| Some(one.weights))?,
            tables: at(&|one| Some(one.tables))?,
            load_peak,
            inference,
            training,
            peak: load_peak.max(of_inference).max(of_training),
            ..first.clone()
        })
    }
}

fn sizes(batch: u64) -> Sizes {
    Sizes::from([(BATCH.to_owned(), batch)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(batch: u64, prompt_peak: u64) -> Estimate {
        Estimate {
            model: "llama".to_owned(),
            dtype: "bf16".to_owned(),
            batch,
            seq: 8,
            generate: 0,
            parameters: 50,
            weights: 100,
            types: Vec::new(),
            files: None,
            tables: 4,
            load_peak: 120,
            inference: Some(Inference {
                cache: 10 * batch,
                cache_after: 10 * batch,
                logits: 2 * batch,
                activations: prompt_peak - 104 - 10 * batch,
                prompt_peak,
                generation_peak: 0,
            }),
            training: None,
            peak: prompt_peak.max(120),
            notes: Vec::new(),
        }
    }

    #[test]
    fn figures_are_extrapolated_by_their_laws() {
        let measured: Vec<Estimate> = [1, 2, 3, 7].map(|b| estimate(b, 104 + 40 * b)).into();
        assert_eq!(Estimate::at_batch(&measured, 8), Some(estimate(8, 104 + 40 * 8)));
    }

    #[test]
    fn without_an_exact_law_there_are_no_figures() {
        let measured = [(1, 150), (2, 190), (3, 270)].map(|(batch, peak)| estimate(batch, peak));
        assert_eq!(Estimate::at_batch(&measured, 8), None);
        // Two points are always on a line, so they cannot confirm a law.
        assert_eq!(Estimate::at_batch(&measured[..2], 8), None);
        assert_eq!(Estimate::at_batch(&measured[..1], 8), None);
        assert_eq!(Estimate::at_batch(&[], 8), None);
    }
}
