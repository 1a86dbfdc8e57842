//! Formats a finding as lines of text: one line of summary, then sites, cause and hint.

use crate::judgement::finding::{Finding, GrownHolder, Site, Via};
use crate::size::{self, Size, both};

/// The part of a finding that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Much {
    /// At most three sites and three further lines of a long message.
    Few,
    /// Everything.
    All,
}

impl Much {
    fn limit(self, all: usize) -> usize {
        match self {
            Self::Few => all.min(3),
            Self::All => all,
        }
    }
}

/// The lines of a finding, the first one being `code: message`.
pub fn lines(finding: &Finding, extent: Much) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut message = finding.message.lines();
    lines.push(format!("{}: {}", finding.code, message.next().unwrap_or_default()));
    // An error text of the body can have many lines.
    let rest: Vec<&str> = message.collect();
    let shown = extent.limit(rest.len());
    lines.extend(rest[..shown].iter().map(|line| format!("  {line}")));
    if shown < rest.len() {
        lines.push(more(rest.len() - shown, "line", "lines"));
    }
    let shown = extent.limit(finding.grown.len());
    lines.extend(finding.grown[..shown].iter().map(|grown| format!("  {}", self::grown(grown))));
    let shown = extent.limit(finding.sites.len());
    let few = finding.sites[..shown].iter().flat_map(self::site);
    lines.extend(few.map(|line| format!("  {line}")));
    if shown < finding.sites.len() {
        let hidden = &finding.sites[shown..];
        let (one, several) = if hidden.iter().all(|site| site.place().is_some()) {
            ("call site", "call sites")
        } else {
            ("group of blocks", "groups of blocks")
        };
        lines.push(more(hidden.len(), one, several));
    }
    if let Some(cause) = &finding.cause {
        lines.push(format!("  cause: {} ({})", cause.title, cause.code));
        lines.push(format!("    evidence: {}", cause.evidence));
        lines.push(format!("    remedy: {}", cause.remedy));
    }
    if let Some(hint) = &finding.hint {
        lines.push(format!("  hint: {hint}"));
    }
    lines
}

fn more(count: usize, one: &str, several: &str) -> String {
    format!("  … {count} more {}", if count == 1 { one } else { several })
}

/// Formats a holder that has more bytes at the peak than in the baseline.
pub fn grown(grown: &GrownHolder) -> String {
    let was = match grown.then {
        0 => "new at the peak".to_owned(),
        then => format!("was {}", Size(then)),
    };
    format!("+{} {} ({was})", Size(grown.now - grown.then), grown.holder)
}

fn site(site: &Site) -> Vec<String> {
    let mut what = Vec::new();
    what.extend(site.operation.clone());
    what.extend(site.tensor.clone());
    what.extend(site.scope.as_ref().map(|scope| format!("in {scope}")));
    let amount = match site.block {
        Some(_) => blocks(site),
        None => format!("{}, {}", size::blocks(site.count), both(site.bytes)),
    };
    let note = site.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    let Some(place) = site.place() else { return vec![format!("{amount}{note}")] };
    let function = site.function.as_deref().map(|function| format!(" ({function})"));
    let program = format!("{place}{}", function.unwrap_or_default());
    let mut lines = vec![match &site.via {
        Some(Via { file, line, function }) => {
            format!("{function} ({file}:{line}), called from {program}")
        }
        None => program,
    }];
    if !what.is_empty() {
        lines.push(format!("  {}", what.join(" ")));
    }
    lines.push(format!("  {amount}{note}"));
    lines
}

/// The number of blocks, and their size if all have the same.
pub fn blocks(site: &Site) -> String {
    match site.block {
        Some(block) => format!("{} x {}", site.count, both(block)),
        None => site.count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::finding::Code;

    #[test]
    fn a_call_site_is_printed_with_its_line_its_tensor_and_its_blocks() {
        let site = |line| Site {
            function: Some("mem::step".into()),
            file: Some("tests/mem.rs".into()),
            line: Some(line),
            operation: Some("matmul".into()),
            tensor: Some("[8,128] f32".into()),
            scope: Some("layer.3".into()),
            block: Some(4_096),
            bytes: 40_960,
            count: 10,
            note: Some("steady".into()),
            ..Site::default()
        };
        let finding = Finding {
            sites: (1..=5).map(site).collect(),
            ..Finding::new(Code::Leak, "first\n2\n3\n4\n5").hint("what to do")
        };
        let few = lines(&finding, Much::Few);
        assert_eq!(few[..5], ["leak: first", "  2", "  3", "  4", "  … 1 more line"]);
        assert_eq!(
            few[5..8],
            [
                "  tests/mem.rs:1 (mem::step)",
                "    matmul [8,128] f32 in layer.3",
                "    10 x 4,096 B (4.0 KiB): steady"
            ]
        );
        assert_eq!(few[14..], ["  … 2 more call sites", "  hint: what to do"]);
        let four = Finding { sites: finding.sites[..4].to_vec(), ..finding.clone() };
        assert!(lines(&four, Much::Few).contains(&"  … 1 more call site".to_owned()));
        let by_size = Site { file: None, function: None, ..finding.sites[0].clone() };
        let sizes = Finding { sites: vec![by_size; 5], ..finding.clone() };
        assert!(lines(&sizes, Much::Few).contains(&"  … 2 more groups of blocks".to_owned()));
        let via = Via {
            file: "candle-mi-0.2.2/src/util/masks.rs".into(),
            line: 97,
            function: "candle_mi::util::masks::create_causal_mask".into(),
        };
        assert_eq!(
            super::site(&Site { via: Some(via), ..site(14) })[0],
            "candle_mi::util::masks::create_causal_mask (candle-mi-0.2.2/src/util/masks.rs:97), \
             called from tests/mem.rs:14 (mem::step)"
        );
        let all = lines(&finding, Much::All);
        assert_eq!(all.len(), 5 + 5 * 3 + 1);
        assert!(!all.iter().any(|line| line.contains("more")), "{all:?}");
    }
}
