//! The limits of what one measured iteration allocates: `allocations-limit` and `allocated-limit`.

use std::cmp::Reverse;

use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::limits::Limits;
use crate::measurement::record::{Record, SpaceRecord};
use crate::measurement::traffic::Traffic;
use crate::size::{both, counted, exact};
use crate::space::Space;

pub(super) fn code(traffic: Traffic) -> Code {
    match traffic {
        Traffic::Allocations => Code::AllocationsLimit,
        Traffic::Bytes => Code::AllocatedLimit,
    }
}

/// The name of the limit, as a message has it.
pub(super) fn name(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Allocations => "`max_allocations`",
        Traffic::Bytes => "`max_allocated`",
    }
}

pub(super) fn judge(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Vec<Finding> {
    let exceeding = Traffic::ALL.into_iter().filter_map(|traffic| {
        let (most, limit) = (traffic.most(measured)?, traffic.limit(limits)?);
        if most <= limit {
            return None;
        }
        let mut sites = blame::allocating(record, space);
        let message = match traffic {
            Traffic::Allocations => format!(
                "an iteration makes {} in {space} (limit {})",
                counted(most, "allocation", "allocations"),
                exact(limit)
            ),
            Traffic::Bytes => {
                sites.sort_by_key(|site| Reverse(site.bytes));
                format!("an iteration allocates {} in {space} (limit {})", both(most), both(limit))
            }
        };
        Some(Finding {
            space: Some(space),
            figure: Some(most),
            limit: Some(limit),
            sites,
            ..Finding::new(code(traffic), message)
        })
    });
    exceeding.collect()
}
