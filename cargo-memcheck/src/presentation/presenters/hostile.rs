//! A thousand hostile strings, each in every text of a test and its record, in each form of output.

mod strings;

use std::path::Path;
use std::sync::OnceLock;

use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
    states::RawKind,
};
use memcheck_core::characters::{escaped, is_special};
use memcheck_core::device::Family;
use memcheck_core::judgement::diagnosis::Cause;
use memcheck_core::judgement::finding::{Code, Finding, GrownHolder, HeadLine, Level, Site, Via};
use memcheck_core::judgement::location;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::fault_sweep::{Calls, Effect, SweepResult, UnsafeAllocation};
use memcheck_core::measurement::process_memory::{MappedFile, ProcessMemory};
use memcheck_core::measurement::unified::Unified;
use memcheck_core::measurement::unknown_reads::{ReadSite, UnknownReads};
use memcheck_core::space::Space;

use super::every;
use super::every::terminal;
use super::example::leaky;
use super::exports::flamegraph::FlameGraph;
use super::exports::html::{Html, unpack, without_assets};
use super::exports::markdown::Markdown;
use super::exports::memory_viz;
use super::exports::sarif::Sarif;
use super::exports::trace::ChromeTrace;
use super::json::JsonLines;
use super::junit::Junit;
use crate::discovery::task::{Task, TestOutcome, TestSubject, example};
use crate::execution::note::Note;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::system::gpus::RanOn;
use crate::system::printing::lines_for_people;
use crate::system::process::Output;

fn task(text: &str) -> Task {
    let mut task = example::task();
    task.package = text.to_owned();
    task.binary.id = text.to_owned();
    if let TestSubject::Test(entry) = &mut task.subject {
        entry.name = text.to_owned();
        entry.module = text.to_owned();
        entry.file = text.into();
        entry.snapshot = text.to_owned();
    }
    task
}

fn finding(text: &str) -> Finding {
    let some = || Some(text.to_owned());
    let site = Site {
        function: some(),
        file: some(),
        line: Some(1),
        via: Some(Via { file: text.to_owned(), line: 1, function: text.to_owned() }),
        scope: some(),
        operation: some(),
        tensor: some(),
        note: some(),
        ..Site::default()
    };
    let cause = Cause {
        code: text.to_owned(),
        title: text.to_owned(),
        evidence: text.to_owned(),
        remedy: text.to_owned(),
    };
    Finding {
        keeps_at: Some(HeadLine { file: text.to_owned(), line: 1, function: some() }),
        kept_through: Some(HeadLine { file: text.to_owned(), line: 1, function: some() }),
        sites: vec![site],
        grown: vec![GrownHolder {
            holder: format!("{text} [1] f32"),
            was_tensor: some(),
            place: some(),
            now: 1,
            ..GrownHolder::default()
        }],
        shrunk: vec![GrownHolder { holder: text.to_owned(), then: 1, ..GrownHolder::default() }],
        cause: Some(cause),
        hint: some(),
        longer_run: some(),
        ..Finding::new(Code::Leak, text)
    }
}

fn outcome(text: &str, output: &str) -> TestOutcome {
    static LEAKY: OnceLock<TestOutcome> = OnceLock::new();
    let mut outcome = LEAKY.get_or_init(leaky).clone();
    let findings = vec![finding(text)];
    outcome.verdict.findings = findings;
    outcome.verdict.status = Status::Failed;
    let attribution = outcome.report.as_mut().unwrap().record.attribution.as_mut().unwrap();
    attribution.hint = Some(text.to_owned());
    for frame in attribution.stacks.iter_mut().flat_map(|stack| &mut stack.frames) {
        frame.function = text.to_owned();
        frame.file = Some(text.to_owned());
    }
    for place in &mut attribution.places {
        place.scope = text.to_owned();
        place.operation = Some(text.to_owned());
        place.tensor.as_mut().unwrap().dtype = text.to_owned();
    }
    attribution.survivors[0].scope = text.to_owned();
    let at = || Some(text.to_owned());
    let site = ReadSite { at: at(), element: at(), reads: 1 };
    let values = UnknownReads { reads: 1, sites: vec![site], ..UnknownReads::default() };
    outcome.report.as_mut().unwrap().record.values = Some(values);
    let effect = Effect::Panicked { message: text.to_owned() };
    let calls = Calls::Addresses(Vec::new());
    let failure = UnsafeAllocation { number: 1, requested: 1, calls, effect };
    let sweep = SweepResult { ended: at(), failures: vec![failure], ..SweepResult::default() };
    outcome.report.as_mut().unwrap().record.fault_sweep = Some(sweep);
    let file = MappedFile { path: text.to_owned(), bytes: 1, resident: 1, copied: 1 };
    let memory = ProcessMemory { files: vec![file], ..ProcessMemory::default() };
    outcome.report.as_mut().unwrap().record.process = Some(memory);
    let (space, card) = (Space::Cuda(0), text.to_owned());
    outcome.report.as_mut().unwrap().record.unified =
        Some(Unified { space, card, capacity: 1, peak_allocated: 1 });
    let (name, uuid) = (text.to_owned(), Some(text.to_owned()));
    let gpu = Some(RanOn { index: None, name, uuid });
    let output = Output { stdout: output.to_owned(), stderr: output.to_owned(), is_cut: false };
    TestOutcome { gpu, output, ..outcome }
}

