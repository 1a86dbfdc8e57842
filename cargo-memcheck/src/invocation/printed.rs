//! Commands of memcheck that are printed for a person to paste into a shell. All of them are made
//! here, so that one test can parse each of them.

use crate::system::{escape, shell};

/// The kinds of printed commands, by their purpose. `tests/functional/printed_commands.rs` runs one
/// of each kind, as it was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrintedCommand {
    RunTest,
    RunTestWithOutput,
    RepeatTest,
    ProfileTest,
    CheckDevice,
    ReviewSnapshots,
    AcceptSnapshots,
    RejectSnapshots,
    /// Snapshots that a person has fetched from CI into a folder.
    ReviewFetchedSnapshots,
    AcceptFetchedSnapshots,
    /// Snapshots of an earlier commit, which a run has moved aside.
    ReviewEarlierSnapshots,
    Explain,
    AddRuntime,
    RunFirstTest,
    PruneBaselines,
    #[cfg(feature = "comparison")]
    AppendToHistory,
    /// A subcommand that was probably meant.
    Subcommand,
    /// A mistyped subcommand as a filter.
    RunFilter,
}

impl PrintedCommand {
    /// The words before those that depend on the run.
    fn first_words(self) -> &'static [&'static str] {
        match self {
            Self::RunTest | Self::RunTestWithOutput | Self::RepeatTest | Self::RunFilter => {
                &["run"]
            }
            Self::ProfileTest => &["profile"],
            Self::CheckDevice => &["doctor"],
            Self::ReviewSnapshots | Self::ReviewFetchedSnapshots => &["review"],
            Self::ReviewEarlierSnapshots => &["review", "--from"],
            Self::AcceptSnapshots | Self::AcceptFetchedSnapshots => &["accept"],
            Self::RejectSnapshots => &["reject"],
            Self::Explain => &["explain"],
            Self::AddRuntime => &["init"],
            Self::PruneBaselines => &["prune"],
            #[cfg(feature = "comparison")]
            Self::AppendToHistory => &["--history"],
            Self::RunFirstTest | Self::Subcommand => &[],
        }
    }

    /// The command with these words, each quoted if a shell would read it otherwise.
    pub(crate) fn with<W: AsRef<str>>(self, words: impl IntoIterator<Item = W>) -> String {
        let mut text = "cargo memcheck".to_owned();
        let mut add = |word: &str| {
            text.push(' ');
            text.push_str(&shell::argument(&escape::line(word)));
        };
        self.first_words().iter().copied().for_each(&mut add);
        words.into_iter().for_each(|word| add(word.as_ref()));
        text
    }

    /// The same in backticks, for a sentence.
    pub(crate) fn quoted<W: AsRef<str>>(self, words: impl IntoIterator<Item = W>) -> String {
        format!("`{}`", self.with(words))
    }

    /// The command with the names of snapshots, which can begin with a hyphen.
    pub(crate) fn of_snapshots(self, names: &[String], flags: Vec<String>) -> String {
        let names = names.iter().cloned();
        match names.clone().any(|name| name.starts_with('-')) {
            true => self.with(flags.into_iter().chain(["--".to_owned()]).chain(names)),
            false => self.with(names.chain(flags)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::invocation::cli::{is_subcommand, refusal};

    #[test]
    fn each_word_reaches_the_command_as_it_is() {
        let words = ["it's [seq=1]", "--exact", "$(id)", "--baselines", "a b"];
        let text = PrintedCommand::RunTest.with(words);
        assert_eq!(text, r"cargo memcheck run 'it'\''s [seq=1]' --exact '$(id)' --baselines 'a b'");
        assert_eq!(refusal(&text), None);
        assert_eq!(PrintedCommand::RunFirstTest.with([""; 0]), "cargo memcheck");
        let folder = ["--from", "a b"].map(str::to_owned).to_vec();
        let accept = PrintedCommand::AcceptSnapshots
            .of_snapshots(&["-rf@cpu.snap".to_owned()], folder.clone());
        assert_eq!(accept, "cargo memcheck accept --from 'a b' -- -rf@cpu.snap");
        assert_eq!(refusal(&accept), None);
        let accept =
            PrintedCommand::AcceptSnapshots.of_snapshots(&["a@cpu.snap".to_owned()], folder);
        assert_eq!(accept, "cargo memcheck accept a@cpu.snap --from 'a b'");
        assert_eq!(PrintedCommand::Subcommand.quoted(["list"]), "`cargo memcheck list`");
        assert!(refusal("cargo memcheck accept --nonsense").is_some());
        assert!(refusal("cargo memcheck profle a").is_some());
        assert!(refusal("cargo memcheck 'a").is_some() && refusal("rm -r").is_some());
    }

    /// The places of a text that are filled in, such as `{test}`, stand for a word.
    fn filled(text: &str) -> String {
        let mut filled = String::new();
        let mut depth = 0;
        for letter in text.chars() {
            match letter {
                '{' => {
                    depth += 1;
                    filled.push('x');
                }
                '}' => depth -= 1,
                _ if depth > 0 => {}
                '…' => filled.push('x'),
                _ => filled.push(letter),
            }
        }
        filled
    }

    /// A word for each name in capitals, whose values are limited.
    const NAMES: [(&str, &str); 2] = [("KIND=PATH", "junit=x"), ("SHELL", "bash")];

    /// The commands in backticks, and those in blocks of code.
    fn commands(text: &str) -> Vec<String> {
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        let lines: Vec<&str> = text.lines().filter(|line| !is_comment(line)).collect();
        let in_block = lines.iter().filter_map(|line| {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let ends = [" #", " |", " >", " &&", " \\"];
            let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
            line.starts_with("cargo memcheck").then(|| line[..end].to_owned())
        });
        // A string of Rust can continue on the next line.
        let text = lines.join("\n").replace("\\\n", "\n");
        let quoted = text.split('`').filter(|piece| piece.starts_with("cargo memcheck"));
        let words = |piece: &str| piece.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = in_block.chain(quoted.map(words)).map(|piece| filled(&piece));
        let all = all.map(|piece| {
            NAMES.iter().fold(piece, |piece, (name, value)| piece.replace(name, value))
        });
        all.filter(|piece| !piece.contains('[')).collect()
    }

    /// A subcommand that a text only names has no arguments.
    fn is_name(command: &str) -> bool {
        let words: Vec<&str> = command.split(' ').collect();
        matches!(words.as_slice(), ["cargo", "memcheck", word] if is_subcommand(word))
    }

    fn visit(folder: &Path, suffix: &str, each: &mut impl FnMut(&Path, &str)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, suffix, each);
            } else if path.to_string_lossy().ends_with(suffix) {
                each(&path, &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn every_command_that_a_text_names_is_accepted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut refused = Vec::new();
        let mut count = 0;
        let mut check = |path: &Path, text: &str| {
            // The texts of tests have commands that are wrong on purpose.
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            for command in commands(product) {
                count += 1;
                let error = refusal(&command).filter(|_| !is_name(&command));
                refused.extend(error.map(|error| format!("{}: {error}", path.display())));
            }
        };
        let packages = ["cargo-memcheck", "memcheck-core", "memcheck-runtime", "memcheck-limits"];
        for package in packages {
            visit(&root.join(package).join("src"), ".rs", &mut check);
        }
        visit(&root.join("memcheck-core/pages"), ".md", &mut check);
        visit(&root.join("docs"), ".md", &mut |path, text| {
            // Made of comments, and not of texts that a user sees.
            if !path.ends_with("modules.md") {
                check(path, text);
            }
        });
        check(Path::new("README.md"), &std::fs::read_to_string(root.join("README.md")).unwrap());
        assert!(count > 100, "{count} commands were found");
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }

    /// A command that is put together elsewhere would not be quoted, and no test would parse it.
    #[test]
    fn no_other_file_puts_a_command_together() {
        let mut others = Vec::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        visit(&source, ".rs", &mut |path, text| {
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_made = product.lines().any(|line| {
                let made = line.split("cargo memcheck ").nth(1);
                let is_comment = line.trim_start().starts_with("//");
                !is_comment
                    && made.is_some_and(|rest| {
                        rest.split('`').next().unwrap_or_default().contains('{')
                    })
            });
            // Elsewhere the name of a subcommand is not advice.
            let is_exempt = path.ends_with("printed.rs") || path.ends_with("elsewhere/mod.rs");
            if is_made && !is_exempt {
                others.push(path.display().to_string());
            }
        });
        assert!(others.is_empty(), "{}", others.join("\n"));
    }
}
