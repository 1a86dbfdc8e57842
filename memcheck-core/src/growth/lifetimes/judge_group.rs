//! Judges one group without looking at its parts: its blocks, its level, and which of the two counts.

use super::Open;
use super::bounded::is_emptied_again;
use super::events::Look;
use super::group::KindGroup;
use super::judge_blocks::judge_blocks;
use super::judge_level::judge_level;
use super::misses::may_be_misses;
use super::rate::Certainty;
use super::state::State;

pub(super) fn judge(group: &KindGroup, look: &Look) -> State {
    let blocks = judge_blocks(group, look);
    let quiet = blocks.is_quiet().then_some(group);
    let level = judge_level(&group.live, quiet, look);
    match (blocks, level) {
        (State::Quiet, level) => level,
        (blocks, level)
            if level.is_exact()
                && is_above(&level, &blocks)
                && !are_alone(&blocks, group, look) =>
        {
            level
        }
        (State::Grows { mut growth, is_whole }, _) => {
            let rest = group.without_settled();
            match judge_level(&rest.live, Some(&rest), look) {
                State::Quiet => State::Grows { growth, is_whole },
                State::Grows { growth: others, .. } => {
                    growth.extend(others);
                    State::Grows { growth, is_whole }
                }
                State::Open { .. } => State::Grows { growth, is_whole: false },
            }
        }
        // All that rises may be a cache, beside blocks that come and go.
        (open @ State::Open { .. }, level) if !level.is_exact() && are_misses(group, look) => open,
        // Settled blocks may be the head of a backlog, so the level of all blocks decides.
        (State::Open { .. }, State::Grows { growth, .. }) => {
            let is_whole = growth.iter().all(|growth| growth.rate.certainty < Certainty::Amortized);
            State::Grows { growth, is_whole }
        }
        // The level is bounded, so that what seems to go on takes the place of what has gone.
        (State::Open { open: Open::GoesOn, until }, State::Quiet) if look.is_last => {
            State::Open { open: Open::Moves, until }
        }
        (open, _) => open,
    }
}

/// True if the settled blocks grow alone, because all others are freed again and again.
fn are_alone(blocks: &State, group: &KindGroup, look: &Look) -> bool {
    blocks.is_exact() && is_emptied_again(group, group.settled(), look)
}

/// True if the settled blocks can be the entries of a cache, and the others do not rise.
fn are_misses(group: &KindGroup, look: &Look) -> bool {
    let rest = || {
        let rest = group.without_settled();
        judge_level(&rest.live, Some(&rest), look)
    };
    may_be_misses(&group.blocks[..group.settled()], look) && rest().is_quiet()
}

/// True if the level grows by more, or by the same rate while that of the blocks is not exact.
fn is_above(level: &State, blocks: &State) -> bool {
    let (Some((level, _)), Some((stays, _))) = (level.growth(), blocks.growth()) else {
        return true;
    };
    level > stays || (level == stays && !blocks.is_exact())
}
