//! Prints the survivors of the measured iterations with their patterns, and the cause if a rule
//! recognizes one.

use memcheck_core::growth::survivors::theil_sen;
use memcheck_core::judgement::diagnosis::Cause;
use memcheck_core::presentation::profile::{GrowthProfile, Profile, Survivor};
use memcheck_core::size::{Size, blocks, both, counted};

use super::style;
use super::timeline::sparkline;
use crate::invocation::values::Verbosity;

const FEW: usize = 5;

/// None if the profile has no iterations.
pub(super) fn lines(profile: &Profile, verbosity: Verbosity) -> Vec<String> {
    let Some(growth) = &profile.growth else { return Vec::new() };
    let GrowthProfile { iterations: _, bytes_per_iteration, allocated, cause, survivors } = growth;
    let title = self::title(growth);
    let title = if *bytes_per_iteration > 0 { style::error(&title) } else { style::strong(&title) };
    let mut lines = vec![String::new(), title];
    lines.extend(self::trend(allocated));
    let shown = match verbosity {
        Verbosity::Verbose => survivors.len(),
        _ => survivors.len().min(FEW),
    };
    lines.extend(survivors[..shown].iter().flat_map(survivor));
    if shown < survivors.len() {
        let hidden = survivors.len() - shown;
        let sites = if hidden == 1 { "call site" } else { "call sites" };
        lines.push(format!("  … {hidden} more {sites} with --verbose"));
    }
    lines.extend(cause.iter().flat_map(|cause| self::cause("cause", cause, 2)));
    lines
}

pub(in crate::presentation::presenters) fn title(growth: &GrowthProfile) -> String {
    let GrowthProfile { iterations, bytes_per_iteration, allocated: _, cause: _, survivors } =
        growth;
    let counted_iterations = counted(u64::from(*iterations), "iteration", "iterations");
    match (bytes_per_iteration, survivors.len()) {
        (0, 0) => format!("no growth: no block survives {counted_iterations}"),
        (0, _) => format!("no growth over {counted_iterations}"),
        (rate, _) => {
            format!("growth: {} per iteration, over {counted_iterations}", both(*rate))
        }
    }
}

/// `None` for a single iteration.
fn trend(allocated: &[u64]) -> Option<String> {
    let slope = theil_sen(allocated)?;
    let (first, last) = (allocated.first()?, allocated.last()?);
    Some(format!(
        "  live bytes {} {} to {}, trend {} per iteration",
        sparkline(allocated),
        Size(*first),
        Size(*last),
        signed(slope)
    ))
}

/// A slope is a fraction of bytes.
fn signed(bytes: f64) -> String {
    let size = Size(bytes.abs().round() as u64);
    match (size.0, bytes.is_sign_negative()) {
        (0, _) => size.to_string(),
        (_, true) => format!("-{size}"),
        (_, false) => format!("+{size}"),
    }
}

fn survivor(survivor: &Survivor) -> Vec<String> {
    let Survivor { label, site, note, bytes, count, remark, .. } = survivor;
    let mut lines = vec![
        format!("  {label}  {}", style::dim(site)),
        format!("    {}, {}: {note}", blocks(*count), Size(*bytes)),
    ];
    lines.extend(remark.iter().flat_map(|remark| cause("note", remark, 4)));
    lines
}

fn cause(word: &str, cause: &Cause, indent: usize) -> Vec<String> {
    let Cause { code, title, evidence, remedy } = cause;
    vec![
        format!("{:indent$}{word}: {title} ({code})", ""),
        format!("{:indent$}  evidence: {evidence}", ""),
        format!("{:indent$}  remedy: {remedy}", ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_has_a_sparkline_and_a_slope() {
        let rising: Vec<u64> = (0..8).map(|at| (1 << 20) + at * 4096).collect();
        let line = "  live bytes ▁▂▃▄▅▆▇█ 1.00 MiB to 1.00 MiB, trend +4.00 KiB per iteration";
        assert_eq!(trend(&rising).as_deref(), Some(line));
        let even = "  live bytes ▁▁▁ 64.0 KiB to 64.0 KiB, trend 0 B per iteration";
        assert_eq!(trend(&[65_536; 3]).as_deref(), Some(even));
        let falling = trend(&[65_536, 65_000, 64_464]).unwrap();
        assert!(falling.ends_with(", trend -536 B per iteration"), "{falling}");
        assert_eq!(trend(&[65_536]), None);
    }

    #[test]
    fn growth_names_the_iterations_that_show_it() {
        let mut growth = GrowthProfile {
            iterations: 10,
            bytes_per_iteration: 8,
            allocated: Vec::new(),
            cause: None,
            survivors: Vec::new(),
        };
        assert_eq!(title(&growth), "growth: 8 B per iteration, over 10 iterations");
        growth.bytes_per_iteration = 0;
        assert_eq!(title(&growth), "no growth: no block survives 10 iterations");
    }
}
