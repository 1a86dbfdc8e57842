//! The layout of the HTML report in a real browser: from a phone to a wide screen, in light, dark and
//! on paper. Skipped with the reason on a machine without Chromium.

use crate::browser::Page;
use crate::fixture::{memcheck, workspace};
use crate::report_matrix::{WIDTHS, regressed, results};
use crate::report_page::{OPENED, READY, assert_fits, report};

const PRINTED_WIDTH: u64 = 690;

fn number(page: &mut Page, expression: &str) -> f64 {
    page.value(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
}

fn is_shown(page: &mut Page, selector: &str) -> bool {
    page.value(&format!("document.querySelector({selector:?}).checkVisibility()")) == true
}

/// The address of the test that failed.
fn failed_test(page: &mut Page) -> String {
    page.text("document.querySelector('.failure a').getAttribute('href')")
}

#[test]
fn names_of_tests_are_readable_at_every_width() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    for width in WIDTHS {
        page.resize(width as u32, 900, 1);
        page.visit(&path, "", READY);
        assert_fits(&mut page, width);
        let row = "document.querySelector('#tests tbody tr:not(.group)')";
        let share = format!(
            "{row}.cells[0].getBoundingClientRect().width / {row}.getBoundingClientRect().width"
        );
        let share = number(&mut page, &share);
        // 40 %, of widths that are rounded to a part of a pixel.
        assert!(share >= 0.399, "{width}: the name has {share} of the row");
        // A name has one line, or breaks after a separator.
        let lines =
            format!("new Set([...{row}.querySelector('a').getClientRects()].map(r => r.top)).size");
        assert!(number(&mut page, &lines) <= 2.0, "{width}");
        let height = number(&mut page, &format!("{row}.getBoundingClientRect().height"));
        assert!(height < 110.0, "{width}: a row is {height} pixels high");
        let whole = "[...document.querySelectorAll('pre.output, pre.alert')]\
            .every(text => text.scrollWidth <= text.clientWidth)";
        assert_eq!(page.value(whole), true, "{width}: an output is cut off");
    }
    assert_eq!(page.errors, [""; 0]);
}

/// Long codes, figures in bytes and limits of a baseline.
#[test]
fn from_641_pixels_on_the_tests_are_a_table_without_broken_words() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let report = format!("html={}", path.display());
    memcheck(&workspace(), &["report", &regressed(folder.path()), "--report", &report]).exits(100);
    for width in [641, 700, 820, 1024, 1100, 1440] {
        page.resize(width, 900, 1);
        page.visit(&path, "", READY);
        assert!(is_shown(&mut page, "#tests thead"), "{width}");
        let lines = number(&mut page, &format!("Math.max(...{LIMITS}.map(e => ({LINES})(e)))"));
        assert!((1.0..=2.0).contains(&lines), "{width}: a limit has {lines} lines");
        assert_eq!(page.text(BROKEN_WORD), "", "{width}");
        let is_whole =
            "(t => t.scrollWidth <= t.clientWidth)(document.querySelector('#tests').parentElement)";
        assert_eq!(page.value(is_whole), true, "{width}: the table scrolls");
    }
    // The checks can fail.
    page.value(
        "tests.style.cssText = 'table-layout: fixed; width: 240px'; \
         tests.querySelectorAll('td, td *').forEach(e => { \
         e.style.cssText = 'white-space: normal !important; overflow-wrap: anywhere'; }); 0",
    );
    assert_ne!(page.text(BROKEN_WORD), "");
    let lines = number(&mut page, &format!("Math.max(...{LIMITS}.map(e => ({LINES})(e)))"));
    assert!(lines > 2.0, "{lines}");
    page.resize(640, 900, 1);
    page.visit(&path, "", READY);
    assert!(!is_shown(&mut page, "#tests thead"), "a row is a card");
    assert_eq!(page.errors, [""; 0]);
}

