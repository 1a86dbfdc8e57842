//! Writes a package of a project's shape, before it adds memcheck.

use std::process::Command;

use crate::fixture::{Project, cargo, share_build};
use crate::lock_files;

use super::repository::Repository;
use super::rows::{Asked, CandleOrigin, OwnFeature, OwnKernels, Shape};

const MODEL: &str = include_str!("template/model.rs");
const TESTS: &str = include_str!("template/mem.rs");
const KERNEL_TEST: &str = include_str!("template/ptx.rs");
const LAUNCHER_TEST: &str = include_str!("template/launchers.rs");
const LAUNCH: &str = include_str!("template/launch.rs");
const LAUNCH_0_13: &str = include_str!("template/launch_cudarc_0_13.rs");
const KERNEL: &str = include_str!("template/kernels.cu");
const LAUNCHER: &str = include_str!("template/launchers.cu");
const PTX: &str = include_str!("template/kernels.ptx");
const BUILD_PTX: &str = include_str!("template/build_ptx.rs");
const BUILD_LIB: &str = include_str!("template/build_lib.rs");
const DECLARATION: &str = "
unsafe extern \"C\" {
    pub fn launch_halve(count: usize, out: u64, stream: *mut std::ffi::c_void);
}
";
/// The allocator of a library, which its unit tests use.
const ALLOCATOR: &str = include_str!("template/allocator.rs");
const CUDAFORGE: &str = "let builder = cudaforge::KernelBuilder::new().source_dir(\"src\");
        builder.build_lib(out.join(\"libkernels.a\")).unwrap();";
const BINDGEN_CUDA: &str =
    "bindgen_cuda::Builder::default().build_lib(out.join(\"libkernels.a\"));";

/// Toolchains that stand for the pinned ones, because a machine has few: the newest one that is not
/// newer than the pin.
const TOOLCHAINS: [(&str, u32); 2] = [("1.91", 91), ("1.88", 88)];
/// The minor version of the Rust that this repository requires.
const OWN: u32 = 95;

/// The toolchain in the place of a pinned one, or none if that is newer than all of them.
pub(super) fn toolchain(shape: &Shape) -> Option<&'static str> {
    let Asked::Pin(version) = shape.asked else { return None };
    let minor: u32 = version.split('.').nth(1)?.parse().ok()?;
    if minor > OWN {
        return None;
    }
    TOOLCHAINS.iter().find(|(_, known)| *known <= minor).map(|(name, _)| *name)
}

/// Lets a package choose its toolchain, as a shell does.
pub(super) fn choose_toolchain(shape: &Shape, command: &mut Command) {
    if toolchain(shape).is_some() {
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    }
}

/// Cargo in the package, as its users call it.
pub(super) fn cargo_of(shape: &Shape, project: &Project) -> Command {
    let mut command = match toolchain(shape) {
        Some(_) => Command::new("cargo"),
        None => cargo(),
    };
    command.current_dir(project.path()).env_remove("RUSTC_BOOTSTRAP");
    choose_toolchain(shape, &mut command);
    share_build(&mut command);
    command
}

/// The repositories of a package that has candle from git.
fn repositories(shape: &Shape) -> Vec<Repository> {
    if shape.origin == CandleOrigin::Registry {
        return Vec::new();
    }
    let version = shape.published;
    let mut crates = vec!["candle-core", "candle-nn", "candle-kernels"];
    if shape.has("flash-attn") {
        crates.push("candle-flash-attn");
    }
    let crates: Vec<(&str, &str)> = crates.into_iter().map(|krate| (krate, version)).collect();
    let mut all = vec![Repository::new(&format!("candle-{version}"), &crates)];
    if shape.origin == CandleOrigin::Patch {
        all.push(Repository::new("cudarc-0.13.9", &[("cudarc", "0.13.9")]));
    }
    all
}

fn dependency(shape: &Shape, krate: &str, repositories: &[Repository]) -> String {
    let mut keys = vec![format!("version = \"{}\"", shape.requirement)];
    if shape.origin == CandleOrigin::Git {
        keys.push(repositories[0].keys());
    }
    if shape.has("optional") || krate == "candle-flash-attn" {
        keys.push("optional = true".to_owned());
    }
    if shape.feature == OwnFeature::Always {
        keys.push("features = [\"cuda\"]".to_owned());
    }
    let name = if krate == "candle-core" { shape.candle() } else { krate };
    if name != krate {
        keys.push(format!("package = \"{krate}\""));
    }
    format!("{name} = {{ {} }}\n", keys.join(", "))
}

/// The table of features.
fn features(shape: &Shape) -> String {
    let mut lines = String::new();
    if shape.has("optional") {
        lines.push_str(&format!("local = [\"dep:{}\", \"dep:candle-nn\"]\n", shape.candle()));
    }
    let (OwnFeature::Named(name) | OwnFeature::Default(name)) = shape.feature else {
        return lines;
    };
    if matches!(shape.feature, OwnFeature::Default(_)) {
        lines.push_str(&format!("default = [\"{name}\"]\n"));
    }
    let mut enables = vec![format!("{}/cuda", shape.candle()), "candle-nn/cuda".to_owned()];
    if shape.has("optional") {
        enables.insert(0, "local".to_owned());
    }
    match shape.kernels {
        OwnKernels::Launchers { in_dependency: true, .. } => enables.push("dep:kernels".to_owned()),
        OwnKernels::Launchers { by, .. } => enables.push(format!("dep:{by}")),
        OwnKernels::BuiltPtx => enables.push("dep:bindgen_cuda".to_owned()),
        OwnKernels::None | OwnKernels::Ptx => {}
    }
    lines.push_str(&format!("{name} = {enables:?}\n"));
    if shape.has("flash-attn") {
        lines.push_str(&format!("flash-attn = [\"{name}\", \"dep:candle-flash-attn\"]\n"));
    }
    lines
}

/// The version of a crate that compiles CUDA sources.
fn builder(name: &str) -> String {
    let optional = "optional = true";
    format!("{name} = {{ version = \"0.1.6\", {optional} }}\n")
}

/// Cargo keeps the versions that the lock file has for other members of the workspace.
fn has_other_member(shape: &Shape) -> bool {
    shape.insta().is_some_and(|insta| !insta.starts_with('='))
}

fn manifest(shape: &Shape, project: &Project) -> String {
    let repositories = repositories(shape);
    let name = project.name();
    let mut text = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"{}\"\n",
        shape.edition
    );
    if let Asked::AtLeast(version) = shape.asked {
        text.push_str(&format!("rust-version = \"{version}\"\n"));
    }
    text.push_str(&format!("\n[workspace]\n\n[features]\n{}", features(shape)));
    if has_other_member(shape) {
        text = text.replace("[workspace]\n", "[workspace]\nmembers = [\"other\"]\n");
    }
    text.push_str("\n[dependencies]\nanyhow = \"1\"\n");
    text.push_str(&dependency(shape, "candle-core", &repositories));
    text.push_str(&dependency(shape, "candle-nn", &repositories));
    if shape.has("flash-attn") {
        text.push_str(&dependency(shape, "candle-flash-attn", &repositories));
    }
    let old = shape.old.iter().filter(|(krate, _)| *krate != "insta");
    for (krate, version) in old {
        let minor = version.rsplit_once('.').map_or(*version, |(minor, _)| minor);
        let alias = format!("{krate}-{}", minor.replace('.', "-"));
        text.push_str(&format!("{alias} = {{ package = \"{krate}\", version = \"{minor}\" }}\n"));
    }
    match shape.kernels {
        OwnKernels::Launchers { in_dependency: true, .. } => {
            text.push_str("kernels = { path = \"kernels\", optional = true }\n");
        }
        OwnKernels::Launchers { by, .. } if shape.feature == OwnFeature::Always => {
            text.push_str(&format!("\n[build-dependencies]\n{by} = \"0.1.6\"\n"));
        }
        OwnKernels::Launchers { by, .. } => {
            text.push_str(&format!("\n[build-dependencies]\n{}", builder(by)));
        }
        OwnKernels::BuiltPtx => {
            text.push_str(&format!("\n[build-dependencies]\n{}", builder("bindgen_cuda")));
        }
        OwnKernels::None | OwnKernels::Ptx => {}
    }
    if let Some(insta) = shape.insta().filter(|insta| insta.starts_with('=')) {
        text.push_str(&format!("\n[dev-dependencies]\ninsta = \"{insta}\"\n"));
    }
    if shape.origin == CandleOrigin::Patch {
        let [candle, cudarc] = &repositories[..] else { panic!("two repositories") };
        text.push_str("\n[patch.crates-io]\n");
        for krate in ["candle-core", "candle-nn", "candle-kernels"] {
            text.push_str(&format!("{krate} = {{ {} }}\n", candle.keys()));
        }
        text.push_str(&format!("cudarc = {{ {} }}\n", cudarc.keys()));
    }
    text.push_str(
        "\n[profile.dev]\ndebug = \"line-tables-only\"\n\n\
         [profile.dev.package.\"*\"]\ndebug = false\n",
    );
    text
}

