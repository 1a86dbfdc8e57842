//! Shared libraries that a test executable needs and the loader does not find. The command must
//! name them before any test runs, or find them in Python's folders or in the toolchain.

use std::process::Command;

use crate::fixture::{Project, Run, command, memcheck, memcheck_with};

/// A test that calls a function of `libcublas.so.99`. The library is in the folder `there` of the
/// project, which is not on the search path.
fn project() -> Project {
    let project = Project::new(
        "unsafe extern \"C\" { fn memcheck_blas() -> i32; }
#[mem_test(baseline = false)]
fn calls_it() {
    // SAFETY: the function has no arguments and returns a number.
    assert_eq!(unsafe { memcheck_blas() }, 7);
}
",
    );
    project.write("blas.c", "int memcheck_blas(void) { return 7; }\n");
    project.write("link/readme", "the library for the linker\n");
    project.write("there/readme", "the library for the loader\n");
    let compile = ["-shared", "-fPIC", "-Wl,-soname,libcublas.so.99", "blas.c", "-o"];
    for library in ["link/libcublas.so", "there/libcublas.so.99"] {
        let done =
            Command::new("cc").args(compile).arg(library).current_dir(project.path()).status();
        assert!(done.is_ok_and(|status| status.success()), "cc does not build {library}");
    }
    project.write(
        "build.rs",
        "fn main() {
    let folder = std::env::var(\"CARGO_MANIFEST_DIR\").unwrap();
    println!(\"cargo::rustc-link-search=native={folder}/link\");
    println!(\"cargo::rustc-link-arg-tests=-lcublas\");
}
",
    );
    project
}

#[test]
#[ignore = "slow: just all"]
fn a_missing_library_is_reported_and_found_in_pythons_folders() {
    let project = project();
    let refused = project.run(&[]).exits(104).prints("libcublas.so.99 was not found");
    let refused = refused.prints("pip install nvidia-cublas==99.*").prints("--library-path");
    assert_eq!(refused.codes("(all tests)"), ["not-measured"]);
    assert_eq!(refused.summary()["not_measured"], 1, "a test has run");

    project.run(&["--library-path", "there"]).exits(0);
    let json = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
    let variable = [("MEMCHECK_LIBRARY_PATH", "/nowhere:there")];
    memcheck_with(project.path(), &json, &variable).exits(0);

    // A virtual environment with the wheel in it.
    let lib = project.path().join("venv/lib/python3.12/site-packages/nvidia/cu99/lib");
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::copy(project.path().join("there/libcublas.so.99"), lib.join("libcublas.so.99"))
        .unwrap();
    let venv = project.path().join("venv");
    let active = [("VIRTUAL_ENV", venv.to_str().unwrap())];
    memcheck_with(project.path(), &json, &active).exits(0);

    // The same for an archive, whose executable could not list its tests when it was packed.
    memcheck(project.path(), &["archive", "--archive-file", "a.tar.zst", "--device", "cpu"])
        .exits(0)
        .prints(
            "libcublas.so.99 was not found; the executable is packed without its number of tests",
        );
    let archive = ["--archive-file", "a.tar.zst"];
    project.memcheck(&[&["run"], &archive[..]].concat()).exits(104).prints("libcublas.so.99");
    let run = memcheck_with(project.path(), &[&json[..], &archive].concat(), &active).exits(0);
    assert_eq!(run.test("calls_it")["status"], "passed");
}

/// The compiler links the unit tests of such a crate with Rust's shared standard library.
#[test]
fn the_tests_of_a_crate_of_procedural_macros_run() {
    let project = Project::bare(
        "[lib]\nproc-macro = true\n\
         [dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n",
    );
    project.write(
        "src/lib.rs",
        "//! A user's package.\n#[cfg(test)]\nmod tests {\n    \
         #[memcheck_runtime::mem_test(baseline = false)]\n    fn of_the_macro() {}\n}\n",
    );
    project.write(
        "tests/mem.rs",
        "#[memcheck_runtime::mem_test(baseline = false)]\nfn of_another() {}\n",
    );
    let arguments = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
    let mut run = command(project.path(), &arguments);
    // Cargo has set it for this process, with the folder of the library.
    let output = run.env_remove("LD_LIBRARY_PATH").output().expect("cargo-memcheck runs");
    let run = Run::from_output(&output).exits(0);
    for test in ["tests::of_the_macro", "of_another"] {
        assert_eq!(run.test(test)["status"], "passed");
    }
}
