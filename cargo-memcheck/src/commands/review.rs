//! `cargo memcheck review`: shows the pending snapshots one by one, and asks for a decision.
//! Without a terminal it changes no files, and prints the differences and the commands that decide
//! about each snapshot.

use std::path::Path;

use anyhow::Context;
use console::{Key, Term};
use memcheck_core::wire::exit;

use crate::baselines::{self, CheckedSnapshot, SnapshotError, SnapshotFile, selected};
use crate::build::workspace::Workspace;
use crate::invocation::cli::SnapshotArgs;
use crate::invocation::printed::PrintedCommand;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::{json, style};
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReviewDecision {
    Accept,
    AcceptAll,
    Reject,
    Skip,
    Stop,
}

pub(super) fn review(args: &SnapshotArgs) -> Result<u8, Failure> {
    let (workspace, files) = selected::select_pending(args)?;
    let term = Term::stderr();
    let asks = term.is_term() && console::user_attended();
    let (format, verbosity) = (args.output.form.message_format, args.output.verbosity());
    let (mut left, mut accepts_all) = (0, false);
    for (number, file) in files.iter().enumerate() {
        let checked = baselines::check(&file.path);
        let of_all = format!("[{}/{}]", number + 1, files.len());
        show(file, &checked, &workspace, &of_all, verbosity);
        let decision = match (accepts_all, &checked) {
            (true, Ok(_)) => ReviewDecision::Accept,
            // An invalid snapshot cannot be accepted, so that it needs a decision.
            _ if asks => ask(&term, checked.is_ok())?,
            _ => ReviewDecision::Skip,
        };
        let decision = match decision {
            ReviewDecision::AcceptAll => {
                accepts_all = true;
                ReviewDecision::Accept
            }
            other => other,
        };
        match (decision, checked) {
            (ReviewDecision::Accept | ReviewDecision::AcceptAll, Ok(checked)) => {
                baselines::accept(file, &checked)?;
                json::snapshot(format, "accepted", &file.target);
                print_decision(verbosity, "accepted", &selected::shown(&file.target, &workspace));
            }
            (ReviewDecision::Accept | ReviewDecision::AcceptAll, Err(error)) => {
                return Err(error.into());
            }
            (ReviewDecision::Reject, _) => {
                baselines::reject(file)?;
                json::snapshot(format, "rejected", &file.path);
                print_decision(verbosity, "rejected", &selected::shown(&file.path, &workspace));
            }
            (ReviewDecision::Skip, _) => {
                left += 1;
                json::snapshot(format, "pending", &file.path);
                if !asks && verbosity > Verbosity::Quiet {
                    commands(args, file);
                }
            }
            (ReviewDecision::Stop, _) => {
                let undecided = &files[number..];
                for file in undecided {
                    json::snapshot(format, "pending", &file.path);
                }
                left += undecided.len();
                break;
            }
        }
    }
    if !asks && left > 0 && verbosity > Verbosity::Quiet {
        eprint_line!("{} {}", style::warning("note:"), undecided(left));
    }
    Ok(if left == 0 { exit::OK } else { exit::DENIED })
}

/// The reason why no question was asked.
fn undecided(left: usize) -> String {
    let (snapshots, stay) = match left {
        1 => ("snapshot", "stays"),
        _ => ("snapshots", "stay"),
    };
    format!(
        "{left} {snapshots} {stay} pending, because a review needs a terminal to ask: run the commands \
         above, or review in a terminal"
    )
}

fn show(
    file: &SnapshotFile,
    checked: &Result<CheckedSnapshot, SnapshotError>,
    workspace: &Workspace,
    number: &str,
    verbosity: Verbosity,
) {
    let family = file.family.map_or("?", |family| family.name());
    eprint_line!("{} {} ({family})", style::strong(number), style::strong(&file.test));
    eprint_line!("{}", style::dim(&selected::shown(&file.target, workspace)));
    match checked {
        Ok(_) if verbosity == Verbosity::Quiet => {}
        Ok(new) => {
            eprint_line!("{}", colored(&baselines::diff::text(file, new)));
            if verbosity == Verbosity::Verbose {
                eprint_line!("whole snapshot:\n{}", new.body.to_yaml().trim_end());
            }
        }
        Err(error) => eprint_line!("{} {error}", style::error("error:")),
    }
}

