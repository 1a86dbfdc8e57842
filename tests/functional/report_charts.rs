//! The charts of the HTML report: room for the label of the peak, the peak of the baseline, one unit for an axis,
//! and no color, button or text without something that it belongs to. Skipped with the reason on a machine
//! without Chromium.

use crate::browser::Page;
use crate::fixture::Programs;
use crate::report_page::OPENED;
use crate::report_views::report;

const LEAK: &str = "#memcheck-programs::programs/profile::layers_leaky/cpu";
const EVEN: &str = "#memcheck-programs::programs/profile::layers/cpu";

fn data(page: &mut Page, selector: &str, name: &str) -> String {
    page.text(&format!("document.querySelector({selector:?}).dataset.{name}"))
}

fn shown(page: &mut Page, selector: &str) -> String {
    page.text(&format!("document.querySelector({selector:?}).innerText"))
}

fn press(page: &mut Page, button: &str) {
    let of = "[...document.querySelectorAll('#view button')]";
    page.value(&format!("{of}.find(e => e.textContent === {button:?}).click()"));
}

/// The unit of each text of an axis.
fn units(texts: &str) -> Vec<&str> {
    let mut units: Vec<&str> =
        texts.split('|').map(|text| text.split_once(' ').expect("a unit").1).collect();
    units.dedup();
    units
}

#[test]
fn the_peak_has_room_for_its_label_and_the_baseline_has_a_line() {
    let Some(mut page) = Page::open() else { return };
    let programs = Programs::of("report_reader").with_baselines();
    let test = "report_reader::self_attention";
    programs.run("cpu", &[test, "--explain", "always"]).exits(0);
    programs.memcheck(&["accept"]).exits(0);
    let run = [test, "--explain", "always", "--report", "html=report.html"];
    programs.run_with("cpu", &run, &[("SCORES_HELD_TWICE", "yes")]).exits(100);
    let view = "#memcheck-programs::programs/report_reader::self_attention/cpu";
    page.visit(&programs.path().join("report.html"), view, OPENED);
    page.wait("document.querySelector('.blocks').dataset.marks");
    assert_eq!(data(&mut page, ".blocks", "marks"), "baseline 96.0 KiB|peak 160.0 KiB");
    let highest: f64 = data(&mut page, ".blocks", "highest").parse().expect("a number");
    assert!(highest >= 1.099 * 163_840.0, "{highest}");
    assert_eq!(units(&data(&mut page, ".blocks .chart", "values")), ["KiB"]);
    // The baseline has no label on the chart, where it would cover the bands.
    let legend = shown(&mut page, ".blocks + .legend");
    assert_eq!(
        legend.split('\n').map(str::trim).collect::<Vec<_>>(),
        ["activations", "baseline 96.0 KiB"]
    );
    let dashes = "document.querySelector('.blocks + .legend li:last-child path').getAttribute('stroke-dasharray')";
    assert_eq!(page.text(dashes), "4 3", "the sample is dashed as the line is");
    // The root of the graph of the difference has the sum.
    press(&mut page, "Change from the baseline");
    let sum = "+64.0 KiB (96.0 KiB \u{2192} 160.0 KiB)";
    let root =
        page.text("document.querySelector('.flames g.frame[name^=host]').getAttribute('name')");
    assert_eq!(root, format!("host {sum}"));
    let described = page.text("document.querySelector('.flames').ariaLabel");
    assert!(described.starts_with(&format!("Change from the baseline: {sum}. ")), "{described}");
    // The chart has a button with the same text.
    page.value("[...document.querySelectorAll('[aria-label=Graph] button')][0].click()");
    let root =
        page.text("document.querySelector('.flames g.frame[name^=host]').getAttribute('name')");
    assert_eq!(root, "host 160.0 KiB");
    // A phone shows the commands that all outputs advise, and folds the others.
    page.resize(390, 844, 2);
    page.visit(&programs.path().join("report.html"), view, OPENED);
    let commands =
        "[...document.querySelectorAll('.next dd code')].filter(e => e.checkVisibility())";
    let commands = page.text(&format!("{commands}.map(e => e.textContent).join('|')"));
    let shown: Vec<&str> = commands.split('|').collect();
    assert_eq!(shown.len(), 2, "{commands}");
    assert!(shown[0].starts_with("cargo memcheck profile "), "{commands}");
    assert!(shown[1].starts_with("cargo memcheck accept "), "{commands}");
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn a_set_up_and_an_end_are_named_where_there_is_one() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    for (view, has_both) in [(LEAK, true), (EVEN, false)] {
        page.visit(&path, view, OPENED);
        let part = shown(&mut page, ".part:has(.blocks)");
        for named in ["Hide set-up", "After \u{201c}end\u{201d}"] {
            assert_eq!(part.contains(named), has_both, "{named}: {part}");
        }
        // Without a baseline, the peak alone is marked.
        page.wait("document.querySelector('.blocks').dataset.marks");
        assert!(data(&mut page, ".blocks", "marks").starts_with("peak "));
    }
    assert_eq!(page.errors, [""; 0]);
}

