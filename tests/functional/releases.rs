//! The scripts of a release, in a small workspace with prepared answers of the registry and of GitHub.

use std::path::Path;
use std::process::Command;

use crate::fixture::{Run, workspace};

/// A workspace with the scripts, two crates to publish, and one that is not published.
struct Release {
    folder: tempfile::TempDir,
}

const REPOSITORY: &str = "https://host/owner/memcheck";

impl Release {
    fn new() -> Self {
        let release = Self { folder: tempfile::tempdir().expect("a folder") };
        for script in ["release-version", "unpublished-crates", "release-draft"] {
            let to = release.path().join("scripts").join(script);
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("the folder is made");
            std::fs::copy(workspace().join("scripts").join(script), to).expect("a copy");
        }
        let members = ["cargo-memcheck", "memcheck-core", "memcheck-tests"];
        for name in members {
            let publish = if name == "memcheck-tests" { "publish = false\n" } else { "" };
            let manifest = format!(
                "[package]\nname = \"{name}\"\nversion.workspace = true\nedition = \"2024\"\n\
                 repository.workspace = true\n{publish}"
            );
            release.write(&format!("{name}/Cargo.toml"), &manifest);
            release.write(&format!("{name}/src/lib.rs"), "");
        }
        release.write("README.md", "A page.\n");
        release.write("docs/page.md", "uses: owner/memcheck@TAG\n");
        release.write_root("1.2.3", REPOSITORY);
        release
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(path, text).expect("the file is written");
    }

    fn write_root(&self, version: &str, repository: &str) {
        self.write(
            "Cargo.toml",
            &format!(
                "[workspace]\nresolver = \"3\"\nmembers = [\"cargo-memcheck\", \"memcheck-core\", \
                 \"memcheck-tests\"]\n[workspace.package]\nversion = \"{version}\"\n\
                 repository = \"{repository}\"\n"
            ),
        );
        let packages = ["cargo-memcheck", "memcheck-core", "memcheck-tests"]
            .map(|name| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n"));
        self.write("Cargo.lock", &format!("version = 4\n\n{}", packages.join("\n")));
    }

    /// Puts a program before those of this machine.
    fn has(&self, program: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = format!("bin/{program}");
        self.write(&file, &format!("#!/bin/bash\n{script}\n"));
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path().join(file), executable).expect("it is executable");
    }

