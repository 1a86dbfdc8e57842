//! The live view of a profile: live bytes, their rate and the largest call sites, while the test or
//! the program runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use memcheck_conduct::symbols::Symbols;
use memcheck_core::measurement::soak;
use memcheck_core::measurement::stack::Stack;
use memcheck_core::size::{Size, blocks};
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::{LiveMemory, LiveStack, LiveView, Progress};

use super::cut::cut;
use crate::discovery::task::Task;
use crate::system::escape;

/// The most call sites that are shown.
const SITES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Live {
    symbols: HashMap<PathBuf, Symbols>,
    /// The view before, for rates.
    before: Option<LiveView>,
}

/// A moment of the program, in the form that a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    title: String,
    memory: Vec<Memory>,
    sites: Vec<SiteLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Memory {
    space: Space,
    live: u64,
    peak: u64,
    /// Change of the live bytes, in bytes per second.
    change: i64,
    /// Allocated bytes per second.
    allocated: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SiteLine {
    space: Space,
    place: String,
    bytes: u64,
    count: u64,
}

impl Live {
    /// True if a view was shown.
    pub(super) fn is_used(&self) -> bool {
        self.before.is_some()
    }

    pub(super) fn moment(&mut self, task: &Task, progress: &Progress, view: &LiveView) -> Moment {
        let before = self.before.replace(view.clone());
        let mut title = task.name().to_owned();
        if progress.of > 0 {
            title.push_str(&format!("  iteration {}/{}", progress.iteration, progress.of));
        }
        title.push_str(&format!("  {}", soak::shown(view.milliseconds)));
        let memory = view.spaces.iter().map(|now| memory(now, view, before.as_ref())).collect();
        Moment { title, memory, sites: self.sites(&task.binary.readable_path(), view) }
    }

    /// Sites of the devices or, if the program uses none, of the host.
    fn sites(&mut self, executable: &Path, view: &LiveView) -> Vec<SiteLine> {
        let symbols =
            self.symbols.entry(executable.to_owned()).or_insert_with(|| Symbols::open(executable));
        let on_device = view.spaces.iter().any(|memory| memory.space.is_of_driver());
        let mut sites: Vec<SiteLine> = Vec::new();
        for stack in view.stacks.iter().filter(|it| it.space.is_of_driver() == on_device) {
            let LiveStack { space, bytes, count, calls } = stack;
            let frames = calls.iter().flat_map(|call| symbols.frames(*call));
            let place = place(&Stack::trimmed(frames.map(|frame| view.sources.qualify(frame))));
            match sites.iter_mut().find(|site| (site.space, &site.place) == (*space, &place)) {
                Some(known) => {
                    known.bytes = known.bytes.saturating_add(*bytes);
                    known.count = known.count.saturating_add(*count);
                }
                None => sites.push(SiteLine { space: *space, place, bytes: *bytes, count: *count }),
            }
        }
        sites.sort_by_key(|site| std::cmp::Reverse(site.bytes));
        sites.truncate(SITES);
        sites
    }
}

fn memory(now: &LiveMemory, view: &LiveView, before: Option<&LiveView>) -> Memory {
    let LiveMemory { space, live, peak, allocated } = *now;
    let earlier = before.and_then(|before| {
        let elapsed = view.milliseconds.checked_sub(before.milliseconds).filter(|it| *it > 0)?;
        let memory = before.spaces.iter().find(|memory| memory.space == space);
        // A space that was not there had no memory.
        let then = memory.map_or((0, 0), |memory| (memory.live, memory.allocated));
        Some((elapsed, then))
    });
    let (change, allocated) = earlier.map_or((0, 0), |(elapsed, (live_then, allocated_then))| {
        let per_second = |bytes: i128| bytes * 1_000 / i128::from(elapsed);
        let change = per_second(i128::from(live) - i128::from(live_then));
        let allocated = per_second(i128::from(allocated.saturating_sub(allocated_then)));
        (i64::try_from(change).unwrap_or(i64::MAX), u64::try_from(allocated).unwrap_or(u64::MAX))
    });
    Memory { space, live, peak, change, allocated }
}

/// The line of the program, and the operation that it calls.
fn place(stack: &Stack) -> String {
    let frame = stack.user().or_else(|| stack.dependency()).or_else(|| stack.frames.first());
    let line = frame.map(|frame| match frame.short_place() {
        Some(place) => format!("{place}  {}", frame.path()),
        None => frame.path(),
    });
    let line = line.unwrap_or_else(|| "unknown call site".to_owned());
    match stack.operation() {
        Some(operation) => format!("{line}  {operation}"),
        None => line,
    }
}

fn change(bytes: i64) -> String {
    let sign = if bytes < 0 { '-' } else { '+' };
    format!("{sign}{}/s", Size(bytes.unsigned_abs()))
}

impl Moment {
    /// Several lines, for a terminal of this width that shows only the last moment.
    pub(super) fn area(&self, columns: usize) -> String {
        let mut lines = vec![self.title.clone()];
        for memory in &self.memory {
            let Memory { space, live, peak, change, allocated } = memory;
            let [live, peak, allocated] = [live, peak, allocated].map(|it| Size(*it).to_string());
            let (space, change) = (space.to_string(), self::change(*change));
            lines.push(format!(
                "{space:<12} {live:>10} live  {change:>12}  {allocated:>10}/s allocated  \
                 {peak:>10} peak"
            ));
        }
        for site in &self.sites {
            let (bytes, count) = (Size(site.bytes).to_string(), blocks(site.count));
            lines.push(format!("{bytes:>10}  {count:>14}  {}", site.place));
        }
        let lines: Vec<String> =
            lines.iter().map(|line| escape::line(&cut(line, columns))).collect();
        lines.join("\n")
    }

    /// One line, for an output that keeps every moment.
    pub(super) fn line(&self) -> String {
        let memory = self.memory.iter().map(|memory| {
            format!("{} {} live ({})", memory.space, Size(memory.live), change(memory.change))
        });
        let mut parts: Vec<String> = std::iter::once(self.title.clone()).chain(memory).collect();
        if let Some(site) = self.sites.first() {
            parts.push(format!("largest: {} at {}", Size(site.bytes), site.place));
        }
        format!("live: {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::measurement::stack::Sources;

    use super::*;
    use crate::discovery::task::example::task;

    fn view(milliseconds: u64, live: u64, allocated: u64) -> LiveView {
        let memory = |space, live| LiveMemory { space, live, peak: 9 << 20, allocated };
        let stack = |space, bytes| LiveStack { space, bytes, count: 2, calls: Vec::new() };
        LiveView {
            milliseconds,
            sources: Sources::default(),
            spaces: vec![memory(Space::Host, 1), memory(Space::Cuda(0), live)],
            stacks: vec![
                stack(Space::Host, 512 << 20),
                stack(Space::Cuda(0), 1 << 20),
                stack(Space::Cuda(0), 2 << 20),
            ],
        }
    }

    #[test]
    fn a_moment_has_live_bytes_their_rates_and_the_sites_of_the_device() {
        let mut live = Live::default();
        let progress = Progress { iteration: 3, of: 12, ..Progress::default() };
        live.moment(&task(), &progress, &view(1_000, 4 << 20, 0));
        let moment = live.moment(&task(), &progress, &view(3_000, 2 << 20, 8 << 20));
        assert_eq!(moment.sites.len(), 1, "stacks with one place are one site");
        let area = moment.area(80);
        for text in ["iteration 3/12", "2.00 MiB live", "-1.00 MiB/s", "4.00 MiB/s allocated"] {
            assert!(area.contains(text), "{text} is not in {area}");
        }
        assert!(area.contains("3.00 MiB        4 blocks  unknown call site"), "{area}");
        assert!(moment.area(20).lines().all(|line| console::measure_text_width(line) <= 20));
        let line = moment.line();
        assert!(
            line.contains("cuda:0 2.00 MiB live (-1.00 MiB/s); largest: 3.00 MiB at "),
            "{line}"
        );
    }
}
