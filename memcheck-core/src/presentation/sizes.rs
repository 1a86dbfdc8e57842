//! Two sizes next to each other, and the share of a change, as people can compare them.

use crate::size::{Size, exact};

/// Both as binary sizes, or in bytes if two figures that differ would be shown as the same size: 1,048,580 B
/// is above 1,048,576 B, and `1.00 MiB (limit 1.00 MiB)` hides that.
pub fn apart(one: u64, other: u64) -> [String; 2] {
    let sizes = [one, other].map(|bytes| Size(bytes).to_string());
    match one != other && sizes[0] == sizes[1] {
        true => [one, other].map(|bytes| format!("{} B", exact(bytes))),
        false => sizes,
    }
}

/// `+33.3%`; `None` if the change has no share, from 0, or none that one decimal shows.
pub fn share(then: u64, now: u64) -> Option<String> {
    let sign = if now < then { '-' } else { '+' };
    let percent = now.abs_diff(then) as f64 * 100.0 / then as f64;
    let text = format!("{percent:.1}");
    (then > 0 && text != "0.0").then(|| format!("{sign}{text}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_differ_are_never_shown_as_equal() {
        assert_eq!(apart(1_048_580, 1_048_576), ["1,048,580 B", "1,048,576 B"]);
        assert_eq!(apart(1_048_576, 1_048_576), ["1.00 MiB", "1.00 MiB"]);
        assert_eq!(apart(3 << 20, 1 << 20), ["3.00 MiB", "1.00 MiB"]);
        assert_eq!(apart(5, 0), ["5 B", "0 B"]);
    }

    #[test]
    fn a_change_from_nothing_has_no_share() {
        assert_eq!(share(0, 8), None);
        assert_eq!(share(8, 8), None);
        assert_eq!(share(1 << 20, (1 << 20) + 4), None, "it would be +0.0%");
        assert_eq!(share(3_000, 4_000).as_deref(), Some("+33.3%"));
        assert_eq!(share(2_048, 1_024).as_deref(), Some("-50.0%"));
    }
}
