//! The view of a test in the HTML report: its address, the lines with several call sites, the chart of a
//! body that does not iterate, and the sizes. Skipped with the reason on a machine without Chromium.

use std::path::{Path, PathBuf};

use memcheck_core::size::Size;
use serde_json::{Value, json};

use crate::browser::Page;
use crate::fixture::{memcheck, workspace};
use crate::report_page::{OPENED, READY};

const BINARY: &str = "memcheck-programs::programs";

/// The report of the recorded run on the CPU, with a change of each of its tests.
pub(crate) fn report(folder: &Path, change: impl Fn(&mut Value)) -> PathBuf {
    let recorded = workspace().join("cargo-memcheck/recorded/cpu/results.jsonl");
    let text = std::fs::read_to_string(recorded).expect("the recording");
    let changed = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(test) = line.get_mut("test") {
            change(test);
        }
        format!("{line}\n")
    });
    std::fs::write(folder.join("results.jsonl"), changed.collect::<String>()).expect("results");
    let path = folder.join("report.html");
    let (results, report) = (folder.display().to_string(), format!("html={}", path.display()));
    memcheck(&workspace(), &["report", &results, "--report", &report]).exits(100);
    path
}

fn name(test: &Value) -> &str {
    test.pointer("/task/subject/test/name").and_then(Value::as_str).unwrap_or_default()
}

fn shown(page: &mut Page, selector: &str) -> String {
    page.text(&format!("document.querySelector({selector:?}).innerText"))
}

#[test]
fn the_address_of_a_test_has_its_names_whatever_their_characters_are() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let strange = "a::\"b\" and 'c' & 100% <d>/e?#f \u{fc}";
    let path = report(folder.path(), |test| {
        if name(test) == "profile::layers" {
            test["task"]["subject"]["test"]["name"] = strange.into();
        }
    });
    page.visit(&path, "", READY);
    let links = "[...document.querySelectorAll('#tests a.test')]";
    let link = page.text(&format!("{links}.find(a => a.textContent.startsWith('a::')).hash"));
    assert!(link.starts_with(&format!("#{BINARY}/a::%22b%22%20and%20")), "{link}");
    for fragment in
        [link.clone(), format!("#{BINARY}/profile::layers_leaky/cpu"), link.replace("%20", " ")]
    {
        page.visit(&path, &fragment, OPENED);
        let expected = if fragment.contains("leaky") { "profile::layers_leaky" } else { strange };
        assert_eq!(shown(&mut page, "#view h2"), expected, "{fragment}");
    }
    let none = format!("#{BINARY}/none/cpu");
    page.visit(
        &path,
        &none,
        "document.querySelector('#view').textContent.includes('no such test')",
    );
    assert_eq!(page.errors, [""; 0]);
}

