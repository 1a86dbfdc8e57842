//! Findings as lines of text: one of summary, then hint and sites. Shared by
//! terminal, JUnit and Markdown, so that all say the same.

use memcheck_core::finding::{Finding, Site};

/// Sites that are shown where not all are wanted.
const FEW: usize = 4;

/// The lines of a finding, the first one being `code: message`. At most
/// [`FEW`] sites, unless all are asked for.
pub(super) fn lines(finding: &Finding, all: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut message = finding.message.lines();
    lines.push(format!("{}: {}", finding.code, message.next().unwrap_or_default()));
    // The rest of a long error text of the body.
    let rest: Vec<&str> = message.collect();
    let shown = if all { rest.len() } else { rest.len().min(FEW) };
    lines.extend(rest[..shown].iter().map(|line| format!("  {line}")));
    if shown < rest.len() {
        lines.push(format!("  … {} more lines", rest.len() - shown));
    }
    let shown = if all { finding.sites.len() } else { finding.sites.len().min(FEW) };
    lines.extend(finding.sites[..shown].iter().map(|site| format!("  {}", self::site(site))));
    if shown < finding.sites.len() {
        lines.push(format!("  … {} more sizes", finding.sites.len() - shown));
    }
    if let Some(hint) = &finding.hint {
        lines.push(format!("  hint: {hint}"));
    }
    lines
}

/// `10 blocks of 524,288 B (512.0 KiB): steady, 524,288 B (512.0 KiB) an iteration`.
fn site(site: &Site) -> String {
    format!("{}: {}", site.blocks(), site.how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_core::finding::Code;
    use memcheck_core::survivors::Pattern;

    #[test]
    fn a_finding_is_short_unless_all_is_asked_for() {
        let site = |block: u64| Site {
            block: Some(block),
            bytes: 10 * block,
            count: 10,
            bytes_per_iteration: block,
            pattern: Pattern::Steady,
            how: format!("steady, {block} B an iteration"),
        };
        let finding = Finding {
            sites: (1..=9).map(site).collect(),
            ..Finding::new(Code::Leak, "grows\n1\n2\n3\n4\n5\n6")
        }
        .hint("free it");
        let short = lines(&finding, false);
        assert_eq!(short[0], "leak: grows");
        assert!(short.len() <= 12, "{short:#?}");
        assert!(short.contains(&"  … 5 more sizes".to_owned()), "{short:#?}");
        assert_eq!(short.last().unwrap(), "  hint: free it");
        assert_eq!(lines(&finding, true).len(), 1 + 6 + 9 + 1);
    }
}
