//! Reads the memory of this process, and the files that it has mapped, from the system.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use memcheck_core::measurement::process_memory::{MappedFile, ProcessMemory, Resident};

use crate::os::{self, KeptFile};

/// The memory of the process while a body runs.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` if the system does not report the memory of processes.
    status: Option<KeptFile>,
    memory: ProcessMemory,
    /// The files that were mapped before the body.
    before: BTreeSet<String>,
    is_complete: bool,
}

impl Process {
    /// Must be called before the body begins.
    pub(crate) fn begin() -> Self {
        let mut process = Self {
            status: open_status(),
            memory: ProcessMemory::default(),
            before: BTreeSet::new(),
            is_complete: false,
        };
        if let Some(now) = process.read() {
            process.memory.at_start = now;
            process.before = files(&os::mappings()).into_keys().collect();
        }
        process
    }

    /// Reads the memory now; `None` if the system does not report it.
    pub(crate) fn read(&mut self) -> Option<Resident> {
        if self.status.as_mut()?.get().is_none() {
            // The body has closed all descriptors of the process.
            self.status = open_status();
        }
        let mut text = [0; 4096];
        let file = self.status.as_mut()?.get()?;
        let length = os::read_start(file, &mut text).ok()?;
        let now = of_status(std::str::from_utf8(&text[..length]).ok()?)?;
        self.memory.peak = self.memory.peak.max(now);
        self.memory.at_end = now;
        Some(now)
    }

    /// Adds the reading after a measured iteration.
    pub(crate) fn end_iteration(&mut self, now: Option<Resident>) {
        self.memory.iterations.extend(now);
    }

    /// Reads the files that the body has mapped, while its values are not dropped yet.
    pub(crate) fn end_iterations(&mut self) {
        self.is_complete = true;
        self.memory.files = self.mapped();
    }

    fn mapped(&self) -> Vec<MappedFile> {
        let is_new = |path: &String| !self.before.contains(path);
        // The resident parts are read only if there is a new file, because that takes longer.
        if !files(&os::mappings()).keys().any(is_new) {
            return Vec::new();
        }
        let files = files(&os::mappings_with_residents()).into_iter();
        let files = files.filter(|(path, _)| is_new(path)).map(
            |(path, Mapped { bytes, resident, ranges })| {
                let copied = ranges.into_iter().map(copied_from).sum();
                MappedFile { path, bytes, resident, copied }
            },
        );
        let mut files: Vec<MappedFile> = files.collect();
        files.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
        files
    }

    /// The readings so far.
    pub(crate) fn memory(&self) -> &ProcessMemory {
        &self.memory
    }

    /// The memory of the run; `None` if the system did not report it.
    pub(crate) fn finish(&mut self) -> Option<ProcessMemory> {
        if !self.is_complete {
            self.read();
            self.end_iterations();
        }
        let mut memory = std::mem::take(&mut self.memory);
        // Readings of marks and further iterations may be later.
        memory.at_end = memory.iterations.last().copied().unwrap_or(memory.at_end);
        self.status.is_some().then_some(memory)
    }
}

fn open_status() -> Option<KeptFile> {
    os::open_status().map(KeptFile::new)
}

/// Parses the lines `RssAnon:`, `RssFile:` and `VmSwap:` of a status.
fn of_status(text: &str) -> Option<Resident> {
    let bytes = |name: &str| kibibytes(text.lines().find_map(|line| line.strip_prefix(name))?);
    Some(Resident {
        rss_anon: bytes("RssAnon:")?,
        rss_file: bytes("RssFile:")?,
        swap: bytes("VmSwap:").unwrap_or(0),
    })
}

/// Parses `  1234 kB`.
fn kibibytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The mappings of one file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Mapped {
    bytes: u64,
    resident: u64,
    ranges: Vec<Range<u64>>,
}

/// The bytes that live blocks of the device got by copies from these addresses, if the simulated
/// device shares the memory of the host; else 0.
fn copied_from(range: Range<u64>) -> u64 {
    #[cfg(feature = "sim")]
    return memcheck_sim::copied_from(range);
    #[cfg(not(feature = "sim"))]
    {
        let _ = range;
        0
    }
}

