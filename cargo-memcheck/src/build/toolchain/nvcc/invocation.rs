//! The command line of nvcc, as far as build scripts use it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputKind {
    Ptx,
    /// Code for a device, without the host's.
    Image,
    Object,
    Library,
    Shared,
    /// The object that joins the device code of others.
    DeviceLink,
}

/// A question about the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Version,
    Codes,
    Architectures,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Question(Question),
    Work(Work),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) output: Option<OutputKind>,
    file: Option<PathBuf>,
    directory: Option<PathBuf>,
    pub(super) sources: Vec<PathBuf>,
    /// The folders that are searched for headers.
    pub(super) folders: Vec<PathBuf>,
    /// The options that define macros or name folders, for the preprocessor.
    pub(super) preprocessor: Vec<OsString>,
}

/// Options that take their value as the next word, which can look like another option or like an
/// input. The values of other options, such as numbers, are recognized by [`is_input`].
const WITH_VALUE: [&str; 37] = [
    "--default-stream",
    "-default-stream",
    "-Xcompiler",
    "--compiler-options",
    "-Xptxas",
    "--ptxas-options",
    "-Xlinker",
    "--linker-options",
    "-Xnvlink",
    "--nvlink-options",
    "-Xcudafe",
    "-Xfatbin",
    "-Xarchive",
    "--archive-options",
    "-ccbin",
    "--compiler-bindir",
    "-gencode",
    "--generate-code",
    "-arch",
    "--gpu-architecture",
    "-code",
    "--gpu-code",
    "-L",
    "--library-path",
    "-l",
    "--library",
    "-MF",
    "--dependency-output",
    "-MT",
    "--dependency-target-name",
    "-std",
    "-O",
    "-t",
    "--threads",
    "-m",
    "-x",
    "-maxrregcount",
];
/// The suffixes by which nvcc recognizes its inputs.
const INPUTS: [&str; 14] =
    ["cu", "c", "cc", "cxx", "cpp", "ptx", "cubin", "fatbin", "o", "obj", "a", "lib", "res", "so"];
/// Options with a value that the preprocessor needs, and their names there.
const PREPROCESSOR: [(&str, &str); 10] = [
    ("--include-path", "-I"),
    ("--system-include", "-isystem"),
    ("--pre-include", "-include"),
    ("--define-macro", "-D"),
    ("--undefine-macro", "-U"),
    ("-isystem", "-isystem"),
    ("-include", "-include"),
    ("-I", "-I"),
    ("-D", "-D"),
    ("-U", "-U"),
];

impl Invocation {
    pub(super) fn read(words: Vec<OsString>) -> Self {
        let mut work = Work::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().unwrap_or_default();
            match word.to_str().unwrap_or_default() {
                "--version" | "-V" => return Self::Question(Question::Version),
                "--list-gpu-code" | "-code-ls" => return Self::Question(Question::Codes),
                "--list-gpu-arch" | "-arch-ls" => return Self::Question(Question::Architectures),
                "--ptx" | "-ptx" => work.output = Some(OutputKind::Ptx),
                "--cubin" | "-cubin" | "--fatbin" | "-fatbin" => {
                    work.output = Some(OutputKind::Image)
                }
                "-c" | "--compile" | "-dc" | "--device-c" | "-dw" | "--device-w" => {
                    work.output = Some(OutputKind::Object);
                }
                "--lib" | "-lib" => work.output = Some(OutputKind::Library),
                "--shared" | "-shared" => work.output = Some(OutputKind::Shared),
                "--device-link" | "-dlink" => work.output = Some(OutputKind::DeviceLink),
                "-o" | "--output-file" => work.file = Some(next().into()),
                "-odir" | "--output-directory" => work.directory = Some(next().into()),
                option if WITH_VALUE.contains(&option) => drop(next()),
                option => match work.preprocessor(option, next) {
                    true => {}
                    false => work.other(&word),
                },
            }
        }
        Self::Work(work)
    }
}

impl Work {
    /// Takes an option for the preprocessor, whose value is a part of the word or the next one.
    fn preprocessor(&mut self, word: &str, next: impl FnOnce() -> OsString) -> bool {
        let found = PREPROCESSOR.iter().find(|(name, _)| word.starts_with(name));
        let Some(&(name, flag)) = found else { return false };
        let value = match &word[name.len()..] {
            "" => next(),
            value => value.strip_prefix('=').unwrap_or(value).into(),
        };
        if matches!(flag, "-I" | "-isystem") {
            self.folders.push(value.clone().into());
        }
        self.preprocessor.extend([flag.into(), value]);
        true
    }