/// A figure that is higher is a warning, and one that is lower is good.
fn colored(changes: &str) -> String {
    let line = |line: &str| {
        let last = line.split_whitespace().rev().find(|word| !word.starts_with('('));
        match last.and_then(|word| word.chars().next()) {
            _ if line.starts_with("at the peak: -") => style::good(line),
            _ if line.starts_with("at the peak: +") || line.starts_with('+') => {
                style::warning(line)
            }
            _ if line.starts_with('-') => style::good(line),
            Some('+') => style::warning(line),
            Some('-') => style::good(line),
            _ => line.to_owned(),
        }
    };
    changes.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn print_decision(verbosity: Verbosity, what: &str, path: &str) {
    if verbosity > Verbosity::Quiet {
        eprint_line!("{what} {path}\n");
    }
}

fn commands(args: &SnapshotArgs, file: &SnapshotFile) {
    // The variable and the configuration apply to these commands too.
    let flags =
        [("--from", args.from.as_deref()), ("--baselines", args.baselines.baselines.as_deref())];
    for kind in [PrintedCommand::AcceptSnapshots, PrintedCommand::RejectSnapshots] {
        eprint_line!("  {}", style::hint(&command(kind, file, flags)));
    }
    eprint_line!("");
}

fn command(
    kind: PrintedCommand,
    file: &SnapshotFile,
    folders: [(&str, Option<&Path>); 2],
) -> String {
    let name = file.target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = |(flag, folder): (&str, Option<&Path>)| {
        Some([flag.to_owned(), folder?.to_string_lossy().into_owned()])
    };
    let flags = folders.into_iter().filter_map(words).flatten().collect();
    kind.of_snapshots(&[name], flags)
}

const KEYS: &str =
    "a accept, A accept this and all that follow, r reject, s skip, q quit, ? explain the keys";
const KEYS_OF_INVALID: &str = "r reject, s skip, q quit, ? explain the keys";
const EXPLAINED: &str = "  a  the new figures become the baseline
  A  the same for this snapshot and all that follow
  r  the pending snapshot is removed, and the baseline stays
  s  the snapshot stays pending
  q  this snapshot and all that follow stay pending";

fn ask(term: &Term, sound: bool) -> anyhow::Result<ReviewDecision> {
    let keys = if sound { KEYS } else { KEYS_OF_INVALID };
    eprint_line!("{}", style::hint(keys));
    loop {
        match decision(&term.read_key().context("reading a key")?, sound) {
            Ok(decision) => return Ok(decision),
            Err(Some(key)) => {
                eprint_line!("{} `{key}` is not one of the keys: {keys}", style::warning("?"));
            }
            Err(None) => eprint_line!("{EXPLAINED}"),
        }
    }
}

/// An unknown key is an error with its name; `?` is one without a name.
fn decision(key: &Key, sound: bool) -> Result<ReviewDecision, Option<String>> {
    match key {
        Key::Char('a') if sound => Ok(ReviewDecision::Accept),
        Key::Char('A') if sound => Ok(ReviewDecision::AcceptAll),
        Key::Char('r' | 'R') => Ok(ReviewDecision::Reject),
        Key::Char('s' | 'S') => Ok(ReviewDecision::Skip),
        Key::Char('q' | 'Q') | Key::Escape | Key::CtrlC => Ok(ReviewDecision::Stop),
        Key::Char('?' | 'h' | 'H') => Err(None),
        Key::Char(other) => Err(Some(other.to_string())),
        other => Err(Some(format!("{other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named_and_an_invalid_snapshot_cannot_be_accepted() {
        assert_eq!(decision(&Key::Char('a'), true), Ok(ReviewDecision::Accept));
        assert_eq!(decision(&Key::Char('A'), true), Ok(ReviewDecision::AcceptAll));
        for key in ['a', 'A'] {
            assert_eq!(decision(&Key::Char(key), false), Err(Some(key.to_string())));
        }
        assert_eq!(decision(&Key::Char('x'), true), Err(Some("x".to_owned())));
        assert_eq!(decision(&Key::Enter, true), Err(Some("Enter".to_owned())));
        assert_eq!(decision(&Key::Char('?'), true), Err(None));
        assert_eq!(decision(&Key::Escape, true), Ok(ReviewDecision::Stop));
    }

    #[test]
    fn the_snapshots_that_no_one_was_asked_about_are_counted() {
        assert!(undecided(1).starts_with("1 snapshot stays pending, because"));
        assert!(undecided(2).starts_with("2 snapshots stay pending, because"));
    }

    #[test]
    fn a_printed_command_has_the_name_of_the_file_as_one_word() {
        for name in ["a@cpu.snap", "$(touch x)@cpu.snap", "it's; id #@cpu.snap", "-rf@cpu.snap"] {
            let path = Path::new("/ws/snapshots").join(name);
            let file =
                SnapshotFile { target: path.clone(), path, test: String::new(), family: None };
            let folders = ["it's $(id)", "a b"];
            let flags = [("--from", folders[0]), ("--baselines", folders[1])];
            let flags = flags.map(|(flag, folder)| (flag, Some(Path::new(folder))));
            let words =
                shlex::split(&command(PrintedCommand::AcceptSnapshots, &file, flags)).unwrap();
            for word in [name, folders[0], folders[1]] {
                assert!(words.contains(&word.to_owned()), "{words:?}");
            }
            assert!(words.len() <= 9, "{words:?}");
        }
    }
}
