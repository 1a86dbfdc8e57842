//! From return addresses to functions, files and lines.
//!
//! Read from the executable's own tables, inlined calls included; where it has
//! none, from its symbols. Libraries that are loaded beside it are plumbing.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use addr2line::Loader;
use memcheck_core::protocol;
use memcheck_core::stack::{self, Frame, Stack};

use super::modules;

/// Names for the addresses of this process.
pub(crate) struct Symbols {
    loader: Option<Loader>,
    base: u64,
    range: Range<u64>,
    known: HashMap<u64, Vec<Frame>>,
    /// The folder that source files are named below.
    workspace: String,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").field("base", &self.base).finish_non_exhaustive()
    }
}

/// The file that this process was started from.
const EXECUTABLE: &str = "/proc/self/exe";

/// Where this tool's own crates are compiled, wherever that is.
const OWN: &[(&str, &str)] = &[
    (env!("CARGO_MANIFEST_DIR"), "memcheck_runtime"),
    (memcheck_core::FOLDER, "memcheck_core"),
    #[cfg(feature = "sim")]
    (memcheck_sim::FOLDER, "memcheck_sim"),
];

impl Symbols {
    /// Opens the tables of the executable, which lie beside it where it was
    /// stripped for an archive. `workspace` is cut off the names of
    /// the files below it.
    pub(crate) fn open(workspace: &Path) -> Self {
        let (base, range) = modules::first().unwrap_or_default();
        let mut workspace = workspace.to_string_lossy().into_owned();
        workspace.push('/');
        let beside = std::fs::read_link(EXECUTABLE).ok().map(|path| protocol::line_tables(&path));
        let loader = beside
            .filter(|path| path.is_file())
            .and_then(|path| Loader::new(path).ok())
            .or_else(|| Loader::new(EXECUTABLE).ok());
        Self { loader, base, range, known: HashMap::new(), workspace }
    }

    /// The stack of these return addresses, innermost first, without plumbing.
    pub(crate) fn stack(&mut self, addresses: &[u64]) -> Stack {
        let mut frames = Vec::new();
        for &address in addresses {
            // The call, not what follows it.
            let call = address.saturating_sub(1);
            if !self.known.contains_key(&call) {
                let resolved = self.resolve(call);
                self.known.insert(call, resolved);
            }
            frames.extend(self.known[&call].iter().cloned());
        }
        Stack::trimmed(frames)
    }

    fn resolve(&self, address: u64) -> Vec<Frame> {
        let Some(loader) = self.loader.as_ref().filter(|_| self.range.contains(&address)) else {
            return Vec::new();
        };
        let probe = address - self.base;
        let mut frames = Vec::new();
        if let Ok(mut found) = loader.find_frames(probe) {
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
        // The outermost of them is the function that was not inlined: the
        // symbol table has its whole path.
        if let Some(symbol) = loader.find_symbol(probe) {
            let function = addr2line::demangle_auto(symbol.into(), None).into_owned();
            match frames.last_mut() {
                Some(frame) => frame.function = function,
                None => frames.push(Frame { function, file: None, line: None }),
            }
        }
        frames.retain(|frame| !frame.function.is_empty());
        for frame in &mut frames {
            self.qualify(frame);
        }
        frames
    }

    /// Line tables name an inlined function without its path: the crate and
    /// the module are those of its file.
    fn qualify(&self, frame: &mut Frame) {
        let Some(file) = frame.file.take() else { return };
        if !stack::has_path(&frame.function)
            && let Some(module) = OWN
                .iter()
                .find(|(folder, _)| file.starts_with(folder))
                .map(|(_, krate)| (*krate).to_owned())
                .or_else(|| stack::module_of(&file))
        {
            frame.function = format!("{module}::{}", frame.function);
        }
        frame.file = Some(file.strip_prefix(&self.workspace).map(str::to_owned).unwrap_or(file));
    }
}
