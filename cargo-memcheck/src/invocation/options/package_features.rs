//! The features of the packages that only the builds for some kinds of devices have.

use memcheck_core::request::config::Config;
use memcheck_core::request::variables::{self, VariableError};

use crate::invocation::values::CargoOptions;

/// Features for one kind of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FeatureChoice {
    /// The package's own feature for CUDA, if the package makes clear which one that is.
    Own,
    Listed {
        features: Vec<String>,
        /// The flag, variable or key that lists them.
        by: &'static str,
    },
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageFeatures {
    pub(crate) cpu: FeatureChoice,
    pub(crate) sim: FeatureChoice,
    pub(crate) cuda: FeatureChoice,
}

/// The choice of flag or variable for both kinds of GPUs; `None` if they make none.
pub(super) fn of_gpu(
    cargo: &CargoOptions,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<FeatureChoice>, VariableError> {
    let listed = |text: &[String], by| FeatureChoice::Listed { features: split(text), by };
    if cargo.no_package_cuda {
        return Ok(Some(FeatureChoice::None));
    }
    if !cargo.features_gpu.is_empty() {
        return Ok(Some(listed(&cargo.features_gpu, "--features-gpu")));
    }
    if variables::switch(get, variables::NO_PACKAGE_CUDA)? == Some(true) {
        return Ok(Some(FeatureChoice::None));
    }
    let variable = get(variables::FEATURES_GPU.name).filter(|text| !text.is_empty());
    Ok(variable.map(|text| listed(&[text], variables::FEATURES_GPU.name)))
}

/// As cargo does it.
fn split(texts: &[String]) -> Vec<String> {
    let words = texts.iter().flat_map(|text| text.split([',', ' ']));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl PackageFeatures {
    pub(super) fn new(of_gpu: Option<FeatureChoice>, config: &Config) -> Self {
        let listed = |list: &Option<Vec<String>>, by| {
            let features = list.clone()?;
            Some(FeatureChoice::Listed { features, by })
        };
        let default = match config.package_cuda {
            Some(false) => FeatureChoice::None,
            Some(true) | None => FeatureChoice::Own,
        };
        let gpu = |list, by| {
            let choice = of_gpu.clone().or_else(|| listed(list, by));
            choice.unwrap_or_else(|| default.clone())
        };
        let lists = &config.features;
        Self {
            cpu: listed(&lists.cpu, "device.cpu.features").unwrap_or(FeatureChoice::None),
            sim: gpu(&lists.sim, "device.sim.features"),
            cuda: gpu(&lists.cuda, "device.cuda.features"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(flags: &CargoOptions, variables: &[(&str, &str)], text: &str) -> PackageFeatures {
        let get = |name: &str| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        PackageFeatures::new(of_gpu(flags, &get).unwrap(), &Config::parse(text).unwrap())
    }

    fn listed(features: &[&str], by: &'static str) -> FeatureChoice {
        FeatureChoice::Listed { features: features.iter().map(ToString::to_string).collect(), by }
    }

    #[test]
    fn flags_override_variables_and_variables_override_the_configuration() {
        let none = CargoOptions::default();
        let some = CargoOptions { features_gpu: vec!["a,b c".to_owned()], ..none.clone() };
        let off = CargoOptions { no_package_cuda: true, ..none.clone() };
        let variable = [("MEMCHECK_FEATURES_GPU", "v")];
        let switch = [("MEMCHECK_NO_PACKAGE_CUDA", "true")];
        let keys = "package_cuda = false\n[device.sim]\nfeatures = [\"k\"]\n\
                    [device.cpu]\nfeatures = [\"c\"]";
        let default = resolved(&none, &[], "");
        assert_eq!((default.cpu, default.sim), (FeatureChoice::None, FeatureChoice::Own));
        assert_eq!(default.cuda, FeatureChoice::Own);

        let by_keys = resolved(&none, &[], keys);
        assert_eq!(by_keys.sim, listed(&["k"], "device.sim.features"));
        assert_eq!(by_keys.cuda, FeatureChoice::None);
        assert_eq!(by_keys.cpu, listed(&["c"], "device.cpu.features"));
        let empty = resolved(&none, &[], "[device.sim]\nfeatures = []");
        assert_eq!(empty.sim, listed(&[], "device.sim.features"));

        let by_variable = resolved(&none, &variable, keys);
        assert_eq!(by_variable.sim, listed(&["v"], "MEMCHECK_FEATURES_GPU"));
        assert_eq!(by_variable.cuda, by_variable.sim);
        assert_eq!(resolved(&none, &switch, keys).sim, FeatureChoice::None);
        let by_flag = resolved(&some, &switch, keys);
        assert_eq!(by_flag.cuda, listed(&["a", "b", "c"], "--features-gpu"));
        assert_eq!(by_flag.cpu, listed(&["c"], "device.cpu.features"));
        assert_eq!(resolved(&off, &variable, keys).sim, FeatureChoice::None);
    }

    #[test]
    fn a_variable_that_is_neither_true_nor_false_is_an_error() {
        let get = |_: &str| Some("maybe".to_owned());
        assert!(of_gpu(&CargoOptions::default(), &get).is_err());
    }
}
