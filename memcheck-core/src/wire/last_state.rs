//! The state that a test process keeps next to its report while it runs: the iteration that it is
//! in, and the call stack of a thread that a signal is about to end or has asked for its stack. The
//! system keeps the file of a process that was killed, so that its parent can name the moment and the
//! line.
//!
//! The file begins with [`WORDS`] numbers, which the process maps into its memory, so that a signal
//! handler can store them without a call of the system. The folders of the sources follow as JSON.

use std::path::{Path, PathBuf};

use crate::input;
use crate::measurement::stack::Sources;
use crate::size::both;

/// The numbers at the beginning of the file.
pub const WORDS: usize = 256;
/// The position of the first call of the stack.
pub const FIRST_CALL: usize = 9;
/// The most calls of the stack. The innermost ones are kept.
pub const MOST_CALLS: usize = WORDS - FIRST_CALL;

/// SIGURG on Linux, which asks a process for the call stack of the thread that runs its iterations. The
/// system ignores it in a process that has no handler for it.
pub const STACK_SIGNAL: i32 = 23;

/// The first number. Another layout gets another number.
const LAYOUT: u64 = 0x6D65_6D63_6865_6302;

/// The position of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Word {
    /// The layout of the file.
    Layout = 0,
    /// The [`Moment`].
    Moment = 1,
    /// Live bytes of the host at that moment.
    Live = 2,
    /// The iterations of the warm-up.
    Warmup = 3,
    /// The measured iterations.
    Measured = 4,
    /// The signal that is about to end the process, or [`STACK_SIGNAL`]; 0 if there is none. It is
    /// stored after the calls.
    Signal = 5,
    /// The number of calls.
    Calls = 6,
    /// The system's number of the thread that runs the iterations; 0 before the body begins.
    Thread = 7,
    /// The line of the test's file that calls the iterations; 0 if it is not known.
    Iterates = 8,
}

/// How far the iterations of a test have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// No iteration has begun.
    BeforeIterations,
    /// An iteration, by its index, which counts the warm-up too.
    In(u32),
    /// After the end of this iteration.
    After(u32),
    /// The body runs again, because it has left memory behind.
    FurtherRound,
}

impl Moment {
    /// The moment as one number, so that it is never half stored.
    pub fn encode(self) -> u64 {
        match self {
            Self::BeforeIterations => 0,
            Self::In(index) => 1 | u64::from(index) << 2,
            Self::After(index) => 2 | u64::from(index) << 2,
            Self::FurtherRound => 3,
        }
    }

    fn decode(word: u64) -> Option<Self> {
        let index = u32::try_from(word >> 2).ok()?;
        Some(match word & 3 {
            0 => Self::BeforeIterations,
            1 => Self::In(index),
            2 => Self::After(index),
            _ => Self::FurtherRound,
        })
    }
}

/// The calls of the thread that received a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalStack {
    /// The number of the signal, which was about to end the process or is [`STACK_SIGNAL`].
    pub signal: i32,
    /// The calls as addresses in the executable, innermost first.
    pub calls: Vec<u64>,
}

/// The last known state of a test process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastState {
    /// How far its iterations have come.
    pub moment: Moment,
    /// Live bytes of the host when the iteration of `moment` began or ended.
    pub live: u64,
    /// The iterations of its warm-up.
    pub warmup: u64,
    /// Its measured iterations.
    pub measured: u64,
    /// The last signal, if the process could store it.
    pub stack: Option<SignalStack>,
    /// The line of the test's file that calls the iterations.
    pub iterates: Option<u32>,
    /// True if a thread has begun the body, so that it can be asked for its stack.
    pub has_body: bool,
    /// The folders of source files in the executable's line tables.
    pub sources: Sources,
}

/// The path of the state of the process that writes its report to `report`.
pub fn path(report: &Path) -> PathBuf {
    report.with_extension("state")
}

/// The content of the file when the process begins.
pub fn initial(warmup: u32, measured: u32, sources: &Sources) -> Vec<u8> {
    let mut words = [0u64; WORDS];
    words[Word::Layout as usize] = LAYOUT;
    words[Word::Warmup as usize] = warmup.into();
    words[Word::Measured as usize] = measured.into();
    let mut content: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    content.extend(serde_json::to_vec(sources).unwrap_or_default());
    content
}

impl LastState {
    /// Reads the state next to a report. `None` if the process has not stored one that is valid: a
    /// runtime without this file, or a test that has damaged it.
    pub fn read(report: &Path) -> Option<Self> {
        Self::parse(&input::read(&path(report), input::LAST_STATE).ok()?)
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let (words, sources) = content.split_at_checked(WORDS * size_of::<u64>())?;
        let (words, _) = words.as_chunks::<{ size_of::<u64>() }>();
        let word = |at: Word| u64::from_ne_bytes(words[at as usize]);
        if word(Word::Layout) != LAYOUT {
            return None;
        }
        let count = usize::try_from(word(Word::Calls)).ok().filter(|count| *count <= MOST_CALLS)?;
        let calls = &words[FIRST_CALL..FIRST_CALL + count];
        let signal = i32::try_from(word(Word::Signal)).ok()?;
        Some(Self {
            moment: Moment::decode(word(Word::Moment))?,
            live: word(Word::Live),
            warmup: word(Word::Warmup),
            measured: word(Word::Measured),
            iterates: u32::try_from(word(Word::Iterates)).ok().filter(|line| *line > 0),
            has_body: word(Word::Thread) != 0,
            stack: (signal != 0).then(|| SignalStack {
                signal,
                calls: calls.iter().map(|call| u64::from_ne_bytes(*call)).collect(),
            }),
            sources: serde_json::from_slice(sources).ok()?,
        })
    }