/// Replaces the words in capitals of a template.
fn fill(shape: &Shape, project: &Project, template: &str) -> String {
    let launch = if shape.requirement.starts_with("0.8") { LAUNCH_0_13 } else { LAUNCH };
    let device = match shape.has_types() {
        true => "trial.device().clone()".to_owned(),
        // In a build with CUDA for the CPU there is no GPU.
        false => "CANDLE::Device::new_cuda(0).unwrap_or(CANDLE::Device::Cpu)".to_owned(),
    };
    let builder = match shape.kernels {
        OwnKernels::Launchers { by: "cudaforge", .. } => CUDAFORGE,
        _ => BINDGEN_CUDA,
    };
    let package = match shape.has("allocator") {
        true => "crate".to_owned(),
        false => project.name().replace('-', "_"),
    };
    let launchers = match shape.kernels {
        OwnKernels::Launchers { in_dependency: true, .. } => "kernels".to_owned(),
        _ => package.clone(),
    };
    template
        .replace("LAUNCH\n", launch)
        .replace("PACKAGE::launch_halve", &format!("{launchers}::launch_halve"))
        .replace("PACKAGE", &package)
        .replace("BUILD\n", &format!("{builder}\n"))
        .replace("&DEVICE", &format!("&{device}"))
        .replace("DEVICE", &device)
        .replace("CANDLE", &shape.candle().replace('-', "_"))
        .replace("OWN_FEATURE", &shape.condition())
}

