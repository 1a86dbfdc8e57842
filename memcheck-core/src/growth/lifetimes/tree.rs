//! Judges a group and its parts, so that a part that is decided need not wait for the others.

use super::Open;
use super::bounded::{has_largest, is_bounded_in_number};
use super::enlarged::enlarged;
use super::events::{Events, Look};
use super::group::{KindGroup, has_few_births};
use super::history::History;
use super::judge_blocks::Settled;
use super::judge_group::judge;
use super::kind::{Kind, contains};
use super::rate::{Certainty, Rate};
use super::replaced::buffers;
use super::state::{PatternGrowth, State};

#[derive(Debug, Clone)]
pub(super) struct Growing<'a> {
    pub(super) kinds: Vec<&'a Kind>,
    pub(super) growth: Vec<PatternGrowth>,
    pub(super) is_whole: bool,
}

impl Growing<'_> {
    /// True if further iterations cannot change the rate.
    pub(super) fn is_proved(&self) -> bool {
        let is_proved = |growth: &PatternGrowth| {
            matches!(growth.rate.certainty, Certainty::Exact | Certainty::Growing)
        };
        self.is_whole && self.growth.iter().all(is_proved)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    Clean,
    Leak { parts: Vec<Growing<'a>>, is_whole: bool, until: usize },
    Open { open: Open, until: usize, kinds: Vec<&'a Kind> },
}

impl Node<'_> {
    pub(super) fn is_exact(&self) -> bool {
        let Self::Leak { parts, is_whole: true, .. } = self else { return false };
        is_at_least(parts, Certainty::Exact)
    }

    /// True if further iterations cannot change the rate.
    pub(super) fn is_proved(&self) -> bool {
        let Self::Leak { parts, is_whole: true, .. } = self else { return false };
        parts.iter().all(Growing::is_proved)
    }

    /// True if the growth is proved by blocks that stay, and not by the level of all blocks.
    pub(super) fn shows_blocks(&self) -> bool {
        let Self::Leak { parts, .. } = self else { return false };
        let mut growth = parts.iter().flat_map(|part| &part.growth);
        self.is_proved() && growth.all(|growth| !growth.is_replaced)
    }

    pub(super) fn has_rhythm(&self) -> bool {
        let Self::Leak { parts, .. } = self else { return false };
        let mut growth = parts.iter().flat_map(|part| &part.growth);
        growth.any(|growth| growth.rate.certainty <= Certainty::Growing)
    }

    pub(super) fn is_random(&self) -> bool {
        let Self::Leak { parts, .. } = self else { return false };
        let mut growth = parts.iter().flat_map(|part| &part.growth);
        growth.any(|growth| growth.rate.certainty == Certainty::Mean)
    }
}

pub(super) fn is_at_least(parts: &[Growing<'_>], certainty: Certainty) -> bool {
    parts.iter().flat_map(|part| &part.growth).all(|growth| growth.rate.certainty <= certainty)
}

struct JudgedPart<'a> {
    kinds: Vec<&'a Kind>,
    node: Node<'a>,
}

pub(super) fn judge_by_size<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    let mut sorted = kinds.to_vec();
    sorted.sort_by_key(|kind| (kind.bytes.is_some(), kind.size, kind.site));
    let sizes = sorted.chunk_by(|a, b| a.size == b.size && a.bytes.is_some() == b.bytes.is_some());
    let parts = sizes.map(<[&Kind]>::to_vec).collect();
    judge_parts(history, parts, look, &|_| None)
}

/// Judges a group and its parts, one part for each call site, which is judged by size.
pub(super) fn judge_by_site<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    let sites = kinds.chunk_by(|a, b| a.site == b.site);
    let parts = sites.map(<[&Kind]>::to_vec).collect();
    judge_parts(history, parts, look, &|kinds| {
        (kinds.len() > 1).then(|| judge_by_size(history, kinds, look))
    })
}

fn judge_single<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    let state = judge(&KindGroup::new(history, kinds), look);
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

