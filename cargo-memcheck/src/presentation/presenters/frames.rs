//! The names of stack frames in the pictures of a test.

use memcheck_core::measurement::stack::{Frame, TEST};

/// The function without modules. The functions that `#[mem_test]` makes of a test have its name.
pub(super) fn name(frame: &Frame, test: &str) -> String {
    let function = frame.path();
    let is_made = ["body", TEST].iter().any(|made| {
        let of = function.strip_suffix(made).and_then(|path| path.strip_suffix("::"));
        of.is_some_and(|of| of == test || of.ends_with(&format!("::{test}")))
    });
    match test.rsplit("::").next().filter(|_| is_made) {
        Some(test) => test.to_owned(),
        None => frame.short(),
    }
}

/// The same with the place, as [`Frame::shown`] has it.
pub(super) fn shown(frame: &Frame, test: &str) -> String {
    match frame.short_place() {
        Some(place) => format!("{} ({place})", name(frame, test)),
        None => frame.path(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_attribute_have_the_name_of_the_test() {
        let named = |function: &str| {
            let frame = Frame { function: function.to_owned(), file: None, line: None };
            name(&frame, "training::step")
        };
        for function in [
            "mem::training::step::body",
            "mem::training::step::body::{{closure}}",
            "mem::training::step::__MEM_TEST::{{closure}}::{{closure}}",
        ] {
            assert_eq!(named(function), "step", "{function}");
        }
        assert_eq!(named("mem::training::another::body"), "body");
        assert_eq!(named("mem::training::step::Model::body"), "Model::body");
        assert_eq!(named("mem::training::step"), "step");
    }
}
