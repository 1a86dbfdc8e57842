//! An entry of a feature in a manifest, such as `dep:cudarc` or `candle-core/cuda`.

/// An entry of a feature in a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum FeatureEntry<'t> {
    Own(&'t str),
    Optional(&'t str),
    OfDependency { name: &'t str, feature: &'t str, is_weak: bool },
}

impl<'t> FeatureEntry<'t> {
    pub(in super::super) fn parse(text: &'t str) -> Self {
        if let Some(name) = text.strip_prefix("dep:") {
            return Self::Optional(name);
        }
        match text.split_once('/') {
            None => Self::Own(text),
            Some((name, feature)) => {
                let strong = name.strip_suffix('?');
                Self::OfDependency {
                    name: strong.unwrap_or(name),
                    feature,
                    is_weak: strong.is_some(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_a_feature_or_a_dependency() {
        assert_eq!(FeatureEntry::parse("cuda"), FeatureEntry::Own("cuda"));
        assert_eq!(FeatureEntry::parse("dep:cudarc"), FeatureEntry::Optional("cudarc"));
        let of = |is_weak| FeatureEntry::OfDependency { name: "candle", feature: "cuda", is_weak };
        assert_eq!(FeatureEntry::parse("candle/cuda"), of(false));
        assert_eq!(FeatureEntry::parse("candle?/cuda"), of(true));
    }
}
