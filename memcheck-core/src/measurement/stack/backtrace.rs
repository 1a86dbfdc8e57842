//! The program's frames in a backtrace that std has printed into the text of an error.

use super::ends::is_glue;
use super::passage::FrameMark;
use super::{Frame, Owner};

/// The calls of the program among these frames, the innermost first: those of candle, of other
/// libraries and of std are left out, also the callers of the body, and each line is named once. The
/// line that calls the iterations is left out if it calls another one, because it passes nothing on.
pub fn program_calls(frames: impl IntoIterator<Item = Frame>) -> Vec<Frame> {
    let mut calls: Vec<Frame> = Vec::new();
    let mut iterates = false;
    for frame in frames {
        if frame.mark() == Some(FrameMark::Iterate) {
            iterates = true;
        }
        if frame.owner() != Owner::User {
            continue;
        }
        // The callers of the body are the attribute and the harness.
        if is_glue(&frame) {
            break;
        }
        let is_call_of_iterations = std::mem::take(&mut iterates) && !calls.is_empty();
        let is_known = |known: &Frame| (&known.file, known.line) == (&frame.file, frame.line);
        if frame.line.is_some() && !is_call_of_iterations && !calls.iter().any(is_known) {
            calls.push(frame);
        }
    }
    calls
}

/// The frames of the program as `src/model.rs:42 (model::forward)`, the innermost first. The frames
/// of candle, of other libraries and of std are left out, and each line is named once.
pub fn program_frames(text: &str) -> Vec<String> {
    let mut lines = text.lines().map(str::trim).peekable();
    let mut frames: Vec<Frame> = Vec::new();
    while let Some(line) = lines.next() {
        let Some(function) = numbered(line) else { continue };
        let Some(place) = lines.next_if(|next| next.starts_with("at ")) else { continue };
        let Some((file, line)) = file_and_line(&place["at ".len()..]) else { continue };
        let (function, file) = (function.to_owned(), Some(file.to_owned()));
        frames.push(Frame { function, file, line: Some(line) });
    }
    let shown = |frame: &Frame| Some(format!("{} ({})", frame.place()?, frame.path()));
    program_calls(frames).iter().filter_map(shown).collect()
}

/// The function of `12: app::model::forward`.
fn numbered(line: &str) -> Option<&str> {
    let (number, function) = line.split_once(": ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| function.trim())
}

/// `./src/model.rs:42:9` without the column and without the folder that std puts before it.
fn file_and_line(place: &str) -> Option<(&str, u32)> {
    let (file, _column) = place.rsplit_once(':')?;
    let (file, line) = file.rsplit_once(':')?;
    Some((file.strip_prefix("./").unwrap_or(file), line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str = "shape mismatch in matmul, lhs: [2, 3], rhs: [4, 5]
   0: candle_core::error::Error::bt
             at /home/u/.cargo/registry/src/index-1/candle-core-0.11.0/src/error.rs:264:25
   1: candle_core::tensor::Tensor::matmul
             at /home/u/.cargo/registry/src/index-1/candle-core-0.11.0/src/tensor.rs:1200:19
   2: mem::step
             at ./tests/mem.rs:11:20
   3: mem::training_step::body
             at ./tests/mem.rs:7:5
   4: mem::training_step::body::{{closure}}
             at ./tests/mem.rs:7:5
   5: mem::training_step::__MEM_TEST::{{closure}}
             at ./tests/mem.rs:5:1
   5: core::ops::function::FnOnce::call_once
             at /rustc/abc/library/core/src/ops/function.rs:250:5
   6: __libc_start_main
   7: memcheck_runtime::entry::body
             at /home/u/.cargo/registry/src/index-1/memcheck-runtime-0.1.0/src/entry/body.rs:3:5
";

    #[test]
    fn only_the_lines_of_the_program_remain() {
        let expected = ["tests/mem.rs:11 (mem::step)", "tests/mem.rs:7 (mem::training_step::body)"];
        assert_eq!(program_frames(ERROR), expected);
    }

    #[test]
    fn the_line_that_calls_the_iterations_is_left_out_if_it_is_not_the_only_one() {
        let frame = |function: &str, file: &str, line| Frame {
            function: function.to_owned(),
            file: Some(file.to_owned()),
            line: Some(line),
        };
        let runtime = "/home/u/.cargo/registry/src/index-1/memcheck-runtime-0.1.0/src/trial.rs";
        let iterate = || frame("memcheck_runtime::trial::Trial::iterate", runtime, 9);
        let (inner, closure) = (
            frame("mem::step", "tests/mem.rs", 3),
            frame("mem::test::body::{{closure}}", "tests/mem.rs", 41),
        );
        let (body, helper) = (
            frame("mem::test::body", "tests/mem.rs", 39),
            frame("mem::test::body", "tests/mem.rs", 50),
        );
        let lines = |frames: &[Frame]| {
            program_calls(frames.to_vec()).iter().filter_map(|it| it.line).collect::<Vec<_>>()
        };
        let of_iteration = [inner.clone(), closure, iterate(), body.clone(), helper.clone()];
        assert_eq!(lines(&of_iteration), [3, 41, 50]);
        assert_eq!(lines(&[iterate(), body.clone()]), [39], "the only line");
        assert_eq!(lines(&[inner, body, helper]), [3, 39, 50], "outside of iterations");
    }

    #[test]
    fn a_text_without_a_backtrace_has_no_frames() {
        for text in ["", "boom", "1: first\n2: second", "0: a::b\n at src/x.rs", "at src/x.rs:1:2"]
        {
            assert_eq!(program_frames(text), [""; 0], "{text}");
        }
    }
}
