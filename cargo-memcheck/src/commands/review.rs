//! `cargo memcheck review`: shows the pending snapshots one by one, and asks for a decision.
//! Without a terminal it changes no files, and prints the differences and the commands that decide
//! about each snapshot.

use anyhow::Context;
use console::{Key, Term};
use memcheck_core::wire::exit;

use super::pending;
use crate::baselines::{self, Checked, SnapshotError, SnapshotFile};
use crate::build::workspace::Workspace;
use crate::invocation::cli::SnapshotArgs;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::{json, style};
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReviewDecision {
    Accept,
    Reject,
    Skip,
    Stop,
}

pub(super) fn review(args: &SnapshotArgs) -> Result<u8, Failure> {
    let (workspace, files) = pending::gather(args)?;
    let term = Term::stderr();
    let asks = term.is_term() && console::user_attended();
    let (format, verbosity) = (args.output.form.message_format, args.output.verbosity());
    let mut left = 0;
    for (number, file) in files.iter().enumerate() {
        let checked = baselines::check(&file.path);
        let of_all = format!("[{}/{}]", number + 1, files.len());
        show(file, &checked, &workspace, &of_all, verbosity);
        let decision = if asks { ask(&term, checked.is_ok())? } else { ReviewDecision::Skip };
        match (decision, checked) {
            (ReviewDecision::Accept, Ok(checked)) => {
                baselines::accept(file, &checked)?;
                json::snapshot(format, "accepted", &file.target);
                print_decision(verbosity, "accepted", &pending::shown(&file.target, &workspace));
            }
            (ReviewDecision::Accept, Err(error)) => return Err(error.into()),
            (ReviewDecision::Reject, _) => {
                baselines::reject(file)?;
                json::snapshot(format, "rejected", &file.path);
                print_decision(verbosity, "rejected", &pending::shown(&file.path, &workspace));
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
    Ok(if left == 0 { exit::OK } else { exit::DENIED })
}

fn show(
    file: &SnapshotFile,
    checked: &Result<Checked, SnapshotError>,
    workspace: &Workspace,
    number: &str,
    verbosity: Verbosity,
) {
    let family = file.family.map_or("?", |family| family.name());
    eprint_line!("{} {} ({family})", style::strong(number), style::strong(&file.test));
    eprint_line!("{}", style::dim(&pending::shown(&file.target, workspace)));
    match checked {
        Ok(_) if verbosity == Verbosity::Quiet => {}
        Ok(new) => {
            eprint_line!("{}", baselines::diff::text(file, new));
            if verbosity == Verbosity::Verbose {
                eprint_line!("whole snapshot:\n{}", new.body.to_yaml().trim_end());
            }
        }
        Err(error) => eprint_line!("{} {error}", style::error("error:")),
    }
}

fn print_decision(verbosity: Verbosity, what: &str, path: &str) {
    if verbosity > Verbosity::Quiet {
        eprint_line!("{what} {path}\n");
    }
}

fn commands(args: &SnapshotArgs, file: &SnapshotFile) {
    let name = file.target.file_name().unwrap_or_default().to_string_lossy();
    let from =
        args.from.as_ref().map(|from| format!(" --from '{}'", from.display())).unwrap_or_default();
    for word in ["accept", "reject"] {
        eprint_line!("  {}", style::hint(&format!("cargo memcheck {word} '{name}'{from}")));
    }
    eprint_line!("");
}

fn ask(term: &Term, sound: bool) -> anyhow::Result<ReviewDecision> {
    let keys =
        if sound { "a accept, r reject, s skip, q quit" } else { "r reject, s skip, q quit" };
    loop {
        eprint_line!("{}", style::hint(keys));
        match term.read_key().context("reading a key")? {
            Key::Char('a' | 'A') if sound => return Ok(ReviewDecision::Accept),
            Key::Char('r' | 'R') => return Ok(ReviewDecision::Reject),
            Key::Char('s' | 'S') => return Ok(ReviewDecision::Skip),
            Key::Char('q' | 'Q') | Key::Escape | Key::CtrlC => return Ok(ReviewDecision::Stop),
            _ => {}
        }
    }
}
