//! Growth has the call site of its blocks, whatever the period and the number of buffers.

use super::*;
use crate::growth::lifetimes::programs::{Program, ProgramBlock};

/// `buffers` blocks that are replaced by longer ones in every `period`-th iteration. Each is allocated
/// by a call site of its own, or all by one; the first of them come from others.
fn replaced(period: u32, buffers: u32, own_sites: bool) -> Program {
    let mut program = Program::new(1_002);
    for buffer in 0..buffers {
        for at in (0..program.length).step_by(period as usize) {
            let site = if own_sites { 1 + buffer } else { 1 };
            program.blocks.push(ProgramBlock {
                site: if at == 0 { 100 + site } else { site },
                size: 6_144 * u64::from(1 + at / period),
                born: Some(at),
                died: at + period,
            });
        }
    }
    program
}

#[test]
fn a_buffer_that_is_replaced_by_a_longer_one_has_its_line() {
    for own_sites in [false, true] {
        for buffers in 1..=4 {
            for period in 1..=64 {
                let what = format!("{buffers} buffers, every {period}, own sites: {own_sites}");
                let program = replaced(period, buffers, own_sites);
                let budget = Budget::of(program.length);
                // The events of a long period are few at any end.
                let is_long = period > 48 && buffers == 1;
                let budget = if is_long { budget.to_the_end() } else { budget };
                let (decision, iterations, _) = program.run(&budget);
                let grown = read(&program.history(iterations), &decision, 10);
                assert_one_figure(&grown, &what);
                let Decision::Leak(leak) = decision else { panic!("{what}: {decision:?}") };
                assert!(leak.whole, "{what}: {leak:?}");
                let exact = u128::from(buffers) * 6_144;
                assert_eq!(
                    leak.rate,
                    crate::growth::lifetimes::Rate::new(
                        exact,
                        period.into(),
                        crate::growth::lifetimes::Certainty::Exact
                    ),
                    "{what}"
                );
                assert!(grown.by_size.is_empty(), "{what}: {grown:?}");
            }
        }
    }
}
