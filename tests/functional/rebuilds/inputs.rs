//! A workspace with one crate for each kind of input of a build. Whether `leaks()` of a crate is
//! true depends on that input alone.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::fixture::{Project, memcheck_with};

pub(crate) const RUNTIME: &str = "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n";
pub(crate) const PRELUDE: &str = "\
#![allow(unused_imports)]
use candle_core::{DType, Device, Tensor};
use memcheck_runtime::{Trial, mem_test};
";

/// A crate whose input is a file in its folder, or something else that `set` changes. `state` is
/// `true` or `false`.
struct Input {
    name: &'static str,
    library: &'static str,
    /// The build script, if it has one.
    script: &'static str,
    /// Further text of the manifest.
    manifest: &'static str,
    set: fn(&Path, &str),
}

const VALUE: &str = "pub fn leaks() -> bool { env!(\"VALUE\") == \"true\" }";
const FEATURE: &str = "pub fn leaks() -> bool { cfg!(feature = \"on\") }";
/// Prints the contents of a file for `VALUE`.
const PRINTS: &str =
    "println!(\"cargo::rustc-env=VALUE={}\", std::fs::read_to_string(FILE).unwrap());";

impl Input {
    const fn new(name: &'static str, library: &'static str, set: fn(&Path, &str)) -> Self {
        Self { name, library, script: "", manifest: "", set }
    }

    const fn script(name: &'static str, script: &'static str, set: fn(&Path, &str)) -> Self {
        Self { name, library: VALUE, script, manifest: "", set }
    }

    const fn manifest(self, manifest: &'static str) -> Self {
        Self { manifest, ..self }
    }
}

fn source(state: &str) -> String {
    format!("pub fn leaks() -> bool {{ {state} }}\n")
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes a file with a modification time of years ago, as `cp -p`, `tar` and `rsync -a` do.
fn restore(path: PathBuf, text: &str) {
    write(path.clone(), text);
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(old)).unwrap();
}

fn link(path: PathBuf, to: &Path) {
    let _ = fs::remove_file(&path);
    symlink(to, path).unwrap();
}

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {arguments:?}");
}

fn archive(folder: &Path, state: &str) {
    library(folder, "native", state);
}

/// A static library with a function that returns the state.
fn library(folder: &Path, name: &str, state: &str) {
    let value = i32::from(state == "true");
    write(folder.join("native.c"), &format!("int {name}(void) {{ return {value}; }}\n"));
    run(folder, "cc", &["-c", "native.c"]);
    let archive = format!("lib{name}.a");
    let _ = fs::remove_file(folder.join(&archive));
    run(folder, "ar", &["rc", &archive, "native.o"]);
}

fn commit(folder: &Path, state: &str) {
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        run(folder, "git", &[&identity[..], arguments].concat());
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", state]);
}

