//! Adds the figures of nested scopes to the scopes around them: `encoder.layer.attn` is nested in
//! `encoder.layer` and in `encoder`.

use std::collections::BTreeMap;

use super::row::{Phase, Row, Totals};

/// A scope without allocations of its own has no row yet, so this adds one.
pub(super) fn add(rows: &mut Vec<Row>) {
    let mut in_all: BTreeMap<(Phase, String), Totals> = BTreeMap::new();
    for row in rows.iter() {
        // A row without a scope adds to no scope.
        for scope in row.scopes.iter().flat_map(|scope| enclosing_scopes(scope)) {
            let sum = in_all.entry((row.phase, scope.to_owned())).or_default();
            *sum = *sum + row.figures();
        }
    }
    for row in rows.iter_mut().filter(|row| !row.scopes.is_empty()) {
        row.in_all = in_all.remove(&(row.phase, row.name.clone()));
    }
    rows.extend(in_all.into_iter().map(|((phase, name), sum)| Row {
        in_all: Some(sum),
        scopes: vec![name.clone()],
        ..Row::named(name, phase)
    }));
}

fn enclosing_scopes(scope: &str) -> impl Iterator<Item = &str> {
    let ends = scope.match_indices('.').map(|(end, _)| end);
    ends.chain([scope.len()]).map(|end| &scope[..end])
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
}
