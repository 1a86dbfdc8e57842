//! The address by which an editor opens a line.

/// An address with `{path}`, and `{line}` if the editor takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorUrl(pub(crate) String);

impl std::str::FromStr for EditorUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if scheme.is_empty() || !scheme.chars().all(is_plain) || !text.contains("{path}") {
            return Err(
                "write an address with {path} and {line}: vscode://file{path}:{line}".into()
            );
        }
        if !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err("an address has no spaces and only ASCII characters".into());
        }
        // A browser would run it as a part of the page.
        if ["javascript", "data", "vbscript"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(format!("`{scheme}:` is not the address of an editor"));
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_an_editor_has_a_scheme_and_a_path() {
        for good in ["vscode://file{path}:{line}", "idea://open?file={path}&line={line}"] {
            assert_eq!(good.parse(), Ok(EditorUrl(good.to_owned())));
        }
        for bad in ["vscode", "{path}", "vscode://file", "javascript:{path}", "x://{path} a", ""] {
            assert!(bad.parse::<EditorUrl>().is_err(), "{bad}");
        }
    }
}
