//! SARIF 2.1.0: findings as results of a static analysis, for viewers of code scanning. The rules
//! are the codes of findings, with their explanation pages as help.

use std::io::Write;
use std::path::Path;

use memcheck_core::judgement::finding::{Class, CodeRow, Finding, Level, Site, TABLE};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict::Status;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::options::baselines_flag;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::places::FindingPlaces;
use crate::presentation::presenters::{brief, findings, json, next_step, summary};
use crate::presentation::tally::Tally;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The folder of the workspace. GitHub resolves it as the root of the repository.
const ROOT: &str = "%SRCROOT%";
/// A run with a million holders keeps a small file. GitHub refuses more than 1,000 locations.
const MOST_SITES: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct Sarif {
    places: FindingPlaces,
    /// The results as text with commas between them, because values would need several times as much
    /// memory.
    results: String,
    cut_short: Vec<String>,
    exit_code: u8,
    /// The flag of the folder of the baselines.
    baselines_flag: Vec<String>,
}

impl Sarif {
    /// Paths are relative to the folder of the workspace.
    pub(crate) fn new(roots: Roots<'_>) -> Self {
        Self {
            places: FindingPlaces::new(roots.workspace.to_owned()),
            baselines_flag: baselines_flag(roots),
            ..Self::default()
        }
    }

    fn add(&mut self, result: &Value) {
        if !self.results.is_empty() {
            self.results.push(',');
        }
        self.results.push_str(&json::text(result));
    }

    fn of_test(&self, task: &Task, outcome: &TestOutcome, finding: &Finding) -> Value {
        let (file, line) = brief::place(task, outcome, finding, &self.places);
        let related: Vec<Value> = finding
            .sites
            .iter()
            .filter_map(|site| {
                let (file, line) = self.places.of_site(site)?;
                let mut location = location(&file, Some(line));
                location["message"] = message(&held(site));
                Some(location)
            })
            .take(MOST_SITES)
            .zip(1..)
            // Two sites can read the same, and the schema allows no equal elements.
            .map(|(mut location, id)| {
                location["id"] = Value::from(id);
                location
            })
            .collect();
        let mut location = location(&file, Some(line));
        location["logicalLocations"] = json!([{
            "name": task.name(), "fullyQualifiedName": format!("{} {}", task.binary.id, task.name()),
            "kind": "function",
        }]);
        let denied = findings::is_denied(finding, &outcome.verdict);
        let mut result = result(finding, denied);
        result["locations"] = json!([location]);
        if !related.is_empty() {
            result["relatedLocations"] = related.into();
        }
        let space = finding.space.map(|space| space.to_string()).unwrap_or_default();
        let identity = [&task.package, &task.binary.id, task.name(), task.family().name(), &space];
        result["partialFingerprints"] = fingerprint(finding, &identity);
        let mut properties = figures(finding);
        let next = next_step::first(task, outcome).filter(|_| denied);
        let next = next.map(|step| step.command(task, &self.baselines_flag));
        properties.extend(next.map(|next| ("nextStep".to_owned(), next.into())));
        properties.insert("test".to_owned(), task.name().into());
        properties.insert("device".to_owned(), task.leg.name().into());
        result["properties"] = properties.into();
        result
    }

    fn of_note(&self, note: &Note) -> Value {
        let mut result = result(&note.finding, note.level == Level::Deny);
        if let Some(path) = &note.path {
            result["locations"] = json!([location(&self.places.relative(path), None)]);
        }
        result["partialFingerprints"] = fingerprint(&note.finding, &[&note.package]);
        result
    }
}

fn result(finding: &Finding, denied: bool) -> Value {
    json!({
        "ruleId": finding.code.name(),
        // The table is in the order of the codes.
        "ruleIndex": TABLE.iter().position(|row| row.code == finding.code),
        "kind": "fail",
        "level": if denied { "error" } else { "warning" },
        "message": message(&findings::explained(finding, &[])),
    })
}

