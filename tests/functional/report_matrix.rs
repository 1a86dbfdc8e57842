//! All pages that memcheck writes, in a real browser: from a phone to a wide screen, in light, in dark
//! and on paper. Skipped with the reason on a machine without Chromium.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::browser::Page;
use crate::fixture::{memcheck, skip_reader, workspace};
use crate::report_page::{OPENED, READY, assert_fits};

pub(crate) const WIDTHS: [u64; 4] = [390, 700, 1024, 1440];
const PRINTED_WIDTH: u64 = 690;
/// For a page without a script.
const LOADED: &str = "document.readyState === 'complete'";

/// The first page with open cards.
const UNFOLDED: &str = "document.documentElement.dataset.ready !== undefined \
    && [...document.querySelectorAll('.failure')].every(card => { card.open = true; return true; })";

/// The view of a test with the parts that a phone folds.
const UNFOLDED_VIEW: &str = "document.querySelector('#view').dataset.ready !== undefined \
    && [...document.querySelectorAll('.on-phone')].every(part => { part.open = true; return true; })";

/// A page, or a part of it.
struct View {
    name: &'static str,
    path: PathBuf,
    fragment: String,
    ready: &'static str,
    /// Selectors of elements that a reader must see, on paper too.
    shown: &'static [&'static str],
}

/// Where a line of the results has the name of its test.
const NAME: &str = "/test/task/subject/test/name";

/// A run with long names.
fn origin() -> Value {
    json!({
        "project": "a-workspace-of-several-models", "commit": "0123456789abcdef0123456789abcdef01234567",
        "branch": "feature/the-cache-of-keys-and-values-is-allocated-once", "version": "0.1.0",
        "command": "cargo memcheck --ci --device sim --device cpu --report html=target/memcheck/report.html",
        "started": "2026-11-29T08:00:00Z",
    })
}

/// A folder with the recorded results of tests that end in six ways, and the tests named `more` added
/// as often.
pub(crate) fn results(folder: &Path, name: &str, more: usize) -> String {
    let recorded = workspace().join("cargo-memcheck/recorded/endings/results.jsonl");
    let recorded = std::fs::read_to_string(recorded).expect("the recording");
    let mut text = String::new();
    for line in recorded.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        for part in ["leg", "end"] {
            if let Some(count) = line[part]["tests"].as_u64() {
                line[part]["tests"] = (count * (more as u64 + 1)).into();
            }
        }
        if let Some(run) = line.get_mut("run") {
            run["origin"] = origin();
        }
        writeln!(text, "{line}").expect("text");
        let Some(test) = line.pointer(NAME).and_then(Value::as_str) else { continue };
        for renamed in (0..more).map(|number| format!("{test}_{number}")) {
            let mut line = line.clone();
            *line.pointer_mut(NAME).expect("a name") = renamed.into();
            writeln!(text, "{line}").expect("text");
        }
    }
    let path = folder.join(name);
    std::fs::create_dir_all(&path).expect("the folder is made");
    std::fs::write(path.join("results.jsonl"), text).expect("the results are written");
    path.display().to_string()
}

/// The results with a peak that is higher than in the recording.
fn changed(folder: &Path) -> String {
    let path = results(folder, "changed", 0);
    let file = Path::new(&path).join("results.jsonl");
    let text = std::fs::read_to_string(&file).expect("the results");
    let higher = text.replace("\"peak_allocated\":1048580", "\"peak_allocated\":2097156");
    assert_ne!(text, higher);
    std::fs::write(file, higher).expect("the results are written");
    path
}

/// What std prints for an assertion, with the line of memcheck's sources that a reader can look at.
const PANIC: &str = "loaded the labels\n\
    thread 'an_error' (7) panicked at tests/tests/controls/main.rs:71:9:\n\
    assertion `left == right` failed\n  left: 1\n right: 32\nstack backtrace:\n   \
    0: __rustc::rust_begin_unwind\n             at /rustc/ab/library/std/src/panicking.rs:689:5\n   \
    1: core::panicking::assert_failed\n             at /rustc/ab/library/core/src/panicking.rs:394:5\n   \
    2: controls::an_error::body\n             at ./tests/tests/controls/main.rs:71:9\n   \
    3: controls::caller\n             at ./tests/tests/controls/main.rs:20:9\n   \
    4: test::run_test\n             at /rustc/ab/library/test/src/lib.rs:9:9\n\
    note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n";

