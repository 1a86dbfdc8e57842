//! Names of files in an archive. They are relative and normalised, so that no file can leave the
//! folder of the archive, and they have no characters that a terminal interprets.

/// Bytes. Linux allows 4096 for a whole path.
const LONGEST: usize = 1024;
/// Bytes, the limit of all usual file systems.
const LONGEST_COMPONENT: usize = 255;

/// The error is the reason why the name is refused.
pub(super) fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the name is empty");
    }
    if name.len() > LONGEST {
        return Err("the name is longer than 1024 bytes");
    }
    if name.starts_with('/') {
        return Err("the name is an absolute path");
    }
    check_text(name)?;
    for component in name.split('/') {
        match component {
            "" | "." | ".." => return Err("the name is not a normalised path"),
            _ if component.len() > LONGEST_COMPONENT => {
                return Err("a component of the name is longer than 255 bytes");
            }
            _ => {}
        }
    }
    Ok(())
}

/// For text that is printed or passed to a process.
pub(super) fn check_text(text: &str) -> Result<(), &'static str> {
    match text.chars().any(char::is_control) {
        true => Err("it contains a control character"),
        false => Ok(()),
    }
}

/// An error about an archive can quote it.
pub(super) fn printable(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_normalised_relative_names_are_accepted() {
        let component = "a".repeat(LONGEST_COMPONENT);
        let long = [component.as_str(); 4].join("/");
        for name in ["a", "cpu/mem-0123", "workspace/tests/snapshots/a@cpu.snap", "..a/b..", &long]
        {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        let (too_long, too_deep) = (format!("{component}a"), format!("{long}/b"));
        for name in [
            "",
            "/",
            "/etc/passwd",
            "//a",
            ".",
            "..",
            "../a",
            "a/..",
            "a/../b",
            "./a",
            "a/./b",
            "a//b",
            "a/",
            "a\0b",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{9b}b",
            &too_long,
            &too_deep,
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }
}
