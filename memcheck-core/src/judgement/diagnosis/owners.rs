//! The maps, channels, tasks and threads that can own memory, by the functions that use them.

use std::collections::{HashMap, HashSet};

use super::Suspect;
use crate::measurement::attribution::Attribution;
use crate::measurement::stack::{Frame, Owner, Passage, Stack};

/// The functions that store something in a map or in a channel of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners(HashMap<Passage, HashSet<String>>);

impl Owners {
    pub(super) fn of(attribution: &Attribution) -> Self {
        let mut owners: HashMap<Passage, HashSet<String>> = HashMap::new();
        for stack in &attribution.stacks {
            for &passage in &stack.through {
                let user = stack.frames.iter().find(|frame| frame.mark().is_none());
                // candle's own maps, such as that of a `VarMap`, are not caches.
                let user = user.filter(|frame| !is_operation(frame));
                owners.entry(passage).or_default().extend(user.map(Frame::path));
            }
        }
        Self(owners)
    }

    /// True if memory of this stack can be in a map or in a channel: its allocation passed through
    /// one, or a function that called it stores something in one.
    pub(super) fn stores(&self, stack: &Stack, passage: Passage) -> bool {
        let of_function =
            |users: &HashSet<String>| callers(stack).any(|frame| users.contains(&frame.path()));
        stack.through.contains(&passage) || self.0.get(&passage).is_some_and(of_function)
    }

    /// A question for the user about the likely owner, from the largest of the suspects; empty if
    /// their stacks show none.
    pub(super) fn question(&self, suspects: &[&Suspect<'_>]) -> String {
        let Some(stack) = suspects.first().map(|suspect| suspect.stack) else {
            return String::new();
        };
        let started = |passage| stack.through.contains(&passage);
        let question = match () {
            () if started(Passage::Task) => "a task of an async runtime made them: does it end?",
            () if started(Passage::Thread) => {
                "a thread that the program started made them: does it end?"
            }
            () if self.stores(stack, Passage::Channel) => {
                "the same function sends to a channel: are its messages received?"
            }
            () if self.stores(stack, Passage::Map) => {
                "the same function adds to a map: are its entries removed?"
            }
            () => return String::new(),
        };
        format!("; {question}")
    }
}

/// The frames of dependencies, and the innermost frame of the program, that called a function of
/// candle, a map or a channel.
fn callers(stack: &Stack) -> impl Iterator<Item = &Frame> {
    let mut is_program = false;
    let own = stack.frames.iter().take_while(move |frame| {
        let is_called_from_program = is_program;
        is_program |= frame.owner() == Owner::User;
        !is_called_from_program
    });
    own.filter(|frame| frame.mark().is_none() && !is_operation(frame))
}

fn is_operation(frame: &Frame) -> bool {
    matches!(frame.krate(), "candle_core" | "candle_nn")
}
