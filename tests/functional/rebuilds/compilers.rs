//! The programs and flags that compile a package decide whether its test leaks. Cargo compiles all
//! packages again for some of them, so that these tests have a target directory of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::inputs::{PRELUDE, RUNTIME};
use crate::fixture::{Project, memcheck_with, target};

const TESTS: &str = "
unsafe extern \"C\" {
    safe fn linked_leak() -> i32;
}
#[mem_test(max_growth = \"0 B\", baseline = false)]
fn depends_on_the_compiler(trial: &mut Trial) -> candle_core::Result<()> {
    let (device, mut kept) = (trial.device().clone(), Vec::new());
    trial.iterate(|_| {
        let tensor = Tensor::zeros(1024, DType::F32, &device)?;
        if cfg!(leaky) || linked_leak() == 1 {
            kept.push(tensor);
        }
        Ok(())
    })
}
";

/// A package outside of the shared build directory, in which other tests would otherwise find
/// artifacts of these compilers.
struct Compiled {
    project: Project,
    target: PathBuf,
}

impl Compiled {
    fn new(name: &str) -> Self {
        let project = Project::package(name, RUNTIME);
        project.write("tests/mem.rs", &format!("{PRELUDE}{TESTS}"));
        for (name, leaks) in [("clean", 0), ("leaky", 1)] {
            project.write(
                &format!("{name}.c"),
                &format!("int linked_leak(void) {{ return {leaks}; }}\n"),
            );
            let status = Command::new("cc")
                .args(["-c", &format!("{name}.c")])
                .current_dir(project.path())
                .status();
            assert!(status.is_ok_and(|status| status.success()), "{name}.c does not compile");
        }
        let compiled = Self { project, target: target().join("functional/compilers") };
        compiled.link_with("linker", "clean");
        compiled
    }

    fn script(&self, name: &str, text: &str) -> String {
        self.project.write(name, &format!("#!/bin/sh\n{text}\n"));
        let path = self.project.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is executable");
        path.display().to_string()
    }

    /// A linker that adds the object file `object`.
    fn link_with(&self, name: &str, object: &str) -> String {
        let object = self.project.path().join(object).with_extension("o");
        self.script(name, &format!("exec cc \"$@\" \"{}\"", object.display()))
    }

    #[track_caller]
    fn assert_verdict(&self, variables: &[(&str, &str)], leaks: bool) {
        self.assert_verdict_of(&["run"], variables, leaks);
    }

    /// On the CPU and on the simulated device.
    #[track_caller]
    fn assert_verdict_of(&self, first: &[&str], variables: &[(&str, &str)], leaks: bool) {
        let rest = "--device cpu --device sim --no-ci --max-iterations 10 --message-format json";
        let rest: Vec<&str> = rest.split(' ').collect();
        let target = self.target.display().to_string();
        let linker = self.project.path().join("linker").display().to_string();
        let own = [
            ("CARGO_TARGET_DIR", target.as_str()),
            ("CARGO_BUILD_BUILD_DIR", &target),
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", &linker),
        ];
        let run = memcheck_with(
            self.project.path(),
            &[first, &rest].concat(),
            &[&own, variables].concat(),
        );
        let run = run.exits(if leaks { 100 } else { 0 });
        let status = if leaks { "failed" } else { "passed" };
        let lines = run.json();
        let ended: Vec<_> = lines.iter().filter(|line| line["type"] == "test-finished").collect();
        assert_eq!(ended.len(), 2, "{}", run.stderr);
        assert!(ended.iter().all(|line| line["status"] == status), "{}", run.stderr);
    }
}

