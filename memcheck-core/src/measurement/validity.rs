//! Checks a record while it is read, because the process that wrote it is not trusted. Code that
//! has a record may therefore rely on it: an index is in range, the series of a group have one
//! length, and sums of its figures do not overflow.

use std::fmt::Display;

use crate::characters::is_word;
use crate::growth::survivors::Group;
use crate::measurement::attribution::{Attribution, HeldBy, Holder, Lifetimes, Place, Unresolved};
use crate::measurement::fault_sweep::{Effect, SweepResult};
use crate::measurement::phase::PhaseFigures;
use crate::measurement::placement::{Module, Modules};
use crate::measurement::process_memory::Resident;
use crate::measurement::record::{Metrics, Record, SpaceRecord};

/// The greatest sum of figures, in bytes (1 EiB) or counts. It is far below the greatest integer,
/// so that sums can be added to each other.
const MOST: u64 = 1 << 60;

/// The first field of a record that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// An index does not refer to an element.
    #[error("`{field}` is {index}, but the list has {length} elements")]
    Index {
        /// The path of the field in the record.
        field: String,
        /// The index.
        index: usize,
        /// The length of the list that it refers to.
        length: usize,
    },
    /// Series that belong together have different lengths.
    #[error("`{field}` has {found} values instead of {expected}")]
    Length {
        /// The path of the field in the record.
        field: String,
        /// Its length.
        found: usize,
        /// The length of the series that it belongs to.
        expected: usize,
    },
    /// A figure, or the sum of a field over a list, is greater than a process can reach.
    #[error("`{field}` is more than 2^60 in all")]
    Sum {
        /// The path of the field, without the index of its element.
        field: String,
    },
    /// The name of a phase has other characters than names of phases have.
    #[error("`{field}` does not have a name of a phase")]
    Name {
        /// The path of the field in the record.
        field: String,
    },
    /// A space is listed twice.
    #[error("`{field}` has an element twice")]
    Twice {
        /// The path of the field in the record.
        field: String,
    },
}

type Checked = Result<(), Invalid>;

/// A record, without the stacks that have no names yet.
pub(super) fn record(record: &Record) -> Checked {
    let Record {
        judged,
        spaces,
        attribution,
        longer,
        driver,
        values,
        fault_sweep,
        process,
        unified,
        marks,
        ..
    } = record;
    let mut distinct = judged.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() != judged.len() {
        return Err(Invalid::Twice { field: "judged".to_owned() });
    }
    for (space, measured) in spaces {
        self::measured(&format!("spaces[{space}]"), measured)?;
    }
    for (name, attribution) in [("attribution", attribution), ("longer", longer)] {
        if let Some(attribution) = attribution {
            self::attribution(name, attribution, attribution.stacks.len())?;
        }
    }
    if let Some(values) = values {
        sum("values.reads", [values.reads])?;
        sum("values.bytes", [values.bytes])?;
        sum("values.further", [values.further])?;
    }
    if let Some(sweep) = fault_sweep {
        self::fault_sweep(sweep)?;
    }
    let read = process.iter().flat_map(|memory| {
        [memory.at_start, memory.at_end, memory.peak].into_iter().chain(memory.iterations.clone())
    });
    for resident in read.chain(marks.iter().filter_map(|mark| mark.process)) {
        let Resident { rss_anon, rss_file, swap } = resident;
        sum("process", [rss_anon, rss_file, swap])?;
    }
    let files = || process.iter().flat_map(|memory| &memory.files);
    sum("process.files.bytes", files().map(|file| file.bytes))?;
    sum("process.files.resident", files().map(|file| file.resident))?;
    sum("process.files.copied", files().map(|file| file.copied))?;
    let memory = unified.iter().flat_map(|it| [it.capacity, it.peak_allocated]);
    sum("unified", memory)?;
    let items = || driver.untracked.iter().flat_map(|untracked| &untracked.items);
    sum("driver.untracked.items.bytes", items().map(|item| item.bytes))?;
    sum("driver.untracked.items.blocks", items().map(|item| item.blocks))
}

