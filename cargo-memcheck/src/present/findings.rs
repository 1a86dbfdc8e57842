//! Findings as lines of text: one of summary, then hint and sites. Shared by
//! terminal, JUnit and Markdown, so that all say the same.

use memcheck_core::finding::{Finding, Site};
use memcheck_core::size::both;
use memcheck_core::survivors::Pattern;

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

/// `10 x 524,288 B (512.0 KiB): 524,288 B an iteration, the same in every one`.
fn site(site: &Site) -> String {
    let how = match site.pattern {
        Pattern::Steady => "the same in every iteration",
        Pattern::Periodic => "in every k-th iteration",
        Pattern::Growing => "more and more",
        Pattern::Irregular => "in no regular order",
        Pattern::Filled => "a cache that filled and stopped",
        Pattern::Replaced => "a ring that replaces its oldest block",
        Pattern::LastKept => "the last iteration only",
        Pattern::Once => "once",
    };
    format!(
        "{} x {}: {} an iteration, {how}",
        site.count,
        both(site.block),
        both(site.bytes_per_iteration)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_core::finding::Code;

    #[test]
    fn a_finding_is_short_unless_all_is_asked_for() {
        let site = |block| Site {
            block,
            bytes: 10 * block,
            count: 10,
            bytes_per_iteration: block,
            pattern: Pattern::Steady,
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
