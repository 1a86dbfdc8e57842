//! Prints the holders of the memory at the peak: first a list by kind, then a list of the largest
//! holders.

use memcheck_core::measurement::attribution::HolderKind;
use memcheck_core::presentation::profile::{HeldRow, Profile, Window, percent};
use memcheck_core::size::{Size, blocks, both, counted};

use super::style;
use crate::invocation::values::Verbosity;

const FEW: usize = 10;

pub(super) fn lines(profile: &Profile, verbosity: Verbosity) -> Vec<String> {
    if profile.peak_allocated == 0 {
        return Vec::new();
    }
    let verbose = verbosity == Verbosity::Verbose;
    let when = self::when(profile);
    let name = |kind| kind_name(profile.window, kind);
    let mut lines = vec![String::new(), style::strong(&format!("at the peak{when}"))];
    let share = |bytes| format!("{:>5.1} %", percent(bytes, profile.peak_allocated));
    for kind in &profile.kinds {
        lines.push(format!("  {}  {}: {}", share(kind.bytes), name(kind.kind), both(kind.bytes)));
    }
    let shown = if verbose { profile.holders.len() } else { profile.holders.len().min(FEW) };
    lines.push(String::new());
    lines.push(style::strong("largest holders"));
    for held in &profile.holders[..shown] {
        let HeldRow { label, site, kind, bytes, count, stack } = held;
        lines.push(format!(
            "  {}  {:>9}  {label}  {}",
            share(*bytes),
            Size(*bytes).to_string(),
            style::dim(&format!("{}, {}", blocks(*count), name(*kind)))
        ));
        lines.push(format!("{:21}{}", "", style::dim(site)));
        if verbose {
            let frames = stack.iter().map(|frame| format!("{:23}{}", "", style::dim(frame)));
            lines.extend(frames);
        }
    }
    if shown < profile.holders.len() {
        let rest = &profile.holders[shown..];
        let bytes: u64 = rest.iter().map(|held| held.bytes).sum();
        lines.push(format!(
            "  {}  {:>9}  {} with --verbose",
            share(bytes),
            Size(bytes).to_string(),
            counted(rest.len() as u64, "more holder", "more holders")
        ));
    }
    lines
}

/// A suffix for "at the peak", empty if the profile has no iterations.
pub(in crate::presentation::presenters) fn when(profile: &Profile) -> String {
    match (profile.window, profile.timeline.peak_iteration) {
        (Window::Whole, _) => String::new(),
        (Window::Iteration(_), 0) => ", in the set-up".to_owned(),
        (Window::Iteration(_), iteration) => format!(", in iteration {iteration}"),
    }
}

/// Without iterations `Setup` also contains activations, because there is no phase before the
/// iterations.
pub(in crate::presentation::presenters) fn kind_name(
    window: Window,
    kind: HolderKind,
) -> &'static str {
    match (window, kind) {
        (Window::Whole, HolderKind::Setup) => "weights and activations",
        _ => kind.name(),
    }
}
