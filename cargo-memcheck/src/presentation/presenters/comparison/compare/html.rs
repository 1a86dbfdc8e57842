//! A comparison as a page.

use maud::html;

use super::{ComparedRuns, difference, reasons, title, value};
use crate::presentation::presenters::exports::plain_page::plain_page;

const STYLE: &str = "pre{background:#8881;padding:.6rem;overflow-x:auto}";

pub(super) fn page(compared: &ComparedRuns) -> String {
    let ComparedRuns { base, head, comparison } = compared;
    let body = html! {
        p { "Base: " (base.described()) br; "Head: " (head.described()) }
        @for test in &comparison.changed {
            h2 { (title(&test.id)) }
            table {
                tr { th { "space" } th { "figure" } th { "base" } th { "head" } th { "change" } }
                @for change in &test.figures {
                    tr class=[change.is_worse().then_some("worse")] {
                        td { (change.space) }
                        td { (change.figure) }
                        td.n { (value(change, change.base)) }
                        td.n { (value(change, change.head)) }
                        td.n { (difference(change)) }
                    }
                }
            }
            @let reasons = reasons(test);
            @if !reasons.is_empty() { pre { (reasons.join("\n")) } }
        }
        @for (word, tests) in [("New", &comparison.added), ("Removed", &comparison.removed)] {
            @if !tests.is_empty() {
                h2 { (word) }
                ul { @for id in tests { li { (title(id)) } } }
            }
        }
    };
    plain_page(&format!("Memory: {}", compared.counts()), STYLE, &body)
}
