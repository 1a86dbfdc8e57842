//! The run-time compiler, which compiles nothing: its PTX lists the kernels of the source, whose
//! results are unknown.

mod source;

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, PoisonError};

use litemap::LiteMap;

use crate::code::{Answer, Code};
use crate::ffi::{Out, Symbol, Text, exports};
use crate::handle::{Handle, Objects};

/// `NVRTC_ERROR_*`, in the terms of the driver's codes.
mod error {
    use crate::code::Code;

    pub(super) const INVALID_PROGRAM: Code = Code::INVALID_HANDLE;
    pub(super) const NAMES_AFTER_COMPILATION: Code = Code::ILLEGAL_STATE;
    pub(super) const NOT_COMPILED: Code = Code(3);
    pub(super) const INVALID_NAME: Code = Code::NOT_FOUND;
}

/// Converts to `nvrtcResult`.
fn nvrtc(answer: Answer) -> c_int {
    match answer {
        Ok(()) => 0,
        Err(Code::INVALID_VALUE) => 3,
        Err(error::INVALID_PROGRAM) => 4,
        Err(error::NAMES_AFTER_COMPILATION) => 8,
        Err(error::NOT_COMPILED) => 9,
        Err(error::INVALID_NAME) => 10,
        Err(_) => 11,
    }
}

#[derive(Debug, Default)]
struct Program {
    /// The source, followed by the headers that the program passed.
    texts: Vec<String>,
    /// The names under which the source includes the headers.
    includes: Vec<String>,
    /// The expressions, with their lowered names.
    expressions: LiteMap<String, Vec<u8>>,
    /// The compiled program, with its terminating zero.
    ptx: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Programs {
    last: Handle,
    known: Objects<Program>,
}

static PROGRAMS: Mutex<Programs> = Mutex::new(Programs { last: 0, known: Objects::new() });

fn with<T>(program: Handle, work: impl FnOnce(&mut Program) -> Answer<T>) -> Answer<T> {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    work(programs.known.get_mut(&program).ok_or(error::INVALID_PROGRAM)?)
}

/// An array of texts, `const char* const*`.
#[repr(transparent)]
pub(crate) struct Texts(*const *const c_char);

impl Texts {
    fn get(&self, count: c_int) -> Answer<Vec<String>> {
        let count = usize::try_from(count).map_err(|_| Code::INVALID_VALUE)?;
        if count > 0 && self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let text = |index| {
            // SAFETY: the C caller promises an array of `count` zero-terminated texts.
            unsafe { CStr::from_ptr(*self.0.add(index)) }.to_string_lossy().into_owned()
        };
        Ok((0..count).map(text).collect())
    }
}

exports! { nvrtc;
    fn nvrtcVersion(major: Out<c_int>, minor: Out<c_int>) {
        major.put(crate::driver::VERSION / 1000)?;
        minor.put(0)
    }

    fn nvrtcCreateProgram(
        program: Out<Handle>,
        source: Text,
        _name: *const c_char,
        count: c_int,
        headers: Texts,
        includes: Texts,
    ) {
        let mut texts = vec![source.get()?];
        texts.extend(headers.get(count)?);
        let includes = includes.get(count)?;
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        programs.last += 1;
        let handle = programs.last;
        programs.known.insert(handle, Program { texts, includes, ..Program::default() });
        program.put(handle)
    }

    fn nvrtcDestroyProgram(program: Out<Handle>) {
        let pointer = program.number() as *const Handle;
        if pointer.is_null() {
            return Err(error::INVALID_PROGRAM);
        }
        // SAFETY: the pointer is not null, so it is readable by the promise of the C caller.
        let handle = unsafe { *pointer };
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        programs.known.remove(&handle).ok_or(error::INVALID_PROGRAM)?;
        program.put(0)
    }

    fn nvrtcAddNameExpression(program: Handle, expression: Text) {
        let expression = expression.get()?;
        with(program, |program| {
            if program.ptx.is_some() {
                return Err(error::NAMES_AFTER_COMPILATION);
            }
            let lowered = source::lowered(&expression, program.expressions.len());
            program.expressions.insert(expression, terminated(lowered));
            Ok(())
        })
    }

    fn nvrtcCompileProgram(program: Handle, _count: c_int, _options: *const *const c_char) {
        with(program, |program| {
            program.ptx = Some(terminated(source::ptx(&program.texts, &program.includes)));
            Ok(())
        })
    }

    fn nvrtcGetLoweredName(program: Handle, expression: Text, name: Out<*const c_char>) {
        let expression = expression.get()?;
        name.put(with(program, |program| {
            if program.ptx.is_none() {
                return Err(error::NOT_COMPILED);
            }
            // The text lives as long as the program.
            let lowered = program.expressions.get(&expression).ok_or(error::INVALID_NAME)?;
            Ok(lowered.as_ptr().cast())
        })?)
    }

    fn nvrtcGetPTXSize(program: Handle, size: Out<usize>) {
        size.put(with(program, |program| program.code().map(<[u8]>::len))?)
    }

    fn nvrtcGetPTX(program: Handle, text: Out<c_char>) {
        with(program, |program| {
            let code = program.code()?;
            text.put_text(&String::from_utf8_lossy(&code[..code.len() - 1]), code.len())
        })
    }

    fn nvrtcGetProgramLogSize(program: Handle, size: Out<usize>) {
        with(program, |_| Ok(()))?;
        size.put(1)
    }

    fn nvrtcGetProgramLog(program: Handle, text: Out<c_char>) {
        with(program, |_| Ok(()))?;
        text.put(0)
    }
}

impl Program {
    fn code(&self) -> Answer<&[u8]> {
        self.ptx.as_deref().ok_or(error::INVALID_PROGRAM)
    }
}

fn terminated(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.push(0);
    bytes
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvrtcGetErrorString(result: c_int) -> *const c_char {
    match result {
        0 => c"NVRTC_SUCCESS",
        3 => c"NVRTC_ERROR_INVALID_INPUT",
        4 => c"NVRTC_ERROR_INVALID_PROGRAM",
        8 => c"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 => c"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 => c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        _ => c"NVRTC_ERROR_INTERNAL_ERROR: memcheck-sim does not support this call",
    }
    .as_ptr()
}

/// The function that does not return a result code.
pub(crate) static OTHERS: &[Symbol] =
    &[Symbol { name: "nvrtcGetErrorString", address: nvrtcGetErrorString as *const () }];