fn fault_sweep(sweep: &SweepResult) -> Checked {
    let SweepResult { allocations, selected, refused, errors, recovered, failures, .. } = sweep;
    let counts = [*allocations, *selected, *refused, *errors, *recovered];
    sum("fault_sweep.allocations", counts)?;
    sum("fault_sweep.failures.requested", failures.iter().map(|failure| failure.requested))?;
    sum("fault_sweep.failures.number", failures.iter().map(|failure| failure.number).max())?;
    let left = failures.iter().filter_map(|failure| match &failure.effect {
        Effect::Left { bytes, blocks, .. } => Some((*bytes, blocks)),
        _ => None,
    });
    sum("fault_sweep.failures.bytes", left.clone().map(|(bytes, _)| bytes))?;
    let blocks = || left.clone().flat_map(|(_, blocks)| blocks);
    sum("fault_sweep.failures.blocks.bytes", blocks().map(|left| left.bytes))?;
    sum("fault_sweep.failures.blocks.count", blocks().map(|left| left.count))
}

/// An attribution whose places refer to `calls`.
pub(super) fn unresolved(unresolved: &Unresolved) -> Checked {
    attribution("unresolved.attribution", &unresolved.attribution, unresolved.calls.len())
}

fn measured(path: &str, measured: &SpaceRecord) -> Checked {
    let SpaceRecord {
        metrics, allocated, allocations, allocated_total, peak, survivors, kept, ..
    } = measured;
    self::metrics(path, metrics)?;
    for (name, figures) in &measured.phases {
        let PhaseFigures { peak_allocated, growth, live_at_start } = *figures;
        let field = format!("{path}.phases[{name}]");
        if !is_word(name) {
            return Err(Invalid::Name { field });
        }
        sum(field, [peak_allocated, growth, live_at_start])?;
    }
    sum(format_args!("{path}.failed_frees"), [measured.failed_frees])?;
    length(format_args!("{path}.peak"), peak.len(), allocated.len())?;
    // Records of earlier versions do not have them.
    for (name, series) in [("allocations", allocations), ("allocated_total", allocated_total)] {
        if !series.is_empty() {
            length(format_args!("{path}.{name}"), series.len(), allocated.len())?;
        }
    }
    sum(format_args!("{path}.kept"), *kept)?;
    for (name, series) in [
        ("allocated", allocated),
        ("allocations", allocations),
        ("allocated_total", allocated_total),
        ("peak", peak),
    ] {
        sum(format_args!("{path}.{name}"), series.iter().copied().max())?;
    }
    groups(&format!("{path}.survivors"), "", survivors.iter())
}

fn metrics(path: &str, metrics: &Metrics) -> Checked {
    let Metrics {
        allocated,
        peak_allocated,
        setup,
        growth,
        retained,
        allocations,
        allocated_total,
        reserved,
        peak_reserved,
        device_used,
    } = *metrics;
    for (name, figure) in [
        ("allocated", Some(allocated)),
        ("peak_allocated", Some(peak_allocated)),
        ("setup", Some(setup)),
        ("growth", Some(growth)),
        ("retained", Some(retained)),
        ("allocations", Some(allocations)),
        ("allocated_total", Some(allocated_total)),
        ("reserved", reserved),
        ("peak_reserved", peak_reserved),
        ("device_used", device_used),
    ] {
        sum(format_args!("{path}.metrics.{name}"), figure)?;
    }
    Ok(())
}

