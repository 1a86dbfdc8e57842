//! Bytes of the host that do not belong to a tensor, in bodies without a device. Each `leaky` and
//! `fixed` is one iteration.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::{Family, HISTORY, Scenario, scenario};

const SOURCE: &str = include_str!("host.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, iteration one_kib_in_a_static, "buffers-kept", Steady),
    scenario!(SOURCE, iteration answers_by_prompt, "buffers-kept", Steady),
    scenario!(SOURCE, iteration boxes_leaked_for_a_lifetime, "buffers-kept", Steady),
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The smallest leak that the host shows as a block.
pub mod one_kib_in_a_static {
    use super::*;

    static LINES: LazyLock<Mutex<Vec<Vec<u8>>>> =
        LazyLock::new(|| Mutex::new(Vec::with_capacity(HISTORY / 2)));

    /// One line.
    pub fn bytes(_leg: Family) -> u64 {
        1 << 10
    }

    /// Keeps every line.
    pub fn leaky() {
        // leaks: one_kib_in_a_static
        let line = vec![b'-'; 1 << 10];
        lock(&LINES).push(line);
    }

    /// Keeps the last line.
    pub fn fixed() {
        lock(&LINES).clear();
        leaky();
    }
}

/// Answers of a server by their prompt. Every prompt is a new one.
pub mod answers_by_prompt {
    use super::*;

    type Answers = HashMap<usize, String>;

    static ANSWERS: LazyLock<Mutex<Answers>> =
        LazyLock::new(|| Mutex::new(Answers::with_capacity(HISTORY)));

    /// One answer.
    pub fn bytes(_leg: Family) -> u64 {
        3 << 10
    }

    /// Keeps every answer.
    pub fn leaky() {
        let mut answers = lock(&ANSWERS);
        let prompt = answers.len();
        // leaks: answers_by_prompt
        answers.insert(prompt, "word".repeat(3 << 8));
    }

    /// Keeps at most four answers.
    pub fn fixed() {
        if lock(&ANSWERS).len() == 4 {
            lock(&ANSWERS).clear();
        }
        leaky();
    }
}

/// Strings that are leaked to be `&'static`.
pub mod boxes_leaked_for_a_lifetime {
    use super::*;

    /// One of 4,096 bytes, one of 2,048.
    pub fn bytes(_leg: Family) -> u64 {
        4_096 + 2_048
    }

    #[inline(never)]
    fn vocabulary(bytes: usize) -> Box<[u8]> {
        // leaks: boxes_leaked_for_a_lifetime
        vec![0; bytes].into_boxed_slice()
    }

    /// Leaks both.
    pub fn leaky() {
        Box::leak(vocabulary(4_096));
        Box::leak(vocabulary(2_048));
    }

    /// Drops both.
    pub fn fixed() {
        drop(vocabulary(4_096));
        drop(vocabulary(2_048));
    }
}
