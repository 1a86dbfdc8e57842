//! Differences between processors: registers and the positions of return addresses.

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

/// The registers after a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CallPlace {
    pub(in crate::site) sp: u64,
    pub(in crate::site) bp: u64,
}

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

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

    use super::{CallPlace, WalkStart};

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
        pub(in crate::site) fn registers(self) -> Registers {
            Registers::new(self.ip, self.sp, self.bp)
        }
    }

    pub(in crate::site) fn pointers(registers: &Registers) -> CallPlace {
        CallPlace { sp: registers.sp(), bp: registers.bp() }
    }

    /// The distance of a frame's return address below the caller's `sp`, in bytes.
    pub(in crate::site) const RETURN_ADDRESS: Option<u64> = Some(8);
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};

    use super::{CallPlace, WalkStart};

    pub(in crate::site) type Unwinder<D, P> = UnwinderAarch64<D, P>;
    pub(in crate::site) type Cache<P> = CacheAarch64<P>;
    pub(in crate::site) type Registers = UnwindRegsAarch64;

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
        pub(in crate::site) fn registers(self) -> Registers {
            Registers::new(self.lr, self.sp, self.bp)
        }
    }

    pub(in crate::site) fn pointers(registers: &Registers) -> CallPlace {
        CallPlace { sp: registers.sp(), bp: registers.fp() }
    }

    /// Return addresses have no fixed position, so every stack is walked completely.
    pub(in crate::site) const RETURN_ADDRESS: Option<u64> = None;
}
