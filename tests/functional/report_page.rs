//! The HTML report in a real browser: a reader searches, opens a test, zooms, asks for a block, and
//! switches to dark or to a phone. Skipped with the reason on a machine without Chromium.

use std::path::{Path, PathBuf};

use crate::browser::Page;
use crate::fixture::Programs;

pub(crate) const READY: &str = "document.documentElement.dataset.ready !== undefined";
pub(crate) const OPENED: &str = "document.querySelector('#view').dataset.ready !== undefined";
const CHART: &str = ".blocks .u-over";

pub(crate) fn report() -> (Programs, PathBuf) {
    let programs = Programs::of("report_page");
    let run = ["--explain", "always", "--report", "html=out/report.html"];
    programs.run("cpu", &run).exits(100);
    let path = programs.path().join("out/report.html");
    (programs, path)
}

fn shown_rows(page: &mut Page) -> u64 {
    let count = "document.querySelectorAll('#tests tbody tr:not(.group):not([hidden])').length";
    page.value(count).as_u64().expect("a number")
}

/// The events that the chart shows.
fn range(page: &mut Page) -> (u64, u64) {
    let text = page.text("document.querySelector('.blocks').dataset.range");
    let (from, to) = text.split_once(' ').expect("two numbers");
    (from.parse().expect("a number"), to.parse().expect("a number"))
}

/// The bytes at the top of the chart's axis.
fn highest(page: &mut Page) -> String {
    page.text("document.querySelector('.blocks').dataset.highest")
}

fn click_button(page: &mut Page, text: &str) {
    let script = format!(
        "document.querySelectorAll('[data-here]').forEach(e => delete e.dataset.here); \
         [...document.querySelectorAll('#view button')].find(b => b.textContent === {text:?}).dataset.here = ''"
    );
    page.value(&script);
    page.click_on("[data-here]");
}

#[track_caller]
pub(crate) fn assert_fits(page: &mut Page, width: u64) {
    let wide = page.value("document.documentElement.scrollWidth").as_u64().expect("a number");
    assert!(wide <= width, "the page is {wide} pixels wide");
}

#[test]
fn a_reader_finds_a_leak_and_its_blocks_in_a_browser() {
    let Some(mut page) = Page::open() else { return };
    let (programs, path) = report();
    let source = format!("{}:", programs.source());
    page.visit(&path, "", READY);
    search_filter_and_sort(&mut page);
    open_the_failure(&mut page, &source);
    ask_for_a_block(&mut page, &source);
    zoom(&mut page);
    use_the_flame_graph(&mut page);
    switch_to_dark_and_to_a_phone(&mut page, &path);
    assert_eq!(page.errors, [""; 0]);
}

fn search_filter_and_sort(page: &mut Page) {
    assert_eq!(shown_rows(page), 2);
    page.click_on("#search");
    page.insert("CLEAN");
    assert_eq!(shown_rows(page), 1);
    page.value("search.value = ''; search.dispatchEvent(new Event('input'))");
    page.click_on(".card[data-status=failed] button");
    assert_eq!(shown_rows(page), 1);
    page.click_on(".card[data-status=failed] button");
    assert_eq!(shown_rows(page), 2);
    let first = "document.querySelector('#tests tbody tr:not(.group) a').textContent";
    assert_eq!(page.text(first), "report_page::leaky", "failures come first");
    page.click_on("#tests thead th:nth-child(3) button");
    let sorted = "document.querySelector('#tests thead th:nth-child(3)').ariaSort";
    assert_eq!(page.text(sorted), "descending");
    page.click_on("#tests thead th:nth-child(3) button");
    let expected = ("ascending".into(), "report_page::clean".into());
    assert_eq!((page.text(sorted), page.text(first)), expected);
}

fn open_the_failure(page: &mut Page, source: &str) {
    let failure = page.text("document.querySelector('.failure').textContent");
    for part in ["leak", source, "kept.push", "remedy: ", "cargo memcheck "] {
        assert!(failure.contains(part), "{part}: {failure}");
    }
    page.click_on(".failure a");
    page.wait(OPENED);
    assert_eq!(page.text("document.activeElement.textContent"), "report_page::leaky");
    let marked = page.text("document.querySelector('.finding .snippet mark').textContent");
    assert!(marked.contains("kept.push"), "{marked}");
    page.click_on(".evidence .explanation summary");
    page.wait("document.querySelector('.evidence .explanation').open");
    let explained = page.text("document.querySelector('.evidence .explanation').innerText");
    assert!(explained.contains("What to do"), "{explained}");
}

fn ask_for_a_block(page: &mut Page, source: &str) {
    // The weights are the oldest block, which is at the bottom.
    let at = page.position(CHART, 0.5, 0.97);
    page.hover(at);
    page.wait("!document.querySelector('.hint').hidden");
    let hint = page.text("document.querySelector('.hint').innerText");
    for part in ["zeros", "[64,256] f32", source, "65,536 B (64.0 KiB), set-up"] {
        assert!(hint.contains(part), "{part}: {hint}");
    }
    page.click(at);
    page.wait("document.querySelector('.details .stack li')");
    let frames = page.text("document.querySelector('.details .stack').innerText");
    assert!(frames.contains("zeros") && frames.contains(source), "{frames}");
    let picture = "document.querySelector('.blocks canvas').toDataURL()";
    let with_setup = page.text(picture);
    let pressed = "[...document.querySelectorAll('.tools button')].find(b => b.textContent === 'Hide set-up').ariaPressed";
    assert_eq!(page.text(pressed), "false");
    click_button(page, "Hide set-up");
    assert_eq!(page.text(pressed), "true");
    let at = page.position(CHART, 0.5, 0.97);
    page.hover(at);
    page.wait("!document.querySelector('.hint').innerText.includes('64.0 KiB')");
    assert_ne!(page.text(picture), with_setup);
    click_button(page, "Hide set-up");
}

