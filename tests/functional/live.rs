//! `profile --live`: the memory of a test or a program while it runs.

use std::process::Command;
use std::sync::OnceLock;

use crate::fixture::{Programs, Project, Run, command};

/// Holds 32 MiB, and 1 MiB more every 100 ms, for three seconds, as the test in `programs/live.rs`.
const PROGRAM: &str = "
use memcheck_runtime as _;
fn main() {
    let model = vec![1_u8; 32 << 20];
    let mut kept = Vec::with_capacity(30);
    for _ in 0..30 {
        kept.push(vec![1_u8; 1 << 20]);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    println!(\"from the program\");
    assert!(model.len() + kept.len() > 0);
}
";

fn project() -> &'static Project {
    static PROJECT: OnceLock<Project> = OnceLock::new();
    PROJECT.get_or_init(|| {
        let manifest = "memcheck-runtime = { path = \"RUNTIME\" }\n";
        let project = Project::package("live-program", manifest);
        project.write("src/main.rs", PROGRAM);
        project
    })
}

/// The lines of the view, which must show a level that rises, its rate and the largest call site.
#[track_caller]
fn assert_rises(run: &Run, name: &str, site: &str) {
    let lines: Vec<&str> =
        run.stderr.lines().filter(|line| line.starts_with(&format!("live: {name}"))).collect();
    let count = lines.len();
    assert!((2..=9).contains(&count), "{count} lines in\n{}", run.stderr);
    // The program may not have begun at the time of the first line.
    let lines: Vec<&str> = lines.into_iter().filter(|line| line.contains(" MiB live (")).collect();
    assert!(lines.len() >= 2, "{}", run.stderr);
    let level = |line: &str| -> f64 {
        let (_, after) = line.split_once("; host ").expect("the space");
        let (level, _) = after.split_once(" MiB live").expect("MiB");
        level.parse().expect("a number")
    };
    let levels: Vec<f64> = lines.iter().map(|line| level(line)).collect();
    assert!(levels.is_sorted() && levels[0] >= 32.0, "{levels:?}");
    let last = lines.last().expect("a line");
    assert!(last.contains(" MiB/s)"), "{last}");
    assert!(last.contains(&format!("largest: 32.0 MiB at {site} ")), "{last}");
}

#[test]
#[ignore = "slow: just all"]
fn a_live_view_without_a_terminal_is_a_line_per_second_and_changes_no_figure() {
    let programs = Programs::of("live");
    let test = ["profile", "live::growing", "--device", "cpu", "--message-format", "json"];
    let live = programs.memcheck(&[&test[..], &["--live"]].concat()).exits(0);
    let site = format!("{}:{}", programs.source(), programs.line("model"));
    assert_rises(&live, "live::growing", &site);
    let plain = programs.memcheck(&test).exits(0);
    assert!(!plain.stderr.contains("live: "), "{}", plain.stderr);
    let spaces = |run: &Run| run.json()[0]["spaces"].clone();
    assert_eq!(spaces(&live), spaces(&plain));
    assert!(live.stderr.contains("from the test"), "{}", live.stderr);

    let project = project();
    let name = project.name().to_owned();
    let program = ["profile", "--bin", &name, "--device", "cpu", "--live"];
    let run = project.memcheck(&program).exits(0).prints("from the program");
    assert_rises(&run, &name, "src/main.rs:4");
}

#[test]
fn a_terminal_shows_the_live_view_in_place_and_the_output_at_the_end() {
    let project = project();
    let name = project.name().to_owned();
    let own = command(project.path(), &["profile", "--bin", &name, "--device", "cpu", "--live"]);
    let words: Vec<String> = std::iter::once(own.get_program())
        .chain(own.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 100 rows 40; {}", words.join(" ")), "/dev/null"]);
    script.current_dir(project.path());
    for (variable, value) in own.get_envs() {
        match value {
            Some(value) => script.env(variable, value),
            None => script.env_remove(variable),
        };
    }
    script.env("TERM", "xterm");
    let Ok(output) = script.output() else {
        return println!("skipped: `script`, which makes a terminal, is not installed");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for part in ["MiB live", "MiB/s allocated", "32.0 MiB         1 block  src/main.rs:4"] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    // The area is drawn again and again.
    assert!(text.matches("MiB/s allocated").count() > 2, "{text}");
    assert!(!text.contains("live: "), "{text}");
    let view = text.rfind("MiB/s allocated").expect("a view");
    assert!(text.rfind("from the program").expect("the output") > view, "{text}");
}
