//! Optimizer state that is created again and kept.

use super::{Evidence, RemedyAt, Suspect, count, rate, rule};
use crate::size::counted;

rule!(
    "optimizer-recreated",
    "optimizer state is created again and kept",
    "create the optimizer once, before the loop; drop an old one before you create a new one",
    |suspect, _| is_state(suspect),
    |suspects, _| format!(
        "{} allocated by an optimizer",
        counted(count(suspects), "surviving block was", "surviving blocks were")
    );
    with_condition(is_without_variables),
    at_lines(RemedyAt::Allocating(|at| format!(
        "create the optimizer of {at} once, before the loop; drop an old one before you create a new one"
    )))
);

fn is_state(suspect: &Suspect<'_>) -> bool {
    suspect.stack.is_optimizer() && !suspect.stack.is_backward()
}

/// A program that keeps models with their optimizers also keeps the variables. AdamW has two moments
/// of the size of a variable.
fn is_without_variables(state: &[&Suspect<'_>], evidence: &Evidence<'_>) -> bool {
    let variables = evidence
        .growing()
        .filter(|suspect| !is_state(suspect) && suspect.mostly(suspect.survivors.held.variables));
    let variables: Vec<&Suspect<'_>> = variables.collect();
    2 * rate(&variables) < rate(state)
}
