//! The stand-in for nvcc: it compiles no kernel, because the simulated device runs none. It answers
//! the questions of build scripts, and leaves the files that they look for:
//!
//! - PTX without code. It names its source and the package, and has the identity of the source, by
//!   which the simulated device knows the kernels of candle. Of other sources it has the names of
//!   the kernels with C linkage, and the sizes of their parameters.
//! - Objects with a stub for each function of the host that Rust can call. Those of candle's own
//!   sources are empty, because memcheck-sim has their functions.
//!
//! An invocation that it does not know is an error, so that a build which really needs a compiler
//! fails instead of linking nothing. The script `toolkit/nvcc` starts it.

mod calls;
mod expand;
mod functions;
mod invocation;
mod stub;
mod tokens;
mod types;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::cuda_source::{self, Identity};
use memcheck_core::wire::exit;

use crate::invocation::options::environment;
use crate::system::files;
use crate::system::printing::{eprint_line, print_raw};
use expand::{CodeSide, SourceFiles, read};
use invocation::{Invocation, OutputKind, Question, Work};
use tokens::Token;

/// The hidden subcommand that the script `toolkit/nvcc` calls.
pub(crate) const SUBCOMMAND: &str = "stand-in-nvcc";

/// The greatest version that the package's cudarc accepts, as the toolkit's environment states it.
fn cuda_version() -> u32 {
    let stated = environment("CUDARC_CUDA_VERSION").and_then(|version| version.parse().ok());
    stated.unwrap_or(13_000)
}

/// cudarc reads the fourth line, cudaforge the word after "release".
fn version(cuda: u32) -> String {
    let release = format!("{}.{}", cuda / 1000, cuda % 1000 / 10);
    format!(
        "nvcc: NVIDIA (R) Cuda compiler driver\n\
         Copyright (c) none: this is the stand-in of memcheck-sim, it compiles nothing\n\
         Built for the simulated CUDA device\n\
         Cuda compilation tools, release {release}, V{release}.0\n\
         Build memcheck-sim\n"
    )
}

const CAPABILITIES: &str = "75 80 86 87 88 89 90 90a 100 100a 103 110 120 120a 121";

/// Returns the exit code.
pub(crate) fn main(arguments: Vec<OsString>) -> u8 {
    let work = match Invocation::read(arguments) {
        Invocation::Question(question) => {
            print_raw(&answer(question));
            return exit::OK;
        }
        Invocation::Work(work) => work,
    };
    match compile(&work) {
        Ok(()) => exit::OK,
        Err(error) => {
            eprint_line!("nvcc (memcheck-sim): {error}");
            exit::INTERNAL
        }
    }
}

fn answer(question: Question) -> String {
    let list = |start: &str| {
        CAPABILITIES.split(' ').map(|capability| format!("{start}_{capability}\n")).collect()
    };
    match question {
        Question::Version => version(cuda_version()),
        Question::Codes => list("sm"),
        Question::Architectures => list("compute"),
    }
}

fn compile(work: &Work) -> io::Result<()> {
    let needs_output = || io::Error::other("this form of output needs -o");
    match work.output {
        Some(OutputKind::Ptx) => each(work, "ptx", ptx),
        Some(OutputKind::Image) => each(work, "cubin", ptx),
        Some(OutputKind::Object) => each(work, "o", object),
        Some(OutputKind::Library) => library(work, work.named().ok_or_else(needs_output)?),
        Some(OutputKind::Shared) => shared(work, work.named().ok_or_else(needs_output)?),
        Some(OutputKind::DeviceLink) => stub::compile("", work.named().ok_or_else(needs_output)?),
        None => Err(io::Error::other(
            "this stand-in only answers --version and --list-gpu-code, and takes --ptx, --cubin, \
             -c, -dc, --lib, -dlink and -shared",
        )),
    }
}

