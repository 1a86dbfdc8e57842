//! Each check of the justfile runs in a workflow, or has a reason for not running in one.

use std::collections::BTreeSet;
use std::process::Command;

use crate::fixture::workspace;

/// Where a recipe runs that `weekly.yml` does not call.
enum Elsewhere {
    /// A file with this command, which CI runs on each change or with each release.
    Runs(&'static str, &'static str),
    /// The reason why no workflow runs it.
    Never(&'static str),
}

use Elsewhere::{Never, Runs};

const SUITE: Elsewhere = Runs(".ci/run", "\ncargo test --workspace\n");
const RUN_SLOW: &str =
    "cargo test -p memcheck-functional --test functional -- --ignored --skip weekly::";
const SLOW: Elsewhere = Runs(".ci/run", RUN_SLOW);

const ELSEWHERE: &[(&str, Elsewhere)] = &[
    ("default", Never("it lists the recipes")),
    ("ci", Runs(".github/workflows/ci.yml", "- run: bash .ci/run\n")),
    ("check", Runs(".ci/run", "\nbash .ci/lint\n")),
    ("test", SUITE),
    ("all", SLOW),
    ("slow", SLOW),
    ("times", Never("it prints the times of the tests that `test` runs")),
    ("memcheck", Runs(".ci/run", "\ncargo memcheck --ci\n")),
    // Tests of the suite compare what these write or print.
    ("outputs", SUITE),
    ("modules", SUITE),
    ("bindings", SUITE),
    ("cuda-sources", SUITE),
    (
        "candle-versions",
        Runs(
            ".github/workflows/ci.yml",
            "cargo test -p memcheck-functional candle_versions:: -- --ignored --nocapture\n",
        ),
    ),
    ("candle-tests", SLOW),
    ("report-screenshots", Never("it writes pictures of the report, which a person looks at")),
    ("deny", Runs(".github/workflows/ci.yml", "- run: cargo deny --locked check\n")),
    ("notices", Runs("scripts/release-archive", "cargo about generate")),
    ("book", Runs(".github/workflows/ci.yml", "- run: mdbook build\n")),
    ("compilers", Runs(".github/workflows/ci.yml", "- run: just compilers\n")),
    ("aarch64", Runs(".github/workflows/ci.yml", "- run: just aarch64\n")),
    ("portable", Runs(".github/workflows/ci.yml", "- run: just portable\n")),
    ("cross", Runs(".github/workflows/ci.yml", "- run: just cross\n")),
    ("bench", Never("it compares times, which differ too much on a shared machine")),
];

fn read(name: &str) -> String {
    let path = workspace().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of the recipes that a contributor can call.
fn recipes(justfile: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_private = false;
    for line in justfile.lines() {
        let head = line.split_once(':').map(|(head, _)| head);
        let name = head.and_then(|head| head.split_whitespace().next()).unwrap_or_default();
        if line.starts_with('[') {
            is_private = line == "[private]";
        } else if name.starts_with(|c: char| c.is_ascii_lowercase()) && line.starts_with(name) {
            if !is_private {
                names.insert(name);
            }
            is_private = false;
        }
    }
    names
}

/// The recipes that a workflow calls, in a `run` of a step or of a matrix, or in a line of a script.
fn called(workflow: &str) -> BTreeSet<&str> {
    let commands = workflow
        .lines()
        .map(|line| line.split_once("run: ").map_or(line.trim_start(), |(_, command)| command));
    let calls = commands.filter_map(|command| command.strip_prefix("just "));
    calls.filter_map(|call| call.split([' ', ',']).next()).collect()
}

/// The recipes that have no place, and the rows of `ELSEWHERE` that are wrong.
fn defects(justfile: &str, weekly: &str) -> Vec<String> {
    let (recipes, called) = (recipes(justfile), called(weekly));
    let is_elsewhere = |name: &str| ELSEWHERE.iter().any(|(known, _)| *known == name);
    let mut defects = Vec::new();
    for name in &recipes {
        if !called.contains(name) && !is_elsewhere(name) {
            defects.push(format!("no workflow runs `just {name}`: add it to weekly.yml"));
        }
    }
    for name in called.iter().filter(|name| !recipes.contains(*name)) {
        defects.push(format!("weekly.yml runs `just {name}`, which is not a recipe"));
    }
    for (name, place) in ELSEWHERE {
        if !recipes.contains(name) || called.contains(name) {
            defects.push(format!("`{name}` is not a recipe that runs elsewhere"));
        }
        match place {
            Runs(file, command) if !read(file).contains(command) => {
                defects.push(format!("{file} does not run `{}` for {name}", command.trim()));
            }
            Runs(..) => {}
            Never(reason) => assert!(reason.len() > 10, "{name}: {reason}"),
        }
    }
    defects
}

#[test]
fn every_recipe_runs_in_a_workflow_or_has_a_reason() {
    let (justfile, weekly) = (read("justfile"), read(".github/workflows/weekly.yml"));
    assert_eq!(defects(&justfile, &weekly), [""; 0]);
    // Each of these changes is found.
    let without = weekly.replace("run: just real,", "run: true,");
    assert_eq!(
        defects(&justfile, &without),
        ["no workflow runs `just real`: add it to weekly.yml"]
    );
    let more = format!("{justfile}\n# A check.\nnew-check ARG=\"1\":\n    true\n");
    assert_eq!(
        defects(&more, &weekly),
        ["no workflow runs `just new-check`: add it to weekly.yml"]
    );
    let renamed = justfile.replace("\nscale:", "\nscaled:");
    assert_eq!(defects(&renamed, &weekly).len(), 2);
    let renamed = justfile.replace("\nbook:", "\nbooks:");
    assert_eq!(defects(&renamed, &weekly).len(), 2);
}

/// The packages of `-p` in a script that this workspace does not have.
fn unknown_packages(script: &str) -> Vec<&str> {
    let lock = read("Cargo.lock");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let names = script.split("-p ").skip(1).filter_map(|rest| rest.split(|c| !is_name(c)).next());
    // Other words follow the option of `mkdir`.
    let mut unknown: Vec<&str> = names.filter(|name| name.contains("memcheck")).collect();
    unknown.retain(|name| !lock.contains(&format!("name = \"{name}\"\n")));
    unknown
}

#[test]
fn scripts_name_packages_that_exist() {
    let files = [".ci/run", ".ci/lint", "justfile"].map(str::to_owned);
    let scripts = std::fs::read_dir(workspace().join("scripts")).expect("a folder");
    let scripts =
        scripts.map(|file| file.expect("a file").file_name().into_string().expect("text"));
    let files = scripts.map(|name| format!("scripts/{name}")).chain(files);
    for file in files {
        assert_eq!(unknown_packages(&read(&file)), [""; 0], "{file}");
    }
    let renamed = read("scripts/cross").replace("-p memcheck-conduct", "-p memcheck-none");
    assert_eq!(unknown_packages(&renamed), ["memcheck-none"]);
}

/// Each job has a limit of its time and no rights beyond reading.
#[test]
fn weekly_jobs_are_limited() {
    let weekly = read(".github/workflows/weekly.yml");
    for line in ["  schedule:\n", "  workflow_dispatch:\n", "permissions:\n  contents: read\n"] {
        assert!(weekly.contains(line), "{line}");
    }
    assert_eq!(weekly.matches("permissions:").count(), 1);
    let jobs = weekly.matches("    runs-on: ").count();
    assert!(jobs >= 4 && weekly.matches("    timeout-minutes: ").count() == jobs, "{weekly}");
    let recipes = weekly.matches("{ run: just ").count();
    assert_eq!(weekly.matches(", minutes: ").count(), recipes);
}

/// The names of the ignored tests of this executable.
fn ignored() -> Vec<String> {
    let own = std::env::current_exe().expect("the path of this test");
    let listed = Command::new(own).args(["--list", "--ignored", "--format", "terse"]).output();
    let listed = String::from_utf8(listed.expect("it lists its tests").stdout).expect("text");
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// A recipe of the justfile runs each test that the suite ignores: those in modules named `weekly`
/// have one of their own, and CI runs all others.
#[test]
fn every_ignored_test_has_a_recipe() {
    let justfile = read("justfile").replace("\\\n", " ");
    assert!(justfile.contains(RUN_SLOW), "{RUN_SLOW}");
    let commands = justfile.lines().filter(|line| {
        line.contains("cargo test -p memcheck-functional") && line.contains("--ignored")
    });
    let words: BTreeSet<&str> = commands
        .flat_map(str::split_whitespace)
        .filter(|word| word.contains(['_', ':']) || *word == "exactness")
        .collect();
    let tests = ignored();
    let weekly: Vec<_> = tests.iter().filter(|test| test.contains("weekly::")).collect();
    assert!(weekly.len() >= 15 && tests.len() > weekly.len(), "{tests:?}");
    for test in weekly {
        assert!(words.iter().any(|word| test.contains(word)), "no recipe runs {test}: {words:?}");
    }
}

/// The first error of a text as YAML. GitHub starts no job of a workflow that has one.
fn yaml_error(text: &str) -> Option<String> {
    saphyr_parser::Parser::new_from_str(text).find_map(|event| event.err()).map(|it| it.to_string())
}

#[test]
fn workflows_are_yaml() {
    let mut files = vec!["action.yml".into()];
    for folder in [".github/workflows", "docs", "cargo-memcheck/templates"] {
        let entries = std::fs::read_dir(workspace().join(folder)).expect("a folder").flatten();
        let names = entries.map(|entry| format!("{folder}/{}", entry.file_name().display()));
        files.extend(names.filter(|name| name.ends_with(".yml")));
    }
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        assert_eq!(yaml_error(&read(&file)), None, "{file}");
    }
    assert!(yaml_error("steps:\n  - run: cargo test module:: -- --ignored\n").is_some());
}

/// The text of a job.
fn job<'a>(workflow: &'a str, name: &str) -> &'a str {
    let (_, text) = workflow.split_once(&format!("\n  {name}:\n")).unwrap_or_default();
    // The next line that is indented by two spaces only.
    let next = text.match_indices("\n  ").map(|(at, _)| at);
    let end = next.into_iter().find(|at| !text[at + 3..].starts_with(' '));
    &text[..end.unwrap_or(text.len())]
}