/// `inner` judges a part that has parts itself, and returns `None` for others.
fn judge_parts<'a>(
    history: &History,
    parts: Vec<Vec<&'a Kind>>,
    look: &Look,
    inner: &dyn Fn(&[&'a Kind]) -> Option<Node<'a>>,
) -> Node<'a> {
    let all: Vec<&Kind> = parts.concat();
    if parts.len() == 1 {
        return inner(&all).unwrap_or_else(|| judge_single(history, &all, look));
    }
    let whole = KindGroup::new(history, &all);
    let own = judge(&whole, look);
    let (few, others): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|kinds| have_few_births(kinds));
    let mut few = few.concat();
    let buffers = buffers(history, &few, look);
    few.retain(|kind| !buffers.iter().any(|buffer| contains(&buffer.kinds, kind)));
    let enlarged = enlarged(history, &few, look);
    few.retain(|kind| !enlarged.iter().any(|buffer| contains(&buffer.kinds, kind)));
    // The whole group can be exact without a buffer whose growth is small.
    let is_growing = buffers.iter().any(|buffer| !buffer.growth.is_exact());
    let judged = others.into_iter().map(|kinds| {
        let node = inner(&kinds).unwrap_or_else(|| judge_single(history, &kinds, look));
        JudgedPart { kinds, node }
    });
    // A part of a group that is bounded grows only while the others shrink.
    let has_bound = own.is_quiet() && is_bounded_in_number(&whole, look);
    let judged = judged.map(|part| {
        let is_open = matches!(part.node, Node::Open { .. });
        let is_bounded =
            is_open && has_bound && has_largest(&KindGroup::new(history, &part.kinds), look);
        if is_bounded { JudgedPart { node: Node::Clean, ..part } } else { part }
    });
    let (mut decided, open): (Vec<_>, Vec<_>) =
        judged.partition(|part| matches!(part.node, Node::Clean) || part.node.is_proved());
    decided.extend(judge_undecided(history, open, few, look));
    decided.extend(buffers.into_iter().chain(enlarged).map(|buffer| JudgedPart {
        node: as_node(buffer.growth, &buffer.kinds),
        kinds: buffer.kinds,
    }));
    if own.is_exact() && !is_growing {
        return exact_group(own, all, decided);
    }
    if own.is_quiet() && 2 * look.quiet <= history.entries().saturating_sub(history.start()) {
        // The level of the whole group does not rise; a part that only moves is a sample of it.
        for part in &mut decided {
            let moves = matches!(part.node, Node::Open { open: Open::Moves, .. });
            if (moves && look.is_last) || !rises(history, &part.node, &part.kinds) {
                part.node = Node::Clean;
            }
        }
    }
    let is_open = |part: &JudgedPart<'_>| matches!(part.node, Node::Open { .. });
    let leaks = decided.iter().any(|part| matches!(part.node, Node::Leak { .. }));
    let any_open = decided.iter().any(is_open);
    let scattered = !is_quiet_together(history, &decided, look);
    if !leaks && !any_open && (own.is_quiet() || !scattered) {
        return Node::Clean;
    }
    if leaks {
        return sum_leaks(decided, scattered);
    }
    match own {
        State::Open { open, until } => Node::Open { open, until, kinds: open_kinds(decided, all) },
        // The group is decided, but a part is not, and more iterations can decide the part.
        State::Quiet | State::Grows { .. } => {
            let opens = decided.iter().filter_map(|part| match part.node {
                Node::Open { open, until, .. } => Some((open, until)),
                _ => None,
            });
            let (open, until) = opens.max_by_key(|&(_, until)| until).unwrap_or((Open::Moves, 0));
            Node::Open { open, until, kinds: open_kinds(decided, all) }
        }
    }
}

pub(super) fn rises(history: &History, node: &Node<'_>, kinds: &[&Kind]) -> bool {
    match node {
        Node::Clean => false,
        Node::Open { open: Open::Moves, .. } => floor_rises(&KindGroup::new(history, kinds)),
        Node::Open { .. } | Node::Leak { .. } => true,
    }
}

fn floor_rises(group: &KindGroup) -> bool {
    let (first, second) = group.live.split_at(group.len() / 2);
    second.iter().min() > first.iter().min()
}

fn have_few_births(kinds: &[&Kind]) -> bool {
    // A call site can have several kinds, so the entries of all their births count together.
    kinds.iter().all(|kind| has_few_births(kind)) && {
        let mut entries: Vec<usize> = kinds
            .iter()
            .flat_map(|kind| {
                let births = kind.blocks.births.iter().enumerate();
                births.filter(|&(_, &births)| births > 0).map(|(at, _)| kind.from + at)
            })
            .collect();
        entries.sort_unstable();
        entries.dedup();
        entries.len() < super::kind::FEW_BIRTHS
    }
}

