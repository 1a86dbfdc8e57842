//! Optimizes memcheck's own crates in a build of tests, as settings for `cargo --config`.

use memcheck_core::input;
use memcheck_core::measurement::cargo_lock::RUNTIME;
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
    let manifest = input::read_text(manifest.as_std_path(), input::SOURCE).unwrap_or_default();
    settings_beside(&manifest.parse().unwrap_or_default(), kind)
}

fn settings_beside(manifest: &DocumentMut, kind: DeviceKind) -> Vec<String> {
    let packages = [
        // Runs inside every allocation. Without optimization, counting takes as long as a small model.
        (LEDGER, &["opt-level=2"][..], !has_level(manifest, LEDGER)),
        // A real GPU waits for candle's unoptimized code, so that it would wait for the probes in
        // front of the driver too. On other devices this costs more time than it saves.
        (RUNTIME, &["opt-level=1"], kind == DeviceKind::Cuda && !has_level(manifest, RUNTIME)),
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

/// True if a profile of the manifest says how far a package is optimized.
fn has_level(manifest: &DocumentMut, package: &str) -> bool {
    let is_set = |table: &dyn TableLike| table.contains_key("opt-level");
    PROFILES.iter().any(|profile| {
        let profile = manifest.get("profile").and_then(|profiles| profiles.get(profile));
        let of = |name| profile?.get("package")?.get(name)?.as_table_like();
        let tables = [profile.and_then(|it| it.as_table_like()), of("*"), of(package)];
        tables.into_iter().flatten().any(is_set)
    })
}

#[cfg(test)]
mod tests {
    use super::{DeviceKind, LEDGER, RUNTIME, settings_beside};

    #[test]
    fn a_level_in_the_manifest_is_kept() {
        for (manifest, kept) in [
            ("", &[][..]),
            ("[profile.dev]\ndebug = 1", &[]),
            ("[profile.release]\nopt-level = 3", &[]),
            ("[profile.dev.package.candle-core]\nopt-level = 2", &[]),
            ("[profile.dev]\nopt-level = 3", &[LEDGER, RUNTIME]),
            ("[profile.test]\nopt-level = 1", &[LEDGER, RUNTIME]),
            ("[profile.dev.package.\"*\"]\nopt-level = 2", &[LEDGER, RUNTIME]),
            ("[profile.dev.package]\nmemcheck-ledger = { opt-level = 0 }", &[LEDGER]),
            ("[profile.dev.package.memcheck-runtime]\nopt-level = 0", &[RUNTIME]),
        ] {
            let parsed = manifest.parse().unwrap();
            let expected = |levels: &[(&str, u8)]| -> Vec<String> {
                let levels = levels.iter().filter(|(package, _)| !kept.contains(package));
                let setting = |profile, (package, level): &(&str, u8)| {
                    format!("profile.{profile}.package.{package}.opt-level={level}")
                };
                let of = |profile| levels.clone().map(move |level| setting(profile, level));
                of("dev").chain(of("test")).collect()
            };
            let on_cpu = settings_beside(&parsed, DeviceKind::Cpu);
            assert_eq!(on_cpu, expected(&[(LEDGER, 2)]), "{manifest}");
            let on_gpu = settings_beside(&parsed, DeviceKind::Cuda);
            assert_eq!(on_gpu, expected(&[(LEDGER, 2), (RUNTIME, 1)]), "{manifest}");
        }
    }
}
