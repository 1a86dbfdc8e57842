//! `cargo memcheck completions SHELL`: prints the script of a shell on stdout. The scripts of bash, zsh
//! and fish ask this command for the candidates of each line, so that they know the tests of the last
//! run, and work for `cargo memcheck`, which people type. Those of other shells are clap's.

use std::ffi::{OsStr, OsString};

use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use memcheck_core::cards::CARDS;
#[cfg(feature = "comparison")]
use memcheck_core::input;
use memcheck_core::wire::exit;

use crate::build::workspace::Places;
#[cfg(feature = "comparison")]
use crate::execution::lock_file::LockedPackages;
use crate::invocation::cli;
use crate::invocation::values::CargoOptions;
use crate::presentation::results;
use crate::system::error::Failure;
use crate::system::printing::print_raw;

const BASH: &str = include_str!("bash.sh");
const ZSH: &str = include_str!("zsh.sh");
const FISH: &str = include_str!("script.fish");

pub(super) fn completions(shell: Shell) -> Result<u8, Failure> {
    match shell {
        Shell::Bash => print_raw(BASH),
        Shell::Zsh => print_raw(ZSH),
        Shell::Fish => print_raw(FISH),
        _ => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut cli::command(), "cargo-memcheck", &mut script);
            print_raw(&String::from_utf8_lossy(&script));
        }
    }
    Ok(exit::OK)
}

/// `complete --shell SHELL -- WORDS…`: prints the candidates for the last word, one on each line, with
/// their descriptions in the form of the shell.
pub(super) fn candidates(shell: Shell, words: &[OsString]) -> Result<u8, Failure> {
    let mut lines = String::new();
    for candidate in found(words) {
        let value = candidate.get_value().to_string_lossy();
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        match shell {
            Shell::Zsh => lines.push_str(&format!("{}:{help}\n", value.replace(':', "\\:"))),
            Shell::Fish => lines.push_str(&format!("{value}\t{help}\n")),
            _ => lines.push_str(&format!("{value}\n")),
        }
    }
    print_raw(&lines);
    Ok(exit::OK)
}

/// `words` starts with the name of the program, and `cargo` and `memcheck` may come first.
fn found(words: &[OsString]) -> Vec<CompletionCandidate> {
    let mut words: Vec<OsString> = words.iter().skip(1).cloned().collect();
    if words.len() > 1 && words[0] == "memcheck" {
        words.remove(0);
    }
    let program = OsString::from("cargo-memcheck");
    let of = |words: &[OsString]| {
        let line: Vec<OsString> = std::iter::once(&program).chain(words).cloned().collect();
        let last = line.len() - 1;
        let here = std::env::current_dir().ok();
        complete(&mut command(), line, last, here.as_deref()).unwrap_or_default()
    };
    let with_run = || [&["run".into()], words.as_slice()].concat();
    let is_subcommand = |word: &OsStr| word.to_str().is_some_and(cli::is_subcommand);
    match words.as_slice() {
        // A line without a subcommand is one of `run`.
        [first] => {
            let mut all =
                if first.to_string_lossy().starts_with('-') { Vec::new() } else { of(&words) };
            let known: Vec<OsString> = all.iter().map(|it| it.get_value().to_owned()).collect();
            all.extend(
                of(&with_run())
                    .into_iter()
                    .filter(|it| !known.iter().any(|known| known == it.get_value())),
            );
            all
        }
        [first, ..] if !is_subcommand(first) => of(&with_run()),
        _ => of(&words),
    }
}

/// The command line with candidates for names of tests, of devices and of dependencies.
fn command() -> clap::Command {
    let mut command = cli::command();
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |command| {
            command.mut_args(|argument| match argument.get_id().as_str() {
                "filters" => argument.add(ArgValueCompleter::new(test_names)),
                "device" => argument.add(ArgValueCompleter::new(devices)),
                #[cfg(feature = "comparison")]
                "update" => argument.add(ArgValueCompleter::new(dependencies)),
                _ => argument,
            })
        });
    }
    command
}

fn test_names(current: &OsStr) -> Vec<CompletionCandidate> {
    let folder = Places::guess(&CargoOptions::default()).results_directory();
    beginning(current, results::test_names(&folder).into_iter().map(|name| (name, String::new())))
}

/// The packages of the lock file of the current folder, or of the first folder above it that has one.
#[cfg(feature = "comparison")]
fn dependencies(current: &OsStr) -> Vec<CompletionCandidate> {
    let here = std::env::current_dir().unwrap_or_default();
    let files = here.ancestors().map(|folder| folder.join("Cargo.lock"));
    let text = files.filter_map(|file| input::read_text(&file, input::LOCK_FILE).ok()).next();
    let Some(Ok(locked)) = text.map(|text| LockedPackages::read(&text)) else { return Vec::new() };
    let name =
        |name: &str| (name.to_owned(), locked.versions(name).unwrap_or_default().join(" and "));
    beginning(current, locked.names().into_iter().map(name))
}

fn devices(current: &OsStr) -> Vec<CompletionCandidate> {
    let families =
        [("cpu", "the CPU"), ("cuda", "the GPU of this machine"), ("sim", "a simulated GPU")];
    let families = families.map(|(name, help)| (name.to_owned(), help.to_owned()));
    let cards = CARDS.iter().map(|card| (format!("sim:{}", card.id), card.name.to_owned()));
    beginning(current, families.into_iter().chain(cards))
}

fn beginning(
    current: &OsStr,
    all: impl Iterator<Item = (String, String)>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    all.filter(|(value, _)| value.starts_with(&*current))
        .map(|(value, help)| {
            CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        found(&words).iter().map(|it| it.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn flags_of_run_are_known_without_a_subcommand() {
        for line in
            ["cargo memcheck --max-pe", "cargo-memcheck --max-pe", "cargo memcheck a --max-pe"]
        {
            assert_eq!(values(line), ["--max-peak"], "{line}");
        }
        assert_eq!(values("cargo memcheck run --max-pe"), ["--max-peak"]);
        assert!(values("cargo memcheck profile --sor").contains(&"--sort".to_owned()));
    }

    #[test]
    #[cfg(feature = "comparison")]
    fn an_update_names_the_packages_of_the_lock_file() {
        for line in [
            "cargo memcheck compare --update candle-cor",
            "cargo memcheck compare main --update serde,candle-cor",
            "cargo memcheck diff --update candle-cor",
        ] {
            let values = values(line);
            assert!(values.iter().any(|value| value.ends_with("candle-core")), "{values:?}");
        }
        assert_eq!(values("cargo memcheck compare --update memcheck-cor"), [""; 0]);
    }

    #[test]
    fn subcommands_and_cards_are_known() {
        assert!(values("cargo memcheck prof").contains(&"profile".to_owned()));
        assert_eq!(values("cargo memcheck --device sim:a100-8"), ["sim:a100-80g"]);
        assert_eq!(values("cargo memcheck list --device cp"), ["cpu"]);
    }
}
