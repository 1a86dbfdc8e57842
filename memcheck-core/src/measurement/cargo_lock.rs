//! Reads from Cargo.lock the version of candle that memory tests were built with.

use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// `NAME`, followed by version and source if the name alone is ambiguous.
    #[serde(default)]
    dependencies: Vec<String>,
}

/// The crate whose version is a fact of a baseline.
pub const CANDLE: &str = "candle-core";
/// The crate that measures. It measures the candle-core that it depends on.
pub const RUNTIME: &str = "memcheck-runtime";

/// The version of candle-core that memcheck-runtime of version `runtime` depends on, if any. It
/// cannot measure tensors of other versions, which a lock file can contain.
pub fn candle(lock: &str, runtime: &str) -> Option<String> {
    let lock: Lock = toml::from_str(lock).ok()?;
    let runtime = lock
        .package
        .iter()
        .find(|package| package.name == RUNTIME && package.version == runtime)?;
    let mut dependencies = runtime.dependencies.iter().map(|text| text.split(' '));
    dependencies.find_map(|mut words| {
        let name = words.next().filter(|name| *name == CANDLE)?;
        let only = || lock.package.iter().find(|package| package.name == name);
        words.next().map(str::to_owned).or_else(|| Some(only()?.version.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "
version = 4

[[package]]
name = \"candle-core\"
version = \"0.11.1\"

[[package]]
name = \"memcheck-runtime\"
version = \"0.1.0\"
dependencies = [\"addr2line\", \"candle-core\", \"candle-nn\"]
";

    #[test]
    fn the_only_candle_is_found() {
        assert_eq!(candle(ONE, "0.1.0").as_deref(), Some("0.11.1"));
        assert_eq!(candle(ONE, "0.2.0"), None, "another runtime");
        assert_eq!(candle("", "0.1.0"), None);
        assert_eq!(candle("package = 1", "0.1.0"), None);
    }

    #[test]
    fn of_several_candles_that_of_the_runtime_is_found() {
        let older = "[[package]]\nname = \"candle-core\"\nversion = \"0.9.1\"\n";
        for dependency in ["candle-core 0.11.1", "candle-core 0.11.1 (registry+https://a)"] {
            let lock = ONE.replacen("[[package]]", &format!("{older}\n[[package]]"), 1);
            let lock = lock.replace("\"candle-core\", \"candle-nn\"", &format!("\"{dependency}\""));
            assert_eq!(candle(&lock, "0.1.0").as_deref(), Some("0.11.1"), "{lock}");
        }
    }
}
