//! The panic in the output of a failed test: its line, and the output without the lines that repeat the
//! finding and without the frames of libraries.

use std::ops::Range;
use std::path::Path;

use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::measurement::stack::program_frames;

/// What std prints between the name of the thread and the line.
const PANICKED: &str = " panicked at ";
/// What std prints before the error that a test returns.
const ERROR: &str = "Error: ";
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

/// The place of the first panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PanicPlace {
    /// The innermost line of the program.
    pub(super) line: PanicLine,
    /// The lines of the program that called it, the innermost first; empty without a backtrace.
    pub(super) callers: Vec<PanicLine>,
}

/// A line of the program in the output of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PanicLine {
    pub(super) file: String,
    pub(super) line: u32,
    /// `None` without a backtrace.
    pub(super) function: Option<String>,
}

impl PanicLine {
    /// `src/model.rs:42 (model::forward)`.
    pub(super) fn shown(&self) -> String {
        let Self { file, line, function } = self;
        let function = function.as_ref().map(|function| format!(" ({function})"));
        format!("{file}:{line}{}", function.unwrap_or_default())
    }

    /// The reverse of [`Self::shown`].
    fn parse(frame: &str) -> Option<Self> {
        let (place, function) = frame.split_once(" (")?;
        let (file, line) = place.rsplit_once(':')?;
        let function = function.strip_suffix(')')?.to_owned();
        Some(Self { file: file.to_owned(), line: line.parse().ok()?, function: Some(function) })
    }
}

/// More callers of a panic are left out.
const MOST_CALLERS: usize = 6;

/// The line of the first panic in the output, with the lines that called it. The line of a
/// dependency is not a place to look at: then the innermost caller is the line, if there is one.
pub(super) fn place(output: &[impl AsRef<str>]) -> Option<PanicPlace> {
    let (file, line) = self::line(output)?;
    let lines: Vec<&str> = output.iter().map(AsRef::as_ref).collect();
    let begin = lines.iter().position(|line| line.contains(PANICKED))? + 1;
    let panics = lines[begin..].iter().position(|line| line.contains(PANICKED));
    let of_first = &lines[begin..panics.map_or(lines.len(), |next| begin + next)];
    let frames = (0..of_first.len()).find_map(|at| {
        let count = backtrace(&of_first[at..]);
        (count > 0).then(|| program_frames(&of_first[at..at + count].join("\n")))
    });
    let frames = frames.unwrap_or_default();
    let mut callers: Vec<PanicLine> =
        frames.iter().filter_map(|frame| PanicLine::parse(frame)).collect();
    callers.truncate(MOST_CALLERS);
    let own = |frame: &PanicLine| (frame.file.as_str(), frame.line) == (file, line);
    let is_own = callers.first().is_some_and(own);
    if is_own || (Path::new(file).is_absolute() && !callers.is_empty()) {
        return Some(PanicPlace { line: callers.remove(0), callers });
    }
    let line = PanicLine { file: file.to_owned(), line, function: None };
    Path::new(file).is_relative().then_some(PanicPlace { line, callers })
}

/// The frames in a text, such as `called from src/a.rs:7 (app::step)`.
pub(super) fn frames(text: &str) -> Vec<PanicLine> {
    text.lines().filter_map(frame).collect()
}

/// The frame of a line that has nothing else.
pub(super) fn frame(line: &str) -> Option<PanicLine> {
    let line = line.trim();
    let text = line.strip_prefix("called from ").or_else(|| line.strip_prefix("at "))?;
    PanicLine::parse(text)
}

/// The place of the panic that a finding is about.
fn reported(output: &[impl AsRef<str>], findings: &[Finding]) -> Option<PanicPlace> {
    let failed = findings.iter().any(|finding| finding.code == Code::TestFailed);
    if failed { place(output) } else { None }
}

/// The output of a test without a panic whose message a finding has, without its [`place`], and
/// without the frames of libraries in its backtraces.
pub(super) fn without_repeats(output: &[impl AsRef<str>], findings: &[Finding]) -> Vec<String> {
    let lines: Vec<&str> = output.iter().map(AsRef::as_ref).collect();
    let repeated = repeated_message(&lines, findings);
    let of_panic: Vec<String> = reported(&lines, findings)
        .into_iter()
        .flat_map(|PanicPlace { line, callers }| std::iter::once(line).chain(callers))
        .map(|line| line.shown())
        .collect();
    // The lines of a panic, and those of an error, are shown with its finding.
    let is_shown = |frame: &String| {
        of_panic.contains(frame) || (repeated.is_some() && has_frame(findings, frame))
    };
    let mut kept: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let message = repeated.as_ref().filter(|of| of.start == at).map_or(0, Range::len);
        at += message;
        let frames = backtrace(&lines[at..]);
        let of_program = program_frames(&lines[at..at + frames].join("\n")).into_iter();
        kept.extend(of_program.filter(|it| !is_shown(it)).map(|it| format!("at {it}")));
        at += frames;
        if message + frames > 0 {
            let is_note = |line: &&&str| NOTES.iter().any(|note| line.starts_with(note));
            at += lines[at..].iter().take_while(is_note).count();
        } else {
            kept.push(lines[at].to_owned());
            at += 1;
        }
    }
    kept
}

