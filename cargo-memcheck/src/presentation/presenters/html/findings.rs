//! Renders a finding: its message, a table of its call sites, and its cause with a remedy.

use maud::{Markup, html};
use memcheck_core::judgement::diagnosis::{Cause, RULES};
use memcheck_core::judgement::finding::{Finding, Site};
use memcheck_core::size::Size;

use crate::presentation::presenters::findings;

pub(super) fn finding(finding: &Finding) -> Markup {
    let (first, rest) = finding.message.split_once('\n').unwrap_or((&finding.message, ""));
    html! {
        section.finding {
            p { strong { (finding.code) } ": " (first) }
            @if !rest.is_empty() { pre { (rest) } }
            @if !finding.grown.is_empty() {
                ul { @for grown in &finding.grown { li { (findings::grown(grown)) } } }
            }
            @if !finding.sites.is_empty() { (sites(&finding.sites)) }
            @if let Some(cause) = &finding.cause { (self::cause("cause", cause)) }
            @if let Some(hint) = &finding.hint { p { "hint: " (hint) } }
        }
    }
}

fn sites(sites: &[Site]) -> Markup {
    html! {
        table {
            tr {
                th { "call site" } th { "function" } th { "operation" } th { "tensor" } th { "scope" }
                th { "bytes" } th { "blocks" } th { "note" }
            }
            @for site in sites {
                tr {
                    td { (site.place().unwrap_or_default()) }
                    td { (text(&site.function)) }
                    td { (text(&site.operation)) }
                    td { (text(&site.tensor)) }
                    td { (text(&site.scope)) }
                    td.n { (Size(site.bytes)) }
                    td.n { (findings::blocks(site)) }
                    td { (text(&site.note)) }
                }
            }
        }
    }
}

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

pub(super) fn cause(word: &str, cause: &Cause) -> Markup {
    let Cause { code, title, evidence, remedy } = cause;
    let rule = RULES.iter().find(|rule| rule.code == code);
    html! {
        p { (word) ": " strong { (title) } " (" (code) ")" br; "evidence: " (evidence) br; "remedy: " (remedy) }
        @if let Some(rule) = rule {
            details { summary { "cargo memcheck explain " (code) } pre { (rule.page) } }
        }
    }
}
