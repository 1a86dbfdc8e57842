//! The code of std, of async runtimes and of this tool that a call passed through. Reports do not
//! show these frames, but they prove who can own the memory.

use serde::{Deserialize, Serialize};

use super::frame::{is_closure, plain};
use super::{Frame, Owner};

/// What a call passed through, as far as its owner can be concluded from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Passage {
    /// A task of an async runtime.
    Task,
    /// A thread that the program started.
    Thread,
    /// The sending half of a channel, called by the program.
    Channel,
    /// A map: it adds an entry, or the closure for a missing entry runs.
    Map,
    /// A list (`Vec`, `VecDeque`, `BinaryHeap`) that the program makes longer.
    List,
}

/// The meaning of one frame. It depends on the frame alone, so that each is classified once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameMark {
    /// It passes a call on.
    Through(Passage),
    /// It repeats the body of a test.
    Iterate,
    /// It runs the test, so that the thread is that of the test.
    Test,
    /// It runs jobs on threads of a pool, which outlive a job.
    Pool,
}

/// The crates whose `send` stores a message.
const CHANNELS: [&str; 4] = ["crossbeam_channel", "flume", "async_channel", "kanal"];
const MAPS: [&str; 3] = ["hashbrown", "indexmap", "dashmap"];
/// Methods of maps that add an entry or make room for one.
const ADDS: [&str; 5] = ["insert", "or_default", "reserve", "capacity", "extend"];
/// The modules of std and tokio with a meaning.
const MODULES: [(&str, Passage); 7] = [
    ("tokio::runtime::task::", Passage::Task),
    ("std::thread::", Passage::Thread),
    ("std::sync::mpsc::", Passage::Channel),
    ("std::sync::mpmc::", Passage::Channel),
    ("tokio::sync::mpsc::", Passage::Channel),
    ("collections::hash::", Passage::Map),
    ("alloc::raw_vec::", Passage::List),
];

impl Frame {
    /// The mark of the frame; `None` if it has no meaning for the owner of memory.
    pub(crate) fn mark(&self) -> Option<FrameMark> {
        // Without type arguments, which can name any type and its module.
        let path = plain(&self.function);
        let method = path.rsplit("::").find(|segment| !is_closure(segment))?;
        let krate = self.krate();
        match krate {
            "memcheck_runtime" if method.starts_with("iterate") => return Some(FrameMark::Iterate),
            "memcheck_runtime" => {
                let is_test = path.starts_with("memcheck_runtime::entry");
                return is_test.then_some(FrameMark::Test);
            }
            "rayon" | "rayon_core" => return Some(FrameMark::Pool),
            "async_task" => return Some(FrameMark::Through(Passage::Task)),
            _ => {}
        }
        let is_map = || {
            let file = self.file.as_deref().unwrap_or_default();
            path.contains("collections::btree::map") || file.contains("/hashbrown-")
        };
        let of_module = || {
            let found = MODULES.iter().find(|(module, _)| path.contains(module));
            found.map(|(_, passage)| *passage)
        };
        let passage = match () {
            () if MAPS.contains(&krate) || is_map() => Passage::Map,
            () if CHANNELS.contains(&krate) => Passage::Channel,
            () => of_module()?,
        };
        // A module has functions without a meaning too, such as `LocalKey::with`, `recv` and `get`.
        let meaning: &[&str] = match passage {
            Passage::Thread => &["spawn"],
            Passage::Channel => &["send"],
            Passage::Map => &ADDS,
            Passage::List => &["grow"],
            Passage::Task => &[""],
        };
        let has_meaning = meaning.iter().any(|part| method.contains(part));
        has_meaning.then_some(FrameMark::Through(passage))
    }
}

