//! The live view of a profile: a quiet thread that reports live bytes and the largest call sites of
//! this process while the program runs.
//!
//! The thread reads the counters of the ledger and asks the collector of the trace, so that the
//! threads of the program do no more than without it. Call stacks leave the process as addresses.

use std::path::Path;
use std::time::{Duration, Instant};

use memcheck_core::wire::protocol::{LiveMemory, LiveStack, LiveView, Progress};
use memcheck_ledger::{self as ledger, CounterSnapshot, block, site};

use crate::executable::{Executable, sources};
use crate::os::KeptFile;
use crate::trace::{self, LiveSite};
use crate::{progress, quiet_thread};

/// The time between two reports.
const INTERVAL: Duration = Duration::from_millis(500);

/// Starts the thread, which reports to `listener` until the process ends. Source files below
/// `workspace` are named relative to it.
///
/// # Errors
/// If the system refuses the thread.
pub(crate) fn start(listener: KeptFile, workspace: &Path) -> std::io::Result<()> {
    let sources = sources(workspace);
    quiet_thread::spawn("memcheck-live", move || {
        let mut listener = Some(listener);
        let executable = Executable::find();
        let began = Instant::now();
        while listener.is_some() {
            let sites = trace::ask();
            let spaces = active().map(|(space, now)| LiveMemory {
                space,
                live: now.live,
                peak: now.peak,
                allocated: now.allocated_total,
            });
            let stacks = sites.iter().map(|site| stack(site, &executable));
            let view = LiveView {
                milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                sources: sources.clone(),
                spaces: spaces.collect(),
                stacks: stacks.collect(),
            };
            let (iteration, of) = progress::iterations();
            let view = Some(Box::new(view));
            let report = Progress { iteration, of, view, ..Progress::default() };
            progress::report(&mut listener, &report);
            std::thread::sleep(INTERVAL);
        }
    })?;
    Ok(())
}

/// The spaces with memory; that of the host is always one of them.
fn active() -> impl Iterator<Item = (memcheck_core::space::Space, CounterSnapshot)> {
    use memcheck_core::space::Space;
    block::spaces()
        .map(|space| (space, ledger::snapshot(space)))
        .filter(|(space, now)| *space == Space::Host || now.peak > 0)
}

fn stack(site: &LiveSite, executable: &Executable) -> LiveStack {
    let frames = site::context(site.context).map(|context| context.frames).unwrap_or_default();
    LiveStack {
        space: site.space,
        bytes: site.bytes,
        count: site.count,
        calls: executable.calls(&frames),
    }
}