/// The figures before, after and their difference are in columns, also on a phone.
#[test]
fn the_figures_of_a_regression_are_in_columns_at_every_width() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let report = format!("html={}", path.display());
    memcheck(&workspace(), &["report", &regressed(folder.path()), "--report", &report]).exits(100);
    let view = "#memcheck-tests::controls/one_block_over_the_peak/cpu";
    for (fragment, ready) in [("", READY), (view, OPENED)] {
        for width in WIDTHS {
            page.resize(width as u32, 900, 1);
            page.visit(&path, fragment, ready);
            page.value(
                "document.querySelectorAll('.failure').forEach(card => { card.open = true; })",
            );
            let rows = page.text(
                "[...document.querySelectorAll('.changes tbody tr')].filter(row => row.checkVisibility())\
                 .map(row => [...row.cells].map(cell => cell.textContent).join('|')).join('\\n')",
            );
            assert!(rows.contains("(gone)|524,284 B|0 B|") && rows.contains("\npeak|"), "{rows}");
            let columns = page.value(
                "[1, 2, 3].map(column => new Set([...document.querySelectorAll('.changes tr')]\
                 .filter(row => row.checkVisibility())\
                 .map(row => Math.round(row.cells[column].getBoundingClientRect().right))).size).join()",
            );
            assert_eq!(columns, "1,1,1", "{width}: the right edges of the cells");
            let rows = page.value(
                "[...document.querySelectorAll('.changes tr')].filter(row => row.checkVisibility())\
                 .every(({ cells: [, ...of] }) => new Set(of.map(cell => Math.round(cell.getBoundingClientRect().top))).size === 1)",
            );
            assert_eq!(rows, true, "{width}: the figures of a row are on one line");
        }
    }
    assert_eq!(page.errors, [""; 0]);
}

const LIMITS: &str = "[...document.querySelectorAll('#tests td.limit')]";

/// The number of lines of the text of an element.
const LINES: &str = "e => { const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT); const tops = new Set(); \
    while (walker.nextNode()) { const range = document.createRange(); range.selectNodeContents(walker.currentNode); \
    [...range.getClientRects()].forEach(r => tops.add(Math.round(r.top))); } return tops.size; }";

/// A word in a cell that is on two lines. A code breaks after its hyphens.
const BROKEN_WORD: &str = "(() => { for (const cell of document.querySelectorAll('#tests td')) { \
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT); \
    while (walker.nextNode()) { const node = walker.currentNode; \
    for (const { 0: word, index } of node.data.matchAll(/[^\\s-]+-?/g)) { \
    const range = document.createRange(); range.setStart(node, index); range.setEnd(node, index + word.length); \
    if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) return word; } } } return ''; })()";

#[test]
fn a_test_can_be_sorted_by_values_that_are_in_no_column() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let report = format!("html={}", path.display());
    memcheck(&workspace(), &["report", &regressed(folder.path()), "--report", &report]).exits(100);
    page.visit(&path, "", READY);
    let orders =
        page.text("[...document.querySelector('#order').options].map(e => e.textContent).join()");
    assert!(orders.starts_with("Test,Result,") && orders.contains("Finding"), "{orders}");
    assert!(!orders.contains("Device"), "all tests have one device: {orders}");
    page.value("order.value = 'finding'; order.dispatchEvent(new Event('change')); 0");
    let found = page.text(
        "[...document.querySelectorAll('#tests tbody tr:not(.group)')].map(e => e.dataset.finding ?? '~').join()",
    );
    assert!(found.split(',').is_sorted() && found.contains("peak-regression"), "{found}");
    assert_eq!(
        page.text(
            "[...document.querySelectorAll('#tests th[aria-sort]')].map(e => e.textContent).join()"
        ),
        ""
    );
}

