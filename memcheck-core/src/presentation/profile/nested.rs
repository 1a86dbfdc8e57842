//! Adds the figures of nested scopes to the scopes around them: `encoder.layer.attn` is nested in
//! `encoder.layer` and in `encoder`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::row::{Phase, Row, Totals};

/// Only the outermost scopes get a row without allocations of their own, because the names of all
/// scopes around a scope of depth `n` would take `n * n` bytes.
const OUTERMOST: usize = 64;

struct ScopeNode {
    phase: Phase,
    name: String,
    total: Totals,
    has_row: bool,
}

/// A scope without allocations of its own has no row yet, so this adds one.
pub(super) fn add(rows: &mut Vec<Row>) {
    let mut nodes = nodes(rows);
    for row in rows.iter() {
        for scope in &row.scopes {
            if let Some(node) = find(&nodes, row.phase, scope) {
                nodes[node].total = nodes[node].total + row.figures();
            }
        }
    }
    sum_nested(&mut nodes);
    // A row without a scope adds to no scope.
    for row in rows.iter_mut().filter(|row| !row.scopes.is_empty()) {
        if let Some(node) = find(&nodes, row.phase, &row.name) {
            nodes[node].has_row = true;
            row.in_all = Some(nodes[node].total);
        }
    }
    let new = nodes.into_iter().filter(|node| !node.has_row);
    rows.extend(new.map(|ScopeNode { phase, name, total, has_row: _ }| Row {
        in_all: Some(total),
        scopes: vec![name.clone()],
        ..Row::named(name, phase)
    }));
}

/// The scopes of `rows` and the outermost scopes around them, each before those in it.
fn nodes(rows: &[Row]) -> Vec<ScopeNode> {
    let mut names: BTreeSet<(Phase, &str)> = BTreeSet::new();
    for row in rows {
        for scope in &row.scopes {
            let ends = scope.match_indices('.').map(|(end, _)| end).take(OUTERMOST);
            names.extend(ends.chain([scope.len()]).map(|end| (row.phase, &scope[..end])));
        }
    }
    let mut nodes: Vec<ScopeNode> = names
        .into_iter()
        .map(|(phase, name)| ScopeNode {
            phase,
            name: name.to_owned(),
            total: Totals::default(),
            has_row: false,
        })
        .collect();
    nodes.sort_by(|a, b| a.compare(b.phase, &b.name));
    nodes
}

fn find(nodes: &[ScopeNode], phase: Phase, name: &str) -> Option<usize> {
    nodes.binary_search_by(|node| node.compare(phase, name)).ok()
}

/// Adds the total of each node to that of the innermost node around it.
fn sum_nested(nodes: &mut [ScopeNode]) {
    let mut around: Vec<usize> = Vec::new();
    for number in 0..=nodes.len() {
        while let Some(&inner) = around.last()
            && nodes.get(number).is_none_or(|node| !nodes[inner].contains(node))
        {
            around.pop();
            if let Some(&outer) = around.last() {
                nodes[outer].total = nodes[outer].total + nodes[inner].total;
            }
        }
        around.push(number);
    }
}

impl ScopeNode {
    /// By the parts of the name: as text, `a-b` is between `a` and `a.b`.
    fn compare(&self, phase: Phase, name: &str) -> Ordering {
        self.phase.cmp(&phase).then_with(|| self.name.split('.').cmp(name.split('.')))
    }

    fn contains(&self, other: &Self) -> bool {
        let nested = other.name.strip_prefix(&self.name);
        self.phase == other.phase && nested.is_some_and(|rest| rest.starts_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(scope: &str, phase: Phase, calls: u64) -> Row {
        let scopes = vec![scope.to_owned()];
        Row { calls, surviving: 10 * calls, scopes, ..Row::named(scope.to_owned(), phase) }
    }

    #[test]
    fn a_scope_includes_the_figures_of_its_nested_scopes() {
        let none = Row { calls: 9, ..Row::named("(none)".to_owned(), Phase::Iteration) };
        let mut rows = vec![
            row("model.layer", Phase::Iteration, 1),
            row("model.layer.attn", Phase::Iteration, 2),
            row("model.layers", Phase::Iteration, 4),
            row("model.layer", Phase::Setup, 8),
            none,
        ];
        let own = Totals::of(&rows);
        add(&mut rows);
        assert_eq!(Totals::of(&rows), own, "what is nested is not counted twice");
        let in_all = |name: &str, phase| {
            let row = rows.iter().find(|row| row.name == name && row.phase == phase).unwrap();
            row.in_all.map(|sum| (sum.calls, sum.surviving))
        };
        assert_eq!(in_all("model", Phase::Iteration), Some((7, 70)));
        assert_eq!(in_all("model.layer", Phase::Iteration), Some((3, 30)));
        assert_eq!(in_all("model.layer.attn", Phase::Iteration), Some((2, 20)));
        assert_eq!(in_all("model.layers", Phase::Iteration), Some((4, 40)));
        assert_eq!(in_all("model", Phase::Setup), Some((8, 80)));
        assert_eq!(in_all("(none)", Phase::Iteration), None);
        assert_eq!(rows.len(), 7);
    }
    #[test]
    fn a_deep_scope_is_in_every_scope_that_has_a_row() {
        let deep = |depth: usize| vec!["s"; depth].join(".");
        let scopes = [deep(200), deep(150), "s-t".to_owned(), format!("{}.t", deep(149))];
        let mut rows: Vec<Row> =
            scopes.iter().zip(1..).map(|(of, calls)| row(of, Phase::Iteration, calls)).collect();
        add(&mut rows);
        let in_all = |name: &str| {
            let row = rows.iter().find(|row| row.name == name);
            row.and_then(|row| row.in_all).map(|sum| sum.calls)
        };
        assert_eq!(in_all(&deep(200)), Some(1));
        assert_eq!(in_all(&deep(150)), Some(1 + 2));
        assert_eq!(in_all(&deep(OUTERMOST)), Some(1 + 2 + 4));
        assert_eq!((in_all("s"), in_all("s-t")), (Some(1 + 2 + 4), Some(3)));
        assert_eq!(rows.len(), scopes.len() + OUTERMOST);
    }

    #[test]
    fn the_bytes_of_the_rows_are_linear_in_the_depth_of_a_scope() {
        let bytes = |depth: usize| -> usize {
            let mut rows = vec![row(&vec!["s"; depth].join("."), Phase::Iteration, 1)];
            add(&mut rows);
            rows.iter().map(|row| row.name.len()).sum()
        };
        let (one, double) = (bytes(10_000), bytes(20_000));
        assert!(double <= 2 * one, "{one} B, then {double} B");
    }
}