fn note(text: &str) -> Note {
    Note {
        package: text.to_owned(),
        path: Some(text.into()),
        finding: Finding::new(Code::NotBuilt, text),
        level: Level::Deny,
    }
}

fn text(mut report: impl ReportWriter, task: &Task, outcome: &TestOutcome, note: &Note) -> String {
    report.test_finished(task, outcome);
    report.note(note);
    String::from_utf8(report.text().unwrap()).unwrap()
}

/// The strings in groups, because a page takes much longer than the part of one test in it.
fn groups() -> Vec<Vec<String>> {
    strings::strings().chunks(25).map(<[String]>::to_vec).collect()
}

/// One page with a test for each string.
fn page(mut report: impl ReportWriter, strings: &[String], output: fn(&str) -> &str) -> String {
    for string in strings {
        report.test_finished(&task(string), &outcome(string, output(string)));
        report.note(&note(string));
    }
    String::from_utf8(report.text().unwrap()).unwrap()
}

#[track_caller]
fn assert_no_control(text: &str, of: &str) {
    // A line of ASCII is read byte by byte, because decoding is slow without optimization.
    let is_raw = |c: char| c != '\n' && is_special(c);
    let raw = text.split('\n').find(|line| match line.is_ascii() {
        true => line.as_bytes().iter().any(u8::is_ascii_control),
        false => line.contains(is_raw),
    });
    assert_eq!(raw, None, "of {of:?}:\n{text}");
}

/// As GitHub's runner reads a line, and more strictly.
#[track_caller]
fn assert_no_command(text: &str, of: &str) {
    for line in text.split('\n').flat_map(|line| line.split('\r')) {
        let visible = line.trim_start_matches(|c: char| c.is_whitespace() || !c.is_ascii_graphic());
        assert!(!visible.starts_with("::"), "of {of:?}: {line}");
    }
    for prefix in ["##[", "##vso[", "##teamcity["] {
        assert!(!text.contains(prefix), "of {of:?}: {text}");
    }
}

/// Removes the SGR sequences, and returns their parameters.
fn without_colors(text: &str) -> (String, Vec<&str>) {
    let mut codes = Vec::new();
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('m').expect("only colors begin with ESC");
        assert!(code.chars().all(|c| c.is_ascii_digit() || c == ';' || c == ':'), "{code:?}");
        codes.push(code);
        plain.push_str(rest);
    }
    (plain, codes)
}

#[test]
fn the_terminal_gets_no_escape_sequence_but_colors() {
    let terminal = terminal();
    for string in strings::strings() {
        for output in ["", &string] {
            let mut lines = terminal.result(&task(&string), &outcome(&string, output));
            lines.extend(terminal.note_lines(&note(&string)));
            let shown = lines_for_people(&lines);
            let (plain, codes) = without_colors(&shown);
            assert_no_control(&plain, &string);
            assert_no_command(&plain, &string);
            assert_eq!(plain.lines().count(), lines.len(), "{string:?}: {plain}");
            if output.is_empty() {
                let ours = ["0", "1", "2", "1;31", "1;32", "1;33", "33", "35", "36"];
                assert!(codes.iter().all(|code| ours.contains(code)), "{string:?}: {codes:?}");
            }
        }
    }
}

#[test]
fn json_keeps_the_strings_and_has_only_printable_characters() {
    for string in strings::strings() {
        let (task, outcome, note) = (task(&string), outcome(&string, &string), note(&string));
        let lines = text(JsonLines::new(Vec::new()), &task, &outcome, &note);
        assert_no_control(&lines, &string);
        assert_no_command(&lines, &string);
        let first = lines.lines().next().unwrap();
        let line: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!(line["test"], string);
        assert_eq!(line["findings"][0]["sites"][0]["scope"], string);
    }
}

#[test]
fn a_trace_has_only_printable_characters() {
    for string in strings::strings() {
        let (task, outcome, note) = (task(&string), outcome(&string, &string), note(&string));
        let trace = text(ChromeTrace::default(), &task, &outcome, &note);
        assert_no_control(&trace, &string);
        assert_no_command(&trace, &string);
        serde_json::from_str::<serde_json::Value>(&trace).unwrap();
    }
}