/// What needs attention first, and what was not run last.
#[test]
fn results_are_sorted_from_the_failed_to_the_ignored() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let statuses = ["ignored", "passed", "needs-review", "not-measured", "failed", "passed"];
    let path = results(folder.path(), "statuses", 0);
    let file = std::path::Path::new(&path).join("results.jsonl");
    let text = std::fs::read_to_string(&file).expect("the results");
    let recorded = folder.path().join("recorded.html");
    let report = format!("html={}", recorded.display());
    memcheck(&workspace(), &["report", &path, "--report", &report]).exits(100);
    let mut left = statuses.into_iter();
    let changed = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if let Some(verdict) = line.pointer_mut("/test/outcome/verdict") {
            verdict["status"] = left.next().expect("a status for each test").into();
        }
        format!("{line}\n")
    });
    std::fs::write(&file, changed.collect::<String>()).expect("the results are written");
    let page_path = folder.path().join("report.html");
    let report = format!("html={}", page_path.display());
    memcheck(&workspace(), &["report", &path, "--report", &report]).exits(100);
    page.visit(&page_path, "", READY);
    let order = "[...document.querySelectorAll('#tests tbody tr:not(.group)')].map(e => e.dataset.status).join()";
    let expected = ["failed", "not-measured", "needs-review", "passed", "passed", "ignored"];
    assert_eq!(page.text(order), expected.join(","));
    let sort = "order.value = [...order.options].find(e => e.textContent === 'Result').value; \
                order.dispatchEvent(new Event('change')); 0";
    page.value(sort);
    let reversed: Vec<&str> = expected.into_iter().rev().collect();
    assert_eq!(page.text(order), reversed.join(","), "chosen again, the order turns");
    // Within a result in the order of the cards: the kinds of the findings, then the names.
    page.visit(&recorded, "", READY);
    let names = |selector: &str| {
        format!("[...document.querySelectorAll({selector:?})].map(e => e.textContent).join()")
    };
    let cards = page.text(&names(".failure summary .name"));
    assert_eq!(cards.split(',').count(), 6, "{cards}");
    assert_eq!(page.text(&names("#tests a.test")), cards);
    // The links of a view have other names than its next commands.
    page.visit(&page_path, "", READY);
    page.value("document.querySelectorAll('#tests a.test')[1].click()");
    page.wait(crate::report_page::OPENED);
    let links =
        page.text("[...document.querySelectorAll('.crumbs a')].map(e => e.textContent).join('|')");
    assert_eq!(
        links,
        "\u{2190} All tests|\u{2039} Previous test: gradients_are_kept|Next test: an_error \u{203a}"
    );
    let labels =
        page.text("[...document.querySelectorAll('.crumbs a[title]')].map(e => `${e.title}, ${e.ariaLabel}`).join('|')");
    assert_eq!(
        labels,
        "gradients_are_kept, Previous test: gradients_are_kept|an_error, Next test: an_error"
    );
    page.resize(390, 844, 2);
    let is_short = "[...document.querySelectorAll('.neighbor')].every(e => !e.checkVisibility())";
    assert_eq!(page.value(is_short), true, "a phone has no room for the names");
    assert_eq!(page.errors, [""; 0]);
}

/// No button of a row of tools is alone, and a name of a holder is not broken into pieces.
#[test]
fn the_tools_and_the_tables_of_a_view_use_the_width() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    page.visit(&path, "", READY);
    let test = failed_test(&mut page);
    for width in [390, 641, 700, 820, 1024, 1440] {
        page.resize(width, 900, 1);
        page.visit(&path, &test, OPENED);
        page.value("document.querySelectorAll('.part').forEach(part => { part.open = true; })");
        let alone = page.text(
            "[...document.querySelectorAll('#view .tools')].flatMap(of => { \
             const all = [...of.querySelectorAll('button, input')]; const tops = all.map(e => Math.round(e.getBoundingClientRect().bottom)); \
             return all.filter((_, at) => tops.filter(top => Math.abs(top - tops[at]) < 8).length === 1); })\
             .map(e => e.textContent).join()",
        );
        assert_eq!(alone, "", "{width}: a button stands alone");
        // On a phone a row is a card.
        if width < 641 {
            continue;
        }
        let survivors = "document.querySelector('[aria-label^=Survivors] table')";
        let share = number(
            &mut page,
            &format!("{survivors}.offsetWidth / {survivors}.closest('.part').offsetWidth"),
        );
        assert!((0.99..1.001).contains(&share), "{width}: the table has {share} of the width");
        let lines = number(
            &mut page,
            &format!(
                "(e => {{ const range = document.createRange(); range.selectNodeContents(e.firstChild); \
                 return new Set([...range.getClientRects()].map(r => r.top)).size; }})({survivors}.querySelector('.holder'))"
            ),
        );
        assert!((1.0..=2.0).contains(&lines), "{width}: a name has {lines} lines");
    }
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn a_column_with_one_value_is_stated_once() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    page.resize(1440, 900, 1);
    page.visit(&path, "", READY);
    let shown = "[...document.querySelectorAll('#tests thead th:not([hidden])')].map(e => e.textContent).join()";
    let columns = page.text(shown);
    assert!(!columns.contains("Device") && columns.contains("Result"), "{columns}");
    let stated = page.text("document.querySelector('.wide').parentElement.textContent");
    assert!(stated.contains("All tests: device cpu"), "{stated}");
}

