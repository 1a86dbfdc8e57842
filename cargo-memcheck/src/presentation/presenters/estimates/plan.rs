//! Reports a plan: a table of the devices with their modules, a table of the modules, and the
//! device map.

use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use memcheck_core::machine::{Machine, MachineGpu};
use memcheck_core::measurement::placement::{DeviceMap, DeviceShare, Module, Modules, Plan};
use memcheck_core::size::{Size, both};
use memcheck_core::tolerance::Tolerance;
use serde::Serialize;

use crate::discovery::task::Task;
use crate::invocation::options::ReportingOptions;
use crate::invocation::values::{Format, Verbosity};
use crate::presentation::presenters::{json, style};
use crate::system::escape::{Form, escape};
use crate::system::printing::{eprint_line, print_line, print_raw};

const VERSION: u32 = 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) task: &'a Task,
    pub(crate) machine: &'a Machine,
    /// The part of each device's capacity that stays free.
    pub(crate) margin: Tolerance,
    pub(crate) modules: &'a Modules,
    pub(crate) plan: &'a Plan,
    /// `plan` by the names of the modules.
    pub(crate) map: &'a DeviceMap,
}

/// Prints the map too, unless it is written to `file`.
pub(crate) fn plan(reporting: &ReportingOptions, placed: &Placed<'_>, file: Option<&Path>) {
    if reporting.format == Format::Json {
        return json::print(&line(placed));
    }
    if reporting.verbosity > Verbosity::Quiet {
        modules(reporting, placed.modules);
        let what = format!("{} of each device is left free (--margin)", placed.margin);
        eprint_line!("{} {what}", style::hint("note:"));
        eprint_line!(
            "{} the whole model on one device has a peak of {}",
            style::hint("note:"),
            both(placed.modules.whole())
        );
    }
    print(&devices(placed));
    match file {
        Some(path) => eprint_line!("device map: {}", path.display()),
        None => {
            let map = serde_json::to_string_pretty(placed.map).unwrap_or_default();
            print_raw(&escape(format!("{map}\n"), Form::Json));
        }
    }
}

/// On stderr. Consecutive modules with equal figures share a row.
pub(crate) fn modules(reporting: &ReportingOptions, modules: &Modules) {
    if reporting.format == Format::Json || reporting.verbosity == Verbosity::Quiet {
        return;
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["module", "weights", "cache", "activations", "input"]);
    let figures = |module: &Module| Module { name: String::new(), ..module.clone() };
    for alike in modules.modules.chunk_by(|a, b| figures(a) == figures(b)) {
        let Module { weights, cache, activations, input, .. } = alike[0];
        let sizes = [weights, cache, activations, input].map(|bytes| Size(bytes).to_string());
        table.add_row([vec![names(alike)], sizes.to_vec()].concat());
    }
    for (name, bytes) in [
        ("(outside, on the first device)", modules.outside),
        ("(on each device with layers)", modules.replicated),
    ] {
        table.add_row([name.to_owned(), Size(bytes).to_string()]);
    }
    to_the_right(&mut table);
    for line in table.trim_fmt().lines() {
        eprint_line!("{line}");
    }
}

fn names(modules: &[Module]) -> String {
    match modules {
        [] => "-".to_owned(),
        [only] => only.name.clone(),
        [first, .., last] => format!("{} … {}", first.name, last.name),
    }
}

fn devices(placed: &Placed<'_>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["device", "card", "capacity", "peak", "left", "modules", ""]);
    for (number, (share, gpu)) in placed.plan.shares.iter().zip(&placed.machine.gpus).enumerate() {
        let on_it = placed.modules.modules.get(share.modules.clone()).unwrap_or_default();
        table.add_row([
            format!("cuda:{number}"),
            gpu.card.id.to_owned(),
            Size(gpu.capacity).to_string(),
            Size(share.peak).to_string(),
            Size(gpu.capacity.saturating_sub(share.peak)).to_string(),
            on_it.len().to_string(),
            names(on_it),
        ]);
    }
    to_the_right(&mut table);
    if let Some(column) = table.column_mut(6) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    table
}

fn to_the_right(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn print(table: &Table) {
    for line in table.trim_fmt().lines() {
        print_line!("{line}");
    }
}

#[derive(Debug, Serialize)]
struct PlanLine<'a> {
    #[serde(flatten)]
    head: json::ObjectHead<'a>,
    test: &'a str,
    margin: String,
    /// Bytes, with all modules on one device.
    whole: u64,
    outside: u64,
    replicated: u64,
    modules: &'a [Module],
    devices: Vec<Device<'a>>,
    device_map: &'a DeviceMap,
}

#[derive(Debug, Serialize)]
struct Device<'a> {
    device: usize,
    card: &'a str,
    capacity: u64,
    usable: u64,
    peak_allocated: u64,
    modules: usize,
}

fn line<'a>(placed: &Placed<'a>) -> PlanLine<'a> {
    let Placed { task, machine, margin, modules, plan, map } = *placed;
    let device = |(device, (share, gpu)): (usize, (&DeviceShare, &'a MachineGpu))| Device {
        device,
        card: gpu.card.id,
        capacity: gpu.capacity,
        usable: share.usable,
        peak_allocated: share.peak,
        modules: share.modules.len(),
    };
    PlanLine {
        head: json::ObjectHead::of("plan", VERSION, task),
        test: task.name(),
        margin: margin.to_string(),
        whole: modules.whole(),
        outside: modules.outside,
        replicated: modules.replicated,
        modules: &modules.modules,
        devices: plan.shares.iter().zip(&machine.gpus).enumerate().map(device).collect(),
        device_map: map,
    }
}
