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

/// The names, long and short and without hyphens, of the options that take a value, which can be the
/// next word: those of the documentation of CUDA 13.2, and `-Xcudafe` and `-Xfatbin`, which it leaves
/// out. `-o`, `-odir` and the options for the preprocessor have rules of their own.
const WITH_VALUE: &str = "
    arbin arch archive-options archiver-binary ccbin code compiler-bindir compiler-options
    compress-mode cudadevrt cudafe-options cudart ddp default-stream dependency-drive-prefix
    dependency-output dependency-target-name device-entity-has-hidden-visibility
    device-stack-protector diag-error diag-suppress diag-warn dopt dp drive-prefix e entries
    fatbin-options fdevice-sanitize fdevice-time-trace fmad frandom-seed
    ftemplate-backtrace-limit ftemplate-depth ftz gencode generate-code gpu-architecture
    gpu-code hls host-linker-script idp input-drive-prefix jtd jump-table-density keep-dir L l
    ldir libdevice-directory library library-path linker-options m machine maxrregcount MF MT
    nvlink-options O Ofast-compile Ofc opt-info optf optimization-info optimize options-file
    prec-div prec-sqrt ptxas-options qpp-config rdc relocatable-device-code run-args
    split-compile split-compile-extended static-global-template-stub std t target-dir
    target-directory threads time Werror x Xarchive Xcompiler Xcudafe Xfatbin Xlinker Xnvlink
    Xptxas
";
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

/// True if the next word is the value of this option.
fn takes_value(option: &str) -> bool {
    let name = option.strip_prefix("--").or_else(|| option.strip_prefix('-'));
    name.is_some_and(|name| WITH_VALUE.split_whitespace().any(|known| known == name))
}

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
                option if takes_value(option) => drop(next()),
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
        // CMake, and PyTorch's extensions.
        let cmake = work(
            "--generate-dependencies-with-compile -forward-unknown-to-host-compiler -ccbin g++ \
             -isystem /cuda/include -O 3 --std c++17 -rdc true -x cu -MD -MT a.o -MF a.o.d \
             -c a.cu -o a.o",
        );
        assert_eq!(
            (cmake.output, cmake.named()),
            (Some(OutputKind::Object), Some(Path::new("a.o")))
        );
        assert_eq!(cmake.sources, [Path::new("a.cu")]);
        let torch = work(
            "--generate-dependencies-with-compile --dependency-output a.o.d -I/torch -c a.cu -o a.o \
             -D__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr --compiler-options -fPIC \
             -std c++17",
        );
        assert_eq!(torch.sources, [Path::new("a.cu")]);
        let question = Invocation::read(vec!["--version".into()]);
        assert_eq!(question, Invocation::Question(Question::Version));
    }

    /// The synopses of nvcc's documentation, without the options that have rules of their own.
    const SYNOPSES: &str = "
        --library library,... (-l)
        --library-path path,... (-L)
        --dependency-output file (-MF)
        --compiler-bindir directory (-ccbin)
        --archiver-binary executable (-arbin)
        --cudart {none|shared|static} (-cudart)
        --cudadevrt {none|static} (-cudadevrt)
        --libdevice-directory directory (-ldir)
        --target-directory string (-target-dir)
        --compress-mode {default|size|speed|balance|none} (-compress-mode)
        --optimization-info kind,... (-opt-info)
        --optimize level (-O)
        --Ofast-compile level (-Ofc)
        --dopt kind (-dopt)
        --split-compile number (-split-compile)
        --split-compile-extended number (-split-compile-extended)
        --ftemplate-backtrace-limit limit (-ftemplate-backtrace-limit)
        --ftemplate-depth limit (-ftemplate-depth)
        --x {c|c++|cu} (-x)
        --std {c++03|c++11|c++14|c++17|c++20} (-std)
        --machine {64} (-m)
        --host-linker-script {use-lcs|gen-lcs} (-hls)
        --frandom-seed seed (-frandom-seed)
        --compiler-options options,... (-Xcompiler)
        --linker-options options,... (-Xlinker)
        --archive-options options,... (-Xarchive)
        --ptxas-options options,... (-Xptxas)
        --nvlink-options options,... (-Xnvlink)
        --static-global-template-stub {true|false} (-static-global-template-stub)
        --device-entity-has-hidden-visibility {true|false} (-device-entity-has-hidden-visibility)
        --threads number (-t)
        --keep-dir directory (-keep-dir)
        --run-args arguments,... (-run-args)
        --input-drive-prefix prefix (-idp)
        --dependency-drive-prefix prefix (-ddp)
        --drive-prefix prefix (-dp)
        --dependency-target-name target (-MT)
        --default-stream {legacy|null|per-thread} (-default-stream)
        --gpu-architecture arch (-arch)
        --gpu-code code,... (-code)
        --generate-code specification (-gencode)
        --relocatable-device-code {true|false} (-rdc)
        --entries entry,... (-e)
        --maxrregcount amount (-maxrregcount)
        --ftz {true|false} (-ftz)
        --prec-div {true|false} (-prec-div)
        --prec-sqrt {true|false} (-prec-sqrt)
        --fmad {true|false} (-fmad)
        --jump-table-density percentage (-jtd)
        --Werror kind,... (-Werror)
        --diag-error errNum,... (-diag-error)
        --diag-suppress errNum,... (-diag-suppress)
        --diag-warn errNum,... (-diag-warn)
        --device-stack-protector {true|false} (-device-stack-protector)
        --options-file file,... (-optf)
        --time filename (-time)
        --qpp-config config (-qpp-config)
        --fdevice-time-trace file (-fdevice-time-trace)
        --fdevice-sanitize tool (-fdevice-sanitize)
    ";

    #[test]
    fn the_value_of_an_option_is_not_a_source() {
        for synopsis in SYNOPSES.lines().filter(|line| !line.trim().is_empty()) {
            let [long, _, short] = synopsis.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{synopsis}")
            };
            for name in [long, short.trim_matches(['(', ')'])] {
                for line in [format!("{name} value -c a.cu"), format!("{name}=value -c a.cu")] {
                    assert_eq!(work(&line).sources, [Path::new("a.cu")], "{line}");
                }
            }
        }
        for flag in ["-G", "-lineinfo", "--use_fast_math", "-MD", "-MP", "-O3", "-lcuda", "-t4"] {
            assert_eq!(work(&format!("{flag} a.cu")).sources, [Path::new("a.cu")], "{flag}");
        }
    }
}