/// The steps that a release lacks, or has in another order.
fn release_defects(release: &str) -> Vec<String> {
    const ATTEST: &str = "uses: actions/attest-build-provenance@";
    const ORDERS: [(&str, &[&str]); 4] = [
        // Nothing is made for a manifest or a tag that is refused.
        (
            "draft",
            &[
                "run: scripts/release-version\n",
                "run: scripts/release-draft \"$GITHUB_REF_NAME\"\n",
            ],
        ),
        (
            "publish",
            &["needs: crates\n", "run: gh release edit \"$GITHUB_REF_NAME\" --draft=false\n"],
        ),
        (
            "binary",
            &[
                "id-token: write\n",
                "attestations: write\n",
                "target: x86_64-unknown-linux-gnu,",
                "target: aarch64-unknown-linux-gnu,",
                "run: scripts/release-archive ",
                ATTEST,
                "subject-path: target/release-archives/*.tar.gz\n",
                // A job that runs again replaces the files of its first run.
                "run: gh release upload \"$GITHUB_REF_NAME\" target/release-archives/* --clobber\n",
            ],
        ),
        (
            "crates",
            &[
                "needs: binary\n",
                "environment: crates-io\n",
                "id-token: write\n",
                "attestations: write\n",
                "run: cargo publish --dry-run --workspace --locked\n",
                "run: scripts/pack-crates\n",
                ATTEST,
                "subject-path: target/package/*.crate\n",
                "id: unpublished\n",
                "options=$(scripts/unpublished-crates)\n",
                "if: steps.unpublished.outputs.options\n",
                "uses: rust-lang/crates-io-auth-action@",
                "if: steps.unpublished.outputs.options\n",
                "run: cargo publish --locked --no-verify $OPTIONS\n",
                "OPTIONS: ${{ steps.unpublished.outputs.options }}\n",
                "CARGO_REGISTRY_TOKEN: ${{ steps.auth.outputs.token }}\n",
            ],
        ),
    ];
    let mut defects = Vec::new();
    for (name, lines) in ORDERS {
        let mut rest = job(release, name);
        for line in lines {
            match rest.split_once(line) {
                Some((_, after)) => rest = after,
                None => defects.push(format!("{name}: {line}")),
            }
        }
    }
    defects
}

