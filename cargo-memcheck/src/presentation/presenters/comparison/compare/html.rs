//! A comparison as a page.

use maud::html;

use super::{ComparedRuns, ListedTest, capitalized, difference, reasons, title, value};
use crate::presentation::presenters::exports::plain_page::plain_page;

const STYLE: &str = "";

pub(super) fn page(compared: &ComparedRuns) -> String {
    let ComparedRuns { update, comparison, .. } = compared;
    let body = html! {
        p.facts {
            @for (number, (word, side)) in compared.sides().into_iter().enumerate() {
                @if number > 0 { br; }
                (capitalized(word)) ": " (side)
            }
        }
        @if let Some(update) = update {
            ul { @for (word, change) in update.lines() { li { (capitalized(word)) ": " (change) } } }
        }
        @for test in &comparison.changed {
            section.finding {
                h2 { (title(&test.id)) }
                div.wide tabindex="0" role="region" aria-label=(format!("Figures of {}", title(&test.id))) {
                    table {
                        caption.hidden { "The figures that changed" }
                        thead {
                            tr {
                                th scope="col" { "Figure" } th scope="col" { "Space" }
                                th.n scope="col" { "Base" } th.n scope="col" { "Head" } th.n scope="col" { "Change" }
                            }
                        }
                        tbody {
                            @for change in &test.figures {
                                tr {
                                    th scope="row" { (change.figure) }
                                    td data-label="Space" { (change.space) }
                                    td.n data-label="Base" { (value(change, change.base)) }
                                    td.n data-label="Head" { (value(change, change.head)) }
                                    td.n data-label="Change" {
                                        @let class = if change.is_worse() { "more" } else { "less" };
                                        span.(class) { (difference(change)) }
                                    }
                                }
                            }
                        }
                    }
                }
                @let reasons = reasons(test);
                @if !reasons.is_empty() { pre tabindex="0" { (reasons.join("\n")) } }
            }
        }
        @for (word, tests) in compared.listed() {
            h2 { (capitalized(word)) }
            ul {
                @for ListedTest { id, failure } in tests {
                    li {
                        (title(id))
                        @if let Some(failure) = failure { ": " span.more { (failure) } }
                    }
                }
            }
        }
    };
    plain_page(&format!("Memory: {}", compared.counts()), STYLE, &body)
}
