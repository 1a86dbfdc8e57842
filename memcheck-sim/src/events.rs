//! The CUDA events that exist, in slots. cudarc creates two for each allocation, so slots are
//! reused, and a handle leads to its event without a search.
//!
//! A handle contains the slot and the number of events that used the slot before. No handle is
//! therefore given twice, and a stale handle is always detected.

use crate::code::{Answer, Code};
use crate::handle::Handle;

/// Marks handles of events. No other handle can contain this bit.
const TAG: Handle = 1 << 62;
/// With the alignment and the 32 bits of the count, a handle stays below [`TAG`].
const SLOT_BITS: u32 = 24;
/// Handles are multiples of 16, like the driver's pointers.
const ALIGNMENT_BITS: u32 = 4;

/// The events, with the context of each.
#[derive(Debug, Default)]
pub(crate) struct Events {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// 0 if the slot is free.
    context: Handle,
    /// Number of events that used this slot before.
    before: u32,
}

impl Events {
    pub(crate) fn create(&mut self, context: Handle) -> Answer<Handle> {
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.slots.len() < 1 << SLOT_BITS => {
                self.slots.push(Slot { context: 0, before: 0 });
                self.slots.len() as u32 - 1
            }
            None => return Err(Code::OUT_OF_MEMORY),
        };
        let slot = &mut self.slots[at as usize];
        slot.context = context;
        Ok(handle(at, slot.before))
    }

    pub(crate) fn context(&self, event: Handle) -> Answer<Handle> {
        self.find(event).map(|at| self.slots[at as usize].context)
    }

    pub(crate) fn destroy(&mut self, event: Handle) -> Answer {
        let at = self.find(event)?;
        self.release_slot(at);
        Ok(())
    }

    /// Destroys the events of a context.
    pub(crate) fn destroy_all_of(&mut self, context: Handle) {
        for at in 0..self.slots.len() as u32 {
            if self.slots[at as usize].context == context {
                self.release_slot(at);
            }
        }
    }

    fn release_slot(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        slot.context = 0;
        // A slot whose count would overflow is not reused.
        if let Some(before) = slot.before.checked_add(1) {
            slot.before = before;
            self.free.push(at);
        }
    }

    fn find(&self, event: Handle) -> Answer<u32> {
        let at = (event >> ALIGNMENT_BITS) as u32 & ((1 << SLOT_BITS) - 1);
        match self.slots.get(at as usize) {
            Some(slot) if slot.context != 0 && handle(at, slot.before) == event => Ok(at),
            _ => Err(Code::INVALID_HANDLE),
        }
    }
}

fn handle(at: u32, before: u32) -> Handle {
    TAG | Handle::from(before) << (SLOT_BITS + ALIGNMENT_BITS) | Handle::from(at) << ALIGNMENT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reused_and_its_stale_handles_are_detected() {
        let mut events = Events::default();
        let (a, b) = (events.create(5).unwrap(), events.create(6).unwrap());
        assert_eq!((events.context(a), events.context(b)), (Ok(5), Ok(6)));
        events.destroy(a).unwrap();
        let c = events.create(7).unwrap();
        assert_eq!(events.slots.len(), 2);
        for stale in [0, a, a + 1, c + 16, b & !TAG] {
            assert_eq!(events.context(stale), Err(Code::INVALID_HANDLE));
            assert_eq!(events.destroy(stale), Err(Code::INVALID_HANDLE));
        }
        assert_eq!((events.context(b), events.context(c)), (Ok(6), Ok(7)));
    }

    #[test]
    fn events_end_with_their_context() {
        let mut events = Events::default();
        let [a, b, c] = [5, 6, 5].map(|context| events.create(context).unwrap());
        events.destroy_all_of(5);
        assert_eq!([a, b, c].map(|event| events.context(event).ok()), [None, Some(6), None]);
        assert_eq!(events.free.len(), 2);
    }

    #[test]
    fn a_slot_whose_count_would_overflow_is_not_reused() {
        let mut events = Events::default();
        let first = events.create(5).unwrap();
        events.destroy(first).unwrap();
        events.slots[0].before = u32::MAX;
        let last = events.create(5).unwrap();
        events.destroy(last).unwrap();
        assert_ne!(events.create(5), Ok(last));
        assert_eq!(events.slots.len(), 2);
    }
}