#[test]
fn a_release_is_attested_and_published_without_a_stored_token() {
    let release = read(".github/workflows/release.yml");
    assert_eq!(release_defects(&release), [""; 0]);
    let folder = workspace().join(".github/workflows");
    let mut signing = 0;
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a workflow");
        assert!(!text.contains("secrets."), "{}", entry.path().display());
        signing += text.matches("id-token: write").count();
    }
    assert_eq!(signing, 2);
    // Each crate is built from its archive for each change.
    let package = job(&read(".github/workflows/ci.yml"), "package").to_owned();
    assert!(package.contains("run: cargo publish --dry-run --workspace --locked\n"), "{package}");

    let unsigned = release.replace("actions/attest-build-provenance", "actions/upload-artifact");
    assert_eq!(release_defects(&unsigned).len(), 2);
    let early = release.replace("      - run: scripts/pack-crates\n", "");
    assert_eq!(release_defects(&early), ["crates: run: scripts/pack-crates\n"]);
    let stored = release.replace("steps.auth.outputs.token", "secrets.TOKEN");
    assert_eq!(release_defects(&stored).len(), 1);
}

/// The modules with tests that need a reader which a machine can lack.
fn modules_with_readers() -> Vec<String> {
    let folder = workspace().join("tests/functional");
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().display().to_string();
        let Some(name) = name.strip_suffix(".rs") else { continue };
        let text = std::fs::read_to_string(entry.path()).expect("a module");
        let calls = ["skip_reader", "Page::open", ".has_gh"].map(|name| format!("{name}("));
        let needs = calls.iter().any(|call| text.contains(call));
        if needs && text.contains("\n#[test]\n") {
            modules.push(name.to_owned());
        }
    }
    modules
}

