//! The view of a test in the HTML report on a phone, on paper and with a pointer: a panic, a leak, and a test
//! whose figures never change. Skipped with the reason on a machine without Chromium.

use std::path::{Path, PathBuf};

use crate::browser::Page;
use crate::fixture::{memcheck, workspace};
use crate::report_matrix::{panicked, results};
use crate::report_page::{OPENED, READY, assert_fits, report};

/// The tests of the recorded results.
const PANIC: &str = "#memcheck-tests::controls/an_error/cpu";
const LEAK: &str = "#memcheck-tests::controls/gradients_are_kept/cpu";
const CONSTANT: &str = "#memcheck-tests::controls/one_block_over_the_peak/cpu";

fn page_of(results: &str, folder: &Path) -> PathBuf {
    let path = folder.join("report.html");
    let report = format!("html={}", path.display());
    memcheck(&workspace(), &["report", results, "--report", &report]).exits(100);
    path
}

fn is_shown(page: &mut Page, selector: &str) -> bool {
    let all = format!("[...document.querySelectorAll({selector:?})]");
    page.value(&format!("{all}.some(e => e.checkVisibility())")) == true
}

fn text(page: &mut Page, selector: &str) -> String {
    page.text(&format!("document.querySelector({selector:?}).textContent"))
}

/// The first element that is outside of the page, or whose content is wider than it.
fn outside(page: &mut Page, selector: &str) -> String {
    page.text(&format!(
        "(() => {{ const of = [...document.querySelectorAll({selector:?})].filter(e => e.checkVisibility()); \
         if (of.length === 0) return 'nothing is shown'; \
         const e = of.find(e => e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 1); \
         return e ? e.outerHTML.slice(0, 200) : ''; }})()"
    ))
}

/// A text in which a number and its unit can be on two lines. Code is copied, and stays as it is.
const BROKEN_UNIT: &str = "(() => { const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
    while (walker.nextNode()) { const { parentElement: parent, data } = walker.currentNode; \
    if (/\\d ([KMG]iB|B|%|s)(?!\\w)/.test(data) && !parent.closest('code, pre, script, mark')) return data; } \
    return ''; })()";

#[test]
fn the_next_command_of_a_panic_is_above_its_output_which_has_frames_of_the_program_only() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page_of(&panicked(folder.path()), folder.path());
    page.visit(&path, PANIC, OPENED);
    let order = page.text(
        "[...document.querySelectorAll('#view > *, .next')].map(e => e.querySelector('summary')?.textContent \
         && e.matches('.part') ? e.querySelector('summary').textContent : e.className).join()",
    );
    let at = |part: &str| order.find(part).unwrap_or_else(|| panic!("{part}: {order}"));
    assert!(at("findings") < at("next") && at("next") < at("Output"), "{order}");
    let output = text(&mut page, "#view > .part pre.output");
    assert_eq!(output, "loaded the labels");
    let finding = text(&mut page, ".finding");
    let order = [
        "the body panicked",
        "line: tests/",
        "called from: tests/tests/controls/main.rs:20 in controls::caller",
    ];
    let found = order.map(|part| finding.find(part).unwrap_or_else(|| panic!("{part}: {finding}")));
    assert!(found.is_sorted(), "{finding}");
    let whole =
        "[...document.querySelectorAll('#view .part:not([open])')].map(e => e.textContent).join()";
    let folded = page.text(whole);
    for part in
        ["Whole output", "core::panicking::assert_failed", "Memory of the process", "rss_anon"]
    {
        assert!(folded.contains(part), "{part}: {folded}");
    }
    page.set_print(true);
    let printed = page.text("document.querySelector('#view').innerText");
    for part in ["Whole output", "core::panicking", "rss_anon"] {
        assert!(!printed.contains(part), "{part} is printed: {printed}");
    }
    assert!(printed.contains("controls::caller"), "{printed}");
    // The memory of a leak is not beside the point.
    page.set_print(false);
    let leak = page_of(&results(folder.path(), "leak", 0), folder.path());
    page.visit(&leak, LEAK, OPENED);
    assert!(is_shown(&mut page, ".chart canvas"));
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn on_a_phone_rows_are_cards_and_the_command_opens() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page_of(&results(folder.path(), "endings", 0), folder.path());
    page.resize(390, 844, 2);
    page.visit(&path, LEAK, OPENED);
    page.value("document.querySelectorAll('.on-phone').forEach(part => { part.open = true; })");
    assert_eq!(outside(&mut page, ".wide td, .wide tbody th"), "");
    let limit =
        "[...document.querySelectorAll('td[data-label=Limit]')].find(e => e.checkVisibility())";
    assert_eq!(page.text(&format!("{limit}.textContent")), "0 B");
    assert!(page.text(&format!("getComputedStyle({limit}, '::before').content")).contains("Limit"));
    assert!(!is_shown(&mut page, ".wide thead") && !is_shown(&mut page, "td[data-empty]"));
    let height = "document.querySelector('.run').getBoundingClientRect().height";
    let closed = page.value(height).as_f64().expect("a height");
    assert!(closed < 50.0, "the command takes {closed} pixels");
    page.click_on(".run summary");
    page.wait("document.querySelector('.run').open");
    assert_eq!(outside(&mut page, ".run summary code"), "");
    assert!(page.value(height).as_f64().expect("a height") > closed);
    let (_programs, path) = report();
    page.visit(&path, "", READY);
    let leaky = page.text("document.querySelector('.failure a').getAttribute('href')");
    assert_eq!(outside(&mut page, ".failure .place code"), "");
    page.visit(&path, &leaky, OPENED);
    assert_fits(&mut page, 390);
    assert_eq!(page.errors, [""; 0]);
}

