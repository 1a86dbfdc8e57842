//! Finds the folders of the toolchain with Rust's own shared libraries. The tests of a crate of
//! procedural macros are linked with them, and so is every test with `-C prefer-dynamic`. Cargo has
//! their folder in the search path of the tests that it starts.

use std::path::PathBuf;
use std::process::Command;

use crate::system::process::{self, ShortRun};

/// True for `libstd-0123456789abcdef.so` and `libtest-…`.
pub(super) fn is_own(library: &str) -> bool {
    let hash = ["libstd-", "libtest-"].iter().find_map(|name| library.strip_prefix(name));
    hash.is_some_and(|hash| hash.ends_with(".so"))
}

/// One for each target of the toolchain. The hash in the name of a library is another one for each
/// target and version, so that the library in a wrong folder is not taken.
pub(super) fn folders() -> Vec<PathBuf> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "sysroot"]);
    let answer = process::short(&rustc, ShortRun::TRUSTED).ok();
    let sysroot = answer.and_then(|answer| String::from_utf8(answer.stdout).ok());
    let Some(sysroot) = sysroot else { return Vec::new() };
    let targets = std::fs::read_dir(PathBuf::from(sysroot.trim()).join("lib/rustlib"));
    targets.into_iter().flatten().flatten().map(|target| target.path().join("lib")).collect()
}
