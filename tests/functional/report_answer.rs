//! The answer in the view of a test of the HTML report: the line, the cause, the remedy and the next commands
//! come first, and what supports them is below or folded. Skipped with the reason on a machine without Chromium.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::browser::Page;
use crate::fixture::{memcheck, workspace};
use crate::report_matrix::results;
use crate::report_page::{OPENED, READY, assert_fits};
use crate::report_views;

const LEAK: &str = "#memcheck-programs::programs/profile::layers_leaky/cpu";
const HANG: &str = "#memcheck-tests::controls/a_hang/cpu";
const CODE: &str = "tests/programs/profile.rs";

/// The line of the list, and the lines of three call sites: the second is near the first line.
const KEPT: u32 = 12;
const SITES: [u32; 3] = [17, 15, 23];

/// A leak of three call sites whose tensors a list can hold.
fn leak(folder: &Path) -> PathBuf {
    report_views::report(folder, |test| {
        let Some(finding) = test.pointer_mut("/outcome/verdict/findings/0") else { return };
        if finding["code"] != "leak" {
            return;
        }
        finding["kept_through"] = json!({"file": CODE, "line": KEPT, "function": "body"});
        let site = finding["sites"][0].clone();
        let sites = SITES.map(|line| {
            let mut site = site.clone();
            site["line"] = line.into();
            site
        });
        finding["sites"] = json!(sites);
    })
}

/// The view of a test of the recorded endings, with a change of its finding.
fn ending(folder: &Path, name: &str, change: impl Fn(&mut Value)) -> PathBuf {
    let path = results(folder, "changed", 0);
    let file = Path::new(&path).join("results.jsonl");
    let text = std::fs::read_to_string(&file).expect("the results");
    let changed = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line.pointer("/test/task/subject/test/name") == Some(&json!(name)) {
            change(line.pointer_mut("/test/outcome/verdict/findings/0").expect("a finding"));
        }
        format!("{line}\n")
    });
    std::fs::write(&file, changed.collect::<String>()).expect("the results are written");
    let page = folder.join("ending.html");
    let report = format!("html={}", page.display());
    memcheck(&workspace(), &["report", &path, "--report", &report]).exits(100);
    page
}

/// `main.rs:12` of every line of source in the findings.
fn source_lines(page: &mut Page) -> Vec<String> {
    let lines = page.text(
        "[...document.querySelectorAll('.finding .snippet')].flatMap(of => [...of.querySelectorAll('.number')]\
         .map(number => of.ariaLabel.split(':')[0] + ':' + number.textContent.trim())).join()",
    );
    lines.split(',').map(|line| line.rsplit('/').next().unwrap_or(line).to_owned()).collect()
}

#[track_caller]
fn assert_each_once(lines: &[String]) {
    let distinct: std::collections::BTreeSet<&String> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len(), "{lines:?}");
}

