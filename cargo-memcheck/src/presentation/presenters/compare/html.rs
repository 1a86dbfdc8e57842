//! A comparison as a page without scripts and without external files.

use maud::{DOCTYPE, html};

use super::{Compared, difference, reasons, title, value};
use crate::system::escape::{Form, escape};

const STYLE: &str = ":root{color-scheme:light dark}\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
table{border-collapse:collapse;margin:.4rem 0}td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.worse{font-weight:bold}pre{background:#8881;padding:.6rem;overflow-x:auto}";

pub(super) fn page(compared: &Compared) -> String {
    let Compared { base, head, comparison } = compared;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Memory: " (compared.counts()) }
                style { (STYLE) }
            }
            body {
                h1 { "Memory: " (compared.counts()) }
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
            }
        }
    };
    escape(&page.into_string(), Form::Markup)
}
