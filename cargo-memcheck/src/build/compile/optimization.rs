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

/// The crates that work while a body runs, or compute its values. The runtime is one only on a real
/// GPU (see `settings_beside`).
const COMPUTING: [&str; 4] = [LEDGER, "memcheck-kernels", "memcheck-sim", "rayon"];

/// The crates with which candle's CPU backend and the simulated device compute: products of matrices
/// and functions.
const ARITHMETIC: [&str; 3] = ["gemm-f32", "gemm-f64", "libm"];

/// The settings for a build of this workspace.
pub(super) fn settings(workspace: &Workspace, kind: DeviceKind) -> Vec<String> {
    let manifest = workspace.metadata().workspace_root.join("Cargo.toml");
    // cargo has read the manifest and reports what is wrong with it.
    let manifest = input::read_text(manifest.as_std_path(), input::SOURCE).unwrap_or_default();
    let manifest = manifest.parse().unwrap_or_default();
    // The graph is needed only if the profile optimizes everything.
    let only = if has_level(&manifest, "") { workspace.only_for_runtime() } else { Vec::new() };
    let specs = only.iter().map(|package| (package.name.as_str(), package.version.to_string()));
    let unoptimized = unoptimized(&manifest, kind, specs);
    // Without candle some are missing, and cargo warns about a setting for a missing package.
    let packages = &workspace.metadata().packages;
    let crates = ARITHMETIC.into_iter().filter(|&name| packages.iter().any(|it| it.name == name));
    let arithmetic = optimized_arithmetic(&manifest, kind, crates);
    settings_beside(&manifest, kind).into_iter().chain(arithmetic).chain(unoptimized).collect()
}

/// The level of the packages that only memcheck needs and that compute nothing while a body runs. The
/// level that a profile has for models would only make them take longer to compile.
fn unoptimized<'a>(
    manifest: &DocumentMut,
    kind: DeviceKind,
    only_for_runtime: impl Iterator<Item = (&'a str, String)>,
) -> Vec<String> {
    let computes = |name: &str| {
        COMPUTING.contains(&name)
            || ARITHMETIC.contains(&name)
            || name.starts_with("candle-")
            || name == RUNTIME && kind == DeviceKind::Cuda
    };
    let all = only_for_runtime.filter(|(name, _)| !computes(name) && !has_own(manifest, name));
    let settings = all.flat_map(|(name, version)| {
        let of = |profile| format!("profile.{profile}.package.\"{name}@{version}\".opt-level=0");
        PROFILES.map(of)
    });
    settings.collect()
}

/// The levels of those crates for arithmetic that have none in the manifest. A build for the CPU keeps
/// the levels of the program.
fn optimized_arithmetic<'a>(
    manifest: &DocumentMut,
    kind: DeviceKind,
    crates: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let applies = |name: &&str| kind == DeviceKind::Sim && !has_level(manifest, name);
    let of = |name| PROFILES.map(|it| format!("profile.{it}.package.{name}.opt-level=2"));
    crates.filter(applies).flat_map(of).collect()
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

/// True if a profile of the manifest says how far a package is optimized, by a level of its own or by
/// one for all packages.
fn has_level(manifest: &DocumentMut, package: &str) -> bool {
    PROFILES.iter().any(|profile| {
        let whole = table(manifest, profile).is_some_and(is_set);
        whole || ["*", package].into_iter().any(|name| is_set_for(manifest, profile, name))
    })
}

/// True if a profile of the manifest has a level of its own for a package.
fn has_own(manifest: &DocumentMut, package: &str) -> bool {
    PROFILES.iter().any(|profile| is_set_for(manifest, profile, package))
}

fn table<'a>(manifest: &'a DocumentMut, profile: &str) -> Option<&'a dyn TableLike> {
    manifest.get("profile")?.get(profile)?.as_table_like()
}

fn is_set_for(manifest: &DocumentMut, profile: &str, package: &str) -> bool {
    let packages = table(manifest, profile).and_then(|it| it.get("package"));
    let mut all = packages.and_then(|it| it.as_table_like()).into_iter().flat_map(|it| it.iter());
    // A key can have a version, such as `gemm-f32@0.19.0`.
    let names = |key: &str| key.split('@').next() == Some(package);
    all.any(|(key, own)| names(key) && own.as_table_like().is_some_and(is_set))
}

fn is_set(table: &dyn TableLike) -> bool {
    table.contains_key("opt-level")
}

#[cfg(test)]
mod tests {
    use super::{
        ARITHMETIC, DeviceKind, LEDGER, RUNTIME, optimized_arithmetic, settings_beside, unoptimized,
    };

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

    #[test]
    fn the_crates_for_arithmetic_are_optimized_where_they_compute_for_the_simulated_device() {
        let settings = |manifest: &str, kind| {
            optimized_arithmetic(&manifest.parse().unwrap(), kind, ARITHMETIC.into_iter())
        };
        let of = |name: &str| {
            ["dev", "test"].map(|it| format!("profile.{it}.package.{name}.opt-level=2"))
        };
        let [gemm, double, libm] = ARITHMETIC.map(of);
        let all = [&gemm[..], &double, &libm].concat();
        assert_eq!(settings("", DeviceKind::Sim), all);
        assert_eq!(settings("", DeviceKind::Cpu), [""; 0]);
        assert_eq!(settings("[profile.dev]\nopt-level = 1", DeviceKind::Sim), [""; 0]);
        for key in ["gemm-f32", "\"gemm-f32@0.19.0\""] {
            let own = format!("[profile.dev.package.{key}]\nopt-level = 3");
            assert_eq!(settings(&own, DeviceKind::Sim), [&double[..], &libm].concat());
        }
    }

    #[test]
    fn what_computes_nothing_in_a_body_is_not_optimized_because_models_are() {
        let only = ["memcheck-core", "toml", LEDGER, RUNTIME, "memcheck-sim", "candle-nn"];
        let settings_for = |manifest: &str, kind| {
            let only = only.iter().map(|name| (*name, "1.2.3".to_owned()));
            unoptimized(&manifest.parse().unwrap(), kind, only)
        };
        let settings = |manifest: &str| settings_for(manifest, DeviceKind::Cuda);
        let of = |profile: &str, name: &str| {
            format!("profile.{profile}.package.\"{name}@1.2.3\".opt-level=0")
        };
        let core = [of("dev", "memcheck-core"), of("test", "memcheck-core")];
        let toml = [of("dev", "toml"), of("test", "toml")];
        assert_eq!(settings("[profile.dev]\nopt-level = 1"), [core.clone(), toml].concat());
        let own = "[profile.dev]\nopt-level = 1\n[profile.dev.package.toml]\nopt-level = 2";
        assert_eq!(settings(own), core);
        let runtime = [of("dev", RUNTIME), of("test", RUNTIME)];
        for kind in [DeviceKind::Cpu, DeviceKind::Sim] {
            assert_eq!(settings_for(own, kind), [core.clone(), runtime.clone()].concat());
        }
    }
}
