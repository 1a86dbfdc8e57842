//! A soak that ended before its time has not shown what the user asked for.

use crate::judgement::finding::{Code, Finding};
use crate::measurement::record::Record;
use crate::measurement::soak::Soaked;

pub(super) fn judge(record: &Record) -> Option<Finding> {
    let soaked = record.soaked.as_ref()?;
    let is_cut = soaked.has_begun() && soaked.ended.is_some();
    is_cut.then(|| cut_short(soaked))
}

fn cut_short(soaked: &Soaked) -> Finding {
    let message = format!("the soak ended early: {}", soaked.sentence());
    Finding::new(Code::Undecided, message)
        .hint("a soak needs a body that can iterate any number of times")
}
