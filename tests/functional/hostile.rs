//! Text of a stranger: the output, the spans and the errors of a test, names in results, and the
//! names and folders of snapshots. None of it may act on the terminal, on a CI runner, on a shell
//! or on files outside the workspace. Reports are unit tests (`presentation/presenters/hostile.rs`).

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::fixture::{Programs, Project, Run, memcheck_with};

const GITHUB: [(&str, &str); 1] = [("GITHUB_ACTIONS", "true")];

/// The commands that GitHub's runner would carry out.
fn live_commands(log: &str) -> Vec<String> {
    let mut live = Vec::new();
    let mut stopped: Option<String> = None;
    for line in log.split(['\n', '\r']) {
        let new = line.trim_start().strip_prefix("::").and_then(|rest| rest.split_once("::"));
        let old = line.split_once("##[").and_then(|(_, rest)| rest.split_once(']'));
        let Some((head, data)) = new.or(old) else { continue };
        match (&stopped, head) {
            (Some(token), head) if head == token => stopped = None,
            (Some(_), _) => {}
            (None, "stop-commands") => stopped = Some(data.to_owned()),
            (None, _) => live.push(line.to_owned()),
        }
    }
    live
}

/// The begin of our annotations.
fn annotation(programs: &Programs) -> String {
    format!("::error file={},line=", programs.source())
}

/// Asserts that the log has only our annotations, and only colors.
#[track_caller]
fn assert_harmless(programs: &Programs, run: &Run) {
    let live = live_commands(&run.stderr);
    assert!(!live.is_empty(), "no annotation:\n{}", run.stderr);
    for command in live {
        assert!(command.starts_with(&annotation(programs)), "{command}");
        assert!(command.contains(",title="), "{command}");
    }
    let mut parts = run.stderr.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('m').expect("a color");
        assert!(code.chars().all(|c| c.is_ascii_digit() || c == ';'), "{code:?}");
        plain.push_str(rest);
    }
    let raw = |c: &char| *c != '\n' && (c.is_control() || "\u{202e}\u{fffe}".contains(*c));
    assert_eq!(plain.chars().find(raw), None, "{plain}");
    assert_eq!(live_commands(&run.stdout), [""; 0]);
    assert!(!run.stdout.chars().any(|c| raw(&c)), "{}", run.stdout);
}

