//! The page of an archive.

/// Reads the page, and everything that the command derives from it before a program is started.
pub fn archive(input: &[u8]) {
    let _ = crate::discovery::archive::inspect(input);
}
