//! The unwind tables of the objects that are loaded into this process, for framehop.
//!
//! The tables are read in the memory to which the loader has mapped them: `.eh_frame_hdr` at its
//! program header, and `.eh_frame` at the pointer in it. No file is opened.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use framehop::{ExplicitModuleSectionInfo, Module};

/// Bytes of a loaded object. They are valid while the object is loaded; the executable and the
/// libraries that it was linked with are never unloaded.
pub(crate) type ModuleBytes = &'static [u8];

/// All objects that are loaded now.
pub(crate) fn loaded() -> Vec<Module<ModuleBytes>> {
    let mut modules: Vec<Module<ModuleBytes>> = Vec::new();
    // SAFETY: the callback gets a pointer to `modules`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// The base address and the address range of the executable, which is the first object that the
/// loader lists.
pub fn first() -> Option<(u64, Range<u64>)> {
    unsafe extern "C" fn keep(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        out: *mut c_void,
    ) -> c_int {
        // SAFETY: `info` is valid during the call, and `out` is the pointer that `first` passed.
        unsafe {
            let object = Object::of(&*info);
            *out.cast::<Option<(u64, Range<u64>)>>() = Some((object.base, object.range()));
        }
        1
    }
    let mut found: Option<(u64, Range<u64>)> = None;
    // SAFETY: the callback gets a pointer to `found`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(keep), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn add(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    modules: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid `info`, and `modules` is the pointer that `loaded` passed.
    let (object, modules) =
        unsafe { (Object::of(&*info), &mut *modules.cast::<Vec<Module<ModuleBytes>>>()) };
    modules.extend(object.module());
    0
}

/// A loaded object, described by its program headers.
struct Object {
    base: u64,
    headers: &'static [libc::Elf64_Phdr],
}

impl Object {
    /// # Safety
    /// `info` must come from the loader, and the object must stay loaded.
    unsafe fn of(info: &libc::dl_phdr_info) -> Self {
        // SAFETY: this is the loader's own table, with the length that the loader gives.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        Self { base: info.dlpi_addr, headers }
    }

    fn segments(&self) -> impl Iterator<Item = Range<u64>> {
        self.headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
            .map(|header| header.p_vaddr..header.p_vaddr + header.p_memsz)
    }

    /// The loaded addresses from the first to the last segment.
    fn range(&self) -> Range<u64> {
        let low = self.segments().map(|segment| segment.start).min().unwrap_or(0);
        let high = self.segments().map(|segment| segment.end).max().unwrap_or(0);
        self.base + low..self.base + high
    }

    /// The bytes at a range of the object's own addresses; `None` if a segment does not contain the
    /// range.
    fn bytes(&self, range: &Range<u64>) -> Option<ModuleBytes> {
        self.segments()
            .any(|segment| segment.start <= range.start && range.end <= segment.end)
            .then(|| {
                let length = (range.end - range.start) as usize;
                // SAFETY: the range is inside a loaded, readable segment that stays loaded.
                unsafe {
                    std::slice::from_raw_parts((self.base + range.start) as *const u8, length)
                }
            })
    }

    fn module(&self) -> Option<Module<ModuleBytes>> {
        let header = self.headers.iter().find(|h| h.p_type == libc::PT_GNU_EH_FRAME)?;
        let eh_frame_hdr = header.p_vaddr..header.p_vaddr + header.p_memsz;
        let hdr = self.bytes(&eh_frame_hdr)?;
        let start = eh_frame_start(hdr, eh_frame_hdr.start)?;
        // The header does not contain the length of the section. The section ends with a zero
        // entry, which comes before the end of its segment.
        let segment = self.segments().find(|segment| segment.contains(&start))?;
        let eh_frame = start..segment.end;
        let text = self
            .headers
            .iter()
            .find(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0)
            .map(|h| h.p_vaddr..h.p_vaddr + h.p_memsz);
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text,
            eh_frame: self.bytes(&eh_frame),
            eh_frame_svma: Some(eh_frame),
            eh_frame_hdr: Some(hdr),
            eh_frame_hdr_svma: Some(eh_frame_hdr),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Module::new(String::new(), self.range(), self.base, info))
    }
}

/// The start of `.eh_frame` according to its header. It is relative to the field itself and a
/// signed 32-bit number (`DW_EH_PE_pcrel | DW_EH_PE_sdata4`), the format that every linker writes.
fn eh_frame_start(hdr: &[u8], at: u64) -> Option<u64> {
    const VERSION: u8 = 1;
    const PCREL_SDATA4: u8 = 0x1B;
    if hdr.len() < 8 || hdr[0] != VERSION || hdr[1] != PCREL_SDATA4 {
        return None;
    }
    let offset = i32::from_ne_bytes(hdr[4..8].try_into().ok()?);
    at.checked_add(4)?.checked_add_signed(offset.into())
}
