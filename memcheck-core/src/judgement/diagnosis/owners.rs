//! The lists, maps, channels, tasks and threads that can own memory, by the functions that use them.

use std::collections::{HashMap, HashSet};

use super::Suspect;
use crate::judgement::head_line::HeadLine;
use crate::measurement::attribution::Attribution;
use crate::measurement::stack::{Frame, Owner, Passage, Stack};

/// The functions that store something in a map, in a channel or in a list of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    functions: HashMap<Passage, HashSet<String>>,
    lists: Vec<List>,
}

/// A list whose buffer is kept.
#[derive(Debug, Clone)]
struct List {
    /// The function that makes it longer.
    function: String,
    file: String,
    line: u32,
    bytes: u64,
}

/// A `Tensor` is a pointer, and no entry that holds one is smaller.
const SMALLEST_ENTRY: u64 = 8;

impl Owners {
    pub(super) fn of(attribution: &Attribution) -> Self {
        let mut functions: HashMap<Passage, HashSet<String>> = HashMap::new();
        for stack in &attribution.stacks {
            for &passage in &stack.through {
                functions.entry(passage).or_default().extend(user(stack).map(Frame::path));
            }
        }
        let lists = attribution.survivors.iter().filter_map(|survivors| {
            let stack = attribution.stacks.get(survivors.stack)?;
            let frame = user(stack).filter(|_| stack.through.contains(&Passage::List))?;
            let bytes = survivors.group.live_bytes.last().copied().unwrap_or(0);
            let (file, line) = (frame.file.clone()?, frame.line?);
            Some(List { function: frame.path(), file, line, bytes })
        });
        Self { functions, lists: lists.collect() }
    }

    /// True if memory of this stack can be in a map or in a channel: its allocation passed through
    /// one, or a function that called it stores something in one.
    pub(super) fn stores(&self, stack: &Stack, passage: Passage) -> bool {
        let users = self.functions.get(&passage);
        let of_function =
            |users: &HashSet<String>| callers(stack).any(|it| users.contains(&it.path()));
        stack.through.contains(&passage) || users.is_some_and(of_function)
    }

    /// The list that can hold the memory of a suspect: it is large enough, and a function of the
    /// program that called the allocation in the iteration makes it longer. `None` if the innermost
    /// such function has several.
    fn list(&self, suspect: &Suspect<'_>) -> Option<&List> {
        let group = &suspect.survivors.group;
        let in_each = group.births.iter().max().copied().unwrap_or(0).max(1);
        let needed = SMALLEST_ENTRY.saturating_mul(group.count() / in_each);
        let is_enough = |list: &&List| list.bytes >= needed;
        let functions = suspect.stack.of_iteration().iter().map(Frame::path);
        let of = |function| self.lists.iter().filter(move |list| list.function == function);
        let mut found = functions.map(|it| of(it).filter(is_enough).collect::<Vec<_>>());
        let mut lists = found.find(|lists| !lists.is_empty())?;
        let list = lists.pop()?;
        lists.is_empty().then_some(list)
    }

    /// The line of the list that can hold the memory of a suspect.
    pub(super) fn list_of(&self, suspect: &Suspect<'_>) -> Option<HeadLine> {
        let List { function, file, line, .. } = self.list(suspect)?.clone();
        Some(HeadLine { file, line, function: Some(function) })
    }

    /// True if the innermost function that can have stored the memory has a list that can hold it.
    pub(super) fn can_be_in_list(&self, suspect: &Suspect<'_>) -> bool {
        let Some(list) = self.list(suspect) else { return false };
        let maps = self.functions.get(&Passage::Map);
        let mut paths = callers(suspect.stack).map(Frame::path);
        let is_store =
            |path: &String| *path == list.function || maps.is_some_and(|maps| maps.contains(path));
        paths.find(is_store).is_some_and(|path| path == list.function)
    }

    /// A question for the user about the likely owner, from the largest of the suspects; empty if
    /// their stacks show none.
    pub(super) fn question(&self, suspects: &[&Suspect<'_>]) -> String {
        let Some(suspect) = suspects.first() else { return String::new() };
        let stack = suspect.stack;
        let list = self.list(suspect);
        let started = |passage| stack.through.contains(&passage);
        let question = match () {
            () if started(Passage::Task) => "a task of an async runtime made them: does it end?",
            () if started(Passage::Thread) => {
                "a thread that the program started made them: does it end?"
            }
            () if self.stores(stack, Passage::Channel) => {
                "the same function sends to a channel: are its messages received?"
            }
            () => match (self.stores(stack, Passage::Map), list) {
                (true, None) => "the same function adds to a map: are its entries removed?",
                (false, None) => return String::new(),
                (is_map, Some(List { file, line, .. })) => {
                    let map = if is_map { ", and the same function to a map" } else { "" };
                    return format!(
                        "; {file}:{line} adds to a list{map}: are the entries removed?"
                    );
                }
            },
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

/// The innermost frame that does not belong to a map, channel or list. candle's own maps, such as that
/// of a `VarMap`, are not caches.
fn user(stack: &Stack) -> Option<&Frame> {
    let user = stack.frames.iter().find(|frame| frame.mark().is_none());
    user.filter(|frame| !is_operation(frame))
}