/// The finding without its figures and its line, so that the alert stays the same while the code
/// around it changes.
fn fingerprint(finding: &Finding, identity: &[&str]) -> Value {
    let first = finding.sites.first();
    let site = |part: fn(&Site) -> &Option<String>| first.and_then(|site| part(site).as_deref());
    let of_site = [site(|site| &site.function), site(|site| &site.operation)];
    let parts = [finding.code.name()].into_iter().chain(identity.iter().copied());
    let mut hash = Sha256::new();
    for part in parts.chain(of_site.into_iter().map(Option::unwrap_or_default)) {
        hash.update(part);
        hash.update([0]);
    }
    json!({"memcheckFinding/v1": format!("{:x}", hash.finalize())})
}

fn figures(finding: &Finding) -> Map<String, Value> {
    let named = [
        ("bytesPerIteration", finding.bytes_per_iteration),
        ("figure", finding.figure),
        ("limit", finding.limit),
        ("baseline", finding.baseline),
    ];
    let known = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut figures: Map<String, Value> =
        known.map(|(name, value)| (name.to_owned(), value.into())).collect();
    figures.extend(finding.space.map(|space| ("space".to_owned(), space.to_string().into())));
    figures.extend(finding.hint.clone().map(|hint| ("hint".to_owned(), hint.into())));
    figures
}

/// The bytes of a call site, as a finding shows them.
fn held(site: &Site) -> String {
    let what = [&site.operation, &site.tensor].into_iter().flatten();
    let mut parts: Vec<String> = what.cloned().collect();
    parts.extend(site.scope.as_ref().map(|scope| format!("in {scope}")));
    parts.push(findings::blocks(site));
    parts.join(" ")
}

fn location(file: &Path, line: Option<u32>) -> Value {
    let mut artifact = json!({"uri": uri(file)});
    if file.is_relative() {
        artifact["uriBaseId"] = ROOT.into();
    }
    let mut physical = json!({"artifactLocation": artifact});
    // Lines count from 1; a frame without a line has none.
    if let Some(line) = line.filter(|line| *line > 0) {
        physical["region"] = json!({"startLine": line});
    }
    json!({"physicalLocation": physical})
}

/// A relative reference, or a `file` URI of an absolute path.
fn uri(file: &Path) -> String {
    let scheme = if file.is_absolute() { "file://" } else { "" };
    let text = file.display().to_string();
    let encoded: String = text
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("{scheme}{encoded}")
}

/// In a message, braces begin placeholders, and the standard doubles those that do not. `[…](…)` is a
/// link, which a space prevents.
fn message(text: &str) -> Value {
    let text = text.replace('{', "{{").replace('}', "}}").replace("](", "] (");
    // A message must have text.
    json!({"text": if text.is_empty() { "(no message)".to_owned() } else { text }})
}

fn rule(row: &CodeRow) -> Value {
    let level = match row.class {
        Class::Measured | Class::Instrument => "error",
        Class::Bookkeeping => "warning",
    };
    let words = row.name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
    json!({
        "id": row.name,
        "name": words.collect::<String>(),
        "shortDescription": {"text": row.title},
        "fullDescription": {"text": row.title},
        "help": {"text": row.page, "markdown": row.page},
        "defaultConfiguration": {"level": level},
    })
}

impl Presenter for Sarif {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        if outcome.verdict.status == Status::Ignored {
            return;
        }
        for finding in &outcome.verdict.findings {
            self.add(&self.of_test(task, outcome, finding));
        }
    }

    fn note(&mut self, note: &Note) {
        self.add(&self.of_note(note));
    }

    fn finished(&mut self, tally: &Tally, exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
        self.exit_code = exit_code;
    }
}