#[test]
fn the_legend_has_the_colors_that_the_chart_shows() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    page.visit(&path, LEAK, OPENED);
    let legend = ".blocks + .legend";
    page.wait("document.querySelector('.blocks + .legend li')");
    let kinds = shown(&mut page, legend);
    let all = ["set-up", "activations", "outlives its iteration"];
    assert!(all.iter().all(|kind| kinds.contains(kind)), "{kinds}");
    press(&mut page, "Hide set-up");
    page.wait("!document.querySelector('.blocks + .legend').textContent.includes('set-up')");
    let kinds = shown(&mut page, legend);
    assert!(all[1..].iter().all(|kind| kinds.contains(kind)), "{kinds}");
    press(&mut page, "Hide set-up");
    page.wait("document.querySelector('.blocks + .legend').textContent.includes('set-up')");
    // After the iterations there are no activations.
    let end = page.position(".blocks .u-over", 0.98, 0.5);
    for _ in 0..10 {
        page.wheel(end, -200);
    }
    page.wait("!document.querySelector('.blocks + .legend').textContent.includes('activations')");
    press(&mut page, "Reset");
    page.wait("document.querySelector('.blocks + .legend').textContent.includes('activations')");
    assert_eq!(page.errors, [""; 0]);
}

/// The highest value decides the unit, also of the values below 1 MiB.
#[test]
fn an_axis_has_one_unit() {
    let Some(mut page) = Page::open() else { return };
    let source = crate::fixture::workspace().join("cargo-memcheck/report/src/format.js");
    let source = std::fs::read_to_string(source).expect("the source").replace("export ", "");
    let axis = |page: &mut Page, bytes: &[u64]| {
        page.text(&format!("(() => {{ {source}; return inOneUnit({bytes:?}).join('|'); }})()"))
    };
    const MIB: u64 = 1 << 20;
    let halves: Vec<u64> = (0..=3).map(|step| step * MIB / 2).collect();
    assert_eq!(axis(&mut page, &halves), "0.0 MiB|0.5 MiB|1.0 MiB|1.5 MiB");
    assert_eq!(axis(&mut page, &[0, 64 << 10, 128 << 10]), "0 KiB|64 KiB|128 KiB");
    assert_eq!(axis(&mut page, &[0, MIB / 8, MIB]), "0.000 MiB|0.125 MiB|1.000 MiB");
    assert_eq!(axis(&mut page, &[0, 256, 1023]), "0 B|256 B|1,023 B");
    assert_eq!(axis(&mut page, &[0, 1024]), "0 KiB|1 KiB");
    assert_eq!(axis(&mut page, &[0, 2 << 60, 4 << 60]), "0 EiB|2 EiB|4 EiB");
}

/// The hint of a block is not on its band, and the tools of a phone are in one row.
#[test]
fn a_hint_leaves_its_block_visible_and_the_tools_take_one_row_on_a_phone() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    page.visit(&path, LEAK, OPENED);
    page.wait("document.querySelector('.blocks').dataset.marks");
    let at = page.position(".blocks .u-over", 0.5, 0.97);
    page.hover(at);
    page.wait("!document.querySelector('.blocks .hint').hidden");
    let distance = page.value(&format!(
        "{} - document.querySelector('.blocks .hint').getBoundingClientRect().bottom",
        at.1
    ));
    assert!(distance.as_f64().expect("a number") > 0.0, "{distance}");
    page.resize(390, 844, 2);
    page.visit(&path, LEAK, OPENED);
    let rows = "new Set([...document.querySelectorAll('.of-chart button')].map(e => e.getBoundingClientRect().top)).size";
    assert_eq!(page.value(rows), 1);
    assert_eq!(page.errors, [""; 0]);
}

/// A function that calls itself or has two lines in a row has the line in its name; another has not.
#[test]
fn frames_of_one_name_have_their_lines() {
    let Some(mut page) = Page::open() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = report(folder.path(), |_| {});
    page.visit(&path, LEAK, OPENED);
    let frames = "[...document.querySelectorAll('.flames g.frame')].map(e => e.__data__)";
    let repeated = format!(
        "{frames}.filter(({{ data, parent }}) => data.place && (parent?.data.function === data.function \
         || data.children.some(child => child.function === data.function) \
         || parent?.children.some(other => other.data !== data && other.data.function === data.function)))"
    );
    let is_named =
        "(({ data }) => data.name === `${data.function} :${data.place.split(':').pop()}`)";
    assert_eq!(page.value(&format!("{repeated}.length > 0 && {repeated}.every{is_named}")), true);
    let plain = format!("{frames}.filter(node => node.parent && !{repeated}.includes(node))");
    let is_plain = "(({ data }) => data.name === data.function)";
    assert_eq!(page.value(&format!("{plain}.length > 0 && {plain}.every{is_plain}")), true);
}
