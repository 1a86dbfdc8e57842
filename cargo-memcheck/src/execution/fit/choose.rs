//! Selects the test of a search, and the case that stands for the others.

use std::collections::{BTreeMap, BTreeSet};

use super::FitError;
use crate::discovery::matching::matching;
use crate::discovery::session::Chosen;
use crate::discovery::task::Task;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseSelection<'a> {
    pub(crate) name: &'a str,
    pub(crate) param: &'a str,
    pub(crate) cases: &'a [(String, String)],
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TestIdentity {
    binary: String,
    path: String,
    others: BTreeMap<String, String>,
}

impl TestIdentity {
    fn of(task: &Task, param: &str) -> Self {
        let mut others = task.subject.case().clone();
        others.remove(param);
        Self { binary: task.binary.id.clone(), path: path(task), others }
    }

    fn shown(&self) -> String {
        let cases: Vec<String> =
            self.others.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("  {} {} {}", self.binary, self.path, cases.join(" ")).trim_end().to_owned()
    }
}

/// For a test over cases, the module that the attribute adds under the function's name.
pub(crate) fn path(task: &Task) -> String {
    match task.subject.test().and_then(|entry| entry.module.split_once("::")) {
        Some((_, module)) if !task.subject.case().is_empty() => module.to_owned(),
        _ => task.name().to_owned(),
    }
}

/// Once for each device, with the first case, whose value each attempt replaces.
pub(crate) fn choose(
    wanted: CaseSelection<'_>,
    chosen: Vec<Chosen>,
) -> Result<Vec<Task>, FitError> {
    let CaseSelection { name, param, cases } = wanted;
    let mut run = matching(name, chosen)?;
    // A whole path is also a part of longer ones.
    if run.iter().any(|task| path(task) == name) {
        run.retain(|task| path(task) == name);
    }
    let known = known(&run);
    run.retain(|task| task.subject.case().contains_key(param));
    if run.is_empty() {
        let (test, param) = (name.to_owned(), param.to_owned());
        return Err(FitError::NoParam { test, param, known });
    }
    for (case, value) in cases {
        let all = shown(&run, param);
        run.retain(|task| task.subject.case().get(case) == Some(value));
        if run.is_empty() {
            return Err(FitError::NoCase(name.to_owned(), case.clone(), value.clone(), all));
        }
    }
    let identities: BTreeSet<TestIdentity> =
        run.iter().map(|task| TestIdentity::of(task, param)).collect();
    if identities.len() > 1 {
        return Err(FitError::Several(name.to_owned(), shown(&run, param)));
    }
    for task in &run {
        let value = &task.subject.case()[param];
        if value.parse::<u64>().is_err() {
            let test = path(task);
            return Err(FitError::NotNumber(param.to_owned(), test, value.clone()));
        }
    }
    let mut tasks: Vec<Task> = Vec::new();
    for task in run {
        if tasks.iter().all(|known| known.leg.device != task.leg.device) {
            tasks.push(task);
        }
    }
    match tasks.iter().find(|task| !super::has_capacity(task)) {
        Some(task) => Err(FitError::NoCapacity(path(task))),
        None => Ok(tasks),
    }
}

fn shown(tasks: &[Task], param: &str) -> Vec<String> {
    let identities: BTreeSet<TestIdentity> =
        tasks.iter().map(|task| TestIdentity::of(task, param)).collect();
    identities.iter().map(TestIdentity::shown).collect()
}

fn known(tasks: &[Task]) -> String {
    let names: BTreeSet<&String> =
        tasks.iter().flat_map(|task| task.subject.case().keys()).collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "these tests have no cases".to_owned(),
        names => format!("their cases are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::device::Request;

    use super::*;
    use crate::build::leg::DeviceKind;
    use crate::discovery::task::{TestSubject, example};

    fn task(function: &str, case: &[(&str, &str)]) -> Task {
        let mut task = example::task();
        task.leg.kind = DeviceKind::Sim;
        task.leg.device = Request::Sim(Some("t4".to_owned()));
        let TestSubject::Test(entry) = &mut task.subject else { unreachable!() };
        entry.module = format!("mem::model::{function}");
        entry.name = format!("model::{function}");
        for (name, value) in case {
            entry.case.insert((*name).to_owned(), (*value).to_owned());
            entry.name += &format!("::{name}_{value}");
        }
        task
    }

    fn tests() -> Vec<Task> {
        let dtypes = ["f32", "bf16"].iter().flat_map(|dtype| {
            ["1", "8"].map(|batch| task("forward", &[("dtype", dtype), ("batch", batch)]))
        });
        dtypes.chain([task("forward_twice", &[("batch", "2")]), task("other", &[])]).collect()
    }

    fn chosen(
        name: &str,
        param: &str,
        cases: &[(&str, &str)],
        run: Vec<Task>,
    ) -> Result<String, FitError> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let cases: Vec<_> = cases.iter().map(owned).collect();
        let chosen = vec![Chosen { run, ..Chosen::default() }];
        let tasks = choose(CaseSelection { name, param, cases: &cases }, chosen)?;
        assert_eq!(tasks.len(), 1);
        Ok(tasks[0].name().to_owned())
    }

    #[test]
    fn the_first_case_represents_the_test() {
        assert_eq!(
            chosen("model::forward", "batch", &[("dtype", "bf16")], tests()).unwrap(),
            "model::forward::dtype_bf16::batch_1"
        );
        assert_eq!(
            chosen("twice", "batch", &[], tests().split_off(4)).unwrap(),
            "model::forward_twice::batch_2"
        );
    }

    #[test]
    fn an_ambiguous_name_lists_the_matching_tests() {
        let error = chosen("model::forward", "batch", &[], tests()).unwrap_err().to_string();
        assert_eq!(
            error,
            "`model::forward` matches 2, but fit needs exactly one:\n  app::mem model::forward \
             dtype=bf16\n  app::mem model::forward dtype=f32"
        );
        // `forw` matches several paths, so that the error must list all of them.
        let error = chosen("forw", "batch", &[("dtype", "f32")], tests());
        assert_eq!(error.unwrap(), "model::forward::dtype_f32::batch_1");
        let error = chosen("forw", "batch", &[], tests()).unwrap_err();
        assert!(error.to_string().contains("forward_twice"), "{error}");
    }

    #[test]
    fn missing_cases_are_named() {
        let error_of = |name, param, cases: &[_]| chosen(name, param, cases, tests()).unwrap_err();
        let error = error_of("model", "sequence", &[]).to_string();
        assert!(error.ends_with("their cases are `batch`, `dtype`"), "{error}");
        let error = error_of("model::forward", "dtype", &[("batch", "1")]).to_string();
        assert!(error.contains("is `f32`") || error.contains("is `bf16`"), "{error}");
        let error = error_of("model::forward", "batch", &[("dtype", "f16")]).to_string();
        assert!(error.contains("`dtype=f16`") && error.contains("dtype=bf16"), "{error}");
        let error = chosen("other", "batch", &[], vec![task("other", &[])]).unwrap_err();
        assert!(error.to_string().ends_with("these tests have no cases"), "{error}");
        assert!(matches!(chosen("x", "batch", &[], Vec::new()), Err(FitError::None(..))));
    }

    #[test]
    fn the_cpu_has_no_capacity() {
        let mut task = task("forward", &[("batch", "1")]);
        task.leg.kind = DeviceKind::Cpu;
        task.leg.device = Request::Cpu;
        assert!(matches!(
            chosen("forward", "batch", &[], vec![task]),
            Err(FitError::NoCapacity(_))
        ));
    }
}
