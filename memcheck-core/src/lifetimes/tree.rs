//! Judges a group and its kinds, so that parts that are decided need not wait for the others.

use super::Open;
use super::events::{Events, Look};
use super::group::{Group, is_few};
use super::history::History;
use super::judge_blocks::{Settled, judge_blocks};
use super::judge_level::judge_level;
use super::kind::Kind;
use super::rate::{Certainty, Rate};
use super::state::{Growth, State};

/// A group that grows.
#[derive(Debug, Clone)]
pub(super) struct Growing<'a> {
    pub(super) kinds: Vec<&'a Kind>,
    pub(super) growth: Vec<Growth>,
    /// True if the group grows by nothing else.
    pub(super) is_whole: bool,
}

/// What is known of a node: its state, and the groups that grow or are open.
#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    Clean,
    Leak { parts: Vec<Growing<'a>>, is_whole: bool, until: usize },
    Open { open: Open, until: usize, kinds: Vec<&'a Kind> },
}

impl Node<'_> {
    /// True if the leak is whole, and each of its rates exact.
    pub(super) fn is_exact(&self) -> bool {
        let Self::Leak { parts, is_whole: true, .. } = self else { return false };
        is_at_least(parts, Certainty::Exact)
    }

    /// True if a part of the leak repeats in a regular rhythm.
    pub(super) fn has_rhythm(&self) -> bool {
        let Self::Leak { parts, .. } = self else { return false };
        let mut growth = parts.iter().flat_map(|part| &part.growth);
        growth.any(|growth| growth.rate.certainty <= Certainty::Growing)
    }
}

/// True if each rate of these groups is at least so certain.
pub(super) fn is_at_least(parts: &[Growing<'_>], certainty: Certainty) -> bool {
    parts.iter().flat_map(|part| &part.growth).all(|growth| growth.rate.certainty <= certainty)
}

/// Judges one group as a whole.
pub(super) fn judge(group: &Group, look: &Look) -> State {
    let blocks = judge_blocks(group, look);
    let quiet = blocks.is_quiet().then_some(group);
    let level = judge_level(&group.live, quiet, look);
    match (blocks, level) {
        (State::Quiet, level) => level,
        (blocks, level) if level.is_exact() && is_above(&level, &blocks) => level,
        (State::Grows { mut growth, is_whole }, _) => {
            let rest = group.without_what_stays();
            match judge_level(&rest.live, Some(&rest), look) {
                State::Quiet => State::Grows { growth, is_whole },
                State::Grows { growth: others, .. } => {
                    growth.extend(others);
                    State::Grows { growth, is_whole }
                }
                State::Open { .. } => State::Grows { growth, is_whole: false },
            }
        }
        // What is settled may be the head of a backlog. The level of all of it decides.
        (State::Open { .. }, State::Grows { growth, .. }) => {
            let is_whole = growth.iter().all(|growth| growth.rate.certainty < Certainty::Amortised);
            State::Grows { growth, is_whole }
        }
        (open, _) => open,
    }
}

/// True if the level grows by more than the blocks do, or if the blocks are not exact.
fn is_above(level: &State, blocks: &State) -> bool {
    let (Some((level, _)), Some((stays, _))) = (level.growth(), blocks.growth()) else {
        return true;
    };
    level > stays || (level == stays && !blocks.is_exact())
}

/// A part of a group: its kinds, and what is known of them.
struct Part<'a> {
    kinds: Vec<&'a Kind>,
    node: Node<'a>,
}

/// Judges a group, and its parts by their size.
pub(super) fn by_size<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    let mut sorted = kinds.to_vec();
    sorted.sort_by_key(|kind| (kind.bytes.is_some(), kind.size, kind.site));
    let sizes = sorted.chunk_by(|a, b| a.size == b.size && a.bytes.is_some() == b.bytes.is_some());
    let parts = sizes.map(<[&Kind]>::to_vec).collect();
    node(history, parts, look, &|_| None)
}

