//! The programs that are compared: which there are, and how they are built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::alternating::{LAYOUTS, Program, link};

/// A global allocator, which is a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allocator {
    Bare,
    Memcheck,
    /// The same with call stacks and scopes.
    Attributed,
    StatsAlloc,
    PeakAlloc,
    Dhat,
}

impl Allocator {
    pub(crate) const ALL: [Self; 6] = [
        Self::Bare,
        Self::Memcheck,
        Self::Attributed,
        Self::StatsAlloc,
        Self::PeakAlloc,
        Self::Dhat,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Memcheck => "memcheck",
            Self::Attributed => "attributed",
            Self::StatsAlloc => "stats_alloc",
            Self::PeakAlloc => "peak_alloc",
            Self::Dhat => "dhat",
        }
    }

    /// The example that is this program.
    fn example(self) -> String {
        format!("overhead_{}", self.name())
    }
}

/// The programs, built.
pub(crate) struct Programs {
    executables: BTreeMap<(Allocator, usize), PathBuf>,
}

impl Programs {
    /// Builds them as `cargo bench` built this one, in release, into `folder`.
    pub(crate) fn build(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut executables = BTreeMap::new();
        for layout in 0..LAYOUTS {
            eprintln!("building layout {} of {LAYOUTS}", layout + 1);
            for allocator in Allocator::ALL {
                // The next layout overwrites what cargo built.
                let example = allocator.example();
                let kept = folder.join(format!("{example}-{layout}"));
                let built = link(&example, layout, &["--release", "--features", "overhead"])?;
                std::fs::copy(built, &kept)?;
                executables.insert((allocator, layout), kept);
            }
        }
        Ok(Self { executables })
    }

    /// A new process. Layouts repeat after [`LAYOUTS`].
    pub(crate) fn start(&self, allocator: Allocator, layout: usize) -> anyhow::Result<Program> {
        Program::start(Command::new(&self.executables[&(allocator, layout % LAYOUTS)]))
    }
}
