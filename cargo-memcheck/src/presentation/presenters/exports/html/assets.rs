//! The script and the style of the page, and the policy that lets a browser run only these two.
//! `scripts/report-bundle` makes both files from `cargo-memcheck/report`.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

pub(super) const SCRIPT: &str = include_str!("../../../../../report/dist/report.js");
pub(in crate::presentation::presenters) const STYLE: &str =
    include_str!("../../../../../report/dist/report.css");

/// A browser loads nothing and runs no script but [`SCRIPT`].
pub(super) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        format!(
            "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
            hash(SCRIPT),
            hash(STYLE)
        )
    });
    &POLICY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::escape::{Form, escape};

    /// A character that the writer of the page escapes would change the hash.
    #[test]
    fn the_page_contains_script_and_style_unchanged() {
        for (name, text) in [("script", SCRIPT), ("style", STYLE)] {
            assert!(text.is_ascii() && text.len() > 1000, "{name}");
            assert_eq!(escape(text, Form::Markup), text, "{name}");
            assert!(!text.contains(&format!("</{name}")) && !text.contains("<!--"), "{name}");
        }
    }

    #[test]
    fn script_and_style_refer_to_no_other_file() {
        for foreign in ["@import", "url(", "eval(", "new Function", "fetch(", "XMLHttpRequest"] {
            assert!(!SCRIPT.contains(foreign) && !STYLE.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_policy_has_the_hash_of_the_script() {
        let empty = STANDARD.encode(Sha256::digest(""));
        assert_eq!(empty, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert!(policy().contains("default-src 'none'; script-src 'sha256-"), "{}", policy());
        assert!(!policy().contains("unsafe"), "{}", policy());
    }
}