/// Judges all, and its parts by their call sites, each of which has parts by size.
pub(super) fn by_site<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    let sites = kinds.chunk_by(|a, b| a.site == b.site);
    let parts = sites.map(<[&Kind]>::to_vec).collect();
    node(history, parts, look, &|kinds| (kinds.len() > 1).then(|| by_size(history, kinds, look)))
}

fn single<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    let state = judge(&Group::of(history, kinds), look);
    as_node(state, kinds)
}

fn as_node<'a>(state: State, kinds: &[&'a Kind]) -> Node<'a> {
    let kinds = kinds.to_vec();
    match state {
        State::Quiet => Node::Clean,
        State::Grows { growth, is_whole } => {
            Node::Leak { parts: vec![Growing { kinds, growth, is_whole }], is_whole, until: 0 }
        }
        State::Open { open, until } => Node::Open { open, until, kinds },
    }
}

/// Judges a group by its parts. `inner` judges a part that has parts of its own.
fn node<'a>(
    history: &History,
    parts: Vec<Vec<&'a Kind>>,
    look: &Look,
    inner: &dyn Fn(&[&'a Kind]) -> Option<Node<'a>>,
) -> Node<'a> {
    let all: Vec<&Kind> = parts.concat();
    if parts.len() == 1 {
        return inner(&all).unwrap_or_else(|| single(history, &all, look));
    }
    let own = judge(&Group::of(history, &all), look);
    let (few, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|kinds| are_few(kinds));
    let few = few.concat();
    let judged = others.into_iter().map(|kinds| {
        let node = inner(&kinds).unwrap_or_else(|| single(history, &kinds, look));
        Part { kinds, node }
    });
    let (mut stand, open): (Vec<_>, Vec<_>) =
        judged.partition(|part| matches!(part.node, Node::Clean) || part.node.is_exact());
    stand.extend(undecided(history, open, few, look));
    if own.is_exact() {
        return exact_own(own, all, stand);
    }
    if own.is_quiet() && 2 * look.quiet <= history.entries().saturating_sub(history.start()) {
        // No block of the whole stays, and its level does not rise. A part that only moves was
        // drawn from it at random.
        for part in &mut stand {
            let moves = matches!(part.node, Node::Open { open: Open::Moves, .. });
            if (moves && look.is_last) || !rises(history, &part.node, &part.kinds) {
                part.node = Node::Clean;
            }
        }
    }
    let is_open = |part: &Part<'_>| matches!(part.node, Node::Open { .. });
    let leaks = stand.iter().any(|part| matches!(part.node, Node::Leak { .. }));
    let any_open = stand.iter().any(is_open);
    let scattered = !is_quiet_together(history, &stand, look);
    if !leaks && !any_open && (own.is_quiet() || !scattered) {
        return Node::Clean;
    }
    if leaks {
        return sum(stand, scattered);
    }
    match own {
        State::Open { open, until } => Node::Open { open, until, kinds: open_kinds(stand, all) },
        // The whole is decided, but a part is not: it decides when more is known of the part.
        State::Quiet | State::Grows { .. } => {
            let opens = stand.iter().filter_map(|part| match part.node {
                Node::Open { open, until, .. } => Some((open, until)),
                _ => None,
            });
            let (open, until) = opens.max_by_key(|&(_, until)| until).unwrap_or((Open::Moves, 0));
            Node::Open { open, until, kinds: open_kinds(stand, all) }
        }
    }
}

/// True if the part grows, or may do so.
fn rises(history: &History, node: &Node<'_>, kinds: &[&Kind]) -> bool {
    match node {
        Node::Clean => false,
        Node::Open { open: Open::Moves, .. } => floor_rises(&Group::of(history, kinds)),
        Node::Open { .. } | Node::Leak { .. } => true,
    }
}

/// True if the level does not come down to what it was in the first half.
fn floor_rises(group: &Group) -> bool {
    let (first, second) = group.live.split_at(group.len() / 2);
    second.iter().min() > first.iter().min()
}