/// The frames outside of the innermost iteration, and what the call passed through. `frames` are
/// all frames of a call, the innermost first.
pub(super) fn passages(frames: &[(&Frame, Owner, Option<FrameMark>)]) -> (usize, Vec<Passage>) {
    let marks = || frames.iter().map(|(_, _, mark)| *mark);
    let iterate = marks().position(|mark| mark == Some(FrameMark::Iterate));
    let outside = iterate.map_or(0, |iterate| frames.len() - iterate);
    let is_of_test = marks()
        .any(|mark| matches!(mark, Some(FrameMark::Test | FrameMark::Iterate | FrameMark::Pool)));
    let mut passages: Vec<Passage> = Vec::new();
    for (at, mark) in marks().enumerate() {
        let Some(FrameMark::Through(passage)) = mark else { continue };
        let is_proof = match passage {
            Passage::Task | Passage::Map => true,
            Passage::Thread => !is_of_test,
            Passage::Channel => is_called_by_program(&frames[at + 1..]),
            Passage::List => is_called_by_program(&frames[at + 1..]) && !is_text(frames),
        };
        if is_proof && !passages.contains(&passage) {
            passages.push(passage);
        }
    }
    // A runtime runs its tasks on threads of its own.
    if passages.contains(&Passage::Task) {
        passages.retain(|passage| *passage != Passage::Thread);
    }
    // A map that keeps its entries in a list.
    if passages.contains(&Passage::Map) {
        passages.retain(|passage| *passage != Passage::List);
    }
    passages.sort();
    (outside, passages)
}

/// A dependency has channels of its own, which the program cannot empty.
fn is_called_by_program(callers: &[(&Frame, Owner, Option<FrameMark>)]) -> bool {
    let mut callers = callers.iter().filter(|(_, owner, mark)| {
        *owner != Owner::Plumbing && !matches!(mark, Some(FrameMark::Through(_)))
    });
    callers.next().is_some_and(|(_, owner, _)| *owner == Owner::User)
}