fn each(
    work: &Work,
    extension: &str,
    write: impl Fn(&Work, &Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let mut sources = work.sources.iter();
    sources.try_for_each(|source| write(work, source, &work.target(source, extension)))
}

/// The file and the package whose build script runs.
fn described(file: &str) -> String {
    match environment("CARGO_PKG_NAME") {
        Some(package) => {
            let version = environment("CARGO_PKG_VERSION").unwrap_or_default();
            format!("{file} of {package} {version}")
        }
        None => file.to_owned(),
    }
}

fn identity(work: &Work, source: &Path) -> io::Result<Identity> {
    Identity::of(source, &work.folders, read)
        .ok_or_else(|| io::Error::other(format!("{} cannot be read", source.display())))
}

/// memcheck-kernels reads the comments. A kernel is not an entry of the PTX, because a module can
/// have others, such as those of templates.
fn ptx(work: &Work, source: &Path, target: &Path) -> io::Result<()> {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "//\n// Generated by the stand-in nvcc of memcheck-sim from {}: no code\n// Source: {}\n",
        described(&name),
        identity(work, source)?
    );
    for (name, parameters) in functions::kernels(&read_tokens(work, source, CodeSide::Device)?) {
        let sizes: Option<Vec<String>> =
            parameters.iter().map(|ty| Some(format!("{}{}", ty.size()?, ty.mark()))).collect();
        if let Some(sizes) = sizes {
            text.push_str(&format!("// Kernel: {name} {}\n", sizes.join(" ")));
        }
    }
    text.push_str("//\n\n.version 9.0\n.target sm_90\n.address_size 64\n");
    files::replace(target, text.as_bytes())
}

/// The tokens of a source after its macros are expanded; none for one that the simulated device
/// knows, or without functions with C linkage.
fn read_tokens(work: &Work, source: &Path, side: CodeSide) -> io::Result<Vec<Token>> {
    if cuda_source::known(identity(work, source)?).is_some() {
        return Ok(Vec::new());
    }
    let sources = SourceFiles::find(source, &work.folders);
    if !sources.mention_c_linkage() {
        return Ok(Vec::new());
    }
    let text = sources.expand(side, cuda_version(), &work.preprocessor);
    let named = |error| io::Error::other(format!("{}: {error}", source.display()));
    text.map(|text| tokens::tokens(&text)).map_err(named)
}

fn object(work: &Work, source: &Path, target: &Path) -> io::Result<()> {
    let launchers = functions::launchers(&read_tokens(work, source, CodeSide::Host)?);
    // A library leaves empty files out.
    if launchers.is_empty() {
        return files::replace(target, b"");
    }
    let folder = environment("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let inside = folder.and_then(|folder| source.strip_prefix(folder).ok());
    let name = inside.unwrap_or(source).to_string_lossy().into_owned();
    stub::compile(&stub::text(&described(&name), &launchers), target)
}

/// The objects that have contents.
fn objects(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.retain(|path| path.metadata().is_ok_and(|file| file.len() > 0));
    paths
}

fn library(work: &Work, target: &Path) -> io::Result<()> {
    match objects(work.sources.clone()) {
        // The text that every static library begins with.
        objects if objects.is_empty() => files::replace(target, b"!<arch>\n"),
        objects => stub::archive(&objects, target),
    }
}

fn shared(work: &Work, target: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut compiled = Vec::new();
    for (number, source) in work.sources.iter().enumerate() {
        let is_source = source.extension().is_some_and(|it| it == "cu");
        match is_source {
            true => {
                let target = folder.path().join(format!("{number}.o"));
                object(work, source, &target)?;
                compiled.push(target);
            }
            false => compiled.push(source.clone()),
        }
    }
    stub::shared(&objects(compiled), target)
}

/// The compiler of the target: the linker that cargo uses, if the target is not this machine.
fn compiler() -> OsString {
    let is_foreign = environment("TARGET") != environment("HOST");
    let linker = std::env::var_os("RUSTC_LINKER").filter(|_| is_foreign);
    linker.unwrap_or_else(|| "cc".into())
}

#[cfg(test)]
mod tests;
