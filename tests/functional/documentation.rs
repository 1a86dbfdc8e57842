//! The documentation and the program must agree: every finding, cause, option, exit code, variable
//! and flag of the program is documented, and every documented one exists.

use std::collections::BTreeSet;
use std::path::PathBuf;

use memcheck_core::judgement::diagnosis;
use memcheck_core::judgement::finding::{self, Class, Level};
use memcheck_core::request::variables;
use memcheck_core::wire::exit;
use memcheck_tests::scenarios::{self, Family};

use crate::fixture::{memcheck, workspace};
use crate::links::links;

/// The whole reference: its first page, and every page to which that one links.
pub(crate) fn reference() -> String {
    let page =
        |name: &str| std::fs::read_to_string(workspace().join("docs").join(name)).expect(name);
    let first = page("reference.md");
    let pages = links(&first).into_iter().map(|link| page(&link));
    std::iter::once(first.clone()).chain(pages).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_reference_has_the_same_findings_as_the_program() {
    let reference = reference();
    let rows = rows(&reference, "| code | class | in CI | meaning |\n");
    let defined: Vec<String> = finding::TABLE
        .iter()
        .map(|row| {
            let (class, in_ci) = match (row.class, row.code.default_level(true)) {
                (Class::Measured, _) => ("measured", "fails"),
                (Class::Instrument, _) => ("instrument", "fails"),
                (Class::Bookkeeping, Level::Deny) => ("bookkeeping", "deny"),
                (Class::Bookkeeping, Level::Warn) => ("bookkeeping", "warn"),
                (Class::Bookkeeping, Level::Allow) => ("bookkeeping", "allow"),
            };
            format!("| `{}` | {class} | {in_ci} | {} |", row.name, row.title)
        })
        .collect();
    assert_eq!(rows, defined);
    for row in finding::TABLE {
        let page = memcheck(&workspace(), &["explain", row.name]).exits(0);
        assert!(page.stdout.contains("What to do"), "{}", row.name);
    }
}

#[test]
fn the_reference_has_the_same_options_of_the_attribute_as_the_macro() {
    // The list in the error message about an unknown option.
    let file = workspace().join("memcheck-macros/tests/ui/unknown_option.stderr");
    let message = std::fs::read_to_string(file).expect("the message about an unknown option");
    let (_, list) = message.lines().next().and_then(|line| line.split_once("expected")).unwrap();
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let reference = reference();
    let (_, section) = reference.split_once("| option | meaning").expect("a table of options");
    let (table, _) = section.split_once("\n\n").expect("the end of the table");
    let documented: String =
        table.lines().skip(2).filter_map(|row| row.split('|').nth(1)).collect();
    assert_eq!(names(list), names(&documented));
}

#[test]
fn the_reference_has_the_same_causes_as_the_program() {
    let reference = reference();
    let rows = rows(&reference, "| cause | meaning | remedy |\n");
    let defined: Vec<String> = diagnosis::RULES
        .iter()
        .map(|rule| format!("| `{}` | {} | {} |", rule.code, rule.title, rule.remedy))
        .collect();
    assert_eq!(rows, defined);
    let list = memcheck(&workspace(), &["explain"]).exits(0).stdout;
    for rule in diagnosis::RULES {
        assert!(list.contains(rule.code), "{}", rule.code);
        let page = memcheck(&workspace(), &["explain", rule.code]).exits(0);
        assert!(page.stdout.contains("What to do"), "{}", rule.code);
    }
}

#[test]
fn the_measurements_have_the_number_of_leaks_in_the_corpus() {
    let leaks = |leg| scenarios::all().filter(|leak| leak.judged_on(leg).is_some()).count();
    let (sim, cpu) = (leaks(Family::Cuda), leaks(Family::Cpu));
    let page = |name: &str| std::fs::read_to_string(workspace().join(name)).expect(name);
    let readme = page("README.md");
    assert!(
        readme.contains(&format!("Of {sim} leaks in whole tests on `sim`, and {cpu} on `cpu`"))
    );
    let evidence = page("docs/evidence.md");
    assert!(evidence.contains(&format!("detection`: {sim} leaks with their fixed twins")));
    let rows = rows(&evidence, "| device | programs | number | right |\n");
    let numbers = rows.iter().map(|row| row.split('|').skip(3).collect::<String>());
    let [sim, cpu] = [sim, cpu].map(|count| format!(" {count}  {count} "));
    assert_eq!(numbers.collect::<Vec<_>>(), [sim.clone(), sim, cpu.clone(), cpu]);
}

#[test]
fn the_survey_has_every_architecture_at_both_sizes() {
    let read = |name: &str| std::fs::read_to_string(workspace().join(name)).expect(name);
    let survey: serde_json::Value = serde_json::from_str(&read("docs/survey.json")).expect("JSON");
    let column = |table: &str, key: &str| -> BTreeSet<String> {
        let rows = survey[table].as_array().expect("rows").iter();
        rows.map(|row| row[key].as_str().expect("a text").to_owned()).collect()
    };
    let tiny = column("tiny", "name");
    assert_eq!(tiny, column("published", "architecture"));
    let folder = workspace().join("memcheck-estimate/configs");
    let files = std::fs::read_dir(folder).expect("the configurations").flatten();
    let files =
        files.map(|file| file.path()).filter(|path| path.extension() == Some("json".as_ref()));
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    assert_eq!(files.map(stem).collect::<BTreeSet<_>>(), column("published", "name"));

    let page = read("docs/survey.md");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = tiny.len();
    assert!(words.contains(&format!("all {all} at a tiny size and [at a published size]")));
    let row = format!("of {all} architectures of candle-transformers at a tiny size and at a");
    assert!(read("README.md").contains(&row), "README.md has another number than {row}");
}

#[test]
fn the_reference_has_the_same_exit_codes_as_the_program() {
    let reference = reference();
    let rows = rows(&reference, "| code | meaning |\n");
    let defined: Vec<String> =
        exit::ALL.iter().map(|(code, meaning)| format!("| {code} | {meaning} |")).collect();
    assert_eq!(rows, defined);
}

#[test]
fn the_reference_has_the_same_variables_as_the_program() {
    let reference = reference();
    let rows = rows(&reference, "| variable | meaning |\n");
    let defined: Vec<String> = variables::all()
        .map(|variable| format!("| `{}` | {} |", variable.name, variable.meaning))
        .collect();
    assert_eq!(rows, defined);
}

#[test]
fn the_reference_has_the_same_variables_of_the_toolkit_as_the_program() {
    let reference = reference();
    let rows = rows(&reference, "| variable of the build | value |\n");
    let documented: BTreeSet<String> = rows
        .into_iter()
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let run = memcheck(&workspace(), &["env", "--message-format", "json"]).exits(0);
    assert_eq!(run.summary()["exit_code"], 0);
    let variables = run.json().into_iter().filter(|line| line["type"] == "variable");
    let defined = variables.map(|line| line["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(documented, defined);
}

#[test]
fn the_documentation_has_the_same_subcommands_as_the_program() {
    let help = memcheck(&workspace(), &["--help"]).exits(0).stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let page = |name| std::fs::read_to_string(workspace().join(name)).expect(name);
    let pages = [page("README.md"), reference(), page("CHANGELOG.md")];
    let names: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 5, "{help}");
    for page in &pages {
        for words in page.split("cargo memcheck ").skip(1) {
            let end = words.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(words.len());
            assert!(end == 0 || names.contains(&&words[..end]), "cargo memcheck {}", &words[..end]);
        }
    }
    for name in names {
        assert!(
            pages.iter().any(|page| page.contains(&format!("`{name}`"))
                || page.contains(&format!("cargo memcheck {name}"))),
            "{name}"
        );
    }
}

#[test]
fn the_reference_has_the_same_flags_as_the_program() {
    let reference = reference();
    let of_run = flags(section(&reference, "## Flags of `run`"));
    let table = |heading| flags(&rows(&reference, heading).join("\n"));
    let own = [
        ("run", of_run.clone()),
        ("profile", table("| flag of `profile` | meaning |\n")),
        ("estimate", table("| flag of `estimate` | meaning |\n")),
        ("fit", table("| flag of `fit` | meaning |\n")),
        ("plan", table("| flag of `plan` | meaning |\n")),
        ("report", table("| flag of `report` | meaning |\n")),
        ("archive", table("| flag of `archive` | meaning |\n")),
        ("bench", table("| flag of `bench` | meaning |\n")),
        ("history", table("| flag of `history` | meaning |\n")),
        ("compare", table("| flag of `compare` | meaning |\n")),
        ("bisect", table("| flag of `bisect` | meaning |\n")),
    ];
    for (command, own) in own {
        let help = flags(&memcheck(&workspace(), &[command, "--help"]).exits(0).stdout);
        let documented = own.union(&of_run).cloned().collect();
        let missing: Vec<_> = help.difference(&documented).collect();
        let unknown: Vec<_> = own.difference(&help).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{command}: missing {missing:?}, unknown {unknown:?}"
        );
    }
}

/// The rows of the table with this heading.
#[track_caller]
pub(crate) fn rows<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, below) = page.split_once(heading).expect("the page has the table");
    below.lines().skip(1).take_while(|line| line.starts_with('|')).collect()
}

/// The words of a text that are flags.
pub(crate) fn flags(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .map(str::to_owned)
        .collect()
}

/// A section of a page, from its title to the next title or the next page.
pub(crate) fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, section) = page.split_once(title).expect("the page has the section");
    let end = ["\n## ", "\n# "].iter().filter_map(|next| section.find(next)).min();
    &section[..end.unwrap_or(section.len())]
}
