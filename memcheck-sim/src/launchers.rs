//! The launchers of the program's own CUDA code. They are functions of the host that start kernels,
//! and the simulated toolkit compiles each to a stub, which calls [`memcheck_launch`].
//!
//! A launch makes the memory behind its arguments unknown, unless the program has registered a host
//! function for the launcher.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use memcheck_kernels::{Memory as _, Parameter, Shape};

use crate::cudart;
use crate::ffi::Symbol;
use crate::machine::{Handle, Machine};
use crate::unsimulated::Unsimulated;
use crate::{flash, kernels};

/// What a stub knows of its launcher. `cargo-memcheck/src/build/toolchain/nvcc/stub.rs` writes it.
#[repr(C)]
pub(crate) struct Launcher {
    name: *const c_char,
    /// The source file, and the package and version that it belongs to.
    source: *const c_char,
    /// A letter for each argument: `p` a pointer, `c` a pointer to const, `q` a pointer to pointers,
    /// `s` a stream, `b`, `h`, `i` and `l` a value of 1, 2, 4 and 8 bytes; `?` at the end if the
    /// others are not known.
    arguments: *const c_char,
    /// The functions that it calls to allocate memory.
    allocations: *const c_char,
}

/// A launcher and the values of its arguments.
struct LauncherCall {
    name: Arc<str>,
    source: &'static str,
    allocations: &'static str,
    letters: &'static str,
    /// Those with known letters.
    parameters: Vec<Parameter>,
    arguments: Vec<Vec<u8>>,
}

/// # Safety
///
/// `launcher` and its texts must be valid for ever, and `arguments` must have a pointer to a value
/// of the right size for each known letter.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcheck_launch(
    launcher: *const Launcher,
    arguments: *const *mut c_void,
) {
    let _quiet = memcheck_limits::quiet::enter();
    // SAFETY: the caller promises that the launcher is valid.
    let Launcher { name, source, arguments: letters, allocations } = unsafe { &*launcher };
    // SAFETY: the caller promises that the texts are valid for ever.
    let [name, source, letters, allocations] =
        [*name, *source, *letters, *allocations].map(|it| unsafe { text(it) });
    let parameters: Vec<Parameter> = letters.chars().map_while(parameter).collect();
    // SAFETY: the caller promises a pointer to a value for each letter.
    let values = unsafe { memcheck_kernels::read_arguments(arguments, &parameters) };
    let call = LauncherCall {
        name: name.into(),
        source,
        allocations,
        letters,
        parameters,
        arguments: values.unwrap_or_default(),
    };
    let stream = call.stream();
    let call = Arc::new(call);
    let work = || {
        let call = Arc::clone(&call);
        move |machine: &mut Machine| call.run(machine)
    };
    // An argument with the name of a stream can be something else.
    let launched = cudart::launch(stream, work()).or_else(|_| cudart::launch(0, work()));
    cudart::status(launched);
}

/// # Safety
///
/// A zero-terminated text must start at `start`, and be valid for ever.
unsafe fn text(start: *const c_char) -> &'static str {
    // SAFETY: the caller makes the same promise.
    unsafe { CStr::from_ptr(start) }.to_str().unwrap_or_default()
}

fn parameter(letter: char) -> Option<Parameter> {
    let size = match letter {
        'b' => 1,
        'h' => 2,
        'i' => 4,
        'p' | 'c' | 'q' | 's' | 'l' => 8,
        _ => return None,
    };
    Some(Parameter { size, is_to_const: letter == 'c' })
}

impl LauncherCall {
    /// The bytes of the arguments with their letters.
    fn values(&self) -> impl Iterator<Item = (char, &[u8])> {
        self.letters.chars().zip(self.arguments.iter().map(Vec::as_slice))
    }

    fn address(value: &[u8]) -> Option<u64> {
        value.try_into().ok().map(u64::from_ne_bytes)
    }

    fn stream(&self) -> Handle {
        let stream = self.values().find(|(letter, _)| *letter == 's');
        stream.and_then(|(_, value)| Self::address(value)).unwrap_or(0)
    }

    /// True if the launcher can write to memory that its arguments do not show: some arguments are
    /// not known, or one is an array of pointers on the host, whose length is not known.
    fn is_opaque(&self, machine: &Machine) -> bool {
        let is_of_host = |value: &[u8]| {
            let address = Self::address(value).unwrap_or(0);
            address != 0 && machine.span_to_end(address).is_none()
        };
        self.letters.contains('?')
            || self.values().any(|(letter, value)| letter == 'q' && is_of_host(value))
    }

    fn run(&self, machine: &mut Machine) {
        // A launcher has no grid of its own.
        let shape = Shape { grid: [1; 3], block: [1; 3] };
        let is_computed = !self.letters.contains('?')
            && memcheck_kernels::launch_registered(machine, &self.name, shape, &self.arguments);
        if is_computed {
            return;
        }
        if self.is_opaque(machine) {
            memcheck_kernels::launch_opaque(machine);
        } else {
            memcheck_kernels::forget_arguments(machine, &self.parameters, &self.arguments);
        }
        machine.count_unsimulated(Unsimulated {
            name: &self.name,
            source: self.source,
            allocations: self.allocations,
            is_of_candle: self.is_of_candle(),
            replaces_candle: !self.is_of_candle() && self.has_name_of_candle(),
        });
    }

    fn is_of_candle(&self) -> bool {
        let package = self.source.rsplit_once(" of ").map_or("", |(_, package)| package);
        let name = package.split(' ').next().unwrap_or_default();
        ["candle-kernels", "candle-flash-attn", "candle-flash-attn-v3"].contains(&name)
    }

    /// True if a launcher of candle has the same name.
    fn has_name_of_candle(&self) -> bool {
        let tables = kernels::EXPORTS.iter().copied().chain([flash::EXPORTS]);
        tables.flatten().any(|symbol| symbol.name == &*self.name)
    }
}

pub(crate) static EXPORTS: &[Symbol] =
    &[Symbol { name: "memcheck_launch", address: memcheck_launch as *const () }];

#[cfg(test)]
mod tests;