impl ReportWriter for Sarif {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.write_to(&mut text)?;
        Ok(text)
    }

    /// An incomplete run is an unsuccessful invocation, with the reason as its notification.
    fn write_to(&self, to: &mut dyn Write) -> anyhow::Result<()> {
        /// The place of the results. Its quotes would be escaped within a text.
        const EMPTY: &str = "\"results\":[";
        let notification = |line: &String| json!({"level": "error", "message": message(line)});
        let notifications: Vec<Value> = self.cut_short.iter().map(notification).collect();
        let document = json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "memcheck",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": TABLE.iter().map(rule).collect::<Vec<_>>(),
                }},
                "automationDetails": {"id": "memcheck/"},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "the workspace"}}},
                "invocations": [{
                    "executionSuccessful": self.cut_short.is_empty(),
                    "exitCode": self.exit_code,
                    "toolExecutionNotifications": notifications,
                }],
                "results": [],
            }],
        });
        let text = json::text(&document);
        let at = text.find(EMPTY).map_or(text.len(), |at| at + EMPTY.len());
        for part in [&text[..at], &self.results, &text[at..], "\n"] {
            to.write_all(part.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn document(sarif: &Sarif) -> Value {
        serde_json::from_slice(&sarif.text().unwrap()).unwrap()
    }

    fn results(outcome: &TestOutcome) -> Vec<Value> {
        let mut sarif = Sarif::new(Roots::new(Path::new("/ws"), None));
        sarif.test_finished(&task(), outcome);
        document(&sarif)["runs"][0]["results"].as_array().unwrap().clone()
    }

    #[test]
    fn a_leak_is_a_result_at_its_line_with_its_cause() {
        let results = results(&leaky());
        let leak = results.iter().find(|result| result["ruleId"] == "leak").unwrap();
        let place = &leak["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "src/model.rs");
        assert_eq!((&place["region"]["startLine"], &leak["level"]), (&20.into(), &"error".into()));
        let text = leak["message"]["text"].as_str().unwrap();
        assert!(text.contains("\ncause: ") && text.contains("\nremedy: "), "{text}");
        assert_eq!(leak["properties"]["bytesPerIteration"], 2 << 20);
        let index = leak["ruleIndex"].as_u64().unwrap() as usize;
        let rule = &document(&Sarif::default())["runs"][0]["tool"]["driver"]["rules"][index];
        assert_eq!((&rule["id"], &rule["name"]), (&"leak".into(), &"Leak".into()));
        assert!(rule["help"]["markdown"].as_str().unwrap().contains("## What to do"));
    }

    #[test]
    fn the_fingerprint_stays_when_lines_and_figures_change() {
        let print = |outcome: &TestOutcome| results(outcome)[0]["partialFingerprints"].clone();
        let before = leaky();
        let mut after = leaky();
        let finding = &mut after.verdict.findings[0];
        finding.bytes_per_iteration = Some(1);
        finding.message = "another figure".to_owned();
        finding.sites[0].line = Some(99);
        assert_eq!(print(&before), print(&after));
        after.verdict.findings[0].sites[0].operation = Some("softmax".to_owned());
        assert_ne!(print(&before), print(&after));
    }

    #[test]
    fn call_sites_that_read_the_same_are_different_locations() {
        let mut outcome = leaky();
        let sites = &mut outcome.verdict.findings[0].sites;
        sites.push(sites[0].clone());
        let related = results(&outcome)[0]["relatedLocations"].as_array().unwrap().clone();
        let ids: Vec<&Value> = related.iter().map(|location| &location["id"]).collect();
        assert_eq!(ids, [1, 2]);
        let place = "physicalLocation";
        assert_eq!(related[0][place], related[1][place]);
    }

    #[test]
    fn texts_of_tests_make_no_placeholder_and_no_link() {
        assert_eq!(message("f::{{closure}} {0}")["text"], "f::{{{{closure}}}} {{0}}");
        assert_eq!(message("[64,256] f32 [a](b)")["text"], "[64,256] f32 [a] (b)");
        assert_eq!(uri(Path::new("a b/ü%.rs")), "a%20b/%C3%BC%25.rs");
        assert_eq!(uri(Path::new("/a.rs")), "file:///a.rs");
    }

    #[test]
    fn a_run_that_was_cut_short_is_an_unsuccessful_invocation() {
        let mut sarif = Sarif::default();
        assert_eq!(document(&sarif)["runs"][0]["invocations"][0]["executionSuccessful"], true);
        sarif.finished(&Tally { interrupted: true, ..Tally::default() }, 130);
        let invocation = &document(&sarif)["runs"][0]["invocations"][0];
        assert_eq!(
            (&invocation["executionSuccessful"], &invocation["exitCode"]),
            (&false.into(), &130.into())
        );
        let text = invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
        assert!(text.contains("interrupted"), "{text}");
    }
}