/// The results with a panic instead of the error, and with the memory of its process.
pub(crate) fn panicked(folder: &Path) -> String {
    let path = results(folder, "panicked", 0);
    let file = Path::new(&path).join("results.jsonl");
    let mut text = String::new();
    for line in std::fs::read_to_string(&file).expect("the results").lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line.pointer(NAME) == Some(&json!("an_error")) {
            let outcome = &mut line["test"]["outcome"];
            let message =
                "the body panicked: assertion `left == right` failed\n  left: 1\n right: 32";
            let finding = json!({"code": "test-failed", "message": message, "sites": []});
            outcome["verdict"]["findings"] = json!([finding]);
            outcome["output"] = json!({"stdout": "", "stderr": PANIC});
            let resident = json!({"rss_anon": 4096, "rss_file": 8192, "swap": 0});
            outcome["report"]["record"]["process"] =
                json!({"at_start": resident, "at_end": resident, "peak": resident});
        }
        writeln!(text, "{line}").expect("text");
    }
    std::fs::write(file, text).expect("the results are written");
    path
}

/// The results with regressions, whose codes, figures and limits are long.
pub(crate) fn regressed(folder: &Path) -> String {
    let path = results(folder, "regressed", 0);
    let file = Path::new(&path).join("results.jsonl");
    let text = std::fs::read_to_string(&file).expect("the results");
    let changed = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line.pointer(NAME) == Some(&json!("one_block_over_the_peak")) {
            let finding = |code: &str, figure: u64, limit: u64| {
                json!({"code": code, "space": "host", "figure": figure, "limit": limit,
                    "baseline": limit, "message": format!("{code} is higher"), "sites": []})
            };
            let mut peak = finding("peak-regression", 1_048_580, 1_048_576);
            let place = "tests/tests/controls/main.rs:104";
            peak["grown"] = json!([
                {"holder": "randn [256,1024] f32", "place": place, "then": 524_288, "now": 1_048_576},
            ]);
            peak["shrunk"] = json!([{"holder": "ones [128,1024] f32", "then": 524_284, "now": 0}]);
            line["test"]["outcome"]["verdict"]["findings"] = json!([
                peak, finding("growth-regression", 4, 0), finding("allocations-regression", 1_234, 1_140),
            ]);
        }
        format!("{line}\n")
    });
    std::fs::write(&file, changed.collect::<String>()).expect("the results are written");
    path
}

/// Forty runs, of which some change the peak.
fn history(folder: &Path) -> String {
    let line = |run: u64| {
        let peak = (run / 7 * 3 % 5 + 2) << 20;
        json!({
            "version": 1, "time": format!("2026-{:02}-{:02}T06:00:00Z", run / 28 + 1, run % 28 + 1),
            "commit": "0123456789abcdef", "package": "app", "binary": "app::mem",
            "test": "training::a_step_of_the_decoder_with_a_cache_of_keys_and_values", "device": "sim:h200",
            "status": "passed", "figures": {"cuda:0": {"peak_allocated": peak}},
        })
    };
    let text: String = (0..40).map(|run| format!("{}\n", line(run))).collect();
    let path = folder.join("history.jsonl");
    std::fs::write(&path, text).expect("the history is written");
    path.display().to_string()
}

