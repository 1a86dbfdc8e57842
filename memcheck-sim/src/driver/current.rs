//! The stack of contexts of each thread, and the thread's device of the runtime API.
//!
//! The thread-locals must not have a destructor, because a thread that ends can still free memory
//! while its other thread-locals are being dropped.

use std::cell::Cell;

use crate::code::{Answer, Code};
use crate::machine::Handle;

/// Fixed, because a stack that grows would need a destructor.
const DEPTH: usize = 32;

/// The contexts of a thread; the last is the current one.
struct Stack {
    contexts: [Cell<Handle>; DEPTH],
    depth: Cell<usize>,
}

thread_local! {
    static STACK: Stack = const {
        Stack { contexts: [const { Cell::new(0) }; DEPTH], depth: Cell::new(0) }
    };
    static RUNTIME_DEVICE: Cell<i32> = const { Cell::new(0) };
}

/// Returns the current context, or 0 for none.
pub(crate) fn get() -> Handle {
    STACK.with(|stack| stack.depth.get().checked_sub(1).map_or(0, |top| stack.contexts[top].get()))
}

/// Replaces the top of the stack; 0 removes it.
pub(crate) fn set(context: Handle) -> Answer {
    if get() != 0 {
        pop()?;
    }
    if context == 0 { Ok(()) } else { push(context) }
}

pub(crate) fn push(context: Handle) -> Answer {
    STACK.with(|stack| {
        let depth = stack.depth.get();
        stack.contexts.get(depth).ok_or(Code::INVALID_VALUE)?.set(context);
        stack.depth.set(depth + 1);
        Ok(())
    })
}

pub(crate) fn pop() -> Answer<Handle> {
    STACK.with(|stack| {
        let top = stack.depth.get().checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        stack.depth.set(top);
        Ok(stack.contexts[top].get())
    })
}

/// Returns the device that `cudaSetDevice` has selected on this thread.
pub(crate) fn runtime_device() -> i32 {
    RUNTIME_DEVICE.get()
}

pub(crate) fn set_runtime_device(ordinal: i32) {
    RUNTIME_DEVICE.set(ordinal);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_contexts_behaves_like_the_drivers() {
        assert_eq!(get(), 0);
        assert_eq!(pop(), Err(Code::INVALID_CONTEXT));
        set(5).unwrap();
        push(6).unwrap();
        set(7).unwrap();
        assert_eq!(get(), 7);
        set(0).unwrap();
        assert_eq!(get(), 5);
        assert_eq!(pop(), Ok(5));
        for _ in 0..DEPTH {
            push(1).unwrap();
        }
        assert_eq!(push(1), Err(Code::INVALID_VALUE));
        assert_eq!(std::thread::spawn(get).join().unwrap(), 0);
    }
}
