//! The panic in the output of a failed test: its line, and the output without the lines that repeat the
//! finding.

use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::measurement::stack::program_frames;

/// What std prints between the name of the thread and the line.
const PANICKED: &str = " panicked at ";
const BACKTRACE: &str = "stack backtrace:";
/// The beginnings of what std prints about backtraces.
const NOTES: [&str; 2] = ["note: run with `RUST_BACKTRACE=", "note: Some details are omitted"];

/// The file and the line of the first panic in the output of a test. Cargo compiles packages of a
/// workspace in its folder, so that the path begins there.
pub(super) fn line(output: &[impl AsRef<str>]) -> Option<(&str, u32)> {
    let place = output.iter().find_map(|line| Some(line.as_ref().split_once(PANICKED)?.1))?;
    // `src/model.rs:20:5:`
    let mut parts = place.trim_end_matches(':').rsplitn(3, ':').skip(1);
    let (line, file) = (parts.next()?, parts.next()?);
    Some((file, line.parse().ok()?))
}

/// The output of a test without a panic whose message a finding has. Its backtrace keeps the lines of
/// the program.
pub(super) fn without_repeats(output: &[impl AsRef<str>], findings: &[Finding]) -> Vec<String> {
    let lines: Vec<&str> = output.iter().map(AsRef::as_ref).collect();
    let whole = || lines.iter().map(|line| (*line).to_owned()).collect();
    let Some(start) = lines.iter().position(|line| line.contains(PANICKED)) else {
        let is_new = |line: &&&str| !is_returned_error(line, findings);
        return lines.iter().filter(is_new).map(|line| (*line).to_owned()).collect();
    };
    let printed = &lines[start + 1..];
    let mut failed = findings.iter().filter(|finding| finding.code == Code::TestFailed);
    let Some(repeated) = failed.find_map(|finding| repeated(printed, &finding.message)) else {
        return whole();
    };
    let mut rest = &printed[repeated..];
    let mut kept: Vec<String> = lines[..start].iter().map(|line| (*line).to_owned()).collect();
    if rest.first().is_some_and(|line| line.trim() == BACKTRACE) {
        let frames = rest[1..].iter().take_while(|line| is_of_backtrace(line)).count();
        let (backtrace, after) = rest[1..].split_at(frames);
        let place = line(&lines).map(|(file, line)| format!("{file}:{line} "));
        // The line of the panic itself is shown with the finding.
        let is_shown = |frame: &String| place.as_ref().is_some_and(|at| frame.starts_with(at));
        let frames = program_frames(&backtrace.join("\n")).into_iter();
        kept.extend(frames.filter(|frame| !is_shown(frame)).map(|frame| format!("at {frame}")));
        rest = after;
    }
    let is_note = |line: &&&str| NOTES.iter().any(|note| line.starts_with(note));
    let notes = rest.iter().take_while(is_note).count();
    kept.extend(rest[notes..].iter().map(|line| (*line).to_owned()));
    kept
}

/// `Error: why`, which std prints for a body that returns an error, of a finding that has the error.
fn is_returned_error(line: &str, findings: &[Finding]) -> bool {
    let Some(error) = line.strip_prefix("Error: ") else { return false };
    let has_error = |finding: &Finding| {
        let first = finding.message.lines().next().unwrap_or_default();
        finding.code == Code::TestFailed && first.ends_with(error.trim_end())
    };
    !error.trim().is_empty() && findings.iter().any(has_error)
}

/// The number of lines, from the first on, that a message has too; `None` if it is another message. The
/// first line of a message begins with words of memcheck. The output has no empty lines.
fn repeated(printed: &[&str], message: &str) -> Option<usize> {
    let mut said = message.lines().filter(|line| !line.trim().is_empty());
    let (first, rest) = printed.split_first()?;
    said.next()?.ends_with(first.trim_end()).then(|| {
        1 + rest.iter().zip(said).take_while(|(one, other)| one.trim() == other.trim()).count()
    })
}

/// `12: app::model::forward`, and `at ./src/model.rs:42:9` below it.
fn is_of_backtrace(line: &str) -> bool {
    let number = line.trim_start().split_once(": ").map(|(number, _)| number);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    line.starts_with(' ') && (number.is_some_and(is_number) || line.trim().starts_with("at "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        text.lines().collect()
    }

    #[test]
    fn the_first_panic_of_an_output_has_a_line() {
        let two = "begin\nthread 'a' (7) panicked at src/a b.rs:20:5:\nwhy\nthread 'b' panicked at b.rs:1:1:";
        assert_eq!(line(&lines(two)), Some(("src/a b.rs", 20)));
        assert_eq!(line(&lines("it panicked at night")), None);
        assert_eq!(line(&lines("no thread failed")), None);
    }

    #[test]
    fn an_output_loses_what_the_finding_has_and_the_frames_of_libraries() {
        let message = "the body panicked: assertion `left == right` failed\n  left: 1\n right: 2";
        let findings = [Finding::new(Code::TestFailed, message)];
        let shown = |text: &str| without_repeats(&lines(text), &findings).join("\n");
        let panic = "thread 'a' (7) panicked at tests/mem.rs:20:5:\n\
                     assertion `left == right` failed\n  left: 1\n right: 2\n";
        let note =
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(shown(&format!("{panic}{note}")), "");
        assert_eq!(shown(&format!("before\n{panic}{note}after")), "before\nafter");
        let backtrace = "stack backtrace:\n   0: __rustc::rust_begin_unwind\n             \
                         at /rustc/ab/library/std/src/panicking.rs:689:5\n   1: mem::a::body\n             \
                         at ./tests/mem.rs:20:5\n   2: mem::b\n             \
                         at ./tests/mem.rs:9:1\n   3: __libc_start_main\n\
                         note: Some details are omitted, run with `RUST_BACKTRACE=full`\n";
        let frames = "at tests/mem.rs:9 (mem::b)";
        assert_eq!(shown(&format!("{panic}{backtrace}after")), format!("{frames}\nafter"));
        let other = "thread 'a' panicked at tests/mem.rs:9:1:\nanother message\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(shown(other), other);
        assert_eq!(shown("no panic"), "no panic");
        let failed = [Finding::new(Code::TestFailed, "the body returned an error: no file")];
        let shown = |text: &str| without_repeats(&lines(text), &failed).join("\n");
        assert_eq!(shown("before\nError: no file\nafter"), "before\nafter");
        assert_eq!(shown("Error: another\nError: "), "Error: another\nError: ");
    }
}