fn views(folder: &Path) -> Vec<View> {
    let write = |name: &str, arguments: &[&str], exit: u8| {
        let path = folder.join(format!("{name}.html"));
        let report = format!("html={}", path.display());
        memcheck(&workspace(), &[arguments, &["--report", &report]].concat()).exits(exit);
        path
    };
    let endings = results(folder, "endings", 0);
    let report = write("endings", &["report", &endings], 100);
    let panicked = panicked(folder);
    let report_of_panic = write("panicked", &["report", &panicked], 100);
    let regressed = write("regressed", &["report", &regressed(folder)], 100);
    let many = write("many", &["report", &results(folder, "many", 30)], 100);
    let compared = write("compared", &["compare", &endings, &changed(folder)], 0);
    let history = write("history", &["history", "training", "--history", &history(folder)], 0);
    let first = &["h1", ".origin", ".card", ".failure summary", "#tests tbody th a"][..];
    let view = |name, path: &Path, test: Option<&str>, shown| View {
        name,
        path: path.to_owned(),
        fragment: test.map_or_else(String::new, |it| format!("#memcheck-tests::controls/{it}/cpu")),
        ready: if test.is_some() { OPENED } else { READY },
        shown,
    };
    let plain = |name, path, shown| View { ready: LOADED, ..view(name, path, None, shown) };
    vec![
        view("first page", &report, None, first),
        view("many failures", &many, None, first),
        View {
            ready: UNFOLDED,
            ..view("regressions", &regressed, None, &[".failure .changes", "#tests .result"])
        },
        view(
            "regression",
            &regressed,
            Some("one_block_over_the_peak"),
            &["#view h2", ".finding table", ".finding tr.sum"],
        ),
        view(
            "hang",
            &report,
            Some("a_hang"),
            &["#view h2", "#view .facts", ".finding", ".next code"],
        ),
        view("crash", &report, Some("an_abort"), &["#view h2", ".finding", ".next code"]),
        view("error", &report, Some("an_error"), &["#view h2", ".finding", ".next code"]),
        view(
            "panic",
            &report_of_panic,
            Some("an_error"),
            &["#view h2", ".finding", ".next code", "#view pre.output"],
        ),
        View {
            ready: UNFOLDED_VIEW,
            ..view(
                "leak",
                &report,
                Some("gradients_are_kept"),
                &["#view h2", ".finding", ".chart canvas", "#view table"],
            )
        },
        plain("comparison", &compared, &["h1", ".facts", ".finding h2", "td .more"]),
        plain("history", &history, &["h1", ".plot polyline", ".days", "td .more"]),
    ]
}

#[test]
fn every_page_fits_every_width_in_light_dark_and_print() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let views = views(folder.path());
    for view in &views {
        for width in WIDTHS {
            page.resize(width as u32, 900, 1);
            for dark in [false, true] {
                page.set_dark(dark);
                page.visit(&view.path, &view.fragment, view.ready);
                assert_whole(&mut page, view, width);
            }
        }
        page.set_dark(false);
        page.resize(PRINTED_WIDTH as u32, 900, 1);
        page.visit(&view.path, &view.fragment, view.ready);
        page.set_print(true);
        assert_whole(&mut page, view, PRINTED_WIDTH);
        let button =
            "[...document.querySelectorAll('.tools, .crumbs')].some(e => e.checkVisibility())";
        assert_eq!(page.value(button), false, "{}: tools are printed", view.name);
        page.set_print(false);
        assert_eq!(page.errors, [""; 0], "{}", view.name);
    }
}

/// No part is missing, outside of the page (except in a table that scrolls), or cut off inside a box that does not scroll.
#[track_caller]
fn assert_whole(page: &mut Page, view: &View, width: u64) {
    assert_fits(page, width);
    assert_eq!(page.text(HIDDEN_CELL), "", "{} at {width}: a cell is outside", view.name);
    for part in view.shown {
        let script = format!(
            "(() => {{ const e = document.querySelector({part:?}); if (!e || !e.checkVisibility()) \
             return 'missing'; const b = e.getBoundingClientRect(); return b.left < 0 || b.width === 0 \
             || (b.right > innerWidth && !e.closest('.wide')) ? `from ${{b.left}} to ${{b.right}}` : ''; }})()"
        );
        assert_eq!(page.text(&script), "", "{} at {width}: {part}", view.name);
    }
    let cut = page.text(CUT);
    assert_eq!(cut, "", "{} at {width}: text is cut off", view.name);
}

/// A cell of a table that a reader sees only after scrolling the table.
const HIDDEN_CELL: &str = "(() => { const cell = [...document.querySelectorAll('.wide :is(td, th)')].find(e => \
    e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1); \
    return cell ? cell.outerHTML.slice(0, 200) : ''; })()";

/// The text of an element that is wider than its box, which neither scrolls, nor opens, nor is hidden for
/// the eye.
const CUT: &str = "(() => { const cut = [...document.querySelectorAll('main *, header *')].find(e => \
    e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 \
    && getComputedStyle(e).overflowX === 'hidden' \
    && !e.matches('.hidden, .chart, .chart *, .flames *, .kinds, .run > summary code') \
    ); return cut ? cut.outerHTML.slice(0, 200) : ''; })()";