/// True if the list has the bytes of a `String`.
fn is_text(frames: &[(&Frame, Owner, Option<FrameMark>)]) -> bool {
    let mut std = frames.iter().take_while(|(_, owner, _)| *owner == Owner::Plumbing);
    std.any(|(frame, ..)| plain(&frame.function).contains("string::String"))
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::super::tests::{CANDLE, frame};
    use super::*;

    const STD: &str = "/rustc/ab/library/std/src/x.rs";
    const TOKIO: &str = "/home/u/.cargo/registry/src/i/tokio-1.0.0/src/runtime/task/core.rs";
    const LIBRARY: &str = "/home/u/.cargo/registry/src/i/tower-1.0.0/src/lib.rs";

    fn through(functions: &[(&str, &str)]) -> Vec<Passage> {
        Stack::trimmed(functions.iter().map(|(function, file)| frame(function, file))).through
    }

    #[test]
    fn a_task_a_thread_a_channel_a_map_and_a_list_of_the_program_are_recognized() {
        let zeros = ("candle_core::tensor::Tensor::zeros", CANDLE);
        let (app, closure) = (("app::f", "src/f.rs"), ("app::f::{{closure}}", "src/f.rs"));
        let spawn = ("std::thread::Builder::spawn_unchecked_::{{closure}}", STD);
        let entry = ("memcheck_runtime::entry::session::body", "memcheck-runtime/src/x.rs");
        let task = ("tokio::runtime::task::core::Core<T,S>::poll", TOKIO);
        let pool = ("rayon_core::registry::WorkerThread::wait", LIBRARY);
        assert_eq!(through(&[zeros, closure, spawn]), [Passage::Thread]);
        assert_eq!(through(&[zeros, closure, task, spawn]), [Passage::Task]);
        // libtest starts a thread for the test, and rayon's threads are not the program's.
        assert_eq!(through(&[zeros, app, entry, spawn]), []);
        assert_eq!(through(&[zeros, closure, pool, spawn]), []);

        let send = ("std::sync::mpmc::list::Channel<T>::send", STD);
        let receive = ("std::sync::mpmc::list::Channel<T>::recv", STD);
        assert_eq!(through(&[send, app, entry]), [Passage::Channel]);
        assert_eq!(through(&[receive, app, entry]), []);
        let entry_of_map = ("std::collections::hash::map::Entry<K,V>::or_insert_with", STD);
        let table = ("hashbrown::raw::RawTable<T,A>::reserve_rehash", STD);
        assert_eq!(through(&[zeros, closure, entry_of_map, app, entry]), [Passage::Map]);
        assert_eq!(through(&[table, app, entry]), [Passage::Map]);
        let of_type = (
            "<hashbrown::raw::RawTable<(usize, candle_core::tensor::Tensor)>>::reserve_rehash::<\
             hashbrown::map::make_hasher<usize, std::hash::random::RandomState>::{closure#0}>",
            STD,
        );
        assert_eq!(through(&[of_type, app, entry]), [Passage::Map]);
        let argument =
            ("<app::Pool<std::collections::hash::map::HashMap<K,V>>>::insert", "src/f.rs");
        assert_eq!(through(&[zeros, argument, entry]), []);
        let iterator = ("hashbrown::map::IterMut<K,V>::for_each", STD);
        assert_eq!(through(&[zeros, closure, iterator, app, entry]), []);
        assert_eq!(through(&[table, ("tower::call", LIBRARY), app, entry]), [Passage::Map]);
        // A channel of a dependency.
        assert_eq!(through(&[send, ("tower::call", LIBRARY), app, entry]), []);
        let grow = ("alloc::raw_vec::RawVecInner<A>::grow_amortized", STD);
        let push = ("alloc::vec::Vec<T,A>::push", STD);
        let text = ("alloc::string::String::push_str", STD);
        let sized = ("alloc::raw_vec::RawVec<T,A>::with_capacity_in", STD);
        assert_eq!(through(&[grow, push, app, entry]), [Passage::List]);
        assert_eq!(through(&[grow, push, text, app, entry]), []);
        assert_eq!(through(&[sized, app, entry]), [], "it has its length from the beginning");
        assert_eq!(
            through(&[grow, ("indexmap::map::IndexMap<K,V>::insert", STD), app]),
            [Passage::Map]
        );
        assert_eq!(through(&[grow, push, ("candle_core::shape::x", CANDLE), app, entry]), []);
    }

    #[test]
    fn frames_outside_of_the_iteration_are_counted_without_plumbing() {
        let frames = [
            ("candle_core::tensor::Tensor::zeros", CANDLE, 1),
            ("app::step", "src/step.rs", 2),
            ("app::test::body::{{closure}}", "tests/mem.rs", 3),
            (
                "<memcheck_runtime::trial::Trial>::iterate::<E, app::test::body::{closure#0}>",
                "memcheck-runtime/src/trial.rs",
                4,
            ),
            ("app::run", "tests/mem.rs", 5),
            ("app::test::body", "tests/mem.rs", 6),
            ("app::test::__MEM_TEST::{{closure}}", "tests/mem.rs", 7),
        ];
        let stack = |frames: &[(&str, &str, u32)]| {
            let named = |(function, file, line): &(&str, &str, u32)| Frame {
                line: Some(*line),
                ..frame(function, file)
            };
            Stack::trimmed(frames.iter().map(named))
        };
        let shown = |stack: &Stack| stack.frames.len() - stack.outside;
        assert_eq!((stack(&frames).outside, shown(&stack(&frames))), (2, 3));
        // The closure is on the line that calls the iteration, which is shown once.
        let mut one_line = frames;
        one_line[4].2 = 3;
        assert_eq!((stack(&one_line).outside, shown(&stack(&one_line))), (2, 2));
        // It is the only line of the program inside of the iteration.
        let no_other = [&one_line[..1], &one_line[2..]].concat();
        assert_eq!((stack(&no_other).outside, shown(&stack(&no_other))), (1, 2));
        // Without an iteration, and with a body that is one.
        assert_eq!(stack(&frames[..3]).outside, 0);
        let iteration = [frames[0], frames[5], frames[6], frames[3], frames[6]];
        assert_eq!((stack(&iteration).outside, shown(&stack(&iteration))), (0, 2));
    }
}
