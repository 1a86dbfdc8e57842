//! Expands the macros of a CUDA source with the preprocessor of the C compiler, as nvcc does, once
//! for the host and once for a device.
//!
//! The headers of CUDA and C++ are empty files here. They define none of the macros that a launcher
//! is written by, except for the versions of the compiler.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use memcheck_core::input;

use super::compiler;
use crate::system::files;
use crate::system::process::{self, ShortRun};

/// What nvcc and `cuda.h` of this version define.
fn definitions(cuda: u32) -> [String; 8] {
    [
        "-D__CUDACC__".to_owned(),
        "-D__NVCC__".to_owned(),
        format!("-D__CUDACC_VER_MAJOR__={}", cuda / 1000),
        format!("-D__CUDACC_VER_MINOR__={}", cuda % 1000 / 10),
        format!("-DCUDA_VERSION={cuda}"),
        format!("-DCUDART_VERSION={cuda}"),
        "-D__cplusplus=201703L".to_owned(),
        // A condition on a feature of the host's compiler is true for a recent one.
        "-D__STDC_HOSTED__=1".to_owned(),
    ]
}

/// The side whose code is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeSide {
    Host,
    Device,
}

/// A source with its headers.
pub(super) struct SourceFiles {
    path: PathBuf,
    /// The texts of the source and of the headers that were found.
    texts: Vec<String>,
    /// The names of the headers that were not found.
    absent: BTreeSet<String>,
}

pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    input::read(path, input::SOURCE).ok()
}

impl SourceFiles {
    /// `folders` are searched for headers.
    pub(super) fn find(path: &Path, folders: &[PathBuf]) -> Self {
        let (mut texts, mut absent) = (Vec::new(), BTreeSet::new());
        let (mut next, mut seen) = (vec![path.to_owned()], BTreeSet::from([path.to_owned()]));
        while let Some(file) = next.pop() {
            let Some(bytes) = read(&file) else { continue };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            for (name, is_quoted) in includes(&text) {
                let own = is_quoted.then(|| file.parent().unwrap_or(Path::new("")));
                let folders = own.into_iter().chain(folders.iter().map(PathBuf::as_path));
                match folders.map(|folder| folder.join(&name)).find(|path| path.is_file()) {
                    Some(found) => next.extend(seen.insert(found.clone()).then_some(found)),
                    None => drop(absent.insert(name)),
                }
            }
            texts.push(text);
        }
        Self { path: path.to_owned(), texts, absent }
    }

    /// True if a function of it can have C linkage.
    pub(super) fn mention_c_linkage(&self) -> bool {
        self.texts.iter().any(|text| text.contains("extern"))
    }

    /// The text after the preprocessor. `options` are those of the command line that define macros
    /// and name folders, and `cuda` is the version of the toolkit, as [`cuda_version`] returns it.
    ///
    /// [`cuda_version`]: super::cuda_version
    pub(super) fn expand(
        &self,
        side: CodeSide,
        cuda: u32,
        options: &[OsString],
    ) -> io::Result<String> {
        let headers = tempfile::tempdir()?;
        for name in self.absent.iter().filter(|name| is_below(Path::new(name))) {
            files::replace(&headers.path().join(name), b"")?;
        }
        let mut command = Command::new(compiler());
        command
            // Without the system's headers, so that the result is the same on every machine.
            .args(["-E", "-P", "-w", "-x", "c", "-nostdinc"])
            .args(definitions(cuda))
            .args(options);
        command.args((side == CodeSide::Device).then_some("-D__CUDA_ARCH__=900"));
        command.arg("-I").arg(headers.path()).arg(&self.path);
        let output = process::short(&command, ShortRun::TRUSTED)?;
        // `#error` in a condition on an absent header does not end the output.
        if output.stdout.is_empty() && !output.status.success() {
            return Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn is_below(name: &Path) -> bool {
    name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// The names of the headers that a text includes, and whether with quotes.
fn includes(text: &str) -> Vec<(String, bool)> {
    let name = |line: &str| {
        let rest = line.trim().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        let rest = rest.trim_start();
        let (name, _) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.strip_prefix('<')?.split_once('>')?,
        };
        Some((name.to_owned(), rest.starts_with('"')))
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn macros_are_expanded_without_the_headers_of_cuda() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("include")).unwrap();
        fs::write(path("own.cuh"), "#include <cub/none.h>\n#define OP(NAME) void NAME##_own()\n")
            .unwrap();
        fs::write(path("include/other.h"), "#define OTHER other\n").unwrap();
        let source = "#include \"own.cuh\"\n#include <other.h>\n#include <cuda_fp16.h>\n\
            #include \"../absent.h\"\n\
            #if CUDA_VERSION >= 12000 && !defined(__CUDA_ARCH__) && SIZE == 3\nOP(a); OTHER;\n#endif\n";
        fs::write(path("a.cu"), source.replace("#include \"../absent.h\"\n", "")).unwrap();
        let folders = [path("include")];
        let sources = SourceFiles::find(&path("a.cu"), &folders);
        assert_eq!(Vec::from_iter(&sources.absent), ["cub/none.h", "cuda_fp16.h"]);
        assert!(!sources.mention_c_linkage());
        let options = ["-I".into(), folders[0].clone().into_os_string(), "-DSIZE=3".into()];
        assert_eq!(
            sources.expand(CodeSide::Host, 13_000, &options).unwrap().trim(),
            "void a_own(); other;"
        );
        assert_eq!(sources.expand(CodeSide::Device, 13_000, &options).unwrap().trim(), "");
        // The preprocessor stops at a header that cannot be put into a folder of empty ones.
        fs::write(path("a.cu"), source).unwrap();
        let error = SourceFiles::find(&path("a.cu"), &folders)
            .expand(CodeSide::Host, 13_000, &options)
            .unwrap_err();
        assert!(error.to_string().contains("absent.h"), "{error}");
    }

    #[test]
    fn code_for_a_newer_toolkit_than_the_stated_one_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cu");
        let source = "#if CUDA_VERSION >= 12090 || CUDART_VERSION >= 12090\nnewer\n#endif\n\
            __CUDACC_VER_MAJOR__ __CUDACC_VER_MINOR__";
        fs::write(&path, source).unwrap();
        let expand = |cuda| {
            let text = SourceFiles::find(&path, &[]).expand(CodeSide::Host, cuda, &[]).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(expand(12_080), "12 8");
        assert_eq!(expand(13_000), "newer 13 0");
    }
}
