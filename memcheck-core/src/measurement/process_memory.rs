//! The memory of the whole process, as the system reports it: all libraries, mapped files and the
//! instrument included. The figures differ from run to run.

use serde::{Deserialize, Serialize};

use crate::size::both;

/// One reading of the process's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Resident memory that no file backs: heaps, stacks and anonymous mappings.
    pub rss_anon: u64,
    /// Resident pages of mapped files.
    pub rss_file: u64,
    /// Anonymous memory that the system has moved to swap.
    pub swap: u64,
}

impl Resident {
    /// The memory that the program has taken and that no file backs, resident or not.
    pub fn taken(self) -> u64 {
        self.rss_anon.saturating_add(self.swap)
    }

    /// The highest value of each figure.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            rss_anon: self.rss_anon.max(other.rss_anon),
            rss_file: self.rss_file.max(other.rss_file),
            swap: self.swap.max(other.swap),
        }
    }

    /// The figures for people.
    pub fn shown(self) -> String {
        let Self { rss_anon, rss_file, swap } = self;
        format!("rss_anon {}, rss_file {}, swap {}", both(rss_anon), both(rss_file), both(swap))
    }
}

/// A file that the body has mapped, such as one of safetensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    /// The path.
    pub path: String,
    /// Bytes of the mapping.
    pub bytes: u64,
    /// Bytes of it that are resident.
    pub resident: u64,
    /// Bytes that live blocks of the device got by copies from the mapping, if the simulated device
    /// shares the memory of the host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied: u64,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl MappedFile {
    /// The file for people.
    pub fn shown(&self) -> String {
        let Self { path, bytes, resident, copied: _ } = self;
        format!("{path}: {} mapped, {} resident", both(*bytes), both(*resident))
    }
}

/// The memory of the process over one run of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMemory {
    /// When the body began.
    pub at_start: Resident,
    /// After the last measured iteration; after the body if it has none.
    pub at_end: Resident,
    /// The highest value of each figure in all readings.
    pub peak: Resident,
    /// After each measured iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<Resident>,
    /// The files that the body had mapped when its iterations ended, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MappedFile>,
}

impl ProcessMemory {
    /// The figures for people, one line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("process: {}", self.at_end.shown()),
            format!("process, highest: {}", self.peak.shown()),
        ];
        lines.extend(self.files.iter().map(|file| format!("mapped file {}", file.shown())));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_value_of_each_figure_is_kept() {
        let first = Resident { rss_anon: 5, rss_file: 1, swap: 0 };
        let second = Resident { rss_anon: 3, rss_file: 4, swap: 2 };
        assert_eq!(first.max(second), Resident { rss_anon: 5, rss_file: 4, swap: 2 });
        assert_eq!((first.taken(), second.taken()), (5, 5));
    }

    #[test]
    fn figures_and_files_have_a_line_each() {
        let file =
            MappedFile { path: "/m.safetensors".to_owned(), bytes: 4_096, resident: 0, copied: 0 };
        let memory = ProcessMemory {
            at_end: Resident { rss_anon: 2_048, ..Resident::default() },
            files: vec![file],
            ..ProcessMemory::default()
        };
        let lines = memory.lines();
        assert_eq!(lines[0], "process: rss_anon 2,048 B (2.00 KiB), rss_file 0 B, swap 0 B");
        assert_eq!(lines[2], "mapped file /m.safetensors: 4,096 B (4.00 KiB) mapped, 0 B resident");
    }
}