#[test]
fn hostile_text_of_a_test_and_of_results_acts_on_nothing() {
    let programs = Programs::of("hostile");
    let run = |arguments: &[&str]| {
        let device = ["run", "--device", "cpu", "--no-ci", "--color", "always", "--verbose"];
        let all = [&device[..], arguments, &["hostile::"]].concat();
        programs.memcheck_with(&all, &GITHUB)
    };
    let json = ["--message-format", "json"];
    let first = run(&json).exits(100);
    assert_harmless(&programs, &first);
    let colors = "\x1b[32mgreen\x1b[0m \\u{1b}]52;c;cm0gLXJmIH4=\\u{7} \\u{1b}]0;title\\u{7}";
    let first = first.prints(colors).prints("\\u{3a}:error::printed").prints("\\u{202e}<script>");
    let leaky = first.test("leaky");
    let findings = leaky["findings"].as_array().unwrap();
    let leak = findings.iter().find(|finding| finding["code"] == "leak").expect("a leak");
    let scope = leak["sites"][0]["scope"].as_str().unwrap();
    assert!(scope.contains("\n::error::span <script>|"), "JSON has the true name: {scope:?}");

    // The output goes to the terminal unchanged, while the runner accepts no commands.
    let shown = run(&["--no-capture"]).exits(100);
    assert!(shown.stderr.contains("\n   ::set-env name=PATH::/evil"), "{}", shown.stderr);
    for command in live_commands(&shown.stderr) {
        assert!(command.starts_with(&annotation(&programs)), "{command}");
    }
    assert!(!live_commands(&shown.stderr).is_empty(), "the annotation is still a command");

    // Results that another machine has sent.
    let results = programs.read("results/results.jsonl");
    let name = r#""name":"a\u001b]0;title\u0007\n::error::name|<script>`x`""#;
    let hostile = results.replace(r#""name":"hostile::leaky""#, name);
    assert_ne!(hostile, results);
    programs.write("results/results.jsonl", &hostile);
    let report = ["report", "results", "--color", "always", "--annotations", "github"];
    let all = [&report[..], &json].concat();
    let replayed = memcheck_with(programs.path(), &all, &GITHUB).exits(100);
    assert_harmless(&programs, &replayed);
    let name = "a\u{1b}]0;title\u{7}\n::error::name|<script>`x`";
    assert_eq!(replayed.test(name)["status"], "failed");
    replayed.prints("a\\u{1b}]0;title\\u{7}\\n::error::name|<script>`x`");
}

const PENDING: &str = "---\nsource: tests/mem.rs\ninfo:\n  memcheck: 1\n  candle: 0.11.1\n  profile: debug\n  iterations: 10\n  warmup: 2\n---\nhost:\n  growth: 0\n  peak_allocated: 4096\n  retained: 0\n  setup: 4096\n";

#[test]
fn snapshots_of_a_stranger_reach_only_the_workspace_and_no_shell() {
    let project = Project::new("");
    let outside = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), project.path().join("linked")).expect("a link");
    symlink("nowhere", project.path().join("dangling")).expect("a link");
    project.write("pending/tests/snapshots/mem__a@cpu.snap.new", PENDING);
    for (folder, is_link) in [("linked/deep", true), ("dangling", true), ("tests", false)] {
        let file = format!("pending/{folder}/snapshots/mem__b@cpu.snap.new");
        project.write(&file, PENDING);
        let run = project.memcheck(&["accept", "mem::b", "--from", "pending"]);
        if is_link {
            run.exits(2).prints("is outside the workspace").prints("no snapshot was changed");
            assert!(std::fs::read_dir(outside.path()).unwrap().next().is_none());
            assert!(!project.has("nowhere"));
            std::fs::remove_file(project.path().join(file)).unwrap();
        } else {
            run.exits(0);
            assert!(project.has("tests/snapshots/mem__b@cpu.snap"));
        }
    }
    // A link in the place of a baseline is replaced, and the file behind it stays.
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, project.path().join("tests/snapshots/mem__a@cpu.snap")).unwrap();
    project.memcheck(&["accept", "--from", "pending"]).exits(0);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(project.read("tests/snapshots/mem__a@cpu.snap"), PENDING);

    let name = "$(touch pwned); 'x' \u{1b}]0;t\u{7}@cpu.snap";
    project.write(&format!("tests/snapshots/{name}.new"), PENDING);
    let review = project.memcheck(&["review", "--color", "always"]).exits(5);
    assert!(!review.stderr.contains("\x1b]"), "{}", review.stderr);
    let printed = review.stderr.lines().find(|line| line.contains("cargo memcheck accept"));
    let printed = printed.expect("a command").replace("\x1b[36m", "").replace("\x1b[0m", "");
    let words = shlex::split(printed.trim()).expect("words of a shell");
    let shown = name.replace('\u{1b}', "\\u{1b}").replace('\u{7}', "\\u{7}");
    assert_eq!(words, ["cargo", "memcheck", "accept", &shown]);

    // 200 kB of nesting.
    for text in [
        format!("---\ninfo: {}\n---\nhost:\n", "[".repeat(200_000)),
        PENDING.replace("4096\n", &format!("{}\n", "[".repeat(200_000))),
    ] {
        project.write("tests/snapshots/mem__c@cpu.snap.new", &text);
        let begun = Instant::now();
        project.memcheck(&["accept", "mem::c"]).exits(2).prints("is not a snapshot");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
