//! One function call with its name and location.

use serde::{Deserialize, Serialize};

/// One function call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function, without the compiler's hash and type arguments.
    pub function: String,
    /// Its source file, with the path that the compiler was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
}

impl Frame {
    /// For a method of a trait the crate of the type or, if it has none, of the trait.
    pub fn krate(&self) -> &str {
        let of_trait = self.function.strip_prefix('<').and_then(|inner| inner.split_once(" as "));
        let name = match of_trait {
            Some((of_type, of_trait)) if !of_type.contains("::") => of_trait,
            _ => &self.function,
        };
        let name = name.trim_start_matches(['<', '&', '*', '(', '[']);
        let name = name.strip_prefix("dyn ").unwrap_or(name);
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        &name[..end]
    }

    /// The function with its type and without modules: `Tensor::matmul`.
    pub fn short(&self) -> String {
        let plain = plain(&self.function);
        let segments: Vec<&str> =
            plain.split("::").filter(|segment| !is_closure(segment)).collect();
        match segments.as_slice() {
            [] => plain.clone(),
            [.., owner, method] if owner.starts_with(char::is_uppercase) => {
                format!("{owner}::{method}")
            }
            [.., method] => (*method).to_owned(),
        }
    }

    /// The path of the static that this call initializes: `model::MASKS` for `model::MASKS::{{closure}}`.
    pub fn initialized_static(&self) -> Option<String> {
        let plain = plain(&self.function);
        let is_of_static = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let (path, closure) = plain.rsplit_once("::")?;
        let (_, name) = path.rsplit_once("::")?;
        let is_static = name.starts_with(char::is_alphabetic) && name.chars().all(is_of_static);
        (is_closure(closure) && is_static).then(|| path.to_owned())
    }

    /// The function with its modules, without type arguments and trait. Closures and async blocks are
    /// parts of the function that has their code.
    pub fn path(&self) -> String {
        without_closures(plain(&self.function))
    }

    /// The same with type arguments and trait.
    pub fn full_path(&self) -> String {
        without_closures(self.function.clone())
    }

    /// `file:line`, or the file alone if the line is not known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        Some(self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }

    /// The source file. For a library, the path is relative to cargo's folder of libraries.
    pub fn short_file(&self) -> Option<&str> {
        let file = self.file.as_deref()?;
        let library = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
        Some(library.map_or(file, |(_, path)| path))
    }

    /// `file:line`, with the file from [`Frame::short_file`].
    pub fn short_place(&self) -> Option<String> {
        let file = self.short_file()?;
        Some(self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }

    /// A line of a call stack: function and place.
    pub fn shown(&self) -> String {
        match self.short_place() {
            Some(place) => format!("{} ({place})", self.short()),
            None => self.path(),
        }
    }
}

pub(super) fn has_path(function: &str) -> bool {
    function.starts_with('<') || function.split('<').next().is_some_and(|name| name.contains("::"))
}

/// A function's path without `<T as Trait>` and type arguments: `<candle_core::tensor::Tensor as
/// core::ops::Add>::add` becomes `candle_core::tensor::Tensor::add`.
pub(super) fn plain(function: &str) -> String {
    if !function.contains(['<', '>']) {
        return function.to_owned();
    }
    // The arrow of `fn(f32) -> f32` is removed first, because it is not a bracket.
    let mut text = function.replace("->", "");
    if let Some(inner) = text.strip_prefix('<')
        && let Some((owner, rest)) = split_qualified(inner)
    {
        let owner = owner.split(" as ").next().unwrap_or(owner).trim_start_matches('&');
        text = format!("{owner}{rest}");
    }
    let mut depth = 0u32;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.replace("::::", "::").trim_end_matches("::").to_owned()
}

fn without_closures(path: String) -> String {
    let named: Vec<&str> = path.split("::").filter(|segment| !is_closure(segment)).collect();
    if named.is_empty() { path } else { named.join("::") }
}

pub(super) fn is_closure(segment: &str) -> bool {
    // A module can be named `closures`.
    segment.starts_with('{') && segment.trim_start_matches('{').starts_with("closure")
}

fn split_qualified(inner: &str) -> Option<(&str, &str)> {
    let mut depth = 1u32;
    for (at, c) in inner.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
    }
    None
}