fn are_few(kinds: &[&Kind]) -> bool {
    // The kinds of one call site: births in so few entries in all.
    kinds.iter().all(|kind| is_few(kind)) && {
        let mut entries: Vec<usize> = kinds
            .iter()
            .flat_map(|kind| {
                let births = kind.blocks.births.iter().enumerate();
                births.filter(|&(_, &births)| births > 0).map(|(at, _)| kind.from + at)
            })
            .collect();
        entries.sort_unstable();
        entries.dedup();
        entries.len() < super::history::FEW_BIRTHS
    }
}

/// Judges what is not decided by itself: as one group, or else the few together and each other
/// part by itself.
fn undecided<'a>(
    history: &History,
    open: Vec<Part<'a>>,
    few: Vec<&'a Kind>,
    look: &Look,
) -> Vec<Part<'a>> {
    if few.is_empty() && open.len() <= 1 {
        return open;
    }
    let mut kinds: Vec<&Kind> = open.iter().flat_map(|part| part.kinds.clone()).collect();
    kinds.extend(&few);
    let pooled = judge(&Group::of(history, &kinds), look);
    let by_themselves = judge(&Group::of(history, &few), look);
    let few_node = as_node(by_themselves, &few);
    // The noise of other kinds hides a buffer that is enlarged, each size of which is born once.
    let hides = || {
        rises(history, &few_node, &few)
            || open.iter().any(|part| rises(history, &part.node, &part.kinds))
    };
    if pooled.is_regular() || (pooled.is_quiet() && !hides()) {
        return vec![Part { node: as_node(pooled, &kinds), kinds }];
    }
    let mut stand = open;
    if !few.is_empty() {
        let node =
            if stand.is_empty() { as_node(pooled, &few) } else { single(history, &few, look) };
        stand.push(Part { kinds: few, node });
    }
    stand
}

/// The events of all parts that are clean, as one series: one event in each of many kinds is
/// growth.
fn is_quiet_together(history: &History, parts: &[Part<'_>], look: &Look) -> bool {
    let clean = parts.iter().filter(|part| matches!(part.node, Node::Clean));
    let mut events = vec![false; history.entries()];
    let mut until = history.entries().saturating_sub(history.start());
    for part in clean {
        let group = Group::of(history, &part.kinds);
        until = until.min(Settled::of(&group).until);
        for (event, &left) in events.iter_mut().zip(&group.left[..group.settled()]) {
            *event |= left > 0;
        }
    }
    let at = events.iter().enumerate().filter(|&(_, &event)| event).map(|(at, _)| at);
    Events::of(at).is_quiet(until, look)
}

/// The group grows exactly: by its parts, if their sum is the same.
fn exact_own<'a>(own: State, all: Vec<&'a Kind>, stand: Vec<Part<'a>>) -> Node<'a> {
    let total = own.growth().map(|(rate, _)| rate);
    let Node::Leak { parts, .. } = sum(stand, false) else { return as_node(own, &all) };
    let rates: Vec<Rate> =
        parts.iter().flat_map(|part| &part.growth).map(|growth| growth.rate).collect();
    if Some(Rate::sum(&rates)) == total {
        return Node::Leak { parts, is_whole: true, until: 0 };
    }
    as_node(own, &all)
}

/// The leaks of all parts, whole if nothing else is open.
fn sum(stand: Vec<Part<'_>>, scattered: bool) -> Node<'_> {
    let (mut all, mut whole, mut latest) = (Vec::new(), !scattered, 0);
    for part in stand {
        match part.node {
            Node::Clean => {}
            Node::Leak { parts, is_whole, until } => {
                all.extend(parts);
                whole &= is_whole;
                latest = latest.max(until);
            }
            Node::Open { until, .. } => {
                whole = false;
                latest = latest.max(until);
            }
        }
    }
    if all.is_empty() {
        return Node::Clean;
    }
    Node::Leak { parts: all, is_whole: whole, until: latest }
}

fn open_kinds<'a>(stand: Vec<Part<'a>>, all: Vec<&'a Kind>) -> Vec<&'a Kind> {
    let open = stand.into_iter().filter(|part| matches!(part.node, Node::Open { .. }));
    let kinds: Vec<&Kind> = open.flat_map(|part| part.kinds).collect();
    if kinds.is_empty() { all } else { kinds }
}
