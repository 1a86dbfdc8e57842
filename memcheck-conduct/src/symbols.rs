//! Looks up the names of addresses in an executable: functions, files and lines.
//!
//! The names come from the line tables, inlined calls included. If an executable has no line
//! tables, they come from the symbol table. Only those units of the line tables are parsed that
//! contain a requested address, and every answer is cached. An executable therefore costs its index
//! once, however many call stacks are looked up in it.

use std::collections::HashMap;
use std::path::Path;

use addr2line::Loader;
use memcheck_core::measurement::stack::Frame;
use memcheck_core::wire::protocol;

/// The names of the addresses in one executable.
pub struct Symbols {
    /// `None` if the file cannot be read. No address has a name then.
    loader: Option<Loader>,
    known: HashMap<u64, Vec<Frame>>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Symbols {
    /// Opens the tables of an executable.
    ///
    /// If the executable was stripped for an archive, its tables are read from the file next to it.
    /// An executable that cannot be read is not an error: its addresses have no names.
    pub fn open(executable: &Path) -> Self {
        let stripped = executable.canonicalize().ok().map(|path| protocol::line_tables(&path));
        // The loader maps a file, so that its size does not matter, but opening a pipe would wait.
        let load = |path: &Path| path.is_file().then(|| Loader::new(path).ok())?;
        let loader = stripped.and_then(|path| load(&path)).or_else(|| load(executable));
        Self { loader, known: HashMap::new() }
    }

    /// Returns the stack frames at an address, the innermost frame first. The address must be
    /// relative to the executable's base. Functions and files have the names in the tables.
    pub fn frames(&mut self, address: u64) -> Vec<Frame> {
        let Some(loader) = &self.loader else { return Vec::new() };
        self.known.entry(address).or_insert_with(|| frames(loader, address)).clone()
    }
}

fn frames(loader: &Loader, address: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    if let Ok(mut found) = loader.find_frames(address) {
        while let Ok(Some(frame)) = found.next() {
            let function = frame
                .function
                .as_ref()
                .and_then(|function| function.demangle().ok())
                .map(std::borrow::Cow::into_owned);
            let location = frame.location.as_ref();
            frames.push(Frame {
                function: function.unwrap_or_default(),
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line),
            });
        }
    }
    // The outermost frame is the function that was not inlined. Its name is taken from the symbol
    // table, because that name contains the whole path.
    if let Some(symbol) = loader.find_symbol(address) {
        let function = addr2line::demangle_auto(symbol.into(), None).into_owned();
        match frames.last_mut() {
            Some(frame) => frame.function = function,
            None => frames.push(Frame { function, file: None, line: None }),
        }
    }
    frames.retain(|frame| !frame.function.is_empty());
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address of this function, relative to the base of the test's executable.
    #[inline(never)]
    fn here() -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = maps.split('-').next().unwrap();
        here as fn() -> u64 as usize as u64 - u64::from_str_radix(base, 16).unwrap()
    }

    #[test]
    fn an_address_has_its_function_file_and_line() {
        let mut symbols = Symbols::open(&std::env::current_exe().unwrap());
        let address = here();
        let frames = symbols.frames(address);
        let frame = frames.last().unwrap();
        assert_eq!(frame.function, "memcheck_conduct::symbols::tests::here");
        assert!(frame.file.as_ref().unwrap().ends_with("memcheck-conduct/src/symbols.rs"));
        assert!(frame.line.is_some());
        assert_eq!(symbols.frames(address), frames);
    }

    #[test]
    fn without_an_executable_no_address_has_a_name() {
        let mut symbols = Symbols::open(Path::new("/nowhere/at/all"));
        assert_eq!(symbols.frames(here()), []);
    }
}
