//! PyTorch's own viewer shows a snapshot. Its script is not in a package, so that a person must
//! fetch it: the variable `MEMORY_VIZ` names a folder with `torch/utils/viz/MemoryViz.js` of
//! PyTorch and with `d3.min.js` of the npm package `d3@5`.

use std::path::{Path, PathBuf};

use base64::Engine;
use serde_json::Value;

use crate::browser::Page;
use crate::fixture::{memcheck, skip_reader, workspace};

/// The viewer as a page that loads nothing, with a snapshot; `None` with a printed reason.
pub(crate) fn viewer(snapshot: &Path) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("MEMORY_VIZ").map(PathBuf::from) else {
        skip_reader("MEMORY_VIZ does not name a folder with PyTorch's viewer");
        return None;
    };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("MEMORY_VIZ");
    // The modules that it imports are parts of d3.
    let script: String = read("MemoryViz.js")
        .lines()
        .filter(|line| !line.starts_with("import "))
        .map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line)))
        .collect();
    let bytes = std::fs::read(snapshot).expect("the snapshot");
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let page = format!(
        "<!doctype html><meta charset=utf-8><body><script>{}</script><script>
const {{axisLeft, scaleLinear, zoom, zoomIdentity, brushX}} = d3;\n{script}
add_local_files([{{name: 'snapshot', base64: '{encoded}'}}], 'Active Memory Timeline');
document.documentElement.dataset.ready = '';
</script>",
        read("d3.min.js")
    );
    let file = snapshot.with_extension("viewer.html");
    std::fs::write(&file, page).expect("the page is written");
    Some(file)
}

pub(crate) const READY: &str = "document.documentElement.dataset.ready !== undefined";

/// The timeline of the viewer is as high as the peak, and its list has the events.
pub(crate) fn assert_shown(snapshot: &Path, peak: &Value) {
    let Some(file) = viewer(snapshot) else { return };
    let Some(mut page) = Page::open() else { return };
    page.visit(&file, "", READY);
    let plot =
        "process_alloc_data(snapshot_cache.snapshot, Number(gpu.node().value), false, 15000)";
    assert_eq!(page.value(&format!("{plot}.max_size")), *peak);
    let drawn = page.value("document.querySelectorAll('polygon').length").as_u64();
    assert!(drawn.is_some_and(|drawn| drawn > 12), "{drawn:?}");
    page.value("view.node().value = 'Allocator State History'; selected_change()");
    let lines = "[...document.querySelectorAll('pre')].map(line => line.textContent).join('\\n')";
    let lines = page.text(lines);
    assert!(lines.contains("alloc ") && lines.contains("4.0KiB (4096 bytes)"), "{lines}");
    assert_eq!(page.errors, [""; 0]);
}

/// `scripts/report-screenshots` runs it.
#[test]
fn pictures_of_pytorchs_viewer_are_written_on_request() {
    if std::env::var("SCREENSHOTS").as_deref() != Ok("write") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let snapshot = folder.path().join("snapshot.pickle");
    let report = format!("memory-viz={}", snapshot.display());
    let run = ["run", "--no-ci", "--run-ignored", "only", "--device", "sim", "--report", &report];
    let of = ["-p", "memcheck-tests", "--test", "controls", "training_keeps_losses"];
    memcheck(&workspace(), &[&run[..], &of].concat()).exits(100);
    let Some(file) = viewer(&snapshot) else { return };
    let mut page = Page::open().expect("a browser");
    page.resize(1200, 760, 1);
    page.visit(&file, "", READY);
    page.value("new Promise(done => setTimeout(() => done(true), 500))");
    let picture = workspace().join("docs/images/memory-viz.webp");
    std::fs::write(picture, page.picture()).expect("a picture");
}