#[test]
fn a_snapshot_keeps_the_strings_and_has_only_printable_characters() {
    for string in strings::strings() {
        let (task, outcome, note) = (task(&string), outcome(&string, &string), note(&string));
        let snapshot = text(memory_viz::Json::default(), &task, &outcome, &note);
        assert_no_control(&snapshot, &string);
        assert_no_command(&snapshot, &string);
        let snapshot: serde_json::Value = serde_json::from_str(&snapshot).unwrap();
        let frame = &snapshot["segments"][0]["blocks"][0]["frames"][0];
        assert_eq!(frame["name"], string);
    }
}

#[test]
fn sarif_has_only_printable_characters_and_no_links_of_the_strings() {
    for strings in groups() {
        let sarif = page(Sarif::default(), &strings, |string| string);
        let all = strings.join("\n");
        assert_no_control(&sarif, &all);
        assert_no_command(&sarif, &all);
        let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert!(results.len() >= strings.len(), "{}", results.len());
        for result in results {
            let message = result["message"]["text"].as_str().unwrap();
            assert!(!message.contains("]("), "{message}");
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            let is_of_uri = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%:".contains(&byte);
            assert!(uri.as_str().is_none_or(|uri| uri.bytes().all(is_of_uri)), "{uri}");
        }
        let uris = results.iter().filter(|result| result["locations"][0].is_object());
        assert!(uris.count() >= strings.len(), "{results:?}");
    }
}