/// The text of each matching element that a reader sees.
fn seen(page: &mut Page, selector: &str) -> Vec<String> {
    let all = page.text(&format!(
        "[...document.querySelectorAll({selector:?})].filter(e => e.checkVisibility())\
         .map(e => e.textContent).join('\u{1e}')"
    ));
    all.split('\u{1e}').filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_leak_has_its_line_cause_remedy_and_commands_before_the_evidence_and_the_call_sites() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = leak(folder.path());
    page.visit(&path, LEAK, OPENED);
    let order = page.text(
        "[...document.querySelector('.finding').children].map(e => e.className || e.tagName).join(' ')",
    );
    let expected = "message place snippet cause next evidence call-sites on-phone explanation";
    assert_eq!(order, expected);
    let marked = "[...document.querySelectorAll('.finding > .snippet mark .number')]";
    assert_eq!(page.text(&format!("{marked}.map(e => e.textContent.trim()).join()")), "12");
    let cause = page.text("document.querySelector('.cause').textContent");
    assert!(cause.contains("Cause: ") && cause.contains("Remedy: "), "{cause}");
    assert!(!cause.contains("Evidence"), "{cause}");
    let commands = seen(&mut page, ".next dd code");
    assert!(commands.len() > 1 && commands[0].starts_with("cargo memcheck "), "{commands:?}");
    // The source of the call sites is folded, and has no line that the first excerpt has.
    assert_eq!(seen(&mut page, ".finding .call-sites .snippet"), [""; 0]);
    assert_each_once(&source_lines(&mut page));
    let folded = "[...document.querySelectorAll('.call-sites .snippet mark .number')]";
    assert_eq!(page.text(&format!("{folded}.map(e => e.textContent.trim()).join()")), "17,23");
    // Paper has all of it.
    page.set_print(true);
    page.value("dispatchEvent(new Event('beforeprint'))");
    let printed = seen(&mut page, ".finding .snippet");
    assert!(printed.len() >= 2, "{printed:?}");
    assert!(printed.iter().any(|text| text.contains("kept.push")), "{printed:?}");
    page.value("dispatchEvent(new Event('afterprint'))");
    page.set_print(false);
    assert_eq!(seen(&mut page, ".finding .call-sites .snippet"), [""; 0]);
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn a_card_that_opens_has_the_commands_below_the_remedy_and_then_the_evidence() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = leak(folder.path());
    page.visit(&path, "", READY);
    // Closed, it has the whole remedy.
    page.value("document.querySelector('.failure').open = false");
    let fix = seen(&mut page, ".failure .fix");
    assert!(fix.len() == 1 && fix[0].starts_with("fix: "), "{fix:?}");
    let hidden = page.value(
        "(fix => fix.scrollHeight - fix.offsetHeight)(document.querySelector('.failure .fix'))",
    );
    assert_eq!(hidden, 0);
    page.value("document.querySelector('.failure').open = true");
    assert_eq!(seen(&mut page, ".failure .fix"), [""; 0]);
    let card = page.text("[...document.querySelectorAll('.failure:first-of-type > :not(summary)')].map(e => e.textContent).join(' ')");
    let parts = ["can be in the list that grows at: ", "remedy: ", "next: ", "evidence: "];
    let found = parts.map(|part| card.find(part).unwrap_or_else(|| panic!("{part}: {card}")));
    assert!(found.is_sorted(), "{card}");
    page.set_print(true);
    let inside = page.text("getComputedStyle(document.querySelector('.failure')).breakInside");
    assert_eq!(inside, "avoid", "a card is on one sheet");
    assert!(seen(&mut page, ".failure .evidence").len() == 1, "the evidence is printed");
}

#[test]
fn a_line_and_its_caller_that_are_near_each_other_are_in_one_excerpt() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let called = |from: u64| {
        move |finding: &mut Value| {
            let message = finding["message"].as_str().expect("a message").to_owned();
            let at = format!("{message}\ncalled from tests/tests/controls/main.rs:{from} (a::b)");
            finding["message"] = at.into();
        }
    };
    // The line of the end is 150.
    let near = ending(folder.path(), "a_hang", called(147));
    page.visit(&near, HANG, OPENED);
    assert_each_once(&source_lines(&mut page));
    let lines = source_lines(&mut page);
    assert_eq!(
        (lines.first(), lines.last()),
        (Some(&"main.rs:144".to_owned()), Some(&"main.rs:151".to_owned()))
    );
    assert_eq!(seen(&mut page, ".finding .snippet").len(), 1);
    assert!(seen(&mut page, ".finding mark.line")[0].starts_with("  150"));
    assert!(seen(&mut page, ".finding .caller")[0].starts_with("  147"));
    // A caller that is far away has its own.
    let far = ending(folder.path(), "a_hang", called(20));
    page.visit(&far, HANG, OPENED);
    assert_each_once(&source_lines(&mut page));
    assert_eq!(seen(&mut page, ".finding .snippet").len(), 2);
    let places = page.text(
        "[...document.querySelectorAll('.finding > .snippet')].map(e => e.previousElementSibling.textContent).join()",
    );
    let named = [150, 20].map(|line| format!("tests/tests/controls/main.rs:{line}"));
    assert_eq!(places, named.join(","), "each has its place, and the line of the end is first");
}

