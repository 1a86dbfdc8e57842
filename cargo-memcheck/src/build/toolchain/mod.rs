//! The simulated CUDA toolkit below the target directory, for candle's build scripts and the
//! linker. Its libraries are empty, because `memcheck-sim` defines the functions inside the test
//! binary, and its compiler is this command (`nvcc`). Only files that differ are written, so that build scripts that watch
//! them do not run again.

pub(crate) mod gpu;
pub(crate) mod nvcc;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use memcheck_core::request::variables;

use crate::invocation::options::environment;
use crate::system::files::{self, Replacement};
use crate::system::process::{self, ShortRun};

const NVCC: &str = include_str!("../../../toolkit/nvcc");
const GIT: &str = include_str!("../../../toolkit/git");
const LIBRARY: &str = include_str!("../../../toolkit/library.ld");
/// Defines every name of the CUDA libraries that no other object defines.
const LIBCUDA: &str = include_str!("../../../toolkit/libcuda.ld");
/// bindgen_cuda takes a folder for a toolkit only if it has this file.
const HEADER: &str = "// The simulated CUDA toolkit of memcheck has no headers.\n";
const NVML: &str = include_str!("../../../toolkit/nvml.c");

const LIBRARIES: [&str; 8] =
    ["cuda", "cublas", "cublasLt", "curand", "nvrtc", "cudart", "cudnn", "nccl"];

/// The default. The user's setting is kept, so that a build for a real GPU has the same inputs.
const COMPUTE_CAPABILITY: &str = "90";
const COMPUTE_CAPABILITY_VARIABLE: &str = "CUDA_COMPUTE_CAP";

#[derive(Debug, Clone)]
pub(crate) struct Toolkit {
    root: PathBuf,
    /// In cudarc's format.
    cuda_version: u32,
    pub(crate) nvml: Result<PathBuf, String>,
}

impl Toolkit {
    /// `cuda_version` is the version that the compiler reports.
    pub(crate) fn prepare(root: PathBuf, cuda_version: u32) -> anyhow::Result<Self> {
        let written = || -> io::Result<()> {
            // Some programs look into lib and others into lib64.
            for folder in ["bin", "include", "lib", "lib64"] {
                fs::create_dir_all(root.join(folder))?;
            }
            files::replace_if_different(&root.join("include/cuda.h"), HEADER.as_bytes())?;
            for (name, text) in [("nvcc", NVCC), ("git", GIT)] {
                let script = root.join("bin").join(name);
                files::replace_if_different(&script, text.as_bytes())?;
                fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
            }
            for library in LIBRARIES {
                for folder in ["lib", "lib64"] {
                    let path = root.join(folder).join(format!("lib{library}.so"));
                    let text = if library == "cuda" { LIBCUDA } else { LIBRARY };
                    files::replace_if_different(&path, text.as_bytes())?;
                }
            }
            Ok(())
        };
        written().with_context(|| format!("the simulated toolkit in {}", root.display()))?;
        let nvml = compile_nvml(&root);
        Ok(Self { root, cuda_version, nvml })
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        for (name, value) in self.environment() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }

    /// A variable without a value must be removed.
    pub(crate) fn environment(&self) -> Vec<(&'static str, Option<OsString>)> {
        let bin = self.root.join("bin");
        let capability = environment(COMPUTE_CAPABILITY_VARIABLE)
            .unwrap_or_else(|| COMPUTE_CAPABILITY.to_owned());
        let library_path = prepended(&self.root.join("lib"), "LIBRARY_PATH");
        let mut set = vec![
            ("NVCC", bin.join("nvcc").into_os_string()),
            ("CUDARC_CUDA_VERSION", self.cuda_version.to_string().into()),
            (COMPUTE_CAPABILITY_VARIABLE, capability.into()),
            // cudaforge keeps checkouts there, and those of the stand-in for git are empty.
            ("CUDAFORGE_HOME", self.root.join("cudaforge").into_os_string()),
            ("PATH", prepended(&bin, "PATH")),
            (variables::COMMAND, own_path()),
            ("LIBRARY_PATH", library_path),
        ];
        // cudarc searches the folders of all these variables. A real toolkit in one of them must
        // not take precedence.
        for name in ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"] {
            set.push((name, self.root.clone().into_os_string()));
        }
        let set = set.into_iter().map(|(name, value)| (name, Some(value)));
        // A real cuDNN must not be linked, and the stand-in needs no compiler of the user's
        // choice.
        set.chain(["CUDNN_LIB", "NVCC_CCBIN"].map(|name| (name, None))).collect()
    }
}

