//! The commands that memcheck prints: one of each kind is run in a project, as it was printed.

mod others;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fixture::{ALIGNED, Project, Run, memcheck_with, own_directory, workspace};
use crate::report_data::report_data;
use crate::which_candle::git;

/// `leaks` is ignored, so that commands for it need `--run-ignored`. The figures of `differs` change
/// from process to process.
const TESTS: &str = r#"
use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false, max_growth = "0 B")]
#[ignore]
fn leaks(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn fails(_device: &Device) -> Result<()> {
    println!("a line of the test");
    candle_core::bail!("an error of the test")
}

#[mem_test(baseline = false)]
fn panics() {
    println!("a line before the panic");
    panic!("a panic of the test");
}

#[mem_test(baseline = false, max_peak = "1536 KiB")]
fn differs(trial: &mut Trial) {
    let before = std::fs::read("processes").unwrap_or_default();
    std::fs::write("processes", [before.as_slice(), b"."].concat()).unwrap();
    let mib = 2 - before.len() % 2;
    drop(before);
    trial.iterate(|_| drop(std::hint::black_box(vec![1_u8; mib << 20])));
}

#[mem_test]
fn first_new(device: &Device) -> Result<()> {
    Tensor::zeros(1024, DType::F32, device).map(drop)
}

#[mem_test]
fn second_new(device: &Device) -> Result<()> {
    Tensor::zeros(2048, DType::F32, device).map(drop)
}
"#;

/// A second package, without memcheck.
const PLAIN: &str = "[package]\nname = \"printed-plain\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                     [dependencies]\ncandle-core = \"0.11.1\"\n";

const ON_PLAIN: &str = "printed-plain = { path = \"plain\" }\n\n";
const RUNTIME: &str = "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n";

const FIRST: &str = "tests/snapshots/mem__first_new@cpu.snap";
const SECOND: &str = "tests/snapshots/mem__second_new@cpu.snap";
const STALE: &str = "tests/snapshots/mem__removed@cpu.snap";

/// A printed command, and the result of running it.
struct Printed {
    /// A variant of `PrintedCommand`.
    kind: &'static str,
    /// Parts of the command, in their order. It begins with the first.
    parts: &'static [&'static str],
    exit: u8,
    /// A part of its output.
    shows: &'static str,
}

const fn printed(
    kind: &'static str,
    parts: &'static [&'static str],
    exit: u8,
    shows: &'static str,
) -> Printed {
    Printed { kind, parts, exit, shows }
}

/// Those of the report and of the end of a run.
const OF_RUN: &[Printed] = &[
    printed("RunTest", &["run -p", " leaks --exact --run-ignored all"], 100, "leak: host grows by"),
    printed(
        "RunTestWithOutput",
        &["run -p", " fails --exact --no-capture"],
        100,
        "a line of the test",
    ),
    printed(
        "RunTestWithOutput",
        &["RUST_BACKTRACE=1 run -p", " panics --exact --no-capture"],
        100,
        "stack backtrace:",
    ),
    printed("RepeatTest", &["run -p", " differs --exact --repeat 30"], 100, "30 runs each"),
    printed("ProfileTest", &["profile -p", " leaks --exact --run-ignored all"], 100, "zeros"),
    printed("Explain", &["explain tensor-kept"], 0, "tensor-kept"),
    printed("ReviewSnapshots", &["review"], 5, "[1/2] mem::first_new (cpu)"),
];
const OF_REVIEW: &[Printed] = &[
    printed("AcceptSnapshots", &["accept mem__first_new@cpu.snap"], 0, FIRST),
    printed("RejectSnapshots", &["reject mem__second_new@cpu.snap"], 0, SECOND),
];
const OF_STALE_BASELINE: &[Printed] = &[printed("PruneBaselines", &["prune"], 0, STALE)];
const OF_EARLIER_COMMIT: &[Printed] = &[printed(
    "ReviewEarlierSnapshots",
    &["review --from", "pending-earlier/abc"],
    5,
    "second_new (cpu)",
)];
const OF_CI: &[Printed] = &[
    printed(
        "ReviewFetchedSnapshots",
        &["review mem__second_new@cpu.snap --from"],
        5,
        "second_new (cpu)",
    ),
    printed("AcceptFetchedSnapshots", &["accept --from"], 0, SECOND),
];
const OF_MISTYPED: &[Printed] = &[
    printed("Subcommand", &["list"], 0, "first_new"),
    printed("RunFilter", &["run lsit"], 4, "no test was selected by the filter `lsit`"),
];
const OF_PLAIN_PACKAGE: &[Printed] =
    &[printed("AddRuntime", &["init -p printed-plain"], 2, "memcheck-runtime = { path = ")];
