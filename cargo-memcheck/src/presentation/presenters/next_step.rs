//! The command that a person runs next after a test has failed.

use memcheck_core::judgement::finding::{Class, Code};
use memcheck_core::judgement::verdict::Verdict;

use crate::discovery::task::Task;
use crate::system::shell;

/// The finding that decides the next step: a measured one if there is any.
fn gravest(verdict: &Verdict) -> Option<Code> {
    let codes = || verdict.findings.iter().map(|finding| finding.code);
    let denied = || codes().filter(|code| verdict.denied.contains(code));
    codes().find(|code| code.row().class != Class::Bookkeeping).or_else(|| denied().next())
}

/// `cargo memcheck profile mem::step --device sim:h200`.
pub(super) fn command(task: &Task, verdict: &Verdict, baselines_flag: &str) -> Option<String> {
    let code = gravest(verdict)?;
    let test = shell::word(task.name());
    let device = task.leg.requests().into_iter().map(|device| format!(" --device {device}"));
    let device: String = device.collect();
    let package = shell::word(&task.package);
    Some(match code {
        Code::Unstable => {
            format!("cargo memcheck run -p {package} {test} --exact --repeat 30{device}")
        }
        Code::Scaling => format!("cargo memcheck explain {code}"),
        code if code.is_about_memory() => {
            format!("cargo memcheck profile -p {package} {test} --exact{device}")
        }
        Code::TestFailed | Code::Crashed | Code::TimedOut | Code::DeviceFault => {
            format!("cargo memcheck run -p {package} {test} --exact --no-capture{device}")
        }
        Code::NotMeasured | Code::NoDevice => format!("cargo memcheck doctor{device}"),
        Code::MissingBaseline
        | Code::UncomparableBaseline
        | Code::CorruptBaseline
        | Code::StaleBaseline
        | Code::Improved => format!("cargo memcheck review {test}{baselines_flag}"),
        other => format!("cargo memcheck explain {other}"),
    })
}

/// The codes of the findings that fail the test.
pub(super) fn codes(verdict: &Verdict) -> String {
    let mut names: Vec<&str> = Vec::new();
    for finding in &verdict.findings {
        let fails = finding.code.row().class != Class::Bookkeeping
            || verdict.denied.contains(&finding.code);
        if fails && !names.contains(&finding.code.name()) {
            names.push(finding.code.name());
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use memcheck_core::judgement::finding::{Finding, TABLE};
    use memcheck_core::judgement::verdict::Status;

    use super::*;
    use crate::discovery::task::TestSubject;
    use crate::discovery::task::example::task;
    use crate::invocation::cli::Cli;

    fn verdict(codes: &[Code]) -> Verdict {
        let findings = codes.iter().map(|code| Finding::new(*code, "message")).collect();
        let denied = codes.iter().copied().filter(|code| *code == Code::MissingBaseline).collect();
        Verdict { status: Status::Failed, findings, denied }
    }

    #[test]
    fn every_finding_has_a_command_that_the_command_line_accepts() {
        let mut task = task();
        let TestSubject::Test(entry) = &mut task.subject else { panic!("a test") };
        entry.name = "a::b of 'c'".to_owned();
        for row in TABLE {
            let mut verdict = verdict(&[row.code]);
            verdict.denied = vec![row.code];
            let command = command(&task, &verdict, " --baselines kept").unwrap();
            let mut words = shlex::split(&command).unwrap();
            assert_eq!((words.remove(0), words.remove(0)), ("cargo".into(), "memcheck".into()));
            words.insert(0, "cargo-memcheck".to_owned());
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{command}: {error}");
            }
        }
    }

    #[test]
    fn a_measured_finding_decides_the_next_step() {
        let both = verdict(&[Code::MissingBaseline, Code::Leak]);
        assert!(command(&task(), &both, "").unwrap().contains(" profile "));
        assert_eq!(codes(&both), "missing-baseline, leak");
        let new = verdict(&[Code::MissingBaseline]);
        let command = |verdict| command(&task(), verdict, " --baselines kept");
        assert_eq!(command(&new).unwrap(), "cargo memcheck review a::b --baselines kept");
        let allowed = verdict(&[Code::Improved]);
        assert_eq!((command(&allowed), codes(&allowed)), (None, String::new()));
    }
}
