//! A program of a package: a binary, an example or a bench among the targets in cargo's metadata.

use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Target, TargetKind};
use memcheck_core::wire::exit;

use crate::build::workspace::{RUNTIME, TestPackage};
use crate::system::error::CommandError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    Bin,
    Example,
    Bench,
}

impl ProgramKind {
    fn flag(self) -> &'static str {
        match self {
            Self::Bin => "--bin",
            Self::Example => "--example",
            Self::Bench => "--bench",
        }
    }

    fn target(self) -> TargetKind {
        match self {
            Self::Bin => TargetKind::Bin,
            Self::Example => TargetKind::Example,
            Self::Bench => TargetKind::Bench,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) kind: ProgramKind,
    pub(crate) name: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("no target `{0} {1}` in the packages with {RUNTIME}: {2}")]
    Unknown(&'static str, String, String),
    #[error("several packages have a target `{0} {1}`: {2}")]
    Several(&'static str, String, String),
    /// Such a binary cannot link the runtime, which is only a dev-dependency.
    #[error("`--bin {0}` cannot be profiled: {RUNTIME} is a dependency of the tests of `{1}` only")]
    DevOnly(String, String),
}

impl CommandError for ProgramError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(..) => None,
            Self::Several(..) => Some("name one with -p".to_owned()),
            Self::DevOnly(..) => Some(format!(
                "`cargo add {RUNTIME} --git URL` (or `--path`) as you did for the tests, and `use \
                 memcheck_runtime as _;` in the program; an example needs no further dependency"
            )),
        }
    }
}

impl Program {
    pub(super) fn matches(&self, target: &Target) -> bool {
        target.name == self.name && target.kind.contains(&self.kind.target())
    }

    /// `--bench` is not among the user's cargo flags, because only `profile` and `bench` have it.
    pub(super) fn arguments(&self) -> Vec<&str> {
        match self.kind {
            ProgramKind::Bin | ProgramKind::Example => Vec::new(),
            ProgramKind::Bench => vec!["--bench", &self.name],
        }
    }

    /// Returns the index of the package in `packages`, and the path of the source file relative to
    /// `root`.
    pub(crate) fn find(
        &self,
        packages: &[TestPackage],
        root: &Path,
    ) -> Result<(usize, PathBuf), ProgramError> {
        let Self { kind, name } = self;
        let found: Vec<(usize, &Target)> = packages
            .iter()
            .enumerate()
            .flat_map(|(number, package)| package.package.targets.iter().map(move |t| (number, t)))
            .filter(|(_, target)| self.matches(target))
            .collect();
        match found.as_slice() {
            [] => Err(ProgramError::Unknown(kind.flag(), name.clone(), self.known(packages))),
            [(number, target)] => {
                let package = &packages[*number];
                let normal = package.package.dependencies.iter().any(|dependency| {
                    dependency.name == RUNTIME && dependency.kind == DependencyKind::Normal
                });
                if *kind == ProgramKind::Bin && !normal {
                    let package = package.name().to_owned();
                    return Err(ProgramError::DevOnly(name.clone(), package));
                }
                let file = target.src_path.as_std_path();
                Ok((*number, file.strip_prefix(root).unwrap_or(file).to_owned()))
            }
            several => {
                let names: Vec<&str> =
                    several.iter().map(|(number, _)| packages[*number].name()).collect();
                Err(ProgramError::Several(kind.flag(), name.clone(), names.join(", ")))
            }
        }
    }

    fn known(&self, packages: &[TestPackage]) -> String {
        let names: Vec<&str> = packages
            .iter()
            .flat_map(|package| &package.package.targets)
            .filter(|target| target.kind.contains(&self.kind.target()))
            .map(|target| target.name.as_str())
            .collect();
        if names.is_empty() { "none exist".to_owned() } else { names.join(", ") }
    }
}