/// The checks above can fail.
#[test]
fn a_page_that_is_too_wide_or_cuts_text_is_found() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    let view = View {
        name: "planted",
        path: path.clone(),
        fragment: String::new(),
        ready: LOADED,
        shown: &["h1"],
    };
    page.resize(390, 900, 1);
    let mut fails = |body: &str| {
        let head = "<!DOCTYPE html><meta name=viewport content='width=device-width'>";
        std::fs::write(&path, format!("{head}<main>{body}</main>")).expect("a page");
        page.visit(&path, "", LOADED);
        let check = std::panic::AssertUnwindSafe(|| assert_whole(&mut page, &view, 390));
        std::panic::catch_unwind(check).is_err()
    };
    assert!(!fails("<h1>Short</h1>"));
    assert!(fails("<h1 style='width:500px'>Wide</h1>"));
    assert!(fails(
        "<h1>Cut</h1><p style='overflow:hidden;white-space:nowrap;width:9px'>A long text</p>"
    ));
    assert!(fails(
        "<h1>Table</h1><div class=wide style='overflow:auto'><table><td style='min-width:900px'>1</table></div>"
    ));
    assert!(fails("<h1 style='display:none'>Hidden</h1>") && fails("<p>Nothing</p>"));
}

/// Of many failures the first screen shows the counts and the largest cause.
#[test]
fn many_failures_are_rows_below_the_counts() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let all = views(folder.path());
    let many = &all[1];
    page.visit(&many.path, "", many.ready);
    let count = |page: &mut Page, selector: &str| {
        let script = format!(
            "[...document.querySelectorAll({selector:?})].filter(e => e.checkVisibility()).length"
        );
        page.value(&script).as_u64().expect("a count")
    };
    assert_eq!(count(&mut page, ".failure[open]"), 0);
    assert_eq!(count(&mut page, ".failure"), 100);
    let groups = page.text(
        "[...document.querySelectorAll('.failure-group h3')].map(e => e.textContent).join('; ')",
    );
    assert!(groups.starts_with("Leaks "), "memory comes first: {groups}");
    let leak = page.text("document.querySelector('.failure summary').innerText");
    for part in ["gradients_are_kept", "leak", "main.rs:", "grows by 512.0 KiB per iteration"] {
        assert!(leak.contains(part), "{part}: {leak}");
    }
    assert_eq!(count(&mut page, ".failure summary .brief"), 100);
    assert!(page.text("document.querySelector('main').innerText").contains("86 more in the table"));
    let top = "document.querySelectorAll('.failure')[5].getBoundingClientRect().bottom";
    assert!(page.value(top).as_f64().is_some_and(|bottom| bottom < 900.0), "five are on a screen");
    page.click_on("#search");
    page.insert("gradients_are_kept_7");
    assert_eq!(count(&mut page, ".failure"), 1);
    assert_eq!(count(&mut page, ".failure-group"), 1);
    assert_eq!(page.errors, [""; 0]);
}

/// axe-core comes with the tools of the report: `npm ci` in cargo-memcheck/report.
#[test]
fn axe_finds_nothing_on_any_page() {
    let axe = workspace().join("cargo-memcheck/report/node_modules/axe-core/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(axe) else {
        return skip_reader("axe-core is not installed (npm ci in cargo-memcheck/report)");
    };
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for view in views(folder.path()) {
        for dark in [false, true] {
            for width in WIDTHS {
                page.set_dark(dark);
                page.resize(width as u32, 900, 1);
                page.visit(&view.path, &view.fragment, view.ready);
                assert_eq!(violations(&mut page, &axe), "", "{} at {width}", view.name);
            }
        }
    }
    page.value(
        "document.querySelector('main').innerHTML = '<img src=\"data:,\"><button></button>'; 0",
    );
    let found = violations(&mut page, &axe);
    assert!(found.contains("image-alt") && found.contains("button-name"), "{found}");
}

fn violations(page: &mut Page, axe: &str) -> String {
    page.value(&format!("{axe}; 0"));
    page.text(
        "axe.run().then(r => r.violations.map(v => `${v.id}: ${v.nodes.map(n => n.html).slice(0, 3)}`).join('\\n'))",
    )
}
