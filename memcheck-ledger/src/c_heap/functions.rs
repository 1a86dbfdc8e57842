//! The definitions of `malloc` and its relatives.
//!
//! Each symbol is a few instructions that test the mode of the ledger. They jump to the C library
//! while the C heap is not counted, and to the Rust function of the same name otherwise. A jump
//! leaves no frame on the stack, and needs neither thread-local memory nor a relocation of Rust
//! code, so that a call before `main` is safe too.

use std::ffi::{c_int, c_void};

use memcheck_limits::quiet::is_quiet;
use memcheck_limits::space::Space;

use super::own;
use crate::ledger::mode::MODE;
use crate::ledger::{self, RecordingMode};

type Ptr = *mut c_void;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> Ptr;
    fn __libc_calloc(count: usize, size: usize) -> Ptr;
    fn __libc_realloc(address: Ptr, size: usize) -> Ptr;
    fn __libc_memalign(alignment: usize, size: usize) -> Ptr;
    fn __libc_free(address: Ptr);

    /// Defined by the assembler below.
    safe fn memcheck_c_heap();
}

/// Makes the linker take the object that has the symbols.
pub(super) fn link() {
    memcheck_c_heap();
}

/// The instructions of a symbol: a jump to the function of the C library, or to the probe.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($libc:literal, $probe:expr) => {
        concat!(
            "test byte ptr [rip + {mode}], {c_heap}\n",
            concat!("jne {", $probe, "}\n"),
            concat!("jmp qword ptr [rip + ", $libc, "@GOTPCREL]"),
        )
    };
    ($probe:literal) => {
        concat!("jmp {", $probe, "}")
    };
}

/// A call may change the register `x16`, which the linker uses for its own jumps.
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($libc:literal, $probe:expr) => {
        concat!(
            "adrp x16, {mode}\n",
            "ldrb w16, [x16, :lo12:{mode}]\n",
            "tst w16, #{c_heap}\n",
            "b.eq 1f\n",
            concat!("b {", $probe, "}\n"),
            concat!("1: adrp x16, :got:", $libc, "\n"),
            concat!("ldr x16, [x16, :got_lo12:", $libc, "]\n"),
            "br x16",
        )
    };
    ($probe:literal) => {
        concat!("b {", $probe, "}")
    };
}

macro_rules! define {
    ($($name:literal => $libc:literal, $probe:ident;)*) => {
        core::arch::global_asm!(
            ".pushsection .text.memcheck_c_heap,\"ax\",@progbits",
            ".p2align 4",
            ".globl memcheck_c_heap",
            ".hidden memcheck_c_heap",
            ".type memcheck_c_heap,@function",
            "memcheck_c_heap:",
            "ret",
            ".size memcheck_c_heap, . - memcheck_c_heap",
            $(
                ".p2align 4",
                concat!(".weak ", $name),
                concat!(".type ", $name, ",@function"),
                concat!($name, ":"),
                ".cfi_startproc",
                jump!($libc, stringify!($probe)),
                ".cfi_endproc",
                concat!(".size ", $name, ", . - ", $name),
            )*
            // The C library does not export this one under a second name.
            ".p2align 4",
            ".weak posix_memalign",
            ".type posix_memalign,@function",
            "posix_memalign:",
            ".cfi_startproc",
            jump!("posix_memalign"),
            ".cfi_endproc",
            ".size posix_memalign, . - posix_memalign",
            ".popsection",
            mode = sym MODE,
            c_heap = const RecordingMode::C_HEAP,
            posix_memalign = sym posix_memalign,
            $($probe = sym $probe,)*
        );
    };
}

define! {
    "malloc" => "__libc_malloc", malloc;
    "calloc" => "__libc_calloc", calloc;
    "realloc" => "__libc_realloc", realloc;
    "free" => "__libc_free", free;
    "memalign" => "__libc_memalign", memalign;
    "aligned_alloc" => "__libc_memalign", aligned_alloc;
}

/// Records a block that the C library has returned.
#[inline]
fn allocated(address: Ptr, size: usize) -> Ptr {
    if !address.is_null() && !own::is_inside() && !is_quiet() {
        let _inside = own::enter(ledger::mode());
        ledger::allocated(Space::CHeap, address as u64, size as u64);
    }
    address
}

unsafe extern "C" fn malloc(size: usize) -> Ptr {
    // SAFETY: the caller keeps the contract of the function of this name.
    allocated(unsafe { __libc_malloc(size) }, size)
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> Ptr {
    // SAFETY: the caller keeps the contract of the function of this name. It returns null if the
    // product overflows.
    allocated(unsafe { __libc_calloc(count, size) }, count.saturating_mul(size))
}

unsafe extern "C" fn memalign(alignment: usize, size: usize) -> Ptr {
    // SAFETY: the caller keeps the contract of the function of this name.
    allocated(unsafe { __libc_memalign(alignment, size) }, size)
}

unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> Ptr {
    // SAFETY: as for `memalign`, of which this is another name.
    unsafe { memalign(alignment, size) }
}

unsafe extern "C" fn posix_memalign(out: *mut Ptr, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<Ptr>()) {
        return libc::EINVAL;
    }
    // SAFETY: the alignment is valid.
    let address = unsafe { __libc_memalign(alignment, size) };
    if address.is_null() {
        return libc::ENOMEM;
    }
    // This symbol jumps here while the C heap is not counted too.
    if ledger::mode().counts_c_heap() {
        allocated(address, size);
    }
    // SAFETY: by the contract of the function of this name, the pointer is valid for a write.
    unsafe { out.write(address) };
    0
}

unsafe extern "C" fn free(address: Ptr) {
    // Also on a quiet thread, because the block was counted when it was allocated. The block is
    // removed before the call, because another thread can get the same address afterwards.
    if !address.is_null() && !own::is_inside() {
        ledger::freed(address as u64);
    }
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe { __libc_free(address) };
}

unsafe extern "C" fn realloc(address: Ptr, size: usize) -> Ptr {
    if address.is_null() {
        // SAFETY: the caller keeps the contract of `realloc`, which is that of `malloc` here.
        return unsafe { malloc(size) };
    }
    if own::is_inside() {
        // SAFETY: the caller keeps the contract of the function of this name.
        return unsafe { __libc_realloc(address, size) };
    }
    let old = ledger::taken(address as u64);
    // SAFETY: the caller keeps the contract of the function of this name.
    let new = unsafe { __libc_realloc(address, size) };
    // A block that is not in the ledger is from before the body and is still not counted.
    let Some(old) = old else { return new };
    let _inside = own::enter(ledger::mode());
    if !new.is_null() {
        ledger::moved(old, Space::CHeap, new as u64, size as u64);
    } else if size == 0 {
        // The C library has freed the block.
        ledger::discarded(old);
    } else {
        ledger::put_back(address as u64, old);
    }
    new
}
