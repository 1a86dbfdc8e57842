//! The rows of `rows.tsv`: the shapes of projects that use candle.

const TABLE: &str = include_str!("rows.tsv");

/// The source of a project's candle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CandleOrigin {
    Registry,
    /// The dependency names a repository.
    Git,
    /// The dependency names a version, and `[patch.crates-io]` a repository.
    Patch,
}

/// The compiler that a project asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Any,
    /// `rust-toolchain.toml`.
    Pin(&'static str),
    /// `rust-version`.
    AtLeast(&'static str),
}

/// The feature of a project that switches candle's CUDA on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnFeature {
    None,
    Named(&'static str),
    Default(&'static str),
    /// The dependency on candle switches it on.
    Always,
}

/// A project's own kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnKernels {
    None,
    /// A file in PTX.
    Ptx,
    /// PTX that a build script compiles.
    BuiltPtx,
    /// Functions in C, compiled into a library by this crate.
    Launchers {
        by: &'static str,
        in_dependency: bool,
    },
}

/// A project, and the figures that adding memcheck to a package of its shape must have.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) project: &'static str,
    pub(super) requirement: &'static str,
    /// The version in its lock file, if it has one.
    pub(super) locked: Option<&'static str>,
    pub(super) origin: CandleOrigin,
    /// The published version that is tried in the place of a repository.
    pub(super) published: &'static str,
    pub(super) edition: &'static str,
    pub(super) asked: Asked,
    pub(super) feature: OwnFeature,
    pub(super) kernels: OwnKernels,
    /// Old versions of other crates in its lock file.
    pub(super) old: Vec<(&'static str, &'static str)>,
    pub(super) extra: Vec<&'static str>,
    pub(super) edits: Vec<&'static str>,
    line: &'static str,
}

impl Shape {
    pub(super) fn all() -> Vec<Self> {
        TABLE.lines().filter(|line| !line.starts_with('#')).map(Self::parse).collect()
    }

    fn parse(line: &'static str) -> Self {
        let columns: Vec<&str> = line.split('\t').collect();
        let columns: [&'static str; 10] =
            columns.try_into().unwrap_or_else(|_| panic!("not ten columns: {line}"));
        let [project, candle, origin, edition, compiler, feature, kernels, old, extra, edits] =
            columns;
        let (requirement, locked) = match candle.split_once(" = ") {
            Some((requirement, locked)) => (requirement, Some(locked)),
            None => (candle, None),
        };
        let list = |text: &'static str| text.split(", ").filter(|one| !one.is_empty());
        let pair = |one: &'static str| one.split_once(' ').expect("a crate and its version");
        Self {
            project,
            requirement,
            locked,
            published: match origin.split_once(' ') {
                Some((_, version)) => version,
                None => locked.unwrap_or(requirement),
            },
            origin: match origin.split(' ').next().unwrap_or(origin) {
                "registry" => CandleOrigin::Registry,
                "git" => CandleOrigin::Git,
                "patch" => CandleOrigin::Patch,
                other => panic!("an unknown source: {other}"),
            },
            edition,
            asked: match compiler.split_once(' ') {
                None => Asked::Any,
                Some(("pin", version)) => Asked::Pin(version),
                Some(("from", version)) => Asked::AtLeast(version),
                Some(_) => panic!("an unknown compiler: {compiler}"),
            },
            feature: match feature {
                "" => OwnFeature::None,
                "always" => OwnFeature::Always,
                named => match named.strip_prefix("default ") {
                    Some(name) => OwnFeature::Default(name),
                    None => OwnFeature::Named(named),
                },
            },
            kernels: match kernels.strip_prefix("launchers by ") {
                Some(by) => OwnKernels::Launchers {
                    by: by.trim_end_matches(" in a dependency"),
                    in_dependency: by.ends_with(" in a dependency"),
                },
                None => match kernels {
                    "" => OwnKernels::None,
                    "ptx as a file" => OwnKernels::Ptx,
                    "ptx by bindgen_cuda" => OwnKernels::BuiltPtx,
                    other => panic!("unknown kernels: {other}"),
                },
            },
            old: list(old).map(pair).collect(),
            extra: list(extra).collect(),
            edits: list(edits).collect(),
            line,
        }
    }

    /// The name of the first project of the row.
    pub(super) fn name(&self) -> &'static str {
        self.project.split(' ').next().unwrap_or(self.project)
    }

    pub(super) fn has(&self, extra: &str) -> bool {
        self.extra.contains(&extra)
    }

    /// The version of insta in the lock file, or with `=` the required one.
    pub(super) fn insta(&self) -> Option<&'static str> {
        let insta = self.old.iter().find(|(krate, _)| *krate == "insta");
        insta.map(|(_, version)| *version)
    }

    /// The columns but the name of the project and the number of edits.
    pub(super) fn columns(&self) -> &'static str {
        let (_, rest) = self.line.split_once('\t').expect("several columns");
        rest.rsplit_once('\t').expect("several columns").0
    }

    /// The name by which the sources call candle-core.
    pub(super) fn candle(&self) -> &'static str {
        if self.has("renamed") { "candle" } else { "candle-core" }
    }

    /// True if memcheck-runtime accepts the version of candle, so that tests have its types. A version
    /// of the registry before a release moves to the release.
    pub(super) fn has_types(&self) -> bool {
        let is_early = self.requirement.contains("alpha") && self.origin != CandleOrigin::Registry;
        !self.requirement.starts_with("0.8") && !is_early
    }

    /// True if the package's own code for CUDA is compiled on this leg.
    pub(super) fn is_for_cuda(&self, device: &str) -> bool {
        match self.feature {
            OwnFeature::None => false,
            OwnFeature::Named(_) => device != "cpu",
            OwnFeature::Default(_) | OwnFeature::Always => true,
        }
    }

    /// The text of the condition of the package's own code for CUDA.
    pub(super) fn condition(&self) -> String {
        match self.feature {
            OwnFeature::None => "any()".to_owned(),
            OwnFeature::Always => "all()".to_owned(),
            OwnFeature::Named(name) | OwnFeature::Default(name) => format!("feature = \"{name}\""),
        }
    }
}