#[test]
fn lines_that_grew_next_to_each_other_are_in_one_excerpt() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let place = |line: u32| format!("{CODE}:{line}");
    let grown =
        |line| json!({"holder": "add", "place": place(line), "then": 0, "now": 4096 + line});
    let path = ending(folder.path(), "one_block_over_the_peak", |finding| {
        finding["code"] = "peak-regression".into();
        finding["grown"] = json!([grown(17), grown(15), grown(12), grown(13)]);
    });
    page.visit(&path, "#memcheck-tests::controls/one_block_over_the_peak/cpu", OPENED);
    assert_each_once(&source_lines(&mut page));
    let marked = "[...document.querySelectorAll('.finding > .snippet mark .number')]";
    let marked = page.text(&format!("{marked}.map(e => e.textContent.trim()).join()"));
    assert_eq!(marked, "12,13,15,17", "a fourth line that is near is marked too");
    assert_eq!(seen(&mut page, ".finding > .snippet").len(), 1);
}

#[test]
fn on_a_phone_code_does_not_wrap_and_what_is_not_the_answer_is_folded() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = leak(folder.path());
    page.resize(390, 844, 2);
    page.visit(&path, LEAK, OPENED);
    assert_fits(&mut page, 390);
    let height = page.value("document.documentElement.scrollHeight").as_u64().expect("a height");
    assert!(height < 3_500, "the view is {height} pixels long");
    let lines = "[...document.querySelectorAll('.finding > .snippet .line')].map(e => e.getBoundingClientRect().height)";
    let even = page.value(&format!("Math.max(...{lines}) < 1.5 * Math.min(...{lines})"));
    assert_eq!(even, true, "a line of code has one line on the screen");
    let scrolls = "(e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === 'auto' && e.tabIndex === 0)";
    assert_eq!(
        page.value(&format!("{scrolls}(document.querySelector('.finding > .snippet'))")),
        true
    );
    // The mark is as wide as the longest line.
    let wide = "document.querySelector('.finding > .snippet mark').offsetWidth >= document.querySelector('.finding > .snippet').scrollWidth";
    assert_eq!(page.value(wide), true);
    assert_eq!(seen(&mut page, ".next dd code").len(), 1);
    let open = "[...document.querySelectorAll('#view details.part[open] > summary')].map(e => e.textContent).join()";
    assert_eq!(page.text(open), "Memory over time in host");
    assert_eq!(page.value("document.querySelectorAll('.on-phone[open]').length"), 0);
    page.visit(&path, "", READY);
    page.value("document.querySelectorAll('.failure').forEach(card => { card.open = true; })");
    let sources = "[...document.querySelectorAll('.failure .source')]";
    let one_line = page.value(&format!(
        "{sources}.length > 0 && {sources}.every(e => \
        e.getClientRects().length === 1 && e.offsetHeight < 30 && e.tabIndex === 0)"
    ));
    assert_eq!(one_line, true);
    assert_fits(&mut page, 390);
    // On a wider screen all of it is open, and on paper too.
    page.visit(&path, LEAK, OPENED);
    page.resize(1024, 900, 1);
    page.wait("document.querySelectorAll('.on-phone:not([open])').length === 0");
    page.resize(390, 844, 2);
    page.wait("document.querySelectorAll('.on-phone[open]').length === 0");
    page.value("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(page.value("document.querySelectorAll('.on-phone:not([open])').length"), 0);
    page.value("dispatchEvent(new Event('afterprint'))");
    assert_eq!(page.value("document.querySelectorAll('.on-phone[open]').length"), 0);
    assert_eq!(page.errors, [""; 0]);
}

/// Twelve figures are not twelve headings.
#[test]
fn on_a_phone_a_figure_is_a_name_and_a_value_on_one_line() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = leak(folder.path());
    page.resize(390, 844, 2);
    page.visit(&path, LEAK, OPENED);
    page.value("document.querySelectorAll('.part').forEach(part => { part.open = true; })");
    let rows = "[...document.querySelectorAll('.figures tbody tr')]";
    let columns = page.value(&format!(
        "{rows}.length >= 6 && {rows}.every(({{ cells: [name, now] }}) => {{ \
         const [a, b] = [name, now].map(e => e.getBoundingClientRect()); \
         return a.top < b.bottom && b.top < a.bottom && a.right <= b.left && b.right > innerWidth - 60; }})"
    ));
    assert_eq!(columns, true);
    let weights = page.text(&format!(
        "[...new Set({rows}.map(row => getComputedStyle(row.cells[0]).fontWeight))].join()"
    ));
    assert_eq!(weights, "400");
    assert_eq!(page.errors, [""; 0]);
}