/// The line of a crash is marked in its source. That of the test says only which test it was.
#[test]
fn a_crash_at_an_unknown_line_names_the_test_and_marks_no_source() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let results = results(folder.path(), "killed", 0);
    let file = Path::new(&results).join("results.jsonl");
    let known = page_of(&results, folder.path());
    const CRASH: &str = "#memcheck-tests::controls/an_abort/cpu";
    page.visit(&known, CRASH, OPENED);
    let found = text(&mut page, ".finding");
    assert!(found.contains("line: tests/tests/controls/main.rs:"), "{found}");
    assert!(is_shown(&mut page, ".finding mark.line"));
    let changed = std::fs::read_to_string(&file).expect("the results");
    let changed = changed.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let at = "/test/outcome/verdict/findings/0/keeps_at";
        if let Some(at) = line.pointer_mut(at).and_then(serde_json::Value::as_object_mut) {
            at.remove("function");
        }
        format!("{line}\n")
    });
    let changed: String = changed.collect();
    std::fs::write(&file, changed).expect("the results are written");
    let unknown = page_of(&results, folder.path());
    page.visit(&unknown, "", READY);
    let card = "[...document.querySelectorAll('.failure')].find(e => e.textContent.includes('an_abort')).textContent";
    let card = page.text(card);
    assert!(card.contains("the test: tests/tests/controls/main.rs:"), "{card}");
    page.visit(&unknown, CRASH, OPENED);
    let found = text(&mut page, ".finding");
    assert!(found.contains("the test: tests/tests/controls/main.rs:"), "{found}");
    assert!(!is_shown(&mut page, ".finding .snippet"));
    assert_eq!(page.errors, [""; 0]);
}

/// A killed process leaves no call stack: the body is below the line that iterates. A phone has buttons for the
/// commands of the hint, and for no other code.
#[test]
fn the_line_that_iterates_has_the_body_below_it_and_the_command_of_its_hint_can_be_copied() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let results = results(folder.path(), "killed", 0);
    let file = Path::new(&results).join("results.jsonl");
    let text_of = std::fs::read_to_string(&file).expect("the results");
    let changed = text_of.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let finding = line.pointer_mut("/test/outcome/verdict/findings/0");
        if let Some(finding) = finding.filter(|finding| finding["code"] == "crashed") {
            finding["iterates"] = true.into();
            finding["keeps_at"] =
                serde_json::json!({"file": "tests/tests/controls/main.rs", "line": 138});
            finding["hint"] = "a `kill`. If `sudo dmesg | grep -i memory` prints a line".into();
        }
        format!("{line}\n")
    });
    std::fs::write(&file, changed.collect::<String>()).expect("the results are written");
    let path = page_of(&results, folder.path());
    page.visit(&path, "", READY);
    page.value("document.querySelectorAll('.failure').forEach(card => { card.open = true; })");
    const CRASH: &str = "#memcheck-tests::controls/an_abort/cpu";
    for (view, part, ready) in
        [("", ".failure:has(.hinted .copyable)", READY), (CRASH, ".finding", OPENED)]
    {
        page.visit(&path, view, ready);
        let numbers =
            format!("[...document.querySelector({part:?}).querySelectorAll('.snippet .number')]");
        let lines = page.text(&format!("{numbers}.map(e => e.textContent.trim()).join()"));
        assert_eq!(lines.split(',').next(), Some("138"), "{part}: {lines}");
        assert!(lines.split(',').count() > 4, "{part}: {lines}");
        assert!(text(&mut page, part).contains("iterates here: "), "{part}");
        let copied = format!(
            "[...document.querySelector({part:?}).querySelectorAll('.hinted .copyable code')]"
        );
        assert_eq!(
            page.text(&format!("{copied}.map(e => e.textContent).join('|')")),
            "sudo dmesg | grep -i memory"
        );
    }
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn a_column_without_a_value_is_left_out() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page_of(&results(folder.path(), "endings", 0), folder.path());
    page.resize(1440, 900, 1);
    page.visit(&path, LEAK, OPENED);
    let columns = page.text("[...document.querySelectorAll('#view .wide thead')][0].innerText");
    assert!(columns.contains("Limit") && !columns.contains("Baseline"), "{columns}");
}

