//! The programs and flags that compile a package decide whether its test leaks. Cargo compiles all
//! packages again for some of them, so that these tests have a target directory of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::fixture::{Project, memcheck_with, target};
use crate::rebuilds::inputs::{PRELUDE, RUNTIME};

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
        self.assert_verdict_of("run --device cpu --device sim", variables, leaks);
    }

    /// Cheaper, because the simulator's crates need minutes if a compiler has changed.
    #[track_caller]
    fn assert_verdict_on_the_cpu(&self, variables: &[(&str, &str)], leaks: bool) {
        self.assert_verdict_of("run --device cpu", variables, leaks);
    }

    #[track_caller]
    fn assert_verdict_of(&self, first: &str, variables: &[(&str, &str)], leaks: bool) {
        let all = format!("{first} --no-ci --max-iterations 10 --message-format json");
        let all: Vec<&str> = all.split(' ').collect();
        let target = self.target.display().to_string();
        let linker = self.project.path().join("linker").display().to_string();
        let own = [
            ("CARGO_TARGET_DIR", target.as_str()),
            ("CARGO_BUILD_BUILD_DIR", &target),
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", &linker),
        ];
        let run = memcheck_with(self.project.path(), &all, &[&own, variables].concat());
        let run = run.exits(if leaks { 100 } else { 0 });
        let status = if leaks { "failed" } else { "passed" };
        let lines = run.json();
        let ended: Vec<_> = lines.iter().filter(|line| line["type"] == "test-finished").collect();
        assert_eq!(ended.len(), first.matches("--device").count(), "{}", run.stderr);
        assert!(ended.iter().all(|line| line["status"] == status), "{}", run.stderr);
    }
}

#[test]
#[ignore = "compiles candle: just rebuilds"]
fn another_compiler_or_wrapper_is_measured() {
    let compiled = Compiled::new("another_compiler");
    let wrapper = compiled.script("wrapper", "exec \"$@\"");
    let leaky_wrapper = compiled.script("leaky-wrapper", "exec \"$@\" --cfg leaky");
    let compiler = compiled.script("compiler", "exec rustc \"$@\"");
    let leaky_compiler = compiled.script("leaky-compiler", "exec rustc \"$@\" --cfg leaky");
    let configure = |wrapper: &str| {
        let text = format!("[build]\nrustc-wrapper = \"{wrapper}\"\n");
        compiled.project.write(".cargo/config.toml", &text);
    };
    compiled.assert_verdict(&[], false);
    compiled.assert_verdict(&[("RUSTC_WRAPPER", &leaky_wrapper)], true);
    for (variable, program, leaks) in [
        ("CARGO_BUILD_RUSTC_WRAPPER", &wrapper, false),
        ("RUSTC_WORKSPACE_WRAPPER", &leaky_wrapper, true),
        ("RUSTC", &compiler, false),
        ("CARGO_BUILD_RUSTC", &leaky_compiler, true),
        ("CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER", &wrapper, false),
    ] {
        compiled.assert_verdict_on_the_cpu(&[(variable, program)], leaks);
    }
    // The same name, and another program.
    compiled.script("wrapper", "exec \"$@\" --cfg leaky");
    compiled.assert_verdict_on_the_cpu(&[("RUSTC_WRAPPER", &wrapper)], true);
    compiled.script("wrapper", "exec \"$@\"");
    compiled.assert_verdict_on_the_cpu(&[("RUSTC_WRAPPER", &wrapper)], false);
    configure(&leaky_wrapper);
    compiled.assert_verdict_on_the_cpu(&[], true);
    configure("");
    compiled.assert_verdict_on_the_cpu(&[], false);
    let flag = format!("run --device cpu --config build.rustc-wrapper=\"{leaky_wrapper}\"");
    compiled.assert_verdict_of(&flag, &[], true);
    compiled.assert_verdict(&[], false);
}

/// Cargo keeps the artifacts of other flags apart, so that only the first build with these compiles
/// candle.
#[test]
#[ignore = "compiles candle: just rebuilds"]
fn other_flags_and_another_linker_are_measured() {
    let compiled = Compiled::new("other_flags");
    let configure = |flags: &str| {
        let text = format!("[build]\nrustflags = [{flags}]\n");
        compiled.project.write(".cargo/config.toml", &text);
    };
    compiled.assert_verdict(&[], false);
    for flags in [
        ("RUSTFLAGS", "--cfg leaky"),
        ("CARGO_BUILD_RUSTFLAGS", "--cfg leaky"),
        ("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}leaky"),
    ] {
        compiled.assert_verdict(&[flags], true);
        compiled.assert_verdict(&[], false);
    }
    configure("\"--cfg\", \"leaky\"");
    compiled.assert_verdict(&[], true);
    configure("");
    let linker = compiled.link_with("other-linker", "leaky");
    let variables = [("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker.as_str())];
    compiled.assert_verdict(&variables, true);
    compiled.assert_verdict(&[], false);
}

/// The package leaks with this compiler, as its build script finds out.
#[test]
#[ignore = "compiles candle: just rebuilds"]
fn another_toolchain_is_measured() {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let of = |name: &str| output("rustup", &["run", name, "rustc", "--version"]);
    let own = output("rustc", &["--version"]).expect("rustc runs");
    let listed = output("rustup", &["toolchain", "list", "--quiet"]).unwrap_or_default();
    let Some(other) = listed.lines().find(|name| of(name).is_ok_and(|version| version != own))
    else {
        eprintln!("skipped: rustup has no other version");
        return;
    };
    let version = of(other).expect("rustc runs");
    let cargo = output("rustup", &["which", "--toolchain", other, "cargo"]).expect("a path");
    let compiled = Compiled::new("another_toolchain");
    let script = format!(
        "fn main() {{
    println!(\"cargo::rerun-if-changed=build.rs\");
    let rustc = std::process::Command::new(std::env::var_os(\"RUSTC\").unwrap()).arg(\"--version\").output().unwrap();
    if String::from_utf8_lossy(&rustc.stdout).contains(\"{version}\") {{
        println!(\"cargo::rustc-cfg=leaky\");
    }}
}}
"
    );
    compiled.project.write("build.rs", &script);
    // As `cargo +TOOLCHAIN memcheck` sets them.
    let variables = [("RUSTUP_TOOLCHAIN", other), ("CARGO", cargo.as_str())];
    compiled.assert_verdict(&[], false);
    compiled.assert_verdict(&variables, true);
    compiled.assert_verdict(&[], false);
}
