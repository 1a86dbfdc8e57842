//! The order in which the judge sees call sites. The number of a call site says which allocated
//! first, and a program that walks a hash map allocates in another order in each run. Equal
//! fractions of bytes are rounded in the order of the sites, so that it must come from their content.

use std::collections::HashMap;

use memcheck_core::growth::lifetimes::History;
use memcheck_core::growth::survivors::Grown;
use memcheck_ledger::site;

use crate::scope;

use crate::executable::Executable;

/// What identifies a call site in every run: its calls in the executable, and its scope.
pub(super) fn content(executable: &Executable, number: u32) -> (Vec<u64>, String) {
    let context = site::context(number);
    context.map_or_else(Default::default, |context| {
        (executable.calls(&context.frames), scope::path(context.scope))
    })
}

/// Judges `history` with its call sites in the order of `content`. The groups of the result have
/// the numbers of `history`, which it has again afterwards.
pub(super) fn in_order<K: Ord>(
    history: &mut History,
    content: impl Fn(u32) -> K,
    judge: impl FnOnce(&History) -> Grown,
) -> Grown {
    let mut sites = history.sites();
    sites.sort_by_cached_key(|&site| content(site));
    let ranks: HashMap<u32, u32> = sites.iter().copied().zip(0..).collect();
    history.renumber(|site| ranks[&site]);
    let mut grown = judge(history);
    let number = |rank: u32| sites[rank as usize];
    history.renumber(number);
    let by_rank = std::mem::take(&mut grown.by_site);
    grown.by_site = by_rank.into_iter().map(|(rank, group)| (number(rank), group)).collect();
    grown
}

#[cfg(test)]
mod tests {
    use memcheck_core::growth::lifetimes::{Budget, Living, step};
    use memcheck_core::growth::survivors;

    use super::*;

    /// Two call sites that each keep a block in one of a few iterations, at random.
    fn history([first, second]: [u32; 2]) -> History {
        let mut history = History::new(2);
        let mut random = 7_u32;
        for born in 0..402 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let kept = [first, second].into_iter().filter(|_| random >> 29 == 0);
            let living = kept.map(|site| Living {
                site: Some(site),
                size: 1_001,
                born: Some(born),
                count: 1,
            });
            history.advance(living, []);
        }
        history
    }

    fn judge(history: &History) -> Grown {
        survivors::read(history, &step(history, &Budget::of(402)), 10)
    }

    fn rates(grown: &Grown, sites: [u32; 2]) -> [u64; 2] {
        sites.map(|site| grown.by_site[&site].reading.bytes_per_iteration)
    }

    #[test]
    fn the_numbers_of_call_sites_do_not_change_their_rates() {
        let [usual, other] = [[3, 8], [8, 3]];
        let content = |sites: [u32; 2]| move |site| sites.iter().position(|&it| it == site);
        let ordered = |sites| {
            let (mut followed, unchanged) = (history(sites), history(sites));
            let grown = in_order(&mut followed, content(sites), judge);
            assert_eq!(followed, unchanged);
            rates(&grown, sites)
        };
        let of_numbers = |sites| rates(&judge(&history(sites)), sites);
        assert_ne!(of_numbers(usual), of_numbers(other), "equal fractions are not rounded alike");
        assert_eq!(ordered(usual), ordered(other));
        assert_eq!(ordered(usual), of_numbers(usual));
    }
}