#[test]
fn a_chart_of_iterations_has_all_its_values_and_names_lines_that_coincide() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page_of(&results(folder.path(), "endings", 0), folder.path());
    page.visit(&path, LEAK, OPENED);
    let described = text(&mut page, "#view .part:has(canvas) p");
    assert!(
        described.starts_with("10 measured iterations (3 to 12) after 2 of warm-up: "),
        "{described}"
    );
    let legend = text(&mut page, ".legend:has(.sample)");
    assert!(legend.contains("trend 6.36 MiB (the same as live)"), "{legend}");
    assert!(!legend.contains("peak 7.32 MiB (the same"), "{legend}");
    // The samples have the dashes of the lines.
    let dashes = page.text(
        "[...document.querySelectorAll('.sample path')].map(e => e.getAttribute('stroke-dasharray')).join('|')",
    );
    assert_eq!(dashes, "|10 4|6 8");
    page.wait("document.querySelector('.chart').dataset.highest");
    let highest = page.text("document.querySelector('.chart').dataset.highest");
    let highest: f64 = highest.parse().expect("a number");
    assert!(
        highest >= f64::from(8 << 20),
        "a tick of 2 MiB is above the peak of 7.32 MiB: {highest}"
    );
    page.visit(&path, CONSTANT, OPENED);
    assert!(!is_shown(&mut page, ".chart canvas"), "no figure of this test changes");
    let said = page.text("document.querySelector('#view').innerText");
    assert!(
        said.contains("the live memory is always 0 B, and the peak is always 1,048,580 B"),
        "{said}"
    );
    let (_programs, path) = report();
    page.visit(&path, "", READY);
    let leaky = page.text("document.querySelector('.failure a').getAttribute('href')");
    page.visit(&path, &leaky, OPENED);
    let blocks = page.text("document.querySelector('.blocks .chart').ariaLabel");
    assert!(blocks.contains("After \u{201c}end\u{201d}, the last iteration is over"), "{blocks}");
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn no_number_is_torn_from_its_unit_and_paper_has_no_links_to_open() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = page_of(&results(folder.path(), "endings", 0), folder.path());
    let (_programs, followed) = report();
    for (path, fragment) in [(&path, ""), (&path, LEAK), (&path, CONSTANT), (&followed, "")] {
        page.visit(path, fragment, if fragment.is_empty() { READY } else { OPENED });
        assert_eq!(page.text(BROKEN_UNIT), "", "{fragment}");
    }
    assert!(is_shown(&mut page, ".failure .open"));
    page.set_print(true);
    assert!(!is_shown(&mut page, ".failure .open"));
    assert!(is_shown(&mut page, ".failure .place"));
    page.set_print(false);
    // Charts for paper are drawn in light colors.
    page.set_dark(true);
    let color = "getComputedStyle(document.documentElement).getPropertyValue('--text')";
    let dark = page.text(color);
    page.value("dispatchEvent(new Event('beforeprint'))");
    assert_ne!(page.text(color), dark);
    page.value("dispatchEvent(new Event('afterprint'))");
    assert_eq!(page.text(color), dark);
    // The check can fail.
    page.value("document.querySelector('h1').textContent = 'growth 0 B'");
    assert_eq!(page.text(BROKEN_UNIT), "growth 0 B");
}
