//! The programs that the benchmark compares, and how they are built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::alternating::{LAYOUTS, Program, link};

/// A global allocator. Each one has its own program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allocator {
    Bare,
    Memcheck,
    /// memcheck's allocator, and its probe of the C heap, as with `max_c_growth`.
    CHeap,
    /// memcheck's allocator with call stacks and scopes.
    Attributed,
    StatsAlloc,
    PeakAlloc,
    Dhat,
}

impl Allocator {
    pub(crate) const ALL: [Self; 7] = [
        Self::Bare,
        Self::Memcheck,
        Self::CHeap,
        Self::Attributed,
        Self::StatsAlloc,
        Self::PeakAlloc,
        Self::Dhat,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Memcheck => "memcheck",
            Self::CHeap => "c_heap",
            Self::Attributed => "attributed",
            Self::StatsAlloc => "stats_alloc",
            Self::PeakAlloc => "peak_alloc",
            Self::Dhat => "dhat",
        }
    }

    fn example(self) -> String {
        format!("overhead_{}", self.name())
    }
}

/// The executables of the programs, by allocator and layout.
pub(crate) struct Programs {
    executables: BTreeMap<(Allocator, usize), PathBuf>,
}

impl Programs {
    /// Builds the programs in release, as `cargo bench` built this benchmark, and copies them into
    /// `folder`.
    pub(crate) fn build(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut executables = BTreeMap::new();
        for layout in 0..LAYOUTS {
            eprintln!("building layout {} of {LAYOUTS}", layout + 1);
            for allocator in Allocator::ALL {
                // The executable is copied, because the next layout overwrites it.
                let example = allocator.example();
                let kept = folder.join(format!("{example}-{layout}"));
                let built = link(&example, layout, &["--release", "--features", "overhead"])?;
                std::fs::copy(built, &kept)?;
                executables.insert((allocator, layout), kept);
            }
        }
        Ok(Self { executables })
    }

    /// Starts a new process. Layouts repeat after [`LAYOUTS`].
    pub(crate) fn start(&self, allocator: Allocator, layout: usize) -> anyhow::Result<Program> {
        Program::start(Command::new(&self.executables[&(allocator, layout % LAYOUTS)]))
    }
}
