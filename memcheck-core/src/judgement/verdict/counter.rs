//! The growth of a counter of the program, which has no blocks.

use crate::growth::survivors::Growth;
use crate::judgement::finding::{Code, Finding};
use crate::limits::Limits;
use crate::measurement::record::{Record, SpaceRecord};
use crate::size::both;
use crate::space::Space;

pub(super) fn growth(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let Growth::Found { iterations, .. } = measured.growth else { return None };
    let limit = record.max_growth_of(space, limits)?;
    let growth = measured.metrics.growth;
    (growth > limit).then(|| {
        let finding = Finding {
            space: Some(space),
            bytes_per_iteration: Some(growth),
            limit: Some(limit),
            ..Finding::new(
                Code::GrowthLimit,
                format!(
                    "{space} grows by {} per iteration (limit {}): it rose undiminished over \
                     {iterations} iterations",
                    both(growth),
                    both(limit)
                ),
            )
        };
        finding.hint("a counter has no call sites: the program counts these bytes itself")
    })
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use crate::growth::survivors::Growth;
    use crate::judgement::baseline::{Baseline, Figures};
    use crate::judgement::finding::Code;
    use crate::limits::Layer;
    use crate::measurement::record::example::{armed, limits, record};
    use crate::measurement::record::{Metrics, SpaceRecord};
    use crate::size::Size;
    use crate::space::Space;

    #[test]
    fn a_counter_that_grows_above_the_limit_of_growth_fails_and_its_peak_does_not() {
        let codes = |growth: u64| {
            let pool = Space::counter("pool").unwrap();
            let found = Growth::Found { whole: true, exact: true, iterations: 80 };
            let metrics =
                Metrics { growth, peak_allocated: 9_000, retained: 9_000, ..Metrics::default() };
            let mut run = record(armed(Metrics::default()));
            run.judged.push(pool);
            run.spaces.insert(pool, SpaceRecord { growth: found, ..armed(metrics) });
            assert!(!Figures::of(&run).0.contains_key(&pool));
            let layer = Layer {
                max_growth: Some(Size(100)),
                max_peak: Some(Size(1).into()),
                ..Layer::default()
            };
            let verdict =
                judge(&run, &Baseline::Off, &limits(layer), |code| code.default_level(false));
            let text = |found: crate::judgement::finding::Finding| (found.code, found.message);
            verdict.findings.into_iter().map(text).collect::<Vec<_>>()
        };
        let message = "counter/pool grows by 101 B per iteration (limit 100 B): it rose \
                       undiminished over 80 iterations";
        assert_eq!(codes(101), [(Code::GrowthLimit, message.to_owned())]);
        assert_eq!(codes(100), []);
    }
}