/// A report of a body without iterations has neither a set-up nor figures of an iteration.
#[test]
fn the_chart_of_a_body_that_does_not_iterate_counts_allocations() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let fragment = format!("#{BINARY}/profile::layers/cpu");
    let path = report(folder.path(), |_| {});
    page.visit(&path, &fragment, OPENED);
    let iterated = shown(&mut page, "#view");
    assert!(iterated.contains("per iteration"), "{iterated}");
    let path = report(folder.path(), |test| {
        let Some(record) = test.pointer_mut("/outcome/report/record") else { return };
        record["iterated"] = false.into();
        let peaks = record["attribution"]["peaks"].as_object_mut().expect("peaks");
        for lifetimes in peaks.values_mut().filter_map(|peak| peak.get_mut("lifetimes")) {
            if !lifetimes.is_null() {
                (lifetimes["iterations"], lifetimes["ended"]) = (json!([]), Value::Null);
            }
        }
    });
    page.visit(&path, &fragment, OPENED);
    let legend = shown(&mut page, ".blocks + .legend");
    assert_eq!(legend.trim(), "weights and activations");
    let tools = shown(&mut page, ".part .tools");
    assert!(!tools.contains("set-up"), "{tools}");
    let figures =
        page.text("document.querySelector('#view [aria-label=\"Figures of the test\"]').innerText");
    assert!(!figures.contains("setup") && !figures.contains("per iteration"), "{figures}");
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn the_texts_of_an_axis_do_not_overlap() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    for width in [390, 700, 1440] {
        page.resize(width, 900, 1);
        page.visit(&path, &format!("#{BINARY}/profile::layers_leaky/cpu"), OPENED);
        let room = page.value("document.querySelector('.blocks .u-over').clientWidth").as_u64();
        for zoomed in 0..6 {
            let ticks = page.text("document.querySelector('.blocks').dataset.ticks");
            // A character is at least 6 pixels wide.
            let needed = 6 * ticks.chars().count() as u64;
            assert!(!ticks.is_empty() && Some(needed) < room, "{width}, {zoomed}: {ticks}");
            page.value("[...document.querySelectorAll('#view button')].find(b => b.ariaLabel === 'Zoom in').click()");
        }
        // The first iteration has more than a hundred events.
        page.value("[...document.querySelectorAll('#view button')].find(b => b.textContent === 'Reset').click()");
        let first = page.position(".blocks .u-over", 0.1, 0.5);
        for _ in 0..20 {
            let range = page.text("document.querySelector('.blocks').dataset.range");
            page.wheel(first, -200);
            page.wait(&format!("document.querySelector('.blocks').dataset.range !== '{range}'"));
        }
        let within = page.text("document.querySelector('.blocks').dataset.ticks");
        assert!(within.contains("1 + "), "{within}");
        assert!(6 * within.chars().count() as u64 <= room.expect("pixels"), "{width}: {within}");
    }
    assert_eq!(page.errors, [""; 0]);
}

/// The set-up and the first iteration allocate more often than the others.
#[test]
fn iterations_have_equal_widths_and_the_last_one_has_its_number_at_every_width() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut events = Vec::new();
    let path = report(folder.path(), |_| {});
    let recorded = std::fs::read_to_string(folder.path().join("results.jsonl")).expect("results");
    for line in recorded.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let lifetimes = "/test/outcome/report/record/attribution/peaks/host/lifetimes/iterations";
        if line.get("test").is_some_and(|test| name(test) == "profile::layers_leaky") {
            let starts = line.pointer(lifetimes).expect("iterations").as_array().expect("a list");
            events = starts.iter().map(|start| start.as_u64().expect("an event")).collect();
        }
    }
    assert_eq!(events.len(), 12);
    let lengths: std::collections::BTreeSet<u64> =
        events.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(lengths.len() > 1, "the iterations of the recording are not equally long: {events:?}");
    for width in [390, 700, 1024, 1440] {
        page.resize(width, 900, 1);
        page.visit(&path, &format!("#{BINARY}/profile::layers_leaky/cpu"), OPENED);
        let ticks = page.text("document.querySelector('.blocks').dataset.ticks");
        let ticks: Vec<&str> = ticks.split('|').collect();
        assert!(ticks.contains(&"12") && ticks.contains(&"end"), "{width}: {ticks:?}");
        let lines = page.text("document.querySelector('.blocks').dataset.lines");
        let lines: Vec<f64> =
            lines.split('|').map(|line| line.parse().expect("a position")).collect();
        // The last line begins the time after the iterations, and the first the set-up.
        let inner = &lines[1..lines.len() - 2];
        let steps: Vec<f64> = inner.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            steps.len() >= 4 && steps.iter().all(|step| *step == steps[0]),
            "{width}: {lines:?}"
        );
    }
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn the_charts_of_a_test_are_above_its_figures() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    for width in [390, 700, 1024, 1440] {
        page.resize(width, 900, 1);
        page.visit(&path, &format!("#{BINARY}/profile::layers_leaky/cpu"), OPENED);
        let side = |side: &str, of: &str| {
            format!("document.querySelector('{of}').getBoundingClientRect().{side}")
        };
        let figures = "#view [aria-label=\"Figures of the test\"]";
        let is_below = format!("{} <= {}", side("bottom", ".blocks"), side("top", figures));
        assert_eq!(page.value(&is_below), true, "{width}");
        // On a wide screen the chart of the iterations is beside the figures.
        let is_beside = format!("{} <= {}", side("right", ".beside .chart"), side("left", figures));
        assert_eq!(page.value(&is_beside), width == 1440, "{width}");
    }
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn blocks_that_look_the_same_are_one_row() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    page.visit(&path, &format!("#{BINARY}/profile::layers_leaky/cpu"), OPENED);
    let rows = page.text(
        "[...document.querySelectorAll('[aria-label=\"Largest blocks\"] tbody tr')]\
         .map(row => [...row.cells].map(cell => cell.textContent).join('|')).join('\\n')",
    );
    let names = rows.lines().map(|row| row.split('|').take(4).collect::<Vec<_>>());
    let distinct: std::collections::BTreeSet<_> = names.clone().collect();
    assert_eq!(distinct.len(), names.count(), "{rows}");
    assert!(rows.contains("|set-up|") && rows.contains("|1 to 12"), "{rows}");
    assert_eq!(page.errors, [""; 0]);
}

