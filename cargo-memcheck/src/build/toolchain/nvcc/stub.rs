//! The object of a CUDA source: a function for each launcher, which hands its arguments over to the
//! simulated device (`memcheck_launch` of memcheck-sim) and returns 0.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::Command;

use super::compiler;
use super::functions::HostFunction;
use super::types::ParameterType;
use crate::system::process::{self, ShortRun};

const HEAD: &str = "\
typedef struct { const char *name, *source, *arguments, *allocations; } memcheck_launcher;
void memcheck_launch(const memcheck_launcher *, void **);
";

/// The stubs in C. `source` names the file and its package.
pub(super) fn text(source: &str, launchers: &[HostFunction]) -> String {
    let mut text = HEAD.to_owned();
    for launcher in launchers {
        let HostFunction { name, returns, parameters, is_inline, allocations } = launcher;
        let known: Vec<ParameterType> =
            parameters.iter().copied().take_while(|it| *it != ParameterType::Unknown).collect();
        // How an argument of an unknown type is passed decides where the next ones are.
        let rest = if known.len() < parameters.len() { "?" } else { "" };
        let list: Vec<String> =
            known.iter().enumerate().map(|(at, ty)| format!("{} a{at}", c_type(*ty))).collect();
        let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
        let letters: String = known.iter().map(|ty| letter(*ty)).collect();
        let allocations: Vec<&str> = allocations.iter().map(String::as_str).collect();
        let addresses: String = (0..known.len()).map(|at| format!("&a{at}, ")).collect();
        let weak = if *is_inline { "__attribute__((weak)) " } else { "" };
        let result = match returns {
            ParameterType::Void => "",
            ParameterType::Text => " return \"not simulated\";",
            _ => " return 0;",
        };
        let _ = writeln!(
            text,
            "{weak}{} {name}({list}) {{ static const memcheck_launcher it = {{\"{name}\", {source:?}, \
             \"{letters}{rest}\", \"{}\"}}; void *arguments[] = {{{addresses}0}}; \
             memcheck_launch(&it, arguments);{result} }}",
            c_type(*returns),
            allocations.join(", "),
        );
    }
    text
}

fn c_type(ty: ParameterType) -> &'static str {
    match ty {
        ParameterType::Pointer
        | ParameterType::PointerToConst
        | ParameterType::Pointers
        | ParameterType::Stream => "void *",
        ParameterType::Text => "const char *",
        ParameterType::Integer(1) => "unsigned char",
        ParameterType::Integer(2) => "unsigned short",
        ParameterType::Integer(4) => "int",
        ParameterType::Float => "float",
        ParameterType::Double => "double",
        ParameterType::Void => "void",
        ParameterType::Integer(_) | ParameterType::Unknown => "long long",
    }
}

/// The letter by which memcheck-sim knows the width of an argument, and whether it is a pointer.
fn letter(ty: ParameterType) -> char {
    match ty {
        ParameterType::PointerToConst => 'c',
        ParameterType::Pointers => 'q',
        ParameterType::Stream => 's',
        ParameterType::Integer(1) => 'b',
        ParameterType::Integer(2) => 'h',
        ParameterType::Integer(4) | ParameterType::Float => 'i',
        ParameterType::Integer(_) | ParameterType::Double => 'l',
        ParameterType::Pointer | ParameterType::Text | ParameterType::Void => 'p',
        ParameterType::Unknown => '?',
    }
}

/// Compiles C code to an object.
pub(super) fn compile(text: &str, object: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("stubs.c");
    crate::system::files::replace(&source, text.as_bytes())?;
    let mut command = Command::new(compiler());
    // A launcher can have the name of a function that the compiler knows.
    command.args(["-c", "-O1", "-g0", "-w", "-fPIC", "-fno-builtin", "-x", "c", "-o"]);
    command.arg(object).arg(&source);
    wait(&command)
}

/// Joins objects into a static library.
pub(super) fn archive(objects: &[std::path::PathBuf], library: &Path) -> io::Result<()> {
    // `ar q` adds to a library that exists.
    crate::system::files::remove(library)?;
    let mut command = Command::new("ar");
    // Not `r`, which keeps one of two objects with the same name.
    command.arg("qcs").arg(library).args(objects);
    wait(&command)
}

/// Links objects to a shared library, whose stubs call the executable.
pub(super) fn shared(objects: &[std::path::PathBuf], library: &Path) -> io::Result<()> {
    let mut command = Command::new(compiler());
    command.args(["-shared", "-o"]).arg(library).args(objects);
    wait(&command)
}

/// Waits for a program; its messages are the error if it fails.
pub(super) fn wait(command: &Command) -> io::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = process::short(command, ShortRun::TRUSTED)
        .map_err(|error| io::Error::other(format!("{program}: {error}")))?;
    let text = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{program}: {}", text.trim()))),
    }
}