/// Writes the kernels of the package, and returns the lines of `src/lib.rs` for them.
fn write_kernels(shape: &Shape, project: &Project) -> String {
    let filled = |template: &str| fill(shape, project, template);
    match shape.kernels {
        OwnKernels::None => String::new(),
        OwnKernels::Ptx => {
            project.write("kernels/kernels.ptx", PTX);
            "pub const KERNELS: &str = include_str!(\"../kernels/kernels.ptx\");\n".to_owned()
        }
        OwnKernels::BuiltPtx => {
            project.write("src/kernels.cu", KERNEL);
            project.write("build.rs", &filled(BUILD_PTX));
            let include = "mod ptx {\n    include!(concat!(env!(\"OUT_DIR\"), \"/ptx.rs\"));\n}\n\
                           #[cfg(OWN_FEATURE)]\npub use ptx::KERNELS;\n";
            filled(&format!("#[cfg(OWN_FEATURE)]\n{include}"))
        }
        OwnKernels::Launchers { by, in_dependency: true } => {
            project.write("kernels/src/kernels.cu", &format!("{KERNEL}{LAUNCHER}"));
            let always = filled(BUILD_LIB).replace(&shape.condition(), "all()");
            project.write("kernels/build.rs", &always);
            project.write("kernels/src/lib.rs", DECLARATION);
            project.write(
                "kernels/Cargo.toml",
                &format!(
                    "[package]\nname = \"kernels\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
                     [build-dependencies]\n{by} = \"0.1.6\"\n"
                ),
            );
            String::new()
        }
        OwnKernels::Launchers { .. } => {
            project.write("src/kernels.cu", &format!("{KERNEL}{LAUNCHER}"));
            project.write("build.rs", &filled(BUILD_LIB));
            DECLARATION.to_owned()
        }
    }
}