const OF_INIT: &[Printed] = &[printed("RunFirstTest", &["-p printed-plain"], 0, "PASS")];
const OF_HISTORY: &[Printed] =
    &[printed("AppendToHistory", &["--history figures.jsonl"], 100, "not ok: ")];
/// `doctor` compiles candle, so that `proof::weekly` runs this command.
const OF_PROOF: &[Printed] = &[printed("CheckDevice", &["doctor --device cpu"], 0, "planted leak")];

const FAST: [&[Printed]; 9] = [
    OF_RUN,
    OF_REVIEW,
    OF_STALE_BASELINE,
    OF_EARLIER_COMMIT,
    OF_CI,
    OF_MISTYPED,
    OF_PLAIN_PACKAGE,
    OF_INIT,
    OF_HISTORY,
];

const PROGRAM: &str = "cargo memcheck ";

/// The commands in a text or in a page, without the name of the program. A variable that a command sets
/// stays before its first argument.
fn commands(text: &str) -> impl Iterator<Item = String> {
    text.match_indices(PROGRAM).filter_map(|(at, _)| {
        let arguments = text[at + PROGRAM.len()..].split(['\n', '`', '<', ',']).next()?;
        let before = text[..at].rsplit(['\n', '`', '>']).next()?;
        let set: Vec<&str> = before.split(' ').filter(|word| variable(word).is_some()).collect();
        Some([&set[..], &[arguments]].concat().join(" "))
    })
}

/// The name and the value of a word such as `RUST_BACKTRACE=1`.
fn variable(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    (is_name && !name.is_empty()).then_some((name, value))
}

/// The command that a row expects in a text.
#[track_caller]
fn find(row: &Printed, text: &str) -> String {
    let fits = |command: &String| {
        command.starts_with(row.parts[0]) && row.parts.iter().all(|part| command.contains(part))
    };
    let found = || commands(text).collect::<Vec<_>>().join("\n");
    commands(text).find(fits).unwrap_or_else(|| panic!("{} is not among\n{}", row.kind, found()))
}

/// Runs the commands of the rows, which `text` must contain.
#[track_caller]
fn run_all(project: &Project, rows: &[Printed], text: &str) {
    // A person replaces it by the folder of the downloaded files.
    let fetched = own_directory(project).join("pending").display().to_string();
    for row in rows {
        let words = shlex::split(&find(row, text)).expect("words of a shell");
        let set: Vec<_> = words.iter().map_while(|word| variable(word)).collect();
        let words = words[set.len()..].iter();
        let words = words.map(|word| if word == "DIR" { &fetched } else { word });
        let words: Vec<&str> = words.map(String::as_str).collect();
        let run = memcheck_with(project.path(), &words, &set).exits(row.exit);
        let output = all_output(&run);
        assert!(output.contains(row.shows), "{}: `{}` is not in\n{output}", row.kind, row.shows);
    }
}

fn all_output(run: &Run) -> String {
    format!("{}{}", run.stdout, run.stderr)
}

fn project(manifest: &str) -> Project {
    let project = Project::bare(manifest);
    project.write("tests/mem.rs", TESTS);
    project
        .write(".config/memcheck.toml", "device = [\"cpu\"]\n\n[default]\nmax_iterations = 16\n");
    project
}

