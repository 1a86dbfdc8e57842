//! A comparison as one line of JSON. Fields can be added, but must not be changed.

use serde::Serialize;

use super::update::UpdatedPackage;
use super::{ComparedRuns, Side, UpdateReport};
use crate::comparison::runs::{ChangedTest, FailingTest, TestId};
use crate::presentation::presenters::json;
use crate::system::printing::print_raw;

const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "comparison")]
struct ComparisonLine<'a> {
    version: u32,
    base: SideObject<'a>,
    head: SideObject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updates: Option<Vec<UpdatedPackage<'a>>>,
    worse: usize,
    changed: Vec<ChangedObject<'a>>,
    added: &'a [TestId],
    removed: &'a [TestId],
    unchanged: usize,
    failing: &'a [FailingTest],
}

#[derive(Debug, Serialize)]
struct SideObject<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    tests: usize,
}

impl<'a> SideObject<'a> {
    fn of(side: &'a Side) -> Self {
        Self { name: &side.name, commit: side.commit.as_deref(), tests: side.tests }
    }
}

#[derive(Debug, Serialize)]
struct ChangedObject<'a> {
    #[serde(flatten)]
    test: &'a ChangedTest,
    worse: bool,
}

pub(super) fn lines(compared: &ComparedRuns) -> String {
    let ComparedRuns { base, head, update, comparison } = compared;
    let changed = comparison.changed.iter();
    let line = ComparisonLine {
        version: VERSION,
        base: SideObject::of(base),
        head: SideObject::of(head),
        updates: update.as_ref().map(UpdateReport::packages),
        worse: comparison.worse(),
        changed: changed.map(|test| ChangedObject { test, worse: test.is_worse() }).collect(),
        added: &comparison.added,
        removed: &comparison.removed,
        unchanged: comparison.unchanged,
        failing: &comparison.failing,
    };
    json::text(&line) + "\n"
}

pub(crate) fn print(compared: &ComparedRuns) {
    print_raw(&lines(compared));
}