/// The lines of the first panic, or of the error that the body returned, if a finding has its message.
fn repeated_message(lines: &[&str], findings: &[Finding]) -> Option<Range<usize>> {
    let panic = lines.iter().position(|line| line.contains(PANICKED));
    let mut failed = findings.iter().filter(|finding| finding.code == Code::TestFailed);
    if let Some(start) = panic {
        let count = failed.find_map(|it| self::repeated(&lines[start + 1..], &it.message))?;
        return Some(start..start + 1 + count);
    }
    let start = lines.iter().position(|line| line.starts_with(ERROR))?;
    let mut printed = lines[start..].to_vec();
    printed[0] = &printed[0][ERROR.len()..];
    let count = failed.find_map(|it| self::repeated(&printed, &it.message))?;
    Some(start..start + count)
}

/// True if the message of a finding has this frame of a backtrace.
fn has_frame(findings: &[Finding], frame: &str) -> bool {
    let mut lines = findings.iter().flat_map(|finding| finding.message.lines());
    lines.any(|line| line.trim().strip_prefix("at ") == Some(frame))
}

/// The number of lines, from the first on, that are a backtrace with its title. An error has one
/// without a title.
fn backtrace(lines: &[&str]) -> usize {
    let title = usize::from(lines.first().is_some_and(|line| line.trim() == BACKTRACE));
    let frames = &lines[title..];
    let begins = frames.first().is_some_and(|line| line.trim_start().starts_with("0: "));
    let count = frames.iter().take_while(|line| is_of_backtrace(line)).count();
    let has_places = frames[..count].iter().any(|line| line.trim_start().starts_with("at "));
    if begins && has_places { title + count } else { 0 }
}

/// The number of lines, from the first on, that a message has too; `None` if it is another message. The
/// first line of a message begins with words of memcheck. The output has no empty lines.
fn repeated(printed: &[&str], message: &str) -> Option<usize> {
    let mut said = message.lines().filter(|line| !line.trim().is_empty());
    let (first, rest) = printed.split_first()?;
    let first = first.trim_end();
    (said.next()?.ends_with(first) && !first.is_empty()).then(|| {
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
    fn a_panic_has_its_function_and_its_callers_if_a_backtrace_follows_it() {
        let panic = |place: &str| format!("begin\nthread 'a' (7) panicked at {place}:5:\nwhy\n");
        let backtrace = "stack backtrace:\n   0: core::panicking::panic\n             \
                         at /rustc/ab/library/core/src/panicking.rs:689:5\n   1: app::fail\n             \
                         at ./src/lib.rs:3:5\n   2: mem::a::body\n             \
                         at ./tests/mem.rs:20:5\n";
        let of = |text: &str| {
            let PanicPlace { line, callers } = place(&lines(text))?;
            let callers: Vec<String> = callers.iter().map(PanicLine::shown).collect();
            Some((line.shown(), callers))
        };
        let caller = || vec!["tests/mem.rs:20 (mem::a::body)".to_owned()];
        let known = Some(("src/lib.rs:3 (app::fail)".to_owned(), caller()));
        assert_eq!(of(&format!("{}{backtrace}", panic("src/lib.rs:3"))), known);
        // The line of a dependency, which the program called.
        assert_eq!(of(&format!("{}{backtrace}", panic("/registry/x.rs:9"))), known);
        let alone = Some(("src/lib.rs:3".to_owned(), Vec::new()));
        assert_eq!(of(&panic("src/lib.rs:3")), alone);
        let second = panic("src/b.rs:1") + backtrace;
        assert_eq!(of(&(panic("src/lib.rs:3") + &second)), alone, "it is that of another panic");
        assert_eq!(of(&panic("/registry/x.rs:9")), None);
        let findings = [Finding::new(Code::TestFailed, "the body panicked: why")];
        let printed = format!("{}{backtrace}after", panic("src/lib.rs:3"));
        assert_eq!(without_repeats(&lines(&printed), &findings), ["begin", "after"]);
        let reported = |findings: &[Finding]| reported(&lines(&printed), findings).is_some();
        assert!(reported(&findings) && !reported(&[]));
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
        assert_eq!(
            shown(&format!("{panic}{backtrace}after")),
            "after",
            "callers are with the line"
        );
        let other = "thread 'a' panicked at tests/mem.rs:9:1:\nanother message\nnote: run with `RUST_BACKTRACE=1`";
        assert_eq!(shown(other), other);
        assert_eq!(shown("no panic"), "no panic");
        // An error has a backtrace too, which begins without a title.
        let error = backtrace.strip_prefix("stack backtrace:\n").unwrap();
        let both = "at tests/mem.rs:20 (mem::a::body)\nat tests/mem.rs:9 (mem::b)";
        assert_eq!(
            shown(&format!("Error: why\n{error}after")),
            format!("Error: why\n{both}\nafter")
        );
        let message = "the body returned an error: why\nat tests/mem.rs:9 (mem::b)";
        let findings = [Finding::new(Code::TestFailed, message)];
        let printed = format!("before\nError: why\n{error}after");
        let left = without_repeats(&lines(&printed), &findings);
        assert_eq!(left, ["before", "at tests/mem.rs:20 (mem::a::body)", "after"]);
        assert_eq!(shown(&format!("{backtrace}{error}")), format!("{both}\n{both}"));
        for no_backtrace in ["   0: first\n   1: second", "  1: first\n      at a.rs:1:1"] {
            assert_eq!(shown(no_backtrace), no_backtrace);
        }
        let failed = [Finding::new(Code::TestFailed, "the body returned an error: no file")];
        let shown = |text: &str| without_repeats(&lines(text), &failed).join("\n");
        assert_eq!(shown("before\nError: no file\nafter"), "before\nafter");
        assert_eq!(shown("Error: another\nError: "), "Error: another\nError: ");
    }
}