fn attribution(path: &str, attribution: &Attribution, stacks: usize) -> Checked {
    let Attribution {
        places, peaks, refused, survivors, retained, unfreed, devices, modules, ..
    } = attribution;
    sum(format_args!("{path}.unfreed"), unfreed.values().copied())?;
    sum(format_args!("{path}.devices"), devices.values().copied())?;
    self::places(&format!("{path}.places"), places, stacks)?;
    let holders = |path: &str, holders: &[Holder]| self::holders(path, holders, places.len());
    for (space, peak) in peaks {
        let path = format!("{path}.peaks[{space}]");
        sum(format_args!("{path}.bytes"), [peak.bytes])?;
        let events = peak.stretch.checked_mul(peak.timeline.len() as u64);
        sum(format_args!("{path}.stretch"), [events.unwrap_or(u64::MAX)])?;
        holders(&format!("{path}.holders"), &peak.holders)?;
        if let Some(lifetimes) = &peak.lifetimes {
            self::lifetimes(&format!("{path}.lifetimes"), lifetimes, places.len())?;
        }
    }
    for (space, refused) in refused {
        let path = format!("{path}.refused[{space}]");
        index(format_args!("{path}.stack"), refused.stack, stacks)?;
        holders(&format!("{path}.holders"), &refused.holders)?;
    }
    for (number, survivors) in survivors.iter().enumerate() {
        index(format_args!("{path}.survivors[{number}].stack"), survivors.stack, stacks)?;
    }
    let path_of_survivors = format!("{path}.survivors");
    groups(&path_of_survivors, ".group", survivors.iter().map(|survivors| &survivors.group))?;
    let held = |pick: fn(&HeldBy) -> u64| survivors.iter().map(move |of| pick(&of.held));
    sum(format_args!("{path_of_survivors}.held.whole"), held(|held| held.whole))?;
    sum(format_args!("{path_of_survivors}.held.views"), held(|held| held.views))?;
    sum(format_args!("{path_of_survivors}.held.view_bytes"), held(|held| held.view_bytes))?;
    sum(format_args!("{path_of_survivors}.held.graph"), held(|held| held.graph))?;
    sum(format_args!("{path_of_survivors}.held.variables"), held(|held| held.variables))?;
    sum(format_args!("{path_of_survivors}.held.new_devices"), held(|held| held.new_devices))?;
    sum(format_args!("{path_of_survivors}.held.unfreed"), held(|held| held.unfreed))?;
    holders(&format!("{path}.retained"), retained)?;
    modules.iter().try_for_each(|modules| self::modules(&format!("{path}.modules"), modules))
}

fn places(path: &str, places: &[Place], stacks: usize) -> Checked {
    for (number, place) in places.iter().enumerate() {
        index(format_args!("{path}[{number}].stack"), place.stack, stacks)?;
    }
    let all = |pick: fn(&Place) -> u64| places.iter().map(pick);
    sum(format_args!("{path}.calls"), all(|place| place.calls))?;
    sum(format_args!("{path}.bytes"), all(|place| place.bytes))?;
    sum(format_args!("{path}.last_calls"), all(|place| place.last_calls))?;
    sum(format_args!("{path}.last_bytes"), all(|place| place.last_bytes))
}

fn holders(path: &str, holders: &[Holder], places: usize) -> Checked {
    for (number, holder) in holders.iter().enumerate() {
        index(format_args!("{path}[{number}].place"), holder.place, places)?;
    }
    sum(format_args!("{path}.bytes"), holders.iter().map(|holder| holder.bytes))?;
    sum(format_args!("{path}.count"), holders.iter().map(|holder| holder.count))
}

fn lifetimes(path: &str, lifetimes: &Lifetimes, places: usize) -> Checked {
    let Lifetimes { events, iterations, ended, peak, blocks, left_out, stretch, rest } = lifetimes;
    let times = [*events, *peak, *left_out, ended.unwrap_or(0)];
    times.iter().try_for_each(|&time| sum(format_args!("{path}.events"), [time]))?;
    sum(format_args!("{path}.iterations"), iterations.iter().copied().max())?;
    let sampled = stretch.checked_mul(rest.len() as u64);
    sum(format_args!("{path}.stretch"), [sampled.unwrap_or(u64::MAX)])?;
    sum(format_args!("{path}.rest"), rest.iter().copied().max())?;
    for (number, life) in blocks.iter().enumerate() {
        index(format_args!("{path}.blocks[{number}].place"), life.place, places)?;
        sum(format_args!("{path}.blocks[{number}].born"), [life.born, life.died.unwrap_or(0)])?;
    }
    sum(format_args!("{path}.blocks.bytes"), blocks.iter().map(|life| life.bytes))
}

