//! How similar two words are, for suggestions about a mistyped one.

/// Returns the Levenshtein distance, in bytes.
pub fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

/// The most edits in a word that is a mistyped one, and not another word.
pub fn most_edits(typed: &str) -> usize {
    1 + typed.len() / 4
}