#[test]
#[ignore = "slow: just all"]
fn each_kind_of_printed_command_runs_as_it_is_printed() {
    let project = project(&format!("{ON_PLAIN}{RUNTIME}"));
    project.write("plain/Cargo.toml", &format!("{ALIGNED}{PLAIN}"));
    project.write("plain/src/lib.rs", "//! A package without memory tests.\n");
    let report = ["run", "--run-ignored", "all", "--report", "html=report.html"];
    let run = all_output(&project.memcheck(&report).exits(100));
    let page = project.read("report.html");
    run_all(&project, OF_RUN, &(run + &commands_of_page(&page)));
    assert_eq!(
        OF_PROOF.iter().map(|row| find(row, &page)).collect::<Vec<_>>(),
        ["doctor --device cpu"]
    );
    let review = all_output(&project.memcheck(&["review"]).exits(5));
    run_all(&project, OF_REVIEW, &review);
    assert!(project.has(FIRST) && !project.has(SECOND));

    project.write(STALE, &project.read(FIRST));
    let stale = all_output(&project.memcheck(&["run", "first_new"]).exits(0));
    run_all(&project, OF_STALE_BASELINE, &stale);
    assert!(project.has(FIRST) && !project.has(STALE));

    let ci = ["run", "second_new", "--ci"];
    project.memcheck(&ci).exits(5);
    project_of_commit(&project, "abc");
    let run = all_output(&project.memcheck(&ci).exits(5));
    run_all(&project, OF_EARLIER_COMMIT, &run);
    run_all(&project, OF_CI, &run);
    assert!(project.has(SECOND));

    run_all(&project, OF_MISTYPED, &all_output(&project.memcheck(&["lsit"]).exits(2)));
    let history = ["history", "first_new", "--history", "figures.jsonl"];
    run_all(&project, OF_HISTORY, &all_output(&project.memcheck(&history).exits(2)));
    assert!(project.memcheck(&history).exits(0).stdout.contains("first_new"));
    add_the_runtime(&project);
}

/// The commands in the views of the tests of a report.
fn commands_of_page(page: &str) -> String {
    let tests = report_data(page);
    let lists = tests.iter().filter_map(|test| test["commands"].as_array());
    let commands = lists.flatten().filter_map(|next| next["command"].as_str());
    commands.map(|command| format!("{command}\n")).collect()
}

/// Marks the pending snapshots as those of a commit.
fn project_of_commit(project: &Project, commit: &str) {
    let file = own_directory(project).join("pending-commit");
    std::fs::write(file, commit).expect("the file is written");
}

/// Without a terminal, `init` shows the files and does not write them.
fn add_the_runtime(project: &Project) {
    let both = ["run", "-p", "printed-plain", "-p", project.name(), "first_new"];
    run_all(project, OF_PLAIN_PACKAGE, &all_output(&project.memcheck(&both).exits(0)));
    let init = ["init", "-p", "printed-plain", "--yes", "--no-workflow"];
    run_all(project, OF_INIT, &all_output(&project.memcheck(&init).exits(0)));
}