#[test]
fn a_search_without_a_match_says_so_and_can_be_cleared() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    page.visit(&path, "", READY);
    page.click_on("#search");
    page.insert("no such test");
    page.wait("document.body.innerText.includes('No test matches.')");
    for filtered in [".failure", "#tests thead", "#overview h2"] {
        assert!(!is_shown(&mut page, filtered), "{filtered}");
    }
    page.click_on("#overview button.link");
    assert!(is_shown(&mut page, ".failure"));
}

#[test]
fn on_paper_titles_counts_and_whole_charts_remain() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    page.resize(1440, 900, 1);
    page.visit(&path, "", READY);
    page.set_print(true);
    for kept in [".card .count", "#tests thead th:not([hidden])", ".failure h3, .failure summary"] {
        assert!(is_shown(&mut page, kept), "{kept}");
    }
    for tool in [".tools", ".copyable button"] {
        assert!(!is_shown(&mut page, tool), "{tool}");
    }
    // The heading and the paragraph above the table of tests are on its sheet.
    for above in ["#tests", "#overview h2:has(~ .wide)"] {
        let of = match above {
            "#tests" => {
                "document.querySelector('#tests').parentElement.previousElementSibling".to_owned()
            }
            heading => format!("[...document.querySelectorAll({heading:?})].pop()"),
        };
        assert_eq!(page.text(&format!("getComputedStyle({of}).breakAfter")), "avoid", "{above}");
    }
    // A card that a reader has closed is whole on paper.
    page.value("document.querySelector('.failure').open = false");
    for (event, is_open) in [("beforeprint", true), ("afterprint", false)] {
        page.value(&format!("dispatchEvent(new Event('{event}'))"));
        assert_eq!(page.value("document.querySelector('.failure').open"), is_open, "{event}");
    }
    page.set_print(false);
    let test = failed_test(&mut page);
    page.visit(&path, &test, OPENED);
    page.value("dispatchEvent(new Event('beforeprint'))");
    for picture in [".blocks .uplot", ".flames svg"] {
        let width = format!("document.querySelector('{picture}').getBoundingClientRect().width");
        let width = number(&mut page, &width);
        assert!(width <= PRINTED_WIDTH as f64, "{picture} is {width} pixels wide");
    }
    let heights =
        "[...document.querySelectorAll('.uplot')].reduce((sum, of) => sum + of.offsetHeight, 0)";
    let heights = number(&mut page, heights);
    assert!((300.0..500.0).contains(&heights), "two charts take {heights} pixels of a sheet");
    let frame =
        number(&mut page, "document.querySelector('.flames rect').getBoundingClientRect().width");
    assert!(frame > 300.0, "the frames of a graph are drawn at once: {frame}");
    page.value("dispatchEvent(new Event('afterprint'))");
    let width =
        number(&mut page, "document.querySelector('.blocks .uplot').getBoundingClientRect().width");
    assert!(width > PRINTED_WIDTH as f64, "{width}");
    let sheets = page.sheets();
    assert!((1..=3).contains(&sheets), "{sheets} sheets");
    assert_eq!(page.errors, [""; 0]);
}

/// The contrasts of text on the frames of flame graphs, and of the numbers of source lines.
#[test]
fn text_can_be_read_in_light_and_in_dark() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    for dark in [false, true] {
        page.set_dark(dark);
        page.visit(&path, "", READY);
        let test = failed_test(&mut page);
        page.visit(&path, &test, OPENED);
        page.value(CONTRAST);
        let least = number(
            &mut page,
            "Math.min(...[...document.querySelectorAll('.flames g.frame')].map(g => \
                contrast(g.querySelector('rect').getAttribute('fill'), \
                getComputedStyle(g.querySelector('.d3-flame-graph-label')).color)))",
        );
        assert!(least >= 4.5, "labels of frames: {least}");
        let numbers = number(
            &mut page,
            "contrast(getComputedStyle(document.querySelector('.snippet')).backgroundColor, \
                getComputedStyle(document.querySelector('.snippet .number')).color)",
        );
        assert!(numbers >= 4.5, "numbers of lines: {numbers}");
    }
}

/// `contrast(a, b)` of two CSS colors, by the formula of WCAG 2.
const CONTRAST: &str = "
    window.contrast = (a, b) => {
        const context = document.createElement('canvas').getContext('2d');
        const light = (text) => {
            context.fillStyle = text;
            context.fillRect(0, 0, 1, 1);
            const parts = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    }; 0";
