//! Compares a pending snapshot with the baseline that it would replace, and prints the result for
//! people.

use comfy_table::{CellAlignment, Table, presets};
use memcheck_core::judgement::baseline::{Figures, changes, other_conditions};
use memcheck_core::presentation::sizes;
use memcheck_core::size::exact;
use memcheck_core::tolerance::Tolerance;
use similar::{ChangeTag, TextDiff};

use super::find::read;
use super::{Body, CheckedSnapshot, SnapshotError, SnapshotFile, check};

pub(crate) fn text(file: &SnapshotFile, new: &CheckedSnapshot) -> String {
    let old = if file.target.exists() { Some(check(&file.target)) } else { None };
    match old {
        None => match &new.body {
            Body::Figures(figures, _) => {
                format!("{}\nno baseline yet", table(&Figures::default(), figures))
            }
            Body::Laws(laws) => format!("{}\nno baseline yet", laws.to_yaml()),
        },
        Some(Ok(old)) => {
            let mut lines: Vec<String> = other_conditions(&old.facts, &new.facts)
                .into_iter()
                .map(|conditions| format!("the baseline was {conditions}"))
                .collect();
            match (&old.body, &new.body) {
                (Body::Figures(then, held), Body::Figures(now, holders)) => {
                    lines.push(table(then, now));
                    for space in now.0.keys() {
                        lines.extend(holders.grown(held, *space).iter().map(|grown| {
                            let more = exact(grown.now - grown.then);
                            format!("at the peak: +{more} {}", grown.holder)
                        }));
                    }
                }
                (old, new) => lines.push(self::lines(&old.to_yaml(), &new.to_yaml())),
            }
            lines.join("\n")
        }
        Some(Err(SnapshotError::Invalid(path, why))) => {
            let old = read(&path).unwrap_or_default();
            format!("the baseline cannot be read: {why}\n{}", lines(&old, &new.body.to_yaml()))
        }
        Some(Err(error)) => error.to_string(),
    }
}

fn table(old: &Figures, new: &Figures) -> String {
    let changes = changes(old, new, Tolerance::NONE);
    if changes.is_empty() {
        return "no figure differs".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["space", "figure", "baseline", "now", "change"]);
    for change in &changes {
        let figure = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), exact);
        table.add_row([
            change.space.to_string(),
            change.figure.clone(),
            figure(change.then),
            figure(change.now),
            delta(change.then, change.now),
        ]);
    }
    for column in [2, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn delta(then: Option<u64>, now: Option<u64>) -> String {
    match (then, now) {
        (None, _) => "new".to_owned(),
        (_, None) => "gone".to_owned(),
        (Some(then), Some(now)) => {
            let sign = if now >= then { '+' } else { '-' };
            let bytes = exact(now.abs_diff(then));
            let share = sizes::share(then, now).map(|share| format!(" ({share})"));
            format!("{sign}{bytes}{}", share.unwrap_or_default())
        }
    }
}

fn lines(old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new)
        .iter_all_changes()
        .map(|change| {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            format!("{sign} {}", change.value().trim_end_matches('\n'))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(growth: u64, peak: u64) -> Figures {
        let text = format!(
            "host:\n  growth: {growth}\n  peak_allocated: {peak}\n  retained: 0\n  setup: 0"
        );
        Figures::from_yaml(&text).unwrap()
    }

    #[test]
    fn figures_that_differ_are_listed_with_their_baselines() {
        let old = figures(0, 1000);
        let new = figures(64, 1500);
        let text = table(&old, &new);
        assert!(text.contains("+500 (+50.0%)") && text.contains("1,500"), "{text}");
        assert!(text.contains("+64"), "{text}");
        assert_eq!(table(&old, &old), "no figure differs");
        assert!(table(&Figures::default(), &new).contains("new"));
    }
}