/// Judges `open` parts and `few` kinds together. A union that is regular or quiet becomes one part;
/// otherwise each open part stays one and the `few` kinds become one more.
fn judge_undecided<'a>(
    history: &History,
    open: Vec<JudgedPart<'a>>,
    few: Vec<&'a Kind>,
    look: &Look,
) -> Vec<JudgedPart<'a>> {
    if few.is_empty() && open.len() <= 1 {
        return open;
    }
    let mut kinds: Vec<&Kind> = open.iter().flat_map(|part| part.kinds.clone()).collect();
    kinds.extend(&few);
    let pooled = judge(&KindGroup::new(history, &kinds), look);
    let by_themselves = judge(&KindGroup::new(history, &few), look);
    let few_node = as_node(by_themselves, &few);
    // The noise of a pool can hide a buffer that is enlarged: each of its sizes is born once.
    let hides = || {
        rises(history, &few_node, &few)
            || open.iter().any(|part| rises(history, &part.node, &part.kinds))
    };
    if pooled.is_regular() || (pooled.is_quiet() && !hides()) {
        return vec![JudgedPart { node: as_node(pooled, &kinds), kinds }];
    }
    let mut decided = open;
    if !few.is_empty() {
        let node = if decided.is_empty() {
            as_node(pooled, &few)
        } else {
            judge_single(history, &few, look)
        };
        decided.push(JudgedPart { kinds: few, node });
    }
    decided
}

/// Clean parts can grow together: a buffer that is enlarged has one event in each of many kinds.
fn is_quiet_together(history: &History, parts: &[JudgedPart<'_>], look: &Look) -> bool {
    let clean = parts.iter().filter(|part| matches!(part.node, Node::Clean));
    let mut events = vec![false; history.entries()];
    let mut until = history.entries().saturating_sub(history.start());
    for part in clean {
        let group = KindGroup::new(history, &part.kinds);
        until = until.min(Settled::new(&group).until);
        for (event, &left) in events.iter_mut().zip(&group.left[..group.settled()]) {
            *event |= left > 0;
        }
    }
    let at = events.iter().enumerate().filter(|&(_, &event)| event).map(|(at, _)| at);
    Events::from_entries(at).is_quiet(until, look)
}

/// Names the parts if their rates add up to that of the group or to more, else the whole group.
fn exact_group<'a>(own: State, all: Vec<&'a Kind>, decided: Vec<JudgedPart<'a>>) -> Node<'a> {
    let total = own.growth().map(|(rate, _)| rate);
    let Node::Leak { parts, .. } = sum_leaks(decided, false) else { return as_node(own, &all) };
    let rates: Vec<Rate> =
        parts.iter().flat_map(|part| &part.growth).map(|growth| growth.rate).collect();
    if total.is_some_and(|total| Rate::sum(&rates) >= total) {
        return Node::Leak { parts, is_whole: true, until: 0 };
    }
    as_node(own, &all)
}

/// The node with the growth of other blocks.
pub(super) fn add_growth<'a>(node: Node<'a>, others: Vec<(Vec<&'a Kind>, State)>) -> Node<'a> {
    let others = others.into_iter().map(|(kinds, growth)| as_node(growth, &kinds));
    let nodes = std::iter::once(node).chain(others);
    sum_leaks(nodes.map(|node| JudgedPart { kinds: Vec::new(), node }).collect(), false)
}

/// Whole if each leak is, no part is open and the events of the clean parts are not `scattered`.
fn sum_leaks(decided: Vec<JudgedPart<'_>>, scattered: bool) -> Node<'_> {
    let (mut all, mut whole, mut latest) = (Vec::new(), !scattered, 0);
    for part in decided {
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

fn open_kinds<'a>(decided: Vec<JudgedPart<'a>>, all: Vec<&'a Kind>) -> Vec<&'a Kind> {
    let open = decided.into_iter().filter(|part| matches!(part.node, Node::Open { .. }));
    let kinds: Vec<&Kind> = open.flat_map(|part| part.kinds).collect();
    if kinds.is_empty() { all } else { kinds }
}
