//! The frame of the pages of `compare` and `history`: HTML in the style of the report, without scripts
//! and without external files.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::html::REPORT_STYLE;
use super::page_text::page_text;

/// A page with its title as the heading. `style` is added to the style of the report.
pub(in crate::presentation::presenters) fn plain_page(
    title: &str,
    style: &'static str,
    body: &Markup,
) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(REPORT_STYLE)) (PreEscaped(style)) }
            }
            body {
                header.top { h1 { (title) } }
                main { (body) }
            }
        }
    };
    page_text(&page)
}