#[test]
#[ignore = "compiles candle: just rebuilds"]
fn another_compiler_or_wrapper_is_measured() {
    let compiled = Compiled::new("another_compiler");
    let leaky = compiled.script("leaky", "exec \"$@\" --cfg leaky");
    let compiler = compiled.script("compiler", "exec rustc \"$@\" --cfg leaky");
    compiled.assert_verdict(&[], false);
    for variable in ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        compiled.assert_verdict(&[(variable, &leaky)], true);
        compiled.assert_verdict(&[], false);
    }
    for variable in ["RUSTC", "CARGO_BUILD_RUSTC"] {
        compiled.assert_verdict(&[(variable, &compiler)], true);
        compiled.assert_verdict(&[], false);
    }
    // The same name, and another program.
    for (text, leaks) in
        [("exec \"$@\"", false), ("exec \"$@\" --cfg leaky", true), ("exec \"$@\"", false)]
    {
        let wrapper = compiled.script("changing", text);
        compiled.assert_verdict(&[("RUSTC_WRAPPER", &wrapper)], leaks);
    }
    compiled
        .project
        .write(".cargo/config.toml", &format!("[build]\nrustc-wrapper = \"{leaky}\"\n"));
    compiled.assert_verdict(&[], true);
    compiled.project.write(".cargo/config.toml", "");
    compiled.assert_verdict(&[], false);
    let flag = format!("build.rustc-wrapper=\"{leaky}\"");
    compiled.assert_verdict_of(&["run", "--config", &flag], &[], true);
    compiled.assert_verdict(&[], false);
}

#[test]
#[ignore = "compiles candle: just rebuilds"]
fn other_flags_and_another_linker_are_measured() {
    let compiled = Compiled::new("other_flags");
    compiled.assert_verdict(&[], false);
    let plain = "--cfg leaky";
    let encoded = "--cfg\u{1f}leaky";
    for flags in [
        ("RUSTFLAGS", plain),
        ("CARGO_BUILD_RUSTFLAGS", plain),
        ("CARGO_ENCODED_RUSTFLAGS", encoded),
    ] {
        compiled.assert_verdict(&[flags], true);
        compiled.assert_verdict(&[], false);
    }
    compiled.project.write(".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"leaky\"]\n");
    compiled.assert_verdict(&[], true);
    compiled.project.write(".cargo/config.toml", "");
    compiled.assert_verdict(&[], false);
    let linker = compiled.link_with("other-linker", "leaky");
    let variables = [("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker.as_str())];
    compiled.assert_verdict(&variables, true);
    compiled.assert_verdict(&[], false);
}

/// The package leaks with this compiler, as its build script finds out.
#[test]
#[ignore = "compiles candle: just rebuilds"]
fn another_toolchain_is_measured() {
    let listed = Command::new("rustup").args(["toolchain", "list", "--quiet"]).output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let names: Vec<String> = listed.unwrap_or_default().lines().map(str::to_owned).collect();
    let Some(other) = names.iter().find(|name| name.starts_with("1.")) else {
        eprintln!("skipped: rustup has no toolchain with a version in its name");
        return;
    };
    let version = other.split('-').next().unwrap_or_default();
    let compiled = Compiled::new("another_toolchain");
    let script = format!(
        "fn main() {{
    println!(\"cargo::rerun-if-changed=build.rs\");
    let rustc = std::process::Command::new(std::env::var_os(\"RUSTC\").unwrap()).arg(\"--version\").output().unwrap();
    if String::from_utf8_lossy(&rustc.stdout).contains(\"rustc {version}\") {{
        println!(\"cargo::rustc-cfg=leaky\");
    }}
}}
"
    );
    compiled.project.write("build.rs", &script);
    let cargo = Command::new("rustup").args(["which", "--toolchain", other, "cargo"]).output();
    let cargo = String::from_utf8(cargo.expect("rustup runs").stdout).expect("a path");
    // As `cargo +TOOLCHAIN memcheck` sets them.
    let variables = [("RUSTUP_TOOLCHAIN", other.as_str()), ("CARGO", cargo.trim())];
    compiled.assert_verdict(&[], false);
    compiled.assert_verdict(&variables, true);
    compiled.assert_verdict(&[], false);
}