    fn other(&mut self, word: &OsStr) {
        let joined = |name: &str| {
            let value = word.as_bytes().strip_prefix(name.as_bytes())?;
            Some(PathBuf::from(OsStr::from_bytes(value)))
        };
        if let Some(file) = joined("--output-file=").or_else(|| joined("-o=")) {
            self.file = Some(file);
        } else if let Some(directory) = joined("--output-directory=").or_else(|| joined("-odir=")) {
            self.directory = Some(directory);
        } else if is_input(word) {
            self.sources.push(word.into());
        }
    }

    /// The file that `-o` names.
    pub(super) fn named(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file for a source: the named one, or one with the name of the source.
    pub(super) fn target(&self, source: &Path, extension: &str) -> PathBuf {
        self.file.clone().unwrap_or_else(|| {
            let mut name = source.file_stem().unwrap_or_default().to_owned();
            name.push(".");
            name.push(extension);
            self.directory.as_deref().unwrap_or(Path::new("")).join(name)
        })
    }
}

/// True if a word names an input. Another one is the value of the option before it.
fn is_input(word: &OsStr) -> bool {
    let path = Path::new(word);
    let has_suffix = || {
        let suffix = path.extension().and_then(OsStr::to_str);
        suffix.is_some_and(|suffix| INPUTS.contains(&suffix))
    };
    // With `-x` a source can have any name.
    !word.as_bytes().starts_with(b"-") && (has_suffix() || path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(line: &str) -> Work {
        match Invocation::read(line.split_whitespace().map(OsString::from).collect()) {
            Invocation::Work(work) => work,
            question => panic!("{question:?}"),
        }
    }

    #[test]
    fn the_command_lines_of_build_scripts_are_understood() {
        // cudaforge, bindgen_cuda, cc and a script by hand.
        let object = work(
            "-gencode=arch=compute_90,code=sm_90 -c -o /out/a.o --default-stream per-thread \
             -std=c++17 -O3 -U__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr -Xcompiler -fPIC \
             -I/cutlass/include -I own -DUSE_CUTLASS --threads=2 kernels/a.cu",
        );
        assert_eq!(object.output, Some(OutputKind::Object));
        assert_eq!(object.target(&object.sources[0], "o"), Path::new("/out/a.o"));
        assert_eq!(object.sources, [Path::new("kernels/a.cu")]);
        assert_eq!(object.folders, ["/cutlass/include", "own"].map(PathBuf::from));
        let expected = "-U __CUDA_NO_HALF_OPERATORS__ -I /cutlass/include -I own -D USE_CUTLASS";
        assert_eq!(object.preprocessor, Vec::from_iter(expected.split(' ').map(OsString::from)));
        let values = work(
            "-diag-suppress 20013 --optimize 3 -rdc true --Ofast-compile max -split-compile 4 -c \
             -MF a.o -Xnvlink -shared --linker-options -o -o a.o a.cu",
        );
        assert_eq!(
            (values.output, values.named()),
            (Some(OutputKind::Object), Some(Path::new("a.o")))
        );
        assert_eq!(values.sources, [Path::new("a.cu")]);
        let ptx =
            work("--gpu-architecture=sm_90 --ptx --output-directory /out src/a.b.cu src/c.cu");
        assert_eq!(ptx.output, Some(OutputKind::Ptx));
        assert_eq!(ptx.target(&ptx.sources[0], "ptx"), Path::new("/out/a.b.ptx"));
        let cc = work("-ccbin=c++ -Xcompiler -O2 -Xcompiler -fPIC -o a.o -c a.cu");
        assert_eq!((cc.output, cc.named()), (Some(OutputKind::Object), Some(Path::new("a.o"))));
        let library = work("--lib -o libk.a a.o b.o");
        assert_eq!((library.output, library.sources.len()), (Some(OutputKind::Library), 2));
        assert_eq!(work("--device-link -o d.o libk.a").output, Some(OutputKind::DeviceLink));
        assert_eq!(work("-shared -o libk.so k.cu").output, Some(OutputKind::Shared));
        assert_eq!(work("k.cu -o k").output, None);
        let question = Invocation::read(vec!["--version".into()]);
        assert_eq!(question, Invocation::Question(Question::Version));
    }
}
