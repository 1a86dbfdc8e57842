//! Differences between processors: registers and the positions of return addresses.

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

/// The start of a walk. PERF: unwinding needs more registers, but most walks do not unwind.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkStart {
    pub(in crate::site) ip: u64,
    pub(in crate::site) sp: u64,
    bp: u64,
    /// On this processor the return address is in a register.
    #[cfg(target_arch = "aarch64")]
    lr: u64,
}

/// The registers after a return, and the position of the return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CallPlace {
    pub(in crate::site) sp: u64,
    bp: u64,
    /// 0 if the return address was in a register. On x86-64 it is always below the caller's `sp`.
    #[cfg(target_arch = "aarch64")]
    stored: u64,
}

/// The latest reads of a walk. A function of aarch64 stores its return address anywhere in its
/// frame, so that its position is known only from the read of the step that returned it.
#[derive(Debug, Default)]
pub(super) struct Reads {
    #[cfg(target_arch = "aarch64")]
    latest: [std::cell::Cell<(u64, u64)>; 4],
    #[cfg(target_arch = "aarch64")]
    count: std::cell::Cell<usize>,
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

    use super::{CallPlace, Reads, WalkStart};
    use crate::site::Interrupted;

    pub(in crate::site) type Unwinder<D, P> = UnwinderX86_64<D, P>;
    pub(in crate::site) type Cache<P> = CacheX86_64<P>;
    pub(in crate::site) type Registers = UnwindRegsX86_64;

    /// The registers of the caller.
    #[inline(always)]
    pub(in crate::site) fn start() -> WalkStart {
        let (ip, sp, bp): (u64, u64, u64);
        // SAFETY: the instructions only copy three registers to outputs.
        unsafe {
            std::arch::asm!(
                "lea {ip}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp",
                ip = out(reg) ip, sp = out(reg) sp, bp = out(reg) bp,
                options(nomem, nostack, preserves_flags),
            );
        }
        WalkStart { ip, sp, bp }
    }

    impl WalkStart {
        pub(in crate::site) fn of(Interrupted { ip, sp, bp, lr: _ }: Interrupted) -> Self {
            Self { ip, sp, bp }
        }

        pub(in crate::site) fn registers(self) -> Registers {
            Registers::new(self.ip, self.sp, self.bp)
        }

        #[cfg(test)]
        pub(in crate::site) fn interrupted(self) -> Interrupted {
            Interrupted { ip: self.ip, sp: self.sp, bp: self.bp, lr: 0 }
        }
    }

    impl CallPlace {
        /// The place to which a frame has returned.
        #[inline(always)]
        pub(in crate::site) fn new(registers: &Registers, _: &Reads, _frame: u64) -> Self {
            Self { sp: registers.sp(), bp: registers.bp() }
        }

        /// The address of the word that had the return address.
        #[inline(always)]
        pub(in crate::site) fn return_address(self) -> u64 {
            self.sp.wrapping_sub(8)
        }

        #[cfg(test)]
        pub(in crate::site) fn at(sp: u64) -> Self {
            Self { sp, bp: 0 }
        }
    }

    impl Reads {
        #[inline(always)]
        pub(in crate::site) fn add(&self, _address: u64, _word: u64) {}
    }

    /// The return address that a word of the stack has.
    #[inline(always)]
    pub(in crate::site) fn code_address(word: u64) -> u64 {
        word
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};

    use super::{CallPlace, Reads, WalkStart};
    use crate::site::Interrupted;

    pub(in crate::site) type Unwinder<D, P> = UnwinderAarch64<D, P>;
    pub(in crate::site) type Cache<P> = CacheAarch64<P>;
    pub(in crate::site) type Registers = UnwindRegsAarch64;

    /// The bits of an address of code. Code that authenticates its return addresses, as the C
    /// library of some systems does, stores a signature in the bits above.
    const ADDRESS: u64 = (1 << 48) - 1;

    /// The registers of the caller.
    #[inline(always)]
    pub(in crate::site) fn start() -> WalkStart {
        let (ip, sp, bp, lr): (u64, u64, u64, u64);
        // SAFETY: the instructions only copy four registers to outputs.
        unsafe {
            std::arch::asm!(
                "adr {ip}, .", "mov {sp}, sp", "mov {bp}, x29", "mov {lr}, x30",
                ip = out(reg) ip, sp = out(reg) sp, bp = out(reg) bp, lr = out(reg) lr,
                options(nomem, nostack, preserves_flags),
            );
        }
        WalkStart { ip, sp, bp, lr }
    }

    impl WalkStart {
        pub(in crate::site) fn of(Interrupted { ip, sp, bp, lr }: Interrupted) -> Self {
            Self { ip, sp, bp, lr }
        }

        #[cfg(test)]
        pub(in crate::site) fn interrupted(self) -> Interrupted {
            Interrupted { ip: self.ip, sp: self.sp, bp: self.bp, lr: self.lr }
        }

        pub(in crate::site) fn registers(self) -> Registers {
            Registers::new_with_ptr_auth_mask(PtrAuthMask(ADDRESS), self.lr, self.sp, self.bp)
        }
    }

    impl CallPlace {
        /// The place to which a frame has returned.
        pub(in crate::site) fn new(registers: &Registers, reads: &Reads, frame: u64) -> Self {
            let stored = reads.find(frame).unwrap_or(0);
            Self { sp: registers.sp(), bp: registers.fp(), stored }
        }

        /// The address of the word that had the return address.
        pub(in crate::site) fn return_address(self) -> u64 {
            self.stored
        }

        #[cfg(test)]
        pub(in crate::site) fn at(sp: u64) -> Self {
            Self { sp, bp: 0, stored: sp - 8 }
        }
    }

    impl Reads {
        pub(in crate::site) fn add(&self, address: u64, word: u64) {
            let count = self.count.get();
            self.latest[count % self.latest.len()].set((address, word));
            self.count.set(count + 1);
        }

        /// The address of the latest read of this return address.
        fn find(&self, frame: u64) -> Option<u64> {
            let count = self.count.get();
            (count.saturating_sub(self.latest.len())..count)
                .rev()
                .map(|at| self.latest[at % self.latest.len()].get())
                .find(|&(_, word)| code_address(word) == frame)
                .map(|(address, _)| address)
        }
    }

    /// The return address that a word of the stack has.
    pub(in crate::site) fn code_address(word: u64) -> u64 {
        word & ADDRESS
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_return_address_is_found_where_it_was_read_without_its_signature() {
            let reads = Reads::default();
            assert_eq!(reads.find(0xAAAA_0000_1234), None);
            for (address, word) in [(8, 0xAAAA_0000_1234), (16, 0x5), (24, 0x0042_AAAA_0000_9876)] {
                reads.add(address, word);
            }
            assert_eq!(reads.find(0xAAAA_0000_1234), Some(8));
            assert_eq!(reads.find(0xAAAA_0000_9876), Some(24));
            (0..4).for_each(|at| reads.add(100 + at, 1));
            assert_eq!(reads.find(0xAAAA_0000_9876), None);
        }
    }
}
