//! The frame of the pages of `compare` and `history`: HTML without scripts and without external
//! files.

use maud::{DOCTYPE, Markup, html};

use crate::system::escape::{Form, escape};

const STYLE: &str = ":root{color-scheme:light dark}\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
table{border-collapse:collapse;margin:.4rem 0}td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.worse{font-weight:bold}";

/// A page with its title as the heading. `style` is added to the style of all pages.
pub(in crate::presentation::presenters) fn plain_page(
    title: &str,
    style: &str,
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
                style { (STYLE) (style) }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    };
    escape(page.into_string(), Form::Markup).into_owned()
}