/// The modules that the recipe `readers` does not run.
fn without_readers(justfile: &str) -> Vec<String> {
    let (_, recipe) = justfile.split_once("\nreaders:\n").expect("the recipe");
    let (recipe, _) = recipe.split_once("\n\n").expect("its end");
    assert!(recipe.contains("READERS=all cargo test -p memcheck-functional "), "{recipe}");
    let filters: Vec<&str> =
        recipe.split_whitespace().filter(|word| word.ends_with(['_', ':'])).collect();
    let mut modules = modules_with_readers();
    modules.retain(|module| !filters.iter().any(|filter| format!("{module}::").contains(filter)));
    modules
}

#[test]
fn the_recipe_of_readers_runs_each_test_that_can_lack_one() {
    let justfile = read("justfile");
    let modules = modules_with_readers();
    for module in ["report_matrix", "report_layout", "completions", "reports", "action"] {
        assert!(modules.iter().any(|it| it == module), "{module} is not among {modules:?}");
    }
    assert_eq!(without_readers(&justfile), [""; 0]);
    let fewer = justfile.replace(" report_ completions::", "");
    assert!(without_readers(&fewer).contains(&"report_matrix".to_owned()));
    let weekly = read(".github/workflows/weekly.yml");
    let readers = job(&weekly, "readers");
    let installed = ["fish zsh", "chromium", "npm ci", "viztracer", "sarif-tools", "MemoryViz.js"];
    for part in installed {
        assert!(readers.contains(part), "{part} is not installed before the readers");
    }
    assert!(readers.trim_end().ends_with("- run: just readers"), "{readers}");
}

/// A test without its browser passes, and fails with `READERS=all`.
#[test]
fn a_reader_that_is_missing_is_an_error_on_request() {
    let own = std::env::current_exe().expect("the path of this test");
    for test in [
        "report_matrix::axe_finds_nothing_on_any_page",
        "report_matrix::many_failures_are_rows_below_the_counts",
    ] {
        let run = |readers: &str| {
            let mut command = Command::new(&own);
            command.args(["--exact", "--nocapture", test]).env("READERS", readers).env("PATH", "");
            command.output().expect("the test runs")
        };
        let skipped = run("some");
        let text = String::from_utf8_lossy(&skipped.stderr).into_owned();
        assert!(skipped.status.success() && text.contains("skipped: "), "{test}: {text}");
        let required = run("all");
        let text = String::from_utf8_lossy(&required.stderr).into_owned();
        assert!(!required.status.success(), "{test} passes without its reader");
        assert!(text.contains("and READERS=all requires it"), "{text}");
    }
}