    fn run(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(self.path().join("scripts").join(script));
        command.args(arguments).current_dir(self.path());
        command.env("PATH", format!("{}:{path}", self.path().join("bin").display()));
        for name in ["GITHUB_REF_TYPE", "GITHUB_REF_NAME", "CARGO_TARGET_DIR"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        Run::from_output(&command.output().expect("the script runs"))
    }

    /// A `cargo info` that knows some crates, and answers for another one as `other` does.
    fn registry(&self, published: &str, other: &str) {
        self.has(
            "cargo",
            &format!(
                "if [ \"$1\" != info ]; then exec {} \"$@\"; fi\n\
                 echo \"$@\" >> asked\n\
                 for word in \"$@\"; do case $word in *@*) asked=$word;; esac; done\n\
                 case \" {published} \" in *\" $asked \"*) exit;; esac\n\
                 {other}",
                env!("CARGO")
            ),
        );
    }
}

const MISSING: &str =
    "echo \"error: could not find \\`$asked\\` in registry \\`index\\`\" >&2; exit 101";

#[test]
fn only_the_crates_that_the_registry_lacks_are_published() {
    let release = Release::new();
    for (published, left) in [
        ("", "--package=cargo-memcheck --package=memcheck-core\n"),
        ("cargo-memcheck@1.2.2", "--package=cargo-memcheck --package=memcheck-core\n"),
        ("memcheck-core@1.2.3", "--package=cargo-memcheck\n"),
        // A second run after a whole publication publishes nothing, and does not fail.
        ("memcheck-core@1.2.3 cargo-memcheck@1.2.3", "\n"),
    ] {
        release.registry(published, MISSING);
        let run = release.run("unpublished-crates", &[], &[]).exits(0);
        assert_eq!(run.stdout, left, "{published}: {}", run.stderr);
    }
    let asked = std::fs::read_to_string(release.path().join("asked")).expect("the questions");
    assert!(asked.lines().all(|line| line.ends_with("--registry crates-io")), "{asked}");
    assert!(!asked.contains("memcheck-tests"), "a crate that is not published was asked for");
}

/// A crate must not be taken for unpublished, or for published, if the registry cannot be reached.
#[test]
fn a_registry_without_an_answer_is_an_error() {
    let release = Release::new();
    release.registry("memcheck-core@1.2.3", "echo 'error: timed out' >&2; exit 101");
    let run = release.run("unpublished-crates", &[], &[]).exits(1);
    assert_eq!(run.stdout, "");
    run.prints("timed out").prints("no answer about cargo-memcheck").prints("hint: run it again");
}

/// The stand-in above answers as cargo does.
#[test]
fn cargo_names_a_version_that_a_registry_lacks() {
    let release = Release::new();
    let index = release.path().join("registry");
    std::fs::create_dir(&index).expect("the folder is made");
    release.write("registry/config.json", "{\"dl\": \"https://host/\"}");
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "All"]]
    {
        crate::which_candle::git(&index, arguments);
    }
    let url = format!("file://{}", index.display());
    let home = release.path().join("home").display().to_string();
    let variables = [("CARGO_HOME", home.as_str()), ("CARGO_REGISTRIES_PREPARED_INDEX", &url)];
    // The cargo of this test, which needs no rustup.
    release.has("cargo", &format!("exec {} \"$@\"", env!("CARGO")));
    let run = release.run("unpublished-crates", &["--registry", "prepared"], &variables);
    assert_eq!(run.exits(0).stdout, "--package=cargo-memcheck --package=memcheck-core\n");
    std::fs::remove_dir_all(&index).expect("the registry is removed");
    std::fs::remove_dir_all(&home).expect("the copy of the registry is removed");
    let gone = release.run("unpublished-crates", &["--registry", "prepared"], &variables);
    gone.exits(1).prints("the registry gave no answer about cargo-memcheck");
}

#[test]
fn a_release_needs_a_repository_its_owner_and_the_tag_of_its_version() {
    let release = Release::new();
    assert_eq!(release.run("release-version", &[], &[]).exits(0).stdout, "1.2.3\n");
    let tag = |name: &'static str| [("GITHUB_REF_TYPE", "tag"), ("GITHUB_REF_NAME", name)];
    release.run("release-version", &[], &tag("v1.2.3")).exits(0);
    let other = release.run("release-version", &[], &tag("v1.2.4")).exits(1);
    other.prints("the tag is v1.2.4, and the version in Cargo.toml is 1.2.3").prints("v1.2.3\n");

    release.write("docs/page.md", "uses: OWNER/memcheck@TAG\n");
    let unnamed = release.run("release-version", &[], &[]).exits(1);
    unnamed.prints("docs/page.md").prints("hint: replace `OWNER`");
    release.write_root("1.2.3", "https://host.invalid/memcheck");
    for script in ["release-version", "unpublished-crates"] {
        let unset = release.run(script, &[], &[]).exits(1);
        assert_eq!(unset.stdout, "", "{script}");
        unset.prints("Cargo.toml names no repository yet").prints("hint: set `repository`");
    }
}

#[test]
fn a_draft_is_made_once_and_a_published_release_is_not_changed() {
    let release = Release::new();
    let answers = |view: &str| {
        release.has("gh", &format!("echo \"$@\" >> asked\nif [ \"$2\" = view ]; then {view}; fi"));
        let _ = std::fs::remove_file(release.path().join("asked"));
        let run = release.run("release-draft", &["v1.2.3"], &[]);
        (run, std::fs::read_to_string(release.path().join("asked")).expect("the questions"))
    };
    let create = "release create v1.2.3 --draft --verify-tag --generate-notes\n";
    let (run, asked) = answers("exit 1");
    assert!(run.exits(0).stdout.is_empty() && asked.ends_with(create), "{asked}");
    let (run, asked) = answers("echo true");
    assert!(run.exits(0).stdout.contains("exists") && !asked.contains("create"), "{asked}");
    let (run, asked) = answers("echo false");
    run.exits(1).prints("published already").prints("hint: ");
    assert!(!asked.contains("create"), "{asked}");
}
