//! Allocations of many sizes, and the memory that the driver's pool reserves for them.

use candle_core::{DType, Device, Result, Tensor};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Sizes that are allocated alone, in bytes.
const ALONE: [usize; 34] = [
    1,
    512,
    513,
    64 * KIB,
    MIB,
    2 * MIB - 1,
    2 * MIB,
    2 * MIB + 1,
    3 * MIB,
    16 * MIB,
    17 * MIB,
    31 * MIB,
    32 * MIB - 1,
    32 * MIB,
    32 * MIB + 1,
    33 * MIB,
    34 * MIB,
    35 * MIB,
    48 * MIB,
    63 * MIB,
    64 * MIB,
    64 * MIB + 1,
    66 * MIB,
    96 * MIB,
    100 * MIB,
    101 * MIB,
    127 * MIB,
    128 * MIB,
    129 * MIB,
    255 * MIB,
    500 * MIB,
    1024 * MIB,
    1024 * MIB + 1,
    2047 * MIB,
];
/// A size and the number of blocks of it.
const MANY: [(usize, usize); 7] = [
    (512, 5),
    (MIB, 40),
    (3 * MIB, 25),
    (10 * MIB, 10),
    (17 * MIB, 6),
    (33 * MIB, 6),
    (100 * MIB, 4),
];
/// Steps of each random program.
const STEPS: usize = 300;
/// The blocks of a program are dropped at its end without a synchronization in between. Two readings
/// at the start of a fourth program were not those of the simulated device (`docs/evidence.md`), so
/// that there are only three.
const PROGRAMS: u64 = 3;

/// Allocates and frees blocks, and returns what the pool reserved after each step. `reserved` waits
/// for the device.
///
/// # Errors
///
/// When the device refuses an allocation.
pub fn readings(device: &Device, reserved: impl Fn() -> Result<u64>) -> Result<Vec<String>> {
    let mut lines = vec![format!("start: {}", reserved()?)];
    let allocate = |bytes: usize| Tensor::zeros(bytes, DType::U8, device);
    for bytes in ALONE {
        let block = allocate(bytes)?;
        lines.push(format!("alone {bytes}: {}", reserved()?));
        drop(block);
        lines.push(format!("alone free: {}", reserved()?));
    }
    for (bytes, count) in MANY {
        let mut blocks = Vec::new();
        for _ in 0..count {
            blocks.push(allocate(bytes)?);
            lines.push(format!("many {bytes}: {}", reserved()?));
        }
        // The first half is freed from the front, the second from the back.
        for block in 0..count {
            drop(if block < count / 2 {
                blocks.remove(0)
            } else {
                blocks.remove(blocks.len() - 1)
            });
            lines.push(format!("many free: {}", reserved()?));
        }
    }
    for program in 0..PROGRAMS {
        let mut random = Random(program);
        let mut blocks = Vec::new();
        for _ in 0..STEPS {
            if blocks.is_empty() || random.below(100) < 55 {
                let bytes = random.size();
                blocks.push(allocate(bytes)?);
                lines.push(format!("random {bytes}: {}", reserved()?));
            } else {
                drop(blocks.remove(random.below(blocks.len())));
                lines.push(format!("random free: {}", reserved()?));
            }
        }
    }
    Ok(lines)
}

/// A linear congruential generator (Knuth's MMIX), so that every run makes the same requests.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// Mostly small sizes, as in a transformer.
    fn size(&mut self) -> usize {
        match self.below(20) {
            0..=7 => 1 + self.below(4 * KIB),
            8..=13 => (1 + self.below(64)) * 64 * KIB,
            14..=18 => 1 + self.below(20 * MIB),
            _ => 1 + self.below(200 * MIB),
        }
    }
}