/// Writes the files of a package, and the lock file of its project.
pub(super) fn write(shape: &Shape, project: &Project) {
    project.write("Cargo.toml", &manifest(shape, project));
    if let Some(toolchain) = toolchain(shape) {
        let text = format!("[toolchain]\nchannel = \"{toolchain}\"\nprofile = \"minimal\"\n");
        project.write("rust-toolchain.toml", &text);
    }
    if has_other_member(shape) {
        project.write("other/src/lib.rs", "");
        project.write(
            "other/Cargo.toml",
            "[package]\nname = \"other\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
             [dev-dependencies]\ninsta = \"1.40\"\n",
        );
    }
    let filled = |template: &str| fill(shape, project, template);
    let mut library = String::new();
    let mut tests = filled(TESTS);
    if shape.has("optional") {
        library.push_str("#![cfg(feature = \"local\")]\n");
        tests.insert_str(0, "#![cfg(feature = \"local\")]\n");
    }
    library.push_str(&filled(MODEL));
    library.push_str(&write_kernels(shape, project));
    match shape.kernels {
        OwnKernels::None => {}
        OwnKernels::Ptx | OwnKernels::BuiltPtx => tests.push_str(&filled(KERNEL_TEST)),
        OwnKernels::Launchers { .. } => tests.push_str(&filled(LAUNCHER_TEST)),
    }
    match shape.has("allocator") {
        true => {
            library.push_str(&format!("\n{ALLOCATOR}\n#[cfg(test)]\nmod mem;\n"));
            project.write("src/mem.rs", &tests);
        }
        false => project.write("tests/mem.rs", &tests),
    }
    project.write("src/lib.rs", &library);
    lock(shape, project);
}

fn update(shape: &Shape, project: &Project, arguments: &[&str]) {
    let mut command = cargo_of(shape, project);
    command.args(["update", "--quiet"]).args(arguments);
    let output = command.output().expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo update {arguments:?}: {stderr}");
}

/// Locks the package at the versions of the project.
fn lock(shape: &Shape, project: &Project) {
    let Some(version) = shape.locked else {
        std::fs::remove_file(project.path().join("Cargo.lock")).expect("no lock file");
        return;
    };
    project.copy_lock_file();
    // The lock file of this workspace has the crates of memcheck too, which cargo removes here.
    update(shape, project, &["--workspace"]);
    let candle = ["candle-flash-attn", "candle-nn", "candle-core", "candle-kernels"];
    let candle = candle.map(|krate| (krate, version));
    let old = shape.old.iter().map(|(krate, version)| (*krate, version.trim_start_matches('=')));
    for (krate, version) in candle.into_iter().chain(old) {
        let series = |version: &str| {
            let mut numbers = version.split('.');
            let major = numbers.next().map(str::to_owned);
            (
                major.clone(),
                numbers.next().filter(|_| major.as_deref() == Some("0")).map(str::to_owned),
            )
        };
        let all = lock_files::versions(&project.read("Cargo.lock"), krate);
        for other in all.iter().filter(|other| *other != version) {
            if series(other) == series(version) {
                let spec = format!("{krate}@{other}");
                update(shape, project, &["--package", &spec, "--precise", version]);
            }
        }
        let all = lock_files::versions(&project.read("Cargo.lock"), krate);
        let is_locked = all.is_empty() || all.contains(version);
        assert!(is_locked, "{}: {krate} has {all:?}", shape.project);
    }
}
