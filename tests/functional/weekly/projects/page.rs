//! The table of the projects in the documentation.

use crate::fixture::workspace;

use super::package;
use super::rows::{Asked, CandleOrigin, OwnFeature, OwnKernels, Shape};

const PAGE: &str = "docs/reference/projects.md";
const HEADER: &str = "| project | candle | compiler | CUDA of its own | its lock file and allocator | before | edits | candle's types | tried instead |\n\
                      |---|---|---|---|---|---|---|---|---|\n";
/// With the value `write`, the table is written instead of compared.
const WRITE: &str = "PROJECTS";

/// True if memcheck could be added when it required candle 0.11 of the registry and Rust 1.95.
fn was_possible(shape: &Shape) -> bool {
    shape.requirement.starts_with("0.11")
        && shape.origin == CandleOrigin::Registry
        && shape.asked == Asked::Any
}

fn own_cuda(shape: &Shape) -> String {
    let mut parts = Vec::new();
    match shape.feature {
        OwnFeature::None => {}
        OwnFeature::Named(name) => parts.push(format!("`{name}`")),
        OwnFeature::Default(name) => parts.push(format!("`{name}`, by default")),
        OwnFeature::Always => parts.push("always".to_owned()),
    }
    match shape.kernels {
        OwnKernels::None => {}
        OwnKernels::Ptx => parts.push("PTX as a file".to_owned()),
        OwnKernels::BuiltPtx => parts.push("PTX by bindgen_cuda".to_owned()),
        OwnKernels::Launchers { by, in_dependency } => {
            let place = if in_dependency { " in a dependency" } else { "" };
            parts.push(format!("launchers by {by}{place}"));
        }
    }
    if shape.has("flash-attn") {
        parts.push("`flash-attn`".to_owned());
    }
    parts.join(", ")
}

/// What was tried in the place of a part that needs a network or another compiler.
fn instead(shape: &Shape) -> String {
    let mut parts = Vec::new();
    if shape.origin != CandleOrigin::Registry {
        parts.push(format!("a local repository of the published {}", shape.published));
    }
    if let Asked::Pin(_) = shape.asked {
        match package::toolchain(shape) {
            Some(version) => parts.push(format!("Rust {version}")),
            None => parts.push("the Rust of this repository".to_owned()),
        }
    }
    parts.join(", ")
}

fn line(shape: &Shape) -> String {
    let mut candle = shape.locked.unwrap_or(shape.requirement).to_owned();
    match shape.origin {
        CandleOrigin::Registry => {}
        CandleOrigin::Git => candle.push_str(" of git"),
        CandleOrigin::Patch => candle.push_str(" by a patch, a fork of cudarc"),
    }
    for extra in ["optional", "renamed"].iter().filter(|extra| shape.has(extra)) {
        candle.push_str(&format!(", {extra}"));
    }
    let compiler = match shape.asked {
        Asked::Any => String::new(),
        Asked::Pin(version) => format!(", {version}"),
        Asked::AtLeast(version) => format!(", from {version}"),
    };
    let mut old: Vec<String> = Vec::new();
    if shape.locked.is_none() {
        old.push("none".to_owned());
    }
    old.extend(shape.old.iter().map(|(krate, version)| format!("{krate} {version}")));
    if shape.has("allocator") {
        old.push("an allocator of its own".to_owned());
    }
    let cells = [
        shape.project.to_owned(),
        candle,
        format!("{}{compiler}", shape.edition),
        own_cuda(shape),
        old.join(", "),
        if was_possible(shape) { "yes" } else { "no" }.to_owned(),
        shape.edits.join(", "),
        if shape.has_types() { "yes" } else { "no" }.to_owned(),
        instead(shape),
    ];
    format!("| {} |\n", cells.join(" | "))
}

#[test]
fn the_page_has_the_projects() {
    let lines: String = Shape::all().iter().map(line).collect();
    let table = format!("{HEADER}{lines}");
    let path = workspace().join(PAGE);
    let page = std::fs::read_to_string(&path).expect(PAGE);
    let (before, rest) = page.split_once("| project |").expect("a table of projects");
    let (_, after) = rest.split_once("\n\n").expect("the end of the table");
    let expected = format!("{before}{table}\n{after}");
    if std::env::var(WRITE).is_ok_and(|value| value == "write") {
        return std::fs::write(path, expected).expect("the page is written");
    }
    assert_eq!(page, expected, "`PROJECTS=write` writes the table");
}

/// The projects of a row are separated by a space and parentheses.
#[test]
fn the_table_has_twenty_five_projects_of_different_shapes() {
    let shapes = Shape::all();
    let projects: usize = shapes.iter().map(|it| it.project.split(' ').count()).sum();
    assert_eq!(projects, 25);
    assert_eq!(shapes.iter().filter(|shape| was_possible(shape)).count(), 3);
    let columns: std::collections::BTreeSet<&str> = shapes.iter().map(Shape::columns).collect();
    assert_eq!(columns.len(), shapes.len(), "two rows have the same columns");
}
