//! Pieces of the page that its parts have in common.

use maud::{Markup, html};
use memcheck_core::judgement::verdict::Status;

use super::data::Sources;

/// The text of a status for people.
pub(super) fn status_text(status: Status) -> &'static str {
    match status {
        Status::NeedsReview => "to review",
        Status::NotMeasured => "not measured",
        other => other.name(),
    }
}

/// A link to the view of test `number`, which has the address `fragment` in the page.
pub(super) fn link(number: usize, fragment: &str, text: &Markup) -> Markup {
    html! { a.test href={ "#" (fragment) } data-test=(number) { (text) } }
}

/// A line of the workspace, with a link if its address is known.
pub(super) fn linked(sources: &Sources, file: &str, line: u32) -> Markup {
    let code = html! { code { (file) ":" (line) } };
    match sources.links().of(file, line) {
        Some(address) => html! { a href=(address) { (code) } },
        None => code,
    }
}

/// The text of a line, which scrolls if it is too long: a reader with a keyboard must reach it.
pub(super) fn source(text: &str) -> Markup {
    html! { code.source tabindex="0" { (text) } }
}

/// A name that a browser breaks after `::` and `_` only, instead of inside a word.
pub(super) fn breakable(name: &str) -> Markup {
    let pieces = name.split_inclusive("::").flat_map(|part| part.split_inclusive('_'));
    html! { @for piece in pieces { (piece) wbr; } }
}

/// A text in which backticks mark code.
pub(super) fn prose(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    // Without a partner, a backtick is a character.
    if pieces.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (number, piece) in pieces.into_iter().enumerate() {
            @if number.is_multiple_of(2) { (piece) } @else { code { (piece) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_breaks_after_its_separators_only() {
        let broken = breakable("leaks::kept_in_a<T>").into_string();
        assert_eq!(broken, "leaks::<wbr>kept_<wbr>in_<wbr>a&lt;T&gt;<wbr>");
    }
}