#[test]
fn junit_and_the_flame_graph_are_well_formed() {
    for string in strings::strings() {
        let (task, outcome, note) = (task(&string), outcome(&string, &string), note(&string));
        let xml = text(Junit::default(), &task, &outcome, &note);
        assert_no_control(&xml, &string);
        assert_no_command(&xml, &string);
        let tree = roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{string:?}: {e}"));
        let tags: Vec<_> = tree.descendants().filter(|node| node.is_element()).collect();
        let known =
            "testsuites testsuite testcase properties property failure system-out system-err";
        for tag in &tags {
            assert!(known.split(' ').any(|known| tag.has_tag_name(known)), "{string:?}: {tag:?}");
        }
        assert_eq!(tags.iter().filter(|tag| tag.has_tag_name("testcase")).count(), 2);
    }
    // An SVG takes longer to draw, so that one has many strings.
    for some in strings::strings().chunks(100) {
        let mut graph = FlameGraph::default();
        for string in some {
            graph.test_finished(&task(string), &outcome(string, ""));
        }
        let svg = String::from_utf8(graph.text().unwrap()).unwrap();
        assert_no_control(&svg, "the flame graph");
        assert_no_command(&svg, "the flame graph");
        let options =
            roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        let tree = roxmltree::Document::parse_with_options(&svg, options).unwrap();
        let known = ["svg", "title", "style", "g", "rect", "text"];
        let other = |node: &roxmltree::Node<'_, '_>| !known.contains(&node.tag_name().name());
        let others: Vec<_> =
            tree.descendants().filter(|node| node.is_element() && other(node)).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn annotations_are_one_command_for_each_finding() {
    for string in strings::strings() {
        let annotations = every::annotations();
        let mut lines = annotations.of_test(&task(&string), &outcome(&string, ""));
        lines.push(annotations.of_note(&note(&string)));
        assert_eq!(lines.len(), 2);
        for line in lines.into_iter().map(|annotation| annotation.text) {
            assert!(!line.contains(is_special), "{string:?}: {line:?}");
            let (head, _) = line.strip_prefix("::error ").unwrap().split_once("::").unwrap();
            for property in head.split(',') {
                let (name, value) = property.split_once('=').unwrap();
                assert!(["file", "line", "title"].contains(&name), "{string:?}: {line}");
                assert!(!value.contains(':'), "{string:?}: {line}");
            }
        }
    }
}

struct Tags;

impl TokenSink for Tags {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        let known = "html head meta title style script template body header main section nav article \
                     h1 h2 h3 h4 p ul ol li table caption thead tbody tr th td strong code br div pre \
                     details summary span a wbr noscript button input label output em hr mark";
        assert!(known.split_whitespace().any(|known| *tag.name == *known), "{tag:?}");
        for attribute in &tag.attrs {
            let name = &*attribute.name.local;
            assert!(!name.starts_with("on") && name != "src" && name != "style", "{tag:?}");
            let value = &*attribute.value;
            let is_escaped = |c: char| c.is_ascii_alphanumeric() || "-._~/:%".contains(c);
            let to_test = value.strip_prefix('#').is_some_and(|test| test.chars().all(is_escaped));
            assert!(name != "href" || to_test, "{tag:?}");
            assert!(!value.contains(['<', '>', '"']), "{tag:?}");
        }
        let is_start = tag.kind == TagKind::StartTag;
        match &*tag.name {
            "script" if is_start => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" if is_start => {
                assert!(tag.attrs.is_empty());
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

#[test]
fn the_html_page_has_no_markup_of_the_strings() {
    for strings in groups() {
        let page = page(Html::default(), &strings, |_| "");
        let (markup, all) = (without_assets(&page), strings.join("\n"));
        assert_no_control(&markup, &all);
        assert_no_command(&markup, &all);
        let input = BufferQueue::default();
        input.push_back(markup.as_str().into());
        let tokenizer = Tokenizer::new(Tags, TokenizerOpts::default());
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        // The script, the data of the run and those of each test.
        assert_eq!(page.matches("</script").count(), 2 + strings.len(), "{strings:?}");
        let data = unpack(&page);
        assert_eq!(data.len(), 1 + strings.len(), "{strings:?}");
        for (string, data) in strings.iter().zip(&data[1..]) {
            let shown = without_controls(string);
            assert_eq!(data["test"], shown);
            assert_eq!(data["findings"][0]["cause"]["remedy"], shown);
            assert_eq!(data["tree"]["places"][0]["scope"].as_str().unwrap_or_default(), shown);
            assert_no_control(&data.to_string(), string);
        }
    }
}

/// The data has no commands of a CI runner either: it is compressed.
fn without_controls(string: &str) -> String {
    let shown = |c: char| match c {
        '\t' => "    ".to_owned(),
        c if c != '\n' && is_special(c) => escaped(c),
        c => c.to_string(),
    };
    string.chars().map(shown).collect()
}

#[test]
fn the_markdown_page_has_no_markup_of_the_strings() {
    use comrak::nodes::NodeValue;
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.autolink = true;
    options.extension.strikethrough = true;
    for strings in groups() {
        let page = page(Markdown::default(), &strings, |string| string);
        let all = strings.join("\n");
        assert_no_control(&page, &all);
        assert_no_command(&page, &all);
        let arena = comrak::Arena::new();
        let (mut tables, mut headings) = (0, 0);
        for node in comrak::parse_document(&arena, &page, &options).descendants() {
            match &node.data().value {
                NodeValue::HtmlInline(html) => {
                    assert!(["<code>", "</code>"].contains(&html.as_str()), "{strings:?}: {html}");
                }
                NodeValue::HtmlBlock(html) => {
                    let ours = [
                        "<details><summary>All tests</summary>",
                        "<details><summary>Call sites</summary>",
                        "<details><summary>Blocks</summary>",
                        "<details><summary>Driver and NVML</summary>",
                        "</details>",
                    ];
                    assert!(ours.contains(&html.literal.trim()), "{strings:?}: {}", html.literal);
                }
                NodeValue::Link(link) | NodeValue::Image(link) => {
                    panic!("{strings:?}: a link to {}:\n{page}", link.url)
                }
                NodeValue::Table(table) => {
                    tables += 1;
                    // The failures, and all tests.
                    let columns = if tables == 1 && strings.len() > 1 { 4 } else { 7 };
                    assert_eq!(table.num_columns, columns, "{strings:?}:\n{page}");
                    assert!(table.num_rows <= 1 + strings.len(), "{strings:?}:\n{page}");
                }
                NodeValue::Heading(_) => headings += 1,
                _ => {}
            }
        }
        // A page that is full has fewer of both.
        let is_full = page.contains(" are left out: the page is full.");
        if !is_full {
            let expected = (1 + usize::from(strings.len() > 1), 1 + strings.len());
            assert_eq!((tables, headings), expected, "{strings:?}:\n{page}");
        }
    }
}

#[test]
fn a_file_name_has_no_part_of_a_path_and_belongs_to_one_string() {
    let mut files = std::collections::BTreeSet::new();
    let strings = strings::strings();
    let roots = location::Roots::new(Path::new("/ws"), None);
    for string in &strings {
        let path = location::baseline(roots, Path::new("a.rs"), string, Family::Cpu);
        assert_eq!(path.parent(), Some(Path::new("/ws/snapshots")), "{string:?}");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_no_control(name, string);
        assert!(name.len() + ".new".len() <= 255 && !name.contains(['/', '\\']), "{name}");
        files.insert(name.to_owned());
    }
    let different: std::collections::BTreeSet<_> = strings.iter().collect();
    assert_eq!(files.len(), different.len());
    assert_eq!(strings.len(), 1_000);
}
