//! Optimizes memcheck's own crates in a build of tests, as settings for `cargo --config`.

use toml_edit::{DocumentMut, TableLike};

use crate::build::leg::DeviceKind;
use crate::build::workspace::Workspace;

/// The profiles in which cargo builds tests and examples.
const PROFILES: [&str; 2] = ["dev", "test"];

/// The crate that counts.
const LEDGER: &str = "memcheck-ledger";

/// The settings for a build of this workspace.
pub(super) fn settings(workspace: &Workspace, kind: DeviceKind) -> Vec<String> {
    let manifest = workspace.metadata().workspace_root.join("Cargo.toml");
    // cargo has read the manifest and reports what is wrong with it.
    let manifest = std::fs::read_to_string(manifest).unwrap_or_default();
    settings_beside(&manifest.parse().unwrap_or_default(), kind)
}

fn settings_beside(manifest: &DocumentMut, kind: DeviceKind) -> Vec<String> {
    let packages = [
        // Runs inside every allocation. Without optimization, counting takes as long as a small model.
        (LEDGER, &["opt-level=2"][..], !has_level(manifest)),
        // The simulated device computes values. Without optimization a training step takes many
        // times as long. Line tables would make the optimized build slower.
        ("memcheck-kernels", &["opt-level=2", "debug=false"], kind == DeviceKind::Sim),
        ("memcheck-sim", &["opt-level=2", "debug=false"], kind == DeviceKind::Sim),
    ];
    let mut all = Vec::new();
    for profile in PROFILES {
        for (package, settings, _) in packages.iter().filter(|(.., applies)| *applies) {
            let setting = |setting| format!("profile.{profile}.package.{package}.{setting}");
            all.extend(settings.iter().map(setting));
        }
    }
    all
}

/// True if a profile of the manifest says how far [`LEDGER`] is optimized.
fn has_level(manifest: &DocumentMut) -> bool {
    let is_set = |table: &dyn TableLike| table.contains_key("opt-level");
    PROFILES.iter().any(|profile| {
        let profile = manifest.get("profile").and_then(|profiles| profiles.get(profile));
        let package = |name| profile?.get("package")?.get(name)?.as_table_like();
        let tables = [profile.and_then(|it| it.as_table_like()), package("*"), package(LEDGER)];
        tables.into_iter().flatten().any(is_set)
    })
}

#[cfg(test)]
mod tests {
    use super::{DeviceKind, settings_beside};

    #[test]
    fn a_level_in_the_manifest_is_kept() {
        for (manifest, is_set) in [
            ("", false),
            ("[profile.dev]\ndebug = 1", false),
            ("[profile.release]\nopt-level = 3", false),
            ("[profile.dev.package.candle-core]\nopt-level = 2", false),
            ("[profile.dev]\nopt-level = 3", true),
            ("[profile.test]\nopt-level = 1", true),
            ("[profile.dev.package.\"*\"]\nopt-level = 2", true),
            ("[profile.dev.package]\nmemcheck-ledger = { opt-level = 0 }", true),
        ] {
            let settings = settings_beside(&manifest.parse().unwrap(), DeviceKind::Cpu);
            let expected = ["dev", "test"]
                .map(|profile| format!("profile.{profile}.package.memcheck-ledger.opt-level=2"));
            assert_eq!(settings, if is_set { &[][..] } else { &expected[..] }, "{manifest}");
        }
    }
}
