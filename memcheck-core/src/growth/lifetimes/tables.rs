//! The table of a cache: a block that is replaced by a larger one as the cache fills, so that it does
//! not grow by itself.

use super::PartPattern;
use super::events::Look;
use super::group::KindGroup;
use super::history::History;
use super::kind::{Kind, contains};
use super::misses::may_be_misses;
use super::replaced::birth;
use super::tree::Growing;

/// The fewest enlargements that are compared with the number of entries.
const MIN_ENLARGEMENTS: usize = 3;

/// The number of entries can rise by a factor that differs from that of the sizes by this share,
/// because entries of the warm-up are not counted.
const TOLERANCE: f64 = 0.03;

/// True if a part is the table of a cache that consists of the `moving` kinds beside it: entries are
/// added whenever the table is enlarged, and their number rises by the factor of its sizes.
pub(super) fn is_table_of_a_cache(
    history: &History,
    part: &Growing<'_>,
    moving: &[&Kind],
    look: &Look,
) -> bool {
    let is_table = part.growth.iter().all(|growth| {
        growth.is_replaced && matches!(growth.pattern, PartPattern::Amortized { .. })
    });
    let others: Vec<&Kind> =
        moving.iter().copied().filter(|kind| !contains(&part.kinds, kind)).collect();
    let entries = KindGroup::new(history, &others);
    let added = &entries.blocks[..entries.settled()];
    if !is_table || !may_be_misses(added, look) {
        return false;
    }
    let start = history.start();
    let born = |kind: &&Kind| Some((birth(kind)?.checked_sub(start)?, kind.size));
    let mut tables: Vec<(usize, u64)> = part.kinds.iter().filter_map(born).collect();
    tables.sort_unstable();
    let number = |until: usize| added.iter().take(until).sum::<i64>() as f64;
    let follows = |pair: &[(usize, u64)]| {
        let ((from, smaller), (to, larger)) = (pair[0], pair[1]);
        let factor = larger as f64 / smaller.max(1) as f64;
        // Several entries can be added in one iteration.
        let least = number(to) / number(from + 1).max(1.0);
        let most = number(to + 1) / number(from).max(1.0);
        added.get(to).is_some_and(|&added| added > 0)
            && (least * (1.0 - TOLERANCE)..=most * (1.0 + TOLERANCE)).contains(&factor)
    };
    let last = tables.len().saturating_sub(MIN_ENLARGEMENTS + 1);
    tables.len() > MIN_ENLARGEMENTS && tables[last..].windows(2).all(follows)
}