/// `within` is the path of a group in the element of the list at `path`.
fn groups<'a>(
    path: &str,
    within: &str,
    groups: impl Iterator<Item = &'a Group> + Clone,
) -> Checked {
    for (number, group) in groups.clone().enumerate() {
        let Group { births, bytes, live, live_bytes, .. } = group;
        for (name, series) in [("bytes", bytes), ("live", live), ("live_bytes", live_bytes)] {
            let (found, expected) = (series.len(), births.len());
            length(format_args!("{path}[{number}]{within}.{name}"), found, expected)?;
        }
    }
    let path = format!("{path}{within}");
    let each = |pick: fn(&Group) -> &[u64]| groups.clone().map(pick);
    sum(format_args!("{path}.births"), each(|group| &group.births).flatten().copied())?;
    sum(format_args!("{path}.bytes"), each(|group| &group.bytes).flatten().copied())?;
    // Groups are joined iteration by iteration, and the iterations of one are never added.
    let highest = |series: &[u64]| series.iter().copied().max();
    sum(format_args!("{path}.live"), each(|group| &group.live).filter_map(highest))?;
    sum(format_args!("{path}.live_bytes"), each(|group| &group.live_bytes).filter_map(highest))?;
    let reading = || groups.clone().map(|group| group.reading);
    sum(
        format_args!("{path}.reading.bytes_per_iteration"),
        reading().map(|reading| reading.bytes_per_iteration),
    )?;
    sum(format_args!("{path}.reading.bytes"), reading().map(|reading| reading.bytes))?;
    sum(format_args!("{path}.reading.groups"), reading().map(|reading| reading.groups))
}

fn modules(path: &str, modules: &Modules) -> Checked {
    let Modules { modules, peaks, outside, replicated } = modules;
    length(format_args!("{path}.peaks"), peaks.len(), modules.len())?;
    for (first, peaks) in peaks.iter().enumerate() {
        length(format_args!("{path}.peaks[{first}]"), peaks.len(), modules.len() - first)?;
        sum(format_args!("{path}.peaks[{first}]"), peaks.iter().copied().max())?;
    }
    let all = |pick: fn(&Module) -> u64| modules.iter().map(pick);
    sum(format_args!("{path}.modules.weights"), all(|module| module.weights))?;
    sum(format_args!("{path}.modules.cache"), all(|module| module.cache))?;
    sum(format_args!("{path}.modules.activations"), all(|module| module.activations))?;
    sum(format_args!("{path}.modules.input"), all(|module| module.input))?;
    sum(format_args!("{path}.outside"), [*outside])?;
    sum(format_args!("{path}.replicated"), [*replicated])
}

fn index(field: impl Display, index: usize, length: usize) -> Checked {
    match index < length {
        true => Ok(()),
        false => Err(Invalid::Index { field: field.to_string(), index, length }),
    }
}

fn length(field: impl Display, found: usize, expected: usize) -> Checked {
    match found == expected {
        true => Ok(()),
        false => Err(Invalid::Length { field: field.to_string(), found, expected }),
    }
}

fn sum(field: impl Display, figures: impl IntoIterator<Item = u64>) -> Checked {
    let sum = figures.into_iter().try_fold(0u64, u64::checked_add);
    match sum.is_some_and(|sum| sum <= MOST) {
        true => Ok(()),
        false => Err(Invalid::Sum { field: field.to_string() }),
    }
}

/// Implements serde's traits for a type with `#[serde(remote = "Self")]`, whose derived functions
/// are methods, so that every way to read the type checks it.
macro_rules! checked_when_read {
    ($type:ty, $check:path) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$type>::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = <$type>::deserialize(deserializer)?;
                $check(&read).map_err(serde::de::Error::custom)?;
                Ok(read)
            }
        }
    };
}

checked_when_read!(Record, record);
checked_when_read!(Unresolved, unresolved);

#[cfg(test)]
mod tests;