fn zoom(page: &mut Page) {
    let all = range(page);
    assert!(all.0 == 0 && all.1 > 24, "{all:?}");
    let whole = highest(page);
    let (from, to) = (page.position(CHART, 0.25, 0.5), page.position(CHART, 0.75, 0.5));
    page.drag(from, to);
    page.wait(&format!(
        "document.querySelector('.blocks').dataset.range !== '{} {}'",
        all.0, all.1
    ));
    let part = range(page);
    assert!(part.0 > 0 && part.1 < all.1, "{part:?} of {all:?}");
    stays_zoomed(page, part);
    // The first iterations hold less memory than the last, and the axis follows.
    click_button(page, "\u{2190}");
    click_button(page, "\u{2190}");
    assert_ne!(highest(page), whole);
    click_button(page, "Reset");
    assert_eq!((range(page), highest(page)), (all, whole.clone()));
    page.value("document.querySelector('.blocks .u-over').focus()");
    page.press("+");
    assert!(range(page).1 < all.1);
    page.press("0");
    assert_eq!((range(page), highest(page)), (all, whole.clone()));
    let middle = page.position(CHART, 0.5, 0.5);
    page.wheel(middle, -200);
    page.wait(&format!(
        "document.querySelector('.blocks').dataset.range !== '{} {}'",
        all.0, all.1
    ));
    click_button(page, "Reset");
    assert_eq!((range(page), highest(page)), (all, whole));
    let early = page.position(CHART, 0.1, 0.5);
    page.click(early);
    page.wait("document.querySelector('.flames').ariaLabel.startsWith('Moment: ')");
}

/// Neither another width, nor dark, nor paper changes the part of the chart that is shown.
fn stays_zoomed(page: &mut Page, part: (u64, u64)) {
    let width = "document.querySelector('.blocks .uplot').getBoundingClientRect().width";
    let wide = page.value(width);
    page.resize(700, 900, 1);
    page.wait(&format!("{width} < {wide}"));
    assert_eq!(range(page), part);
    page.set_dark(true);
    page.set_dark(false);
    for event in ["beforeprint", "afterprint"] {
        page.value(&format!("dispatchEvent(new Event('{event}'))"));
        assert_eq!(range(page), part, "{event}");
    }
    page.resize(1280, 900, 1);
    page.wait(&format!("{width} === {wide}"));
    assert_eq!(range(page), part);
}

fn use_the_flame_graph(page: &mut Page) {
    let frames = "document.querySelectorAll('.flames g.frame, .flames .frame').length";
    let folded = page.value(frames).as_u64().expect("a number");
    click_button(page, "Fold candle");
    let unfolded = page.value(frames).as_u64().expect("a number");
    assert!(unfolded > folded && folded > 2, "{folded} {unfolded}");
    page.click_on("[aria-label='Search frames']");
    page.insert("zeros");
    page.wait("document.querySelector('.frame-details').textContent.includes('match')");
    page.value("document.querySelector('.flames').focus()");
    for key in ["ArrowDown", "ArrowDown", "Enter"] {
        page.press(key);
    }
    let marked = page.value("document.querySelectorAll('.flames g.at').length");
    assert_eq!(marked, 1, "the arrow keys select a frame");
    click_button(page, "Survivors");
    let area = page.text("document.querySelector('.flames').ariaLabel");
    // Ten tensors, and the buffer of the `Vec`, which has 1,024 places when the growth is decided.
    assert!(area.starts_with("Survivors: 48.0 KiB."), "{area}");
}

fn switch_to_dark_and_to_a_phone(page: &mut Page, path: &Path) {
    let background = "getComputedStyle(document.body).backgroundColor";
    let light = page.text(background);
    page.set_dark(true);
    page.wait(&format!("{background} !== '{light}'"));
    page.resize(390, 844, 2);
    page.wait("innerWidth <= 390");
    assert_fits(page, 390);
    page.visit(path, "", READY);
    assert_fits(page, 390);
    let test = page.text("document.querySelector('.failure a').getAttribute('href')");
    page.visit(path, &test, OPENED);
    assert_fits(page, 390);
}

/// The check of errors and the policy of the page can fail.
#[test]
fn a_script_that_the_policy_forbids_does_not_run_and_is_an_error() {
    let Some(mut page) = Page::open() else { return };
    let (_programs, path) = report();
    let text = std::fs::read_to_string(&path).expect("the report");
    let forged = path.with_file_name("forged.html");
    let added = "<script>document.title = 'forged'</script><img src=\"file:///x.png\" \
                 onerror=\"document.title = 'forged'\"></body>";
    std::fs::write(&forged, text.replace("</body>", added)).expect("a page");
    page.visit(&forged, "", READY);
    assert!(page.text("document.title").starts_with("Memory tests: "));
    let blocked = |page: &Page| {
        page.errors.iter().filter(|error| error.contains("Content Security Policy")).count()
    };
    assert!(blocked(&page) >= 2, "{:?}", page.errors);
    page.visit(&path, "", READY);
    page.value(
        "new Promise(done => { setTimeout(() => done(true), 200); \
                setTimeout(() => { throw new Error('planted'); }); })",
    );
    assert!(page.errors.iter().any(|error| error.contains("planted")), "{:?}", page.errors);
}