    /// The moment in words, such as `in iteration 5 of 12`.
    pub fn moment_text(&self) -> String {
        match self.moment {
            Moment::BeforeIterations => "before the first iteration".to_owned(),
            Moment::In(index) => format!("in {}", self.iteration(index)),
            Moment::After(index)
                if u64::from(index) + 1 == self.warmup.saturating_add(self.measured) =>
            {
                "after the last measured iteration".to_owned()
            }
            Moment::After(index) => format!("after {}", self.iteration(index)),
            Moment::FurtherRound => "while the body ran again, after its iterations".to_owned(),
        }
    }

    /// The line of the test's file that calls the iterations, if one of them is running.
    pub fn iterates_at(&self) -> Option<u32> {
        self.iterates.filter(|_| matches!(self.moment, Moment::In(_)))
    }

    /// The live bytes of the host at that moment; `None` if no iteration has begun.
    pub fn live(&self) -> Option<u64> {
        match self.moment {
            Moment::BeforeIterations | Moment::FurtherRound => None,
            Moment::In(_) | Moment::After(_) => Some(self.live),
        }
    }

    /// The same in words.
    pub fn live_text(&self) -> Option<String> {
        let live = both(self.live()?);
        let when = if matches!(self.moment, Moment::After(_)) { "had ended" } else { "began" };
        Some(format!("{live} were live on the host when that iteration {when}"))
    }

    fn iteration(&self, index: u32) -> String {
        let number = u64::from(index) + 1;
        let (warmup, measured) = (self.warmup, self.measured);
        let all = warmup.saturating_add(measured);
        // Counted with the warm-up, as in all other texts.
        if number <= warmup {
            format!("iteration {number} of {all}, in the warm-up")
        } else if number <= all {
            format!("iteration {number} of {all}")
        } else {
            format!("iteration {number}, which follows the {measured} measured ones")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        Sources { workspace: "/w".to_owned(), ..Sources::default() }
    }

    fn put(content: &mut [u8], at: usize, word: u64) {
        content[at * 8..][..8].copy_from_slice(&word.to_ne_bytes());
    }

    #[test]
    fn a_state_is_read_as_it_was_stored() {
        let mut content = initial(2, 10, &sources());
        let begun = LastState::parse(&content).unwrap();
        assert_eq!((begun.moment, begun.stack, begun.live), (Moment::BeforeIterations, None, 0));
        assert_eq!((begun.has_body, begun.iterates), (false, None));
        assert_eq!((begun.warmup, begun.measured, begun.sources), (2, 10, sources()));
        put(&mut content, Word::Moment as usize, Moment::In(4).encode());
        put(&mut content, Word::Live as usize, 4_096);
        put(&mut content, Word::Thread as usize, 77);
        put(&mut content, Word::Iterates as usize, 41);
        put(&mut content, Word::Signal as usize, 11);
        put(&mut content, Word::Calls as usize, 2);
        put(&mut content, FIRST_CALL, 7);
        put(&mut content, FIRST_CALL + 1, 9);
        let died = LastState::parse(&content).unwrap();
        assert_eq!(died.stack, Some(SignalStack { signal: 11, calls: vec![7, 9] }));
        assert_eq!((died.has_body, died.iterates), (true, Some(41)));
        assert_eq!(died.moment_text(), "in iteration 5 of 12");
        let live = "4,096 B (4.00 KiB) were live on the host when that iteration began";
        assert_eq!(died.live_text().as_deref(), Some(live));
    }

    #[test]
    fn a_damaged_state_is_none() {
        let whole = initial(2, 10, &sources());
        assert!(LastState::parse(&whole).is_some());
        let damaged = |at: Word, word| {
            let mut content = whole.clone();
            put(&mut content, at as usize, word);
            LastState::parse(&content)
        };
        assert_eq!(damaged(Word::Layout, 1), None);
        assert_eq!(damaged(Word::Calls, MOST_CALLS as u64 + 1), None);
        assert_eq!(damaged(Word::Moment, u64::MAX), None);
        assert_eq!(damaged(Word::Signal, u64::MAX), None);
        for length in [0, 7, WORDS * 8, whole.len() - 1] {
            assert_eq!(LastState::parse(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn every_moment_has_its_words() {
        let of = |moment: Moment| {
            assert_eq!(Moment::decode(moment.encode()), Some(moment));
            let content = initial(2, 10, &sources());
            LastState { moment, ..LastState::parse(&content).unwrap() }
        };
        for (moment, text, has_live) in [
            (Moment::BeforeIterations, "before the first iteration", false),
            (Moment::In(0), "in iteration 1 of 12, in the warm-up", true),
            (Moment::In(2), "in iteration 3 of 12", true),
            (Moment::After(4), "after iteration 5 of 12", true),
            (Moment::After(11), "after the last measured iteration", true),
            (
                Moment::In(u32::MAX),
                "in iteration 4294967296, which follows the 10 measured ones",
                true,
            ),
            (Moment::FurtherRound, "while the body ran again, after its iterations", false),
        ] {
            let state = of(moment);
            assert_eq!(
                (state.moment_text().as_str(), state.live_text().is_some()),
                (text, has_live)
            );
        }
    }
}