/// A command that a text names: its form, an example, the exit code and a part of the output.
type Named = (&'static str, &'static [&'static str], u8, &'static str);

/// The forms are those of `form`. The results and the archive of a row are used by the next ones.
const NAMED: &[Named] = &[
    ("--device", &["first_new", "--device", "cpu"], 0, "1 passed"),
    ("--repeat --exact", &["--repeat", "20", "--exact", "first_new"], 0, "20 runs each"),
    ("--fault-sweep --no-capture", &["--fault-sweep", "--no-capture", "first_new"], 0, "1 passed"),
    ("--help", &["--help"], 0, "Usage: cargo memcheck"),
    ("--message-format", &["--message-format", "json", "first_new"], 0, "test-finished"),
    ("--repeat", &["--repeat", "20", "second_new"], 0, "20 runs each"),
    ("archive --archive-file", &["archive", "--archive-file", "a.tar.zst"], 0, "a.tar.zst"),
    (
        "archive --archive-file --device",
        &["archive", "--archive-file", "a.tar.zst", "--device", "cpu"],
        0,
        "a.tar.zst",
    ),
    ("compare", &["compare", "HEAD"], 0, "HEAD"),
    ("explain", &["explain", "unknown-values"], 0, "unknown-values"),
    ("list --verbose", &["list", "--verbose"], 0, "first_new"),
    ("profile", &["profile", "first_new"], 0, "zeros"),
    ("profile --live", &["profile", "--live", "first_new"], 0, "zeros"),
    ("run", &["run", "first_new"], 0, "1 passed"),
    (
        "run --archive-file --results",
        &["run", "first_new", "--archive-file", "a.tar.zst", "--results", "of-archive"],
        0,
        "1 passed",
    ),
    ("run --results", &["run", "first_new", "--results", "of-run"], 0, "1 passed"),
    ("report", &["report", "of-run"], 0, "1 passed"),
    ("report --merge", &["report", "--merge", "of-run"], 0, "1 passed"),
];

#[test]
#[ignore = "slow: just all"]
fn each_form_of_a_command_in_a_text_runs() {
    let project = project(RUNTIME);
    git(project.path(), &["init", "--quiet"]);
    git(project.path(), &["add", "--all"]);
    git(project.path(), &["commit", "--quiet", "--message", "All"]);
    for (form, command, exit, shows) in NAMED {
        let output = all_output(&project.memcheck(command).exits(*exit));
        assert!(output.contains(shows), "{form}: `{shows}` is not in\n{output}");
    }
}

/// The subcommand and the flags; `None` for a subcommand that a text only names.
fn form(command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let is_subcommand = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let first = words.next().filter(is_subcommand)?;
    let is_name = !first.starts_with("--") && words.clone().next().is_none();
    let mut flags: Vec<&str> = words.filter(|word| word.starts_with("--")).collect();
    flags.sort_unstable();
    (!is_name).then(|| [vec![first], flags].concat().join(" "))
}

/// The forms of the commands in backticks in the sources of the product and in its pages.
fn forms() -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let packages = ["cargo-memcheck", "memcheck-core", "memcheck-runtime", "memcheck-limits"];
    let folders = packages.map(|package| workspace().join(package).join("src"));
    for folder in folders.into_iter().chain([workspace().join("memcheck-core/pages")]) {
        for path in files_below(&folder).into_iter().filter(|it| !it.ends_with("tests.rs")) {
            let text = std::fs::read_to_string(path).expect("a text");
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_comment = |line: &&str| line.trim_start().starts_with("//");
            let lines: Vec<&str> = product.lines().filter(|line| !is_comment(line)).collect();
            // A string of Rust can continue on the next line.
            let text = lines.join("\n").replace("\\\n", "");
            let quoted = text.split('`').filter_map(|it| it.strip_prefix("cargo memcheck "));
            forms.extend(quoted.filter_map(form));
        }
    }
    forms
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => files.extend(files_below(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

#[test]
fn each_form_of_a_command_in_a_text_has_a_run() {
    let run: BTreeSet<String> = NAMED.iter().map(|(form, ..)| (*form).to_owned()).collect();
    assert_eq!(forms(), run);
    assert_eq!(form("report --merge DIR …").as_deref(), Some("report --merge"));
    assert_eq!(form("accept"), None, "the name of a subcommand");
    for (expected, command, ..) in NAMED {
        let own = form(&command.join(" ")).unwrap_or_default();
        let begins_with_a_filter = command[0] == "first_new";
        assert!(begins_with_a_filter || own == *expected, "{own} is not {expected}");
    }
}

/// The variants of `PrintedCommand`.
fn kinds(source: &str) -> BTreeSet<&str> {
    let (_, rest) = source.split_once("pub(crate) enum PrintedCommand {\n").expect("the kinds");
    let (variants, _) = rest.split_once("\n}\n").expect("the end");
    let lines = variants.lines().map(str::trim);
    lines.filter_map(|line| line.strip_suffix(',')).filter(|name| !name.contains(' ')).collect()
}

#[test]
fn each_kind_of_printed_command_has_a_run() {
    let path = workspace().join("cargo-memcheck/src/invocation/printed.rs");
    let source = std::fs::read_to_string(path).expect("the source");
    let run: BTreeSet<&str> =
        FAST.into_iter().chain([OF_PROOF]).flatten().map(|row| row.kind).collect();
    assert_eq!(kinds(&source), run);
    let more = source.replace("    RunFilter,\n}", "    RunFilter,\n    NewKind,\n}");
    let new: Vec<_> = kinds(&more).difference(&run).copied().collect();
    assert_eq!(new, ["NewKind"]);
}

/// The commands of a text are found, and only where they are.
#[test]
fn a_missing_or_different_command_is_not_found() {
    let text =
        "leaks: leak  cargo memcheck profile -p a leaks --exact\nor `cargo memcheck list`, so";
    assert_eq!(commands(text).collect::<Vec<_>>(), ["profile -p a leaks --exact", "list"]);
    let set = "KIND=1 of\nfails: test-failed  RUST_BACKTRACE=1 cargo memcheck run a\n";
    assert_eq!(commands(set).collect::<Vec<_>>(), ["RUST_BACKTRACE=1 run a"]);
    let row = printed("ProfileTest", &["profile -p", " other "], 0, "");
    assert!(std::panic::catch_unwind(|| find(&row, text).len()).is_err());
}
