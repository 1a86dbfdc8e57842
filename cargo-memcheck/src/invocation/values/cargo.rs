//! Cargo's own flags, spelled as in `cargo test` and passed on to cargo.

use std::path::PathBuf;

/// Flags that cargo understands.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Cargo options")]
pub(crate) struct CargoOptions {
    /// Test only this package (may be repeated; NAME, NAME@VERSION or a glob).
    #[arg(short = 'p', long = "package", value_name = "SPEC")]
    pub(crate) packages: Vec<String>,
    /// Test all packages of the workspace.
    #[arg(long, visible_alias = "all")]
    pub(crate) workspace: bool,
    /// Exclude this package (may be repeated; requires --workspace).
    #[arg(long, value_name = "SPEC", requires = "workspace")]
    pub(crate) exclude: Vec<String>,
    /// Build only the library's unit tests.
    #[arg(long)]
    pub(crate) lib: bool,
    /// Build all binaries.
    #[arg(long)]
    pub(crate) bins: bool,
    /// Build only this binary (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Vec<String>,
    /// Build all targets that have `test = true`.
    #[arg(long)]
    pub(crate) tests: bool,
    /// Build only this test target (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub(crate) test: Vec<String>,
    /// Build all examples.
    #[arg(long)]
    pub(crate) examples: bool,
    /// Build only this example (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub(crate) example: Vec<String>,
    /// Build all targets.
    #[arg(long)]
    pub(crate) all_targets: bool,
    /// Activate these features, separated by spaces or commas.
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub(crate) features: Vec<String>,
    /// Activate all features.
    #[arg(long)]
    pub(crate) all_features: bool,
    /// Do not activate the `default` feature.
    #[arg(long)]
    pub(crate) no_default_features: bool,
    /// Activate these features in builds for a GPU only, in place of the package's own feature for
    /// CUDA (may be repeated).
    #[arg(long, value_name = "FEATURES", conflicts_with = "no_package_cuda")]
    pub(crate) features_gpu: Vec<String>,
    /// Leave the package's own feature for CUDA off in builds for a GPU.
    #[arg(long)]
    pub(crate) no_package_cuda: bool,
    /// Build in release mode.
    #[arg(short = 'r', long, conflicts_with = "profile")]
    pub(crate) release: bool,
    /// Build with this profile.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Build for this target triple.
    #[arg(long, value_name = "TRIPLE")]
    pub(crate) target: Option<String>,
    /// Directory for build output.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) target_dir: Option<PathBuf>,
    /// The sources are those of another revision than the workspace's that the target directory
    /// belongs to. `compare` and `bisect` set it.
    #[arg(long, hide = true)]
    pub(crate) revision: bool,
    /// Path to Cargo.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Assert that Cargo.lock will remain unchanged.
    #[arg(long)]
    pub(crate) locked: bool,
    /// Run without accessing the network.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Same as --locked and --offline.
    #[arg(long)]
    pub(crate) frozen: bool,
    /// Number of parallel build jobs.
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) jobs: Option<String>,
    /// Override a value of cargo's configuration (KEY=VALUE or PATH).
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
}

impl CargoOptions {
    /// True if the flags restrict the build to some kinds of targets.
    pub(crate) fn names_targets(&self) -> bool {
        let Self { lib, bins, bin, tests, test, examples, example, all_targets, .. } = self;
        *lib || *bins || *tests || *examples || *all_targets || {
            !bin.is_empty() || !test.is_empty() || !example.is_empty()
        }
    }

    /// Returns the flags that `cargo metadata` accepts, too.
    pub(crate) fn for_metadata(&self) -> Vec<String> {
        let mut args = self.features();
        args.extend(self.network());
        if let Some(path) = &self.manifest_path {
            args.extend(["--manifest-path".to_owned(), path.display().to_string()]);
        }
        args
    }

    /// Returns the flags for `cargo test`. The packages and the target directory are not among
    /// them, because the build determines them.
    pub(crate) fn for_test(&self) -> Vec<String> {
        // The exhaustive pattern makes sure that a new flag is not forgotten here.
        let Self {
            packages: _,
            workspace: _,
            exclude: _,
            lib,
            bins,
            bin,
            tests,
            test,
            examples,
            example,
            all_targets,
            features: _,
            all_features: _,
            no_default_features: _,
            features_gpu: _,
            no_package_cuda: _,
            release,
            profile,
            target,
            target_dir: _,
            revision: _,
            manifest_path,
            locked: _,
            offline: _,
            frozen: _,
            jobs,
            config: _,
        } = self;
        let mut args = self.features();
        args.extend(self.network());
        args.extend(switches([
            ("--lib", *lib),
            ("--bins", *bins),
            ("--tests", *tests),
            ("--examples", *examples),
            ("--all-targets", *all_targets),
            ("--release", *release),
        ]));
        let path = manifest_path.as_ref().map(|path| path.display().to_string());
        for (flag, stated) in [
            ("--bin", bin.as_slice()),
            ("--test", test),
            ("--example", example),
            ("--profile", profile.as_slice()),
            ("--target", target.as_slice()),
            ("--jobs", jobs.as_slice()),
            ("--manifest-path", path.as_slice()),
        ] {
            args.extend(values(flag, stated));
        }
        args
    }

    fn features(&self) -> Vec<String> {
        let all = ("--all-features", self.all_features);
        let no_default = ("--no-default-features", self.no_default_features);
        values("--features", &self.features).chain(switches([all, no_default])).collect()
    }

    fn network(&self) -> Vec<String> {
        let Self { locked, offline, frozen, .. } = *self;
        let network = [("--locked", locked), ("--offline", offline), ("--frozen", frozen)];
        values("--config", &self.config).chain(switches(network)).collect()
    }
}

fn switches<const N: usize>(flags: [(&str, bool); N]) -> impl Iterator<Item = String> {
    flags.into_iter().filter(|(_, on)| *on).map(|(flag, _)| flag.to_owned())
}

/// Repeats a flag for each of its values.
fn values(flag: &str, values: &[String]) -> impl Iterator<Item = String> {
    values.iter().flat_map(move |value| [flag.to_owned(), value.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_test_gets_the_flags_of_the_command_line() {
        let flags = CargoOptions {
            features: vec!["a,b".to_owned()],
            test: vec!["mem".to_owned()],
            release: true,
            locked: true,
            profile: None,
            jobs: Some("3".to_owned()),
            ..CargoOptions::default()
        };
        assert_eq!(
            flags.for_test().join(" "),
            "--features a,b --locked --release --test mem --jobs 3"
        );
        assert_eq!(flags.for_metadata().join(" "), "--features a,b --locked");
        assert!(flags.names_targets());
        assert!(!CargoOptions::default().names_targets());
    }
}
