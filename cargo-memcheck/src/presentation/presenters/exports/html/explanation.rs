//! The explanation pages of the findings and causes in a report, as HTML. The script shows a page
//! below the finding that refers to it.

use maud::{Markup, PreEscaped, html};
use memcheck_core::judgement::diagnosis::RULES;
use memcheck_core::judgement::finding::TABLE;
use pulldown_cmark::{Options, Parser, html::push_html};

/// The page of a finding or of a cause; `None` for any other code.
fn find(code: &str) -> Option<&'static str> {
    let findings = TABLE.iter().map(|row| (row.name, row.page));
    let mut pages = findings.chain(RULES.iter().map(|rule| (rule.code, rule.page)));
    pages.find(|(name, _)| *name == code).map(|(_, page)| page)
}

/// A template for each code that has a page.
pub(super) fn templates<'a>(codes: impl IntoIterator<Item = &'a str>) -> Markup {
    let pages = codes.into_iter().filter_map(|code| Some((code, find(code)?)));
    html! {
        @for (code, page) in pages {
            template id={ "page-" (code) } { (PreEscaped(rendered(page))) }
        }
    }
}

/// The heading is the code, which the finding already shows.
fn rendered(page: &str) -> String {
    let (_, body) = page.split_once('\n').unwrap_or(("", page));
    let mut html = String::new();
    push_html(&mut html, Parser::new_ext(body, Options::ENABLE_TABLES));
    html.replace("<h2>", "<h4>").replace("</h2>", "</h4>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_rendered_without_markup_of_markdown() {
        let codes = TABLE.iter().map(|row| row.name).chain(RULES.iter().map(|rule| rule.code));
        for code in codes {
            let page = templates([code]).into_string();
            assert!(page.starts_with(&format!("<template id=\"page-{code}\">")), "{page}");
            assert!(page.contains("<h4>") && page.contains("<p>"), "{page}");
            for foreign in ["## ", "```", "<a ", "<script", "<img"] {
                assert!(!page.contains(foreign), "{code}: {foreign}");
            }
        }
        assert_eq!(templates(["<b>", "none"]).into_string(), "");
    }
}