/// The mapped files in the text of `maps` or `smaps`, without programs, libraries and devices.
fn files(text: &str) -> BTreeMap<String, Mapped> {
    let mut files: BTreeMap<String, Mapped> = BTreeMap::new();
    let mut executable: BTreeSet<String> = BTreeSet::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(mapping) = Mapping::parse(line) {
            current = mapping.path.filter(|path| is_file(path)).map(str::to_owned);
            if let Some(path) = &current {
                let file = files.entry(path.clone()).or_default();
                file.bytes += mapping.range.end - mapping.range.start;
                file.ranges.push(mapping.range);
                if mapping.is_executable {
                    executable.insert(path.clone());
                }
            }
        } else if let Some(path) = &current
            && let Some(bytes) = line.strip_prefix("Rss:").and_then(kibibytes)
        {
            files.entry(path.clone()).or_default().resident += bytes;
        }
    }
    files.retain(|path, _| !executable.contains(path));
    files
}

fn is_file(path: &str) -> bool {
    path.starts_with('/')
        && !["/dev/", "/memfd:", "/SYSV", "/anon_hugepage"].iter().any(|it| path.starts_with(it))
}

/// A line such as `7f00-7f80 r--s 00000000 fe:01 1234   /home/u/model.safetensors`.
struct Mapping<'a> {
    range: Range<u64>,
    is_executable: bool,
    path: Option<&'a str>,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        let permissions = rest.split(' ').next()?;
        // Offset, device and inode come before the path.
        let path = rest.splitn(5, ' ').nth(4).map(str::trim_start).filter(|path| !path.is_empty());
        let (from, to) = (address(from)?, address(to)?);
        Some(Self {
            range: (from <= to).then_some(from..to)?,
            is_executable: permissions.contains('x'),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_parsed_and_read() {
        let text = "Name:\tapp\nRssAnon:\t     116 kB\nRssFile:\t    1644 kB\nVmSwap:\t 8 kB\n";
        let expected = Resident { rss_anon: 118_784, rss_file: 1_683_456, swap: 8_192 };
        assert_eq!(of_status(text), Some(expected));
        assert_eq!(of_status("Name:\tapp\n"), None);
        let read = Process::begin().read();
        let is_read = read.is_some_and(|now| now.rss_anon > 0 && now.rss_file > 0);
        assert_eq!(is_read, os::INSTRUMENT == os::Instrument::Complete);
    }

    #[test]
    fn files_are_listed_without_libraries_and_with_their_resident_part() {
        let text = "\
7f00000000-7f00002000 r--s 00000000 fe:01 12      /home/u/my model.safetensors
Size:                  8 kB
Rss:                   4 kB
Pss:                   4 kB
7f00004000-7f00005000 r--s 00004000 fe:01 12      /home/u/my model.safetensors
Rss:                   4 kB
7f00010000-7f00020000 r--p 00000000 fe:01 13      /usr/lib/libc.so.6
Rss:                  64 kB
7f00020000-7f00030000 r-xp 00010000 fe:01 13      /usr/lib/libc.so.6
7f00030000-7f00031000 rw-p 00000000 00:00 0       [heap]
Rss:                   4 kB
7f00040000-7f00041000 rw-p 00000000 00:00 0 
Rss:                   4 kB
7f00050000-7f00051000 rw-s 00000000 00:01 5       /memfd:x (deleted)
";
        let ranges = vec![0x7f_0000_0000..0x7f_0000_2000, 0x7f_0000_4000..0x7f_0000_5000];
        let model = Mapped { bytes: 12_288, resident: 8_192, ranges };
        let expected = BTreeMap::from([("/home/u/my model.safetensors".to_owned(), model)]);
        assert_eq!(files(text), expected);
    }

    #[cfg(not(memcheck_portable))]
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_mapped_after_the_start_is_found() {
        let mut process = Process::begin();
        assert!(process.mapped().is_empty(), "{:?}", process.mapped());
        process.before.clear();
        let now = process.read();
        process.end_iteration(now);
        let memory = process.finish().expect("this system has /proc");
        assert_eq!((memory.iterations.len(), memory.at_end), (1, memory.iterations[0]));
    }
}