/// Seven lines with two call sites each: three are shown, the others are folded.
#[test]
fn a_line_has_the_sum_of_its_call_sites_and_all_are_on_paper() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |test| {
        let Some(finding) = test.pointer_mut("/outcome/verdict/findings/0") else { return };
        let Some(site) = finding["sites"].get(0).cloned() else { return };
        let sites = (1..=7).flat_map(|line| [(line, "add", 1024), (line, "relu", 2048)]);
        let all = sites.map(|(line, operation, bytes)| {
            let mut site = site.clone();
            (site["line"], site["operation"], site["bytes"]) =
                (line.into(), operation.into(), bytes.into());
            site
        });
        finding["sites"] = all.collect::<Vec<_>>().into();
    });
    page.visit(&path, &format!("#{BINARY}/profile::layers_leaky/cpu"), OPENED);
    let lines = shown(&mut page, ".finding .sites");
    assert_eq!(lines.matches("3,072 B (3.00 KiB) in ").count(), 3, "{lines}");
    assert!(lines.contains("by 2 call sites") && !lines.contains("relu"), "{lines}");
    let button = shown(&mut page, ".call-sites > .paper > summary");
    assert_eq!(button.replace('\u{a0}', " "), "4 more lines, 12.0 KiB");
    let open = "document.querySelectorAll('.finding details.paper[open]').length";
    assert_eq!(page.value(open), 0);
    page.set_print(true);
    page.value("dispatchEvent(new Event('beforeprint'))");
    let printed = shown(&mut page, ".finding");
    assert_eq!(printed.matches("relu").count(), 7, "{printed}");
    assert!(!printed.contains("more lines"), "{printed}");
    let sources = "[...document.querySelectorAll('.finding .snippet')].filter(e => e.checkVisibility()).length";
    assert_eq!(page.value(sources), 2, "that of the answer, and one of lines near one another");
    page.value("dispatchEvent(new Event('afterprint'))");
    page.set_print(false);
    assert_eq!(page.value(open), 0);
    assert_eq!(page.errors, [""; 0]);
}

/// The script formats sizes itself, because it adds them up.
#[test]
fn the_script_formats_sizes_as_the_command_does() {
    let Some(mut page) = Page::open() else { return };
    let source = workspace().join("cargo-memcheck/report/src/format.js");
    let source = std::fs::read_to_string(source).expect("the source").replace("export ", "");
    let mut sizes: Vec<u64> = (0..2_100).chain((0..5_000).map(|number| number * 997)).collect();
    // Exact ties between two digits, and sizes next to the boundaries of digits and units.
    for unit in [1 << 10, 1 << 20, 1 << 30, 1 << 40] {
        sizes.extend((8..200).map(|eighths| eighths * unit / 8));
        for edge in [10 * unit, unit * 1024, unit * 9_995 / 1_000] {
            sizes.extend(edge - 8..edge + 8);
        }
    }
    let script = format!("(() => {{ {source}; return {sizes:?}.map(size).join('|'); }})()");
    let texts = page.text(&script);
    let texts: Vec<&str> = texts.split('|').collect();
    assert_eq!(texts.len(), sizes.len());
    for (bytes, text) in sizes.into_iter().zip(texts) {
        assert_eq!(text, Size(bytes).to_string(), "{bytes} B");
    }
}
