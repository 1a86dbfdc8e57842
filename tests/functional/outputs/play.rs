//! Runs the steps of a page and puts the outputs into its blocks.

use std::collections::BTreeMap;
use std::io::Read;

use anstream::adapter::strip_str;

use super::page::{Action, Place, Run, steps};
use super::picture::pictures;
use crate::fixture::{Project, command, target, workspace};

/// The page with the outputs of real runs, and the pictures by their paths.
pub(super) fn play(page: &str) -> (String, Vec<(String, String)>) {
    let mut projects = BTreeMap::new();
    let mut drawn = Vec::new();
    let mut played = String::new();
    let mut end = 0;
    for step in steps(page) {
        let block = &page[step.text.clone()];
        let shown = match &step.action {
            Action::Write { file, project } => {
                of(&mut projects, project).write(file, block);
                block.to_owned()
            }
            Action::Change { file, project } => {
                let project = of(&mut projects, project);
                project.write(file, &changed(&project.read(file), block));
                block.to_owned()
            }
            Action::Run(run) => {
                let typed = typed(block);
                if let Some(path) = &run.picture {
                    let output = output(&mut projects, run, &format!("{typed} --color always"));
                    drawn.extend(pictures(path, typed, &output));
                }
                let output = shown(run, &output(&mut projects, run, typed));
                let new = format!("$ {typed}\n{output}");
                // A block that differs in its durations only stays as it is.
                if stable(&new) == stable(block) { block.to_owned() } else { new }
            }
        };
        played.push_str(&page[end..step.text.start]);
        played.push_str(&shown);
        end = step.text.end;
    }
    played.push_str(&page[end..]);
    (played, drawn)
}

fn of<'a>(projects: &'a mut BTreeMap<String, Project>, name: &str) -> &'a Project {
    projects.entry(name.to_owned()).or_insert_with(|| Project::named(name))
}

/// The command of a block: its first line, and the following ones if a backslash ends it.
fn typed(block: &str) -> &str {
    let command = block.strip_prefix("$ ").expect("the block begins with its command");
    let ends = command.match_indices('\n').map(|(at, _)| at);
    let end = ends.into_iter().find(|at| !command[..*at].ends_with('\\'));
    &command[..end.unwrap_or(command.len())]
}

/// The text after a diff without line numbers: its lines with `-` become its lines with `+`.
fn changed(text: &str, diff: &str) -> String {
    let side = |sign| -> String {
        let lines = diff.split_inclusive('\n').filter_map(|line| line.strip_prefix(sign));
        lines.collect()
    };
    let (old, new) = (side('-'), side('+'));
    assert_eq!(text.matches(&old).count(), 1, "the file has these lines once:\n{old}\n{text}");
    text.replace(&old, &new)
}

/// The output of a command, stdout and stderr as a terminal shows them.
fn output(projects: &mut BTreeMap<String, Project>, run: &Run, typed: &str) -> String {
    let folder = match &run.place {
        Place::Project(name) => of(projects, name).path().to_owned(),
        Place::Folder(path) => workspace().join(path),
    };
    let words = shlex::split(&typed.replace("\\\n", " ")).expect("words");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["cargo", "memcheck", arguments @ ..] = &words[..] else {
        panic!("not a command of memcheck: {typed}");
    };
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = command(&folder, arguments);
    command.stdout(writer.try_clone().expect("a pipe")).stderr(writer);
    let mut child = command.spawn().expect("cargo-memcheck starts");
    // Otherwise this process keeps the pipe open.
    drop(command);
    let mut output = String::new();
    reader.read_to_string(&mut output).expect("text");
    let code = child.wait().expect("cargo-memcheck ends").code();
    assert_eq!(code, Some(run.exit.into()), "{typed}\n{output}");
    for path in [workspace(), target()] {
        assert!(!output.contains(path.to_str().unwrap()), "a path of this machine:\n{output}");
    }
    output.split_inclusive('\n').filter(|line| !is_about_the_build(line)).collect()
}

/// The part of an output that the block shows. An ellipsis stands for the rest.
fn shown(run: &Run, output: &str) -> String {
    let (first, last) = run.lines.unwrap_or((1, usize::MAX));
    let mut shown = String::new();
    for (number, line) in (1..).zip(output.lines()).filter(|(number, _)| *number >= first) {
        if number > last {
            shown.push_str("…\n");
            break;
        }
        shown.push_str(if run.without_fields { without_fields(line) } else { line });
        shown.push('\n');
    }
    shown
}

/// An event without its fields, which begin with the first `name=value`.
fn without_fields(line: &str) -> &str {
    let mut ends = line.match_indices(' ').map(|(at, _)| at);
    let is_field = |at: &usize| {
        let word = line[at + 1..].split(' ').next().unwrap_or_default();
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(char::is_alphabetic))
    };
    ends.find(is_field).map_or(line, |end| &line[..end])
}

/// True for the lines about the build. They depend on what is built already and on the other
/// processes that wait for cargo's locks.
fn is_about_the_build(line: &str) -> bool {
    let plain = strip_str(line).to_string();
    let plain = plain.trim_start_matches('\r');
    let cargo = ["Adding", "Blocking", "Downloaded", "Downloading", "Locking", "Updating"];
    cargo.iter().any(|word| plain.starts_with(&format!("{word:>12} ")))
        || ["building ", "built "].iter().any(|words| plain.starts_with(words))
}

/// How many iterations fit into `evidence` depends on the machine.
fn without_last_iteration(line: &str) -> String {
    const BEFORE: &str = "memory still grows in iteration ";
    let Some((before, number)) = line.split_once(BEFORE) else { return line.to_owned() };
    let after = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
    format!("{before}{BEFORE}NUMBER{after}")
}

/// A text without the parts that may differ between two runs: durations, the last iteration of a test
/// that is followed for a time, and the lines about the build.
pub(super) fn stable(text: &str) -> String {
    let mut stable = String::new();
    for line in text.split_inclusive('\n').filter(|line| !is_about_the_build(line)) {
        let line = &without_last_iteration(line);
        let mut word_starts = true;
        let mut rest: &str = line;
        while let Some(first) = rest.chars().next() {
            let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let unit = rest[number..].strip_prefix('s').filter(|after| {
                !after.starts_with(|next: char| next.is_alphanumeric() || next == '_')
            });
            match unit.filter(|_| number > 0 && word_starts) {
                Some(after) => {
                    // Durations in brackets are padded.
                    let end = stable.trim_end_matches(' ').len();
                    if stable[..end].ends_with('[') {
                        stable.truncate(end);
                    }
                    stable.push_str("TIMEs");
                    rest = after;
                }
                None => {
                    stable.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
            word_starts = !(first.is_alphanumeric() || matches!(first, '.' | '_'));
        }
    }
    stable
}
