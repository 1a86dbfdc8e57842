//! A shared library that consists of a table of functions: ELF for 64 bits, of this processor.
//!
//! The symbols are absolute (`SHN_ABS`), so that the dynamic linker returns their values unchanged
//! (glibc from 2.28 on).

/// The bytes of the headers: that of the file, and those of three segments.
const HEADERS: usize = 64 + 3 * 56;
/// `EM_AARCH64` and `EM_X86_64`.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
/// At least the size of a page.
const ALIGNMENT: u64 = 1 << 16;
/// `PF_R | PF_W`: the dynamic linker writes into the dynamic section.
const READ_WRITE: u32 = 6;
/// A global function: `STB_GLOBAL << 4 | STT_FUNC`.
const GLOBAL_FUNCTION: u8 = 0x12;
/// `SHN_ABS`.
const ABSOLUTE: u16 = 0xfff1;

/// The file of the library `name` with these functions and their addresses.
pub(super) fn library(name: &str, functions: &[(&str, u64)]) -> Vec<u8> {
    // Offset 0 is the empty name.
    let mut names = vec![0u8];
    let mut add = |text: &str| {
        let at = names.len() as u64;
        names.extend(text.bytes().chain([0]));
        at
    };
    let own_name = add(name);
    let mut symbols = vec![0u8; 24];
    for (function, address) in functions {
        symbols.extend(u32::try_from(add(function)).unwrap_or(0).to_le_bytes());
        symbols.extend([GLOBAL_FUNCTION, 0]);
        symbols.extend(ABSOLUTE.to_le_bytes());
        symbols.extend(address.to_le_bytes());
        symbols.extend(0u64.to_le_bytes());
    }
    let hashes = hash_table(functions);
    names.resize(names.len().next_multiple_of(8), 0);

    let at_symbols = HEADERS as u64;
    let at_hashes = at_symbols + symbols.len() as u64;
    let at_names = at_hashes + hashes.len() as u64;
    let at_dynamic = at_names + names.len() as u64;
    // DT_SONAME, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    let dynamic = [
        (14, own_name),
        (4, at_hashes),
        (5, at_names),
        (6, at_symbols),
        (10, names.len() as u64),
        (11, 24),
        (0, 0),
    ];
    let dynamic: Vec<u8> = dynamic
        .into_iter()
        .flat_map(|(tag, value): (u64, u64)| [tag, value])
        .flat_map(u64::to_le_bytes)
        .collect();
    let end = at_dynamic + dynamic.len() as u64;

    let mut file = file_header();
    // PT_LOAD, PT_DYNAMIC, PT_GNU_STACK: without the last one, the stack would be executable.
    file.extend(segment(1, 0, end, ALIGNMENT));
    file.extend(segment(2, at_dynamic, dynamic.len() as u64, 8));
    file.extend(segment(0x6474_e551, 0, 0, 16));
    for part in [symbols, hashes, names, dynamic] {
        file.extend(part);
    }
    file
}

fn file_header() -> Vec<u8> {
    // 64 bits, little endian.
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    // ET_DYN
    for half in [3, MACHINE] {
        header.extend(half.to_le_bytes());
    }
    header.extend(1u32.to_le_bytes());
    // No entry; the segments follow; no sections.
    for word in [0u64, 64, 0] {
        header.extend(word.to_le_bytes());
    }
    header.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 3, 64, 0, 0] {
        header.extend(half.to_le_bytes());
    }
    header
}

fn segment(kind: u32, at: u64, size: u64, alignment: u64) -> Vec<u8> {
    let mut header = kind.to_le_bytes().to_vec();
    header.extend(READ_WRITE.to_le_bytes());
    for word in [at, at, at, size, size, alignment] {
        header.extend(word.to_le_bytes());
    }
    header
}

/// The table by which the dynamic linker finds a symbol: for each bucket its first symbol, and for
/// each symbol the next one of the bucket.
fn hash_table(functions: &[(&str, u64)]) -> Vec<u8> {
    let buckets = functions.len().max(1);
    let mut first = vec![0u32; buckets];
    // Symbol 0 is none.
    let mut next = vec![0u32; functions.len() + 1];
    for (index, (name, _)) in functions.iter().enumerate() {
        let bucket = hash(name) as usize % buckets;
        next[index + 1] = std::mem::replace(&mut first[bucket], index as u32 + 1);
    }
    let sizes = [first.len() as u32, next.len() as u32];
    let words = sizes.into_iter().chain(first).chain(next);
    let mut table: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    table.resize(table.len().next_multiple_of(8), 0);
    table
}

/// The hash of the System V ABI.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}