/// The stand-in nvcc starts this program.
fn own_path() -> OsString {
    std::env::current_exe().map(PathBuf::into_os_string).unwrap_or_default()
}

fn prepended(first: &Path, name: &str) -> OsString {
    let rest = std::env::var_os(name).unwrap_or_default();
    let paths = std::iter::once(first.to_owned())
        .chain(std::env::split_paths(&rest).filter(|path| !path.as_os_str().is_empty()));
    std::env::join_paths(paths).unwrap_or_else(|_| first.into())
}

/// Passes every call to the simulator in the executable. Without a C compiler there are no NVML
/// figures.
fn compile_nvml(root: &Path) -> Result<PathBuf, String> {
    let library = root.join("lib/libnvidia-ml.so.1");
    let source = root.join("nvml.c");
    let changed = files::replace_if_different(&source, NVML.as_bytes());
    let changed = changed.map_err(|error| error.to_string())?;
    if library.exists() && !changed {
        return Ok(library);
    }
    // The compiler writes to another name first, because a test that starts at the same time must
    // not open an incomplete library.
    let unfinished = Replacement::new(&library).map_err(|error| error.to_string())?;
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).args([unfinished.path(), &source]);
    let output =
        process::short(&command, ShortRun::TRUSTED).map_err(|error| format!("cc: {error}"));
    let result = output.and_then(|output| {
        if output.status.success() {
            unfinished.commit().map(drop).map_err(|error| error.to_string())
        } else {
            Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
    });
    match result {
        Ok(()) => Ok(library),
        Err(why) => {
            // The source must be removed so that the next run compiles it again.
            let _ = fs::remove_file(&source);
            Err(why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_preparation_writes_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let toolkit = Toolkit::prepare(folder.path().to_owned(), 13_000).unwrap();
        let nvcc = toolkit.root.join("bin/nvcc");
        let before = fs::metadata(&nvcc).unwrap().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        Toolkit::prepare(folder.path().to_owned(), 13_000).unwrap();
        assert_eq!(fs::metadata(&nvcc).unwrap().modified().unwrap(), before);
    }

    /// Links C code with the toolkit, and returns what the program prints.
    fn linked(
        toolkit: &Toolkit,
        linker: &[String],
        sources: &[(&str, &str)],
        libraries: &[&str],
    ) -> String {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let mut command = Command::new("cc");
        command.args(linker).args(["-w", "-fno-builtin", "-o"]).arg(&program);
        for (name, text) in sources {
            let source = folder.path().join(name);
            fs::write(&source, text).unwrap();
            command.arg(source);
        }
        command.arg("-L").arg(toolkit.root.join("lib")).args(libraries);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success(), "{linker:?} {libraries:?}: {}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The arguments of `cc` for the linkers that Rust uses: the system's, and lld of rustc.
    fn linkers() -> Vec<Vec<String>> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc).args(["--print", "target-libdir"]).output().unwrap();
        let libraries = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let folder = libraries.with_file_name("bin").join("gcc-ld");
        let lld = vec![format!("-B{}", folder.display()), "-fuse-ld=lld".to_owned()];
        let all = [Some(Vec::new()), folder.join("ld.lld").exists().then_some(lld)];
        all.into_iter().flatten().collect()
    }

    /// As a build for the CPU whose dependencies switch candle's `cuda` on.
    #[test]
    fn without_the_simulated_device_the_functions_are_those_of_a_machine_without_a_gpu() {
        let folder = tempfile::tempdir().unwrap();
        let toolkit = Toolkit::prepare(folder.path().to_owned(), 13_000).unwrap();
        let main = "int cuInit(unsigned), cublasCreate_v2(void **), cuDeviceGet(int *, int);
            int memcheck_launch(void *, void *), launch_mmq_gguf_q4_0(void), printf(const char *, ...);
            int main(void) { printf(\"%d %d %d %d %d\", cuInit(0), cublasCreate_v2(0),
                memcheck_launch(0, 0), launch_mmq_gguf_q4_0(), cuDeviceGet(0, 0)); return 0; }";
        let runtime = "int memcheck_no_device_driver(void) { return 100; }
            int memcheck_no_device_cublas(void) { return 1; }
            int memcheck_no_device_launcher(void) { return 5; }";
        let own = "int cuDeviceGet(int *device, int ordinal) { return 7; }";
        let sources = [("main.c", main), ("runtime.c", runtime), ("own.c", own)];
        for linker in linkers() {
            for libraries in [["-lcuda", "-lcublas", "-lcuda"], ["-lcublas", "-lcudart", "-lcuda"]]
            {
                let printed = linked(&toolkit, &linker, &sources, &libraries);
                assert_eq!(printed, "100 1 5 5 7", "{linker:?} {libraries:?}");
            }
            // An executable that does not contain memcheck-runtime is linked.
            let unused = "int main(int count, char **all) { return count > 1 ? cuInit(0) : 0; }";
            assert_eq!(linked(&toolkit, &linker, &[("main.c", unused)], &["-lcuda"]), "");
        }
    }

    #[test]
    fn the_compiler_of_the_toolkit_starts_this_command() {
        let folder = tempfile::tempdir().unwrap();
        let toolkit = Toolkit::prepare(folder.path().join("a toolkit"), 13_000).unwrap();
        let command = folder.path().join("cargo-memcheck");
        fs::write(&command, "#!/bin/sh\nprintf '<%s>' \"$@\"\n").unwrap();
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
        let asked = |variables: &[(&str, &Path)]| {
            let mut nvcc = Command::new(toolkit.root.join("bin/nvcc"));
            nvcc.args(["--ptx", "a b.cu"]).env_clear().env("PATH", "/usr/bin:/bin");
            nvcc.envs(variables.iter().copied()).output().unwrap()
        };
        for found in [("MEMCHECK_COMMAND", &*command), ("PATH", folder.path())] {
            let output = asked(&[found]);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "<stand-in-nvcc><--ptx><a b.cu>");
        }
        let output = asked(&[("MEMCHECK_COMMAND", Path::new("/no/such/program"))]);
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("build with `cargo memcheck`"), "{error}");
    }

    #[test]
    fn the_stand_in_git_answers_only_in_the_checkouts_of_the_toolkit() {
        let folder = tempfile::tempdir().unwrap();
        let toolkit = Toolkit::prepare(folder.path().join("a toolkit"), 13_000).unwrap();
        let checkouts = toolkit.root.join("cudaforge/git/checkouts");
        let checkout = checkouts.join("cutlass-0123456789abcdef");
        fs::create_dir_all(&checkouts).unwrap();
        let git = |arguments: &[&str], folder: &Path| {
            let mut command = Command::new(toolkit.root.join("bin/git"));
            command.args(arguments).current_dir(folder).output().unwrap()
        };
        // The commands of cudaforge, in their order.
        let url = "https://example.invalid/cutlass.git";
        let clone = ["clone", "--depth", "1", "--sparse", url, checkout.to_str().unwrap()];
        assert!(git(&clone, folder.path()).status.success());
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for arguments in [
            &["sparse-checkout", "set", "include", "tools/util/include"][..],
            &["fetch", "origin", commit],
            &["checkout", commit],
        ] {
            assert!(git(arguments, &checkout).status.success(), "{arguments:?}");
        }
        assert!(checkout.join("tools/util/include").is_dir());
        assert_eq!(
            git(&["rev-parse", "HEAD"], &checkout).stdout,
            format!("{commit}\n").into_bytes()
        );
        // A real git answers elsewhere, if there is one.
        assert!(!git(&["rev-parse", "HEAD"], folder.path()).status.success());
        let elsewhere = folder.path().join("elsewhere");
        let clone = ["clone", folder.path().to_str().unwrap(), elsewhere.to_str().unwrap()];
        assert!(!git(&clone, folder.path()).status.success());
        assert!(!elsewhere.join(".git").exists());
    }
}