const INPUTS: &[Input] = &[
    Input::new("source", "", |at, state| write(at.join("src/lib.rs"), &source(state))),
    Input::new("module", "mod inner;\npub use inner::leaks;", |at, state| {
        write(at.join("src/inner.rs"), &source(state));
    }),
    Input::new("module_elsewhere", "#[path = \"../inner.rs\"]\nmod inner;\npub use inner::leaks;", |at, state| {
        write(at.join("inner.rs"), &source(state));
    }),
    Input::new("text", "pub fn leaks() -> bool { include_str!(\"../text\") == \"true\" }", |at, state| {
        write(at.join("text"), state);
    }),
    Input::new("bytes", "pub fn leaks() -> bool { include_bytes!(\"../../bytes.bin\") == b\"true\" }", |at, state| {
        write(at.with_file_name("bytes.bin"), if state == "true" { "true" } else { "none" });
    }),
    Input::new("included", "include!(\"../included\");", |at, state| {
        write(at.join("included"), &source(state));
    }),
    Input::new("restored", "", |at, state| restore(at.join("src/lib.rs"), &source(state))),
    Input::new("restored_text", "pub fn leaks() -> bool { include_str!(\"../text\") == \"true\" }", |at, state| {
        restore(at.join("text"), state);
    }),
    Input::new("moved_file", "mod inner;\npub use inner::leaks;", |at, state| {
        restore(at.join("next"), &source(state));
        fs::rename(at.join("next"), at.join("src/inner.rs")).unwrap();
    }),
    Input::new("linked_file", "mod inner;\npub use inner::leaks;", |at, state| {
        ["true", "false"].iter().for_each(|it| restore(at.join(format!("{it}.rs")), &source(it)));
        link(at.join("src/inner.rs"), &at.join(format!("{state}.rs")));
    }),
    Input::new("linked_folder", "#[path = \"../inner/inner.rs\"]\nmod inner;\npub use inner::leaks;", |at, state| {
        ["true", "false"].iter().for_each(|it| restore(at.join(it).join("inner.rs"), &source(it)));
        link(at.join("inner"), &at.join(state));
    }),
    Input::new("moved_folder", "#[path = \"../inner/inner.rs\"]\nmod inner;\npub use inner::leaks;", |at, state| {
        restore(at.join("next/inner.rs"), &source(state));
        let _ = fs::remove_dir_all(at.join("inner"));
        fs::rename(at.join("next"), at.join("inner")).unwrap();
    }),
    // The idiom for a script that always runs.
    Input::script("script_always", "println!(\"cargo::rerun-if-changed=never-exists\"); PRINTS", |at, state| {
        write(at.join("value"), state);
    }),
    Input::script("script_commit", "println!(\"cargo::rerun-if-changed=never-exists\");
        let log = std::process::Command::new(\"git\").args([\"log\", \"-1\", \"--format=%s\"]).output().unwrap();
        println!(\"cargo::rustc-env=VALUE={}\", String::from_utf8(log.stdout).unwrap().trim());", commit),
    Input::script("script_file", "println!(\"cargo::rerun-if-changed=value\"); PRINTS", |at, state| {
        write(at.join("value"), state);
    }),
    Input::script("script_restored", "println!(\"cargo::rerun-if-changed=value\"); PRINTS", |at, state| {
        restore(at.join("value"), state);
    }),
    Input::script("script_folder", "println!(\"cargo::rerun-if-changed=data\"); 
        println!(\"cargo::rustc-env=VALUE={}\", std::path::Path::new(\"data/inner/true\").exists());", |at, state| {
        let _ = fs::remove_dir_all(at.join("data/inner"));
        write(at.join("data/inner").join(state), "");
    }),
    Input::script("script_any_file", "PRINTS", |at, state| write(at.join("value"), state)),
    Input::script("script_any_restored", "PRINTS", |at, state| restore(at.join("value"), state)),
    // Cargo asks git for the files of a package.
    Input::script("script_hidden", "println!(\"cargo::rustc-env=VALUE={}\", std::fs::read_to_string(\".data/value\").unwrap());", |at, state| {
        run(at, "git", &["init", "--quiet"]);
        restore(at.join(".data/value"), state);
    }),
    Input::script("script_linked_folder", "println!(\"cargo::rustc-env=VALUE={}\", std::fs::read_to_string(\"data/value\").unwrap());", |at, state| {
        restore(outside(at).join("data/value"), state);
        link(at.join("data"), &outside(at).join("data"));
    }),
    Input::script("script_variable", "println!(\"cargo::rerun-if-env-changed=INPUT_OF_SCRIPT\");
        println!(\"cargo::rustc-env=VALUE={}\", std::env::var(\"INPUT_OF_SCRIPT\").unwrap());", |_, _| {}),
    Input::new("script_itself", VALUE, |at, state| {
        let script = format!("fn main() {{ println!(\"cargo::rerun-if-changed=build.rs\"); println!(\"cargo::rustc-env=VALUE={state}\"); }}");
        write(at.join("build.rs"), &script);
    }),
    Input::script("generated", "println!(\"cargo::rerun-if-changed=value\");
        let out = std::path::Path::new(&std::env::var_os(\"OUT_DIR\").unwrap()).join(\"generated.rs\");
        std::fs::write(out, std::fs::read_to_string(\"value\").unwrap()).unwrap();
        println!(\"cargo::rustc-env=VALUE=false\");", |at, state| write(at.join("value"), &source(state))),
    Input::new("native", "unsafe extern \"C\" { fn native() -> i32; }
// SAFETY: the function has no arguments.
pub fn leaks() -> bool { unsafe { native() == 1 } }", archive),
    // The linker finds only the static library.
    Input::new("native_kindless", "unsafe extern \"C\" { fn kindless() -> i32; }
// SAFETY: the function has no arguments.
pub fn leaks() -> bool { unsafe { kindless() == 1 } }", |at, state| library(at, "kindless", state)),
    Input::new("verbatim", "unsafe extern \"C\" { fn verbatim() -> i32; }
// SAFETY: the function has no arguments.
pub fn leaks() -> bool { unsafe { verbatim() == 1 } }", |at, state| library(at, "verbatim", state)),
    // No instruction names this library, but the folder.
    Input::new("attribute", "#[link(name = \"attribute\", kind = \"static\")]
unsafe extern \"C\" { fn attribute() -> i32; }
// SAFETY: the function has no arguments.
pub fn leaks() -> bool { unsafe { attribute() == 1 } }", |at, state| library(at, "attribute", state)),
    // The script of the package links these two.
    Input::new("linker_file", "unsafe extern \"C\" { fn linker_file() -> i32; }
// SAFETY: the function has no arguments.
pub fn leaks() -> bool { unsafe { linker_file() == 1 } }", |at, state| library(at, "linker_file", state)),
    Input::new("linker_name", "unsafe extern \"C\" { fn linker_name() -> i32; }
// SAFETY: the function has no arguments.
pub fn leaks() -> bool { unsafe { linker_name() == 1 } }", |at, state| library(at, "linker_name", state)),
    Input::new("variable", "pub fn leaks() -> bool { env!(\"INPUT_OF_SOURCE\") == \"true\" }", |_, _| {}),
    Input::new("configuration", "pub fn leaks() -> bool { env!(\"INPUT_OF_CONFIGURATION\") == \"true\" }", |at, state| {
        let text = format!("[env]\nINPUT_OF_CONFIGURATION = {{ value = \"{state}\", force = true }}\n");
        write(at.ancestors().nth(2).unwrap().join("below/.cargo/config.toml"), &text);
    }),
    Input::new("configuration_above", "pub fn leaks() -> bool { env!(\"INPUT_FROM_ABOVE\") == \"true\" }", |at, state| {
        let text = format!("[env]\nINPUT_FROM_ABOVE = {{ value = \"{state}\", force = true }}\n");
        write(at.ancestors().nth(2).unwrap().join(".cargo/config.toml"), &text);
    }),
    Input::new("flag", FEATURE, |_, _| {}).manifest("[features]\non = []\n"),
    Input::new("feature", FEATURE, |at, state| {
        let default = if state == "true" { "\"on\"" } else { "" };
        write(at.join("Cargo.toml"), &manifest("feature", &format!("[features]\ndefault = [{default}]\non = []\n")));
    }),
    Input::new("library_path", "", |at, state| {
        ["true", "false"].iter().for_each(|it| restore(at.join(format!("{it}.rs")), &source(it)));
        write(at.join("Cargo.toml"), &manifest("library_path", &format!("[lib]\npath = \"{state}.rs\"\n")));
    }),
    Input::new("profile", "pub fn leaks() -> bool { cfg!(not(debug_assertions)) }", |_, _| {}),
    Input::new("macros", "#[proc_macro]\npub fn leaks(_: proc_macro::TokenStream) -> proc_macro::TokenStream { inner::leaks().to_string().parse().unwrap() }\nmod inner;", |at, state| {
        write(at.join("src/inner.rs"), &source(state));
    }).manifest("[lib]\nproc-macro = true\n"),
    Input::new("expanded", "pub fn leaks() -> bool { macros::leaks!() }", |_, _| {}).manifest("[dependencies]\nmacros = { path = \"../macros\" }\n"),
    Input::new("deep", "pub use deeper::leaks;", |at, state| {
        restore(at.join("deeper/src/lib.rs"), &source(state));
        write(at.join("deeper/Cargo.toml"), &manifest("deeper", ""));
    }).manifest("[dependencies]\ndeeper = { path = \"deeper\" }\n"),
    Input::new("outside", "pub use other::leaks;", |at, state| {
        let other = outside(at).join("other");
        write(other.join("Cargo.toml"), &format!("{}[workspace]\n", manifest("other", "")));
        restore(other.join("src/lib.rs"), &source(state));
    }).manifest("[dependencies]\nother = { path = \"OUTSIDE/other\" }\n"),
    // A feature that the manifest of another workspace switches on.
    Input::new("other_workspace", "pub use member::leaks;", |at, state| {
        let root = outside(at).join("workspace");
        let on = if state == "true" { ", features = [\"on\"]" } else { "" };
        write(root.join("Cargo.toml"), &format!("[workspace]\nmembers = [\"*\"]\n[workspace.dependencies]\nleaf = {{ path = \"leaf\"{on} }}\n"));
        write(root.join("member/Cargo.toml"), &manifest("member", "[dependencies]\nleaf.workspace = true\n"));
        write(root.join("member/src/lib.rs"), "pub use leaf::leaks;");
        write(root.join("leaf/Cargo.toml"), &manifest("leaf", "[features]\non = []\n"));
        write(root.join("leaf/src/lib.rs"), FEATURE);
    }).manifest("[dependencies]\nmember = { path = \"OUTSIDE/workspace/member\" }\n"),
    Input::new("excluded", "pub use vendored::leaks;", |at, state| {
        let vendored = at.ancestors().nth(2).unwrap().join("vendor/vendored");
        write(vendored.join("Cargo.toml"), &manifest("vendored", ""));
        restore(vendored.join("src/lib.rs"), &source(state));
    }).manifest("[dependencies]\nvendored = { path = \"../../vendor/vendored\" }\n"),
    // A copy of a crate of the registry, which candle does not use.
    Input::new("patched", "pub use shlex::leaks;", |at, state| {
        let vendored = at.ancestors().nth(2).unwrap().join("vendor/shlex");
        write(vendored.join("Cargo.toml"), &manifest("shlex", "").replace("0.1.0", "2.0.1"));
        restore(vendored.join("src/lib.rs"), &source(state));
    }).manifest("[dependencies]\nshlex = \"2\"\n"),
];

fn manifest(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{more}")
}

/// A folder next to the workspace.
fn outside(at: &Path) -> PathBuf {
    at.ancestors().nth(2).unwrap().with_added_extension("outside")
}

pub(super) struct Inputs {
    project: Project,
    /// The manifest of the project, for which the profile is `PROFILE`.
    manifest: String,
    state: std::cell::Cell<bool>,
}

impl Inputs {
    pub(super) fn new() -> Self {
        let project = Project::bare(RUNTIME);
        let names = || INPUTS.iter().map(|input| input.name).filter(|name| *name != "macros");
        let manifest = project.read("Cargo.toml");
        let dependencies: String =
            names().map(|name| format!("{name} = {{ path = \"inputs/{name}\" }}\n")).collect();
        let manifest = manifest
            .replacen("[workspace]\n", "[workspace]\nmembers = [\"inputs/*\"]\nexclude = [\"vendor\"]\n\n[features]\nflag = [\"flag/on\"]\n\n[patch.crates-io]\nshlex = { path = \"vendor/shlex\" }\n", 1)
            .replacen("[dependencies]\ncandle", &format!("[dependencies]\n{dependencies}candle"), 1);
        let manifest =
            format!("{manifest}\n[profile.dev.package.profile]\ndebug-assertions = PROFILE\n");
        let inputs = Self { project, manifest, state: std::cell::Cell::new(false) };
        for Input { name, library, script, manifest: more, .. } in INPUTS {
            let at = inputs.folder(name);
            let outside = outside(&at).display().to_string();
            write(at.join("Cargo.toml"), &manifest_of(name, more).replace("OUTSIDE", &outside));
            if !library.is_empty() {
                write(at.join("src/lib.rs"), library);
            }
            if !script.is_empty() {
                let script = script.replace("PRINTS", PRINTS).replace("FILE", "\"value\"");
                write(at.join("build.rs"), &format!("fn main() {{ {script} }}\n"));
            }
        }
        let native = "fn main() { println!(\"cargo::rerun-if-changed=build.rs\"); println!(\"cargo::rustc-link-search=native={}\", env!(\"CARGO_MANIFEST_DIR\")); println!(\"cargo::rustc-link-lib=static=native\"); }\n";
        write(inputs.folder("native").join("build.rs"), native);
        for (name, library) in
            [("native_kindless", "kindless"), ("verbatim", "static:+verbatim=libverbatim.a")]
        {
            let script = native.replace("static=native", library);
            write(inputs.folder(name).join("build.rs"), &script);
        }
        let (searches, _) = native.split_once(" println!(\"cargo::rustc-link-lib").unwrap();
        write(inputs.folder("attribute").join("build.rs"), &format!("{searches} }}\n"));
        let arguments = [
            format!("-Wl,{}/native.o", inputs.folder("linker_file").display()),
            format!("-L{}", inputs.folder("linker_name").display()),
            "-l:liblinker_name.a".to_owned(),
        ];
        let prints: String = arguments
            .iter()
            .map(|argument| format!("println!(\"cargo::rustc-link-arg-tests={argument}\");"))
            .collect();
        let script = "println!(\"cargo::rerun-if-changed=build.rs\");";
        inputs.project.write("build.rs", &format!("fn main() {{ {script} {prints} }}\n"));
        write(
            inputs.folder("generated").join("src/lib.rs"),
            "include!(concat!(env!(\"OUT_DIR\"), \"/generated.rs\"));\n",
        );
        let tests: String = names().map(|name| format!("leaks_if!({name});\n")).collect();
        inputs.project.write("tests/mem.rs", &format!("{PRELUDE}{LEAKS_IF}{tests}"));
        inputs.project.write("below/nothing", "");
        inputs
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.project.path().join("inputs").join(name)
    }

    pub(super) fn set(&self, state: &str) {
        self.state.set(state == "true");
        for input in INPUTS {
            (input.set)(&self.folder(input.name), state);
        }
        let assertions = if state == "true" { "false" } else { "true" };
        self.project.write("Cargo.toml", &self.manifest.replace("PROFILE", assertions));
    }

    /// On the CPU and on the simulated device.
    #[track_caller]
    pub(super) fn assert_verdicts(&self, status: &str) {
        let mut arguments = vec![
            "run",
            "--device",
            "cpu",
            "--device",
            "sim",
            "--message-format",
            "json",
            "--no-ci",
            "--explain",
            "never",
            "--max-iterations",
            "4",
        ];
        let leaks = self.state.get();
        if leaks {
            arguments.push("--features=flag");
        }
        let state = leaks.to_string();
        let build = crate::fixture::target().display().to_string();
        let variables = [
            ("INPUT_OF_SCRIPT", state.as_str()),
            ("INPUT_OF_SOURCE", &state),
            ("CARGO_BUILD_BUILD_DIR", &build),
        ];
        let run = memcheck_with(&self.project.path().join("below"), &arguments, &variables);
        let mut wrong = Vec::new();
        let lines = run.json();
        let finished = lines.iter().filter(|line| line["type"] == "test-finished");
        for line in finished.clone() {
            if line["status"] != status {
                wrong.push(format!("{} on {}: {}", line["test"], line["device"], line["status"]));
            }
        }
        assert!(wrong.is_empty(), "{status}: {wrong:#?}\n{}", run.stderr);
        assert_eq!(finished.count(), 2 * (INPUTS.len() - 1), "{}", run.stderr);
    }
}

fn manifest_of(name: &str, more: &str) -> String {
    manifest(name, more)
}

const LEAKS_IF: &str = "
macro_rules! leaks_if {
    ($input:ident) => {
        #[mem_test(max_growth = \"0 B\", baseline = false, iterations = 4, warmup = 1)]
        fn $input(trial: &mut Trial) -> candle_core::Result<()> {
            let (device, mut kept) = (trial.device().clone(), Vec::new());
            trial.iterate(|_| {
                let tensor = Tensor::zeros(1024, DType::F32, &device)?;
                if $input::leaks() {
                    kept.push(tensor);
                }
                Ok(())
            })
        }
    };
}
";
