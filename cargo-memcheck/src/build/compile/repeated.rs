//! Warnings of build scripts that cargo prints again although the scripts did not run. It does so in
//! each build for packages in a folder. A user can read those of the members of the workspace there,
//! because they are the user's own; those of others, such as a candle in a folder, are printed when
//! the package is built.

use std::collections::BTreeSet;

use cargo_metadata::Package;

/// The status of cargo before it compiles a target of a package, or runs its build script.
pub(super) const COMPILING: &str = "Compiling";

/// The packages whose warnings are shown, as `name@version`.
#[derive(Debug, Default)]
pub(super) struct Shown(BTreeSet<String>);

impl Shown {
    pub(super) fn new(members: &[&Package]) -> Self {
        Self(members.iter().map(|it| format!("{}@{}", it.name, it.version)).collect())
    }

    /// Reads a line of cargo, without colors. The lines must come in cargo's order.
    pub(super) fn read(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        if words.next() == Some(COMPILING)
            && let (Some(name), Some(version)) = (words.next(), words.next())
        {
            self.0.insert(format!("{name}@{}", version.trim_start_matches('v')));
        }
    }

    /// True for a warning of a build script that did not run in this build.
    pub(super) fn is_repeated(&self, line: &str) -> bool {
        package(line).is_some_and(|package| !self.0.contains(package))
    }
}

/// Parses `warning: candle-kernels@0.11.1: text` into the package.
fn package(line: &str) -> Option<&str> {
    let (package, _) = line.strip_prefix("warning: ")?.split_once(": ")?;
    let (name, version) = package.split_once('@')?;
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let is_package = name.chars().all(is_name)
        && version.starts_with(|digit: char| digit.is_ascii_digit())
        && !version.contains(char::is_whitespace);
    is_package.then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: &str = "warning: candle-kernels@0.11.1: nvcc is old";

    #[test]
    fn a_warning_is_shown_once_the_package_is_built() {
        let mut shown = Shown::default();
        assert!(shown.is_repeated(WARNING));
        for other in ["   Compiling candle-kernels v0.11.0", "   Compiling candle v0.11.1", "Fresh"]
        {
            shown.read(other);
            assert!(shown.is_repeated(WARNING), "{other}");
        }
        shown.read("   Compiling candle-kernels v0.11.1 (/ws/candle-kernels)");
        assert!(!shown.is_repeated(WARNING));
    }

    #[test]
    fn only_a_warning_of_a_build_script_can_be_repeated() {
        let shown = Shown::default();
        for line in [
            "warning: unused variable: `x`",
            "warning: `app` (lib) generated 1 warning",
            "warning: mail me@0x: text",
            "warning: patch `x@1.0.0` was not used",
            "error: candle-kernels@0.11.1: nvcc is missing",
            "  warning: candle-kernels@0.11.1: indented",
        ] {
            assert!(!shown.is_repeated(line), "{line}");
        }
    }
}
