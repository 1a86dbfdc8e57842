//! The blocks of quantized weights, as numbers.

use half::f16;

/// A format of quantized blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// 4 bits for each of 32 numbers: 18 bytes.
    Q4_0,
    /// 4 bits for each of 32 numbers, and their least value: 20 bytes.
    Q4_1,
    /// 5 bits for each of 32 numbers: 22 bytes.
    Q5_0,
    /// 5 bits for each of 32 numbers, and their least value: 24 bytes.
    Q5_1,
    /// 8 bits for each of 32 numbers: 34 bytes.
    Q8_0,
    /// 2 bits for each of 256 numbers: 84 bytes.
    Q2K,
    /// 3 bits for each of 256 numbers: 110 bytes.
    Q3K,
    /// 4 bits for each of 256 numbers: 144 bytes.
    Q4K,
    /// 5 bits for each of 256 numbers: 176 bytes.
    Q5K,
    /// 6 bits for each of 256 numbers: 210 bytes.
    Q6K,
    /// 8 bits for each of 256 numbers: 292 bytes.
    Q8K,
}

impl Format {
    /// The elements of a block.
    pub(super) fn elements(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            _ => 256,
        }
    }

    /// The bytes of a block.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
            Self::Q8K => 292,
        }
    }

    /// Decodes a block from its bytes.
    pub(super) fn decode(self, bytes: &[u8]) -> QuantBlock {
        match self {
            Self::Q4_0 => QuantBlock::nibbles(&bytes[2..], [0; 4], 8, half(bytes, 0), 0.0),
            Self::Q4_1 => {
                QuantBlock::nibbles(&bytes[4..], [0; 4], 0, half(bytes, 0), -half(bytes, 2))
            }
            Self::Q5_0 => QuantBlock::nibbles(&bytes[6..], four(bytes, 2), 16, half(bytes, 0), 0.0),
            Self::Q5_1 => {
                QuantBlock::nibbles(&bytes[8..], four(bytes, 4), 0, half(bytes, 0), -half(bytes, 2))
            }
            Self::Q8_0 => QuantBlock::plain(half(bytes, 0), &bytes[2..34]),
            Self::Q8K => QuantBlock::plain(f32::from_le_bytes(four(bytes, 0)), &bytes[4..260]),
            Self::Q2K => q2(bytes),
            Self::Q3K => q3(bytes),
            Self::Q4K => q45(bytes, &bytes[16..], None),
            Self::Q5K => q45(bytes, &bytes[48..], Some(&bytes[16..48])),
            Self::Q6K => q6(bytes),
        }
    }
}

/// A block. An element is `d * scale * quant - min * least`, with the scale and the least value of
/// its group. The products are exact in f32, so that only the difference is rounded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuantBlock {
    pub(super) d: f32,
    pub(super) min: f32,
    /// The quants, which are signed if the format has an offset.
    pub(super) quants: Vec<i32>,
    /// The scale and the least value of each group.
    pub(super) groups: Vec<(i32, i32)>,
}

impl QuantBlock {
    /// 32 elements of 4 bits, the first half in the low bits, with a fifth bit of each in `high`.
    fn nibbles(low: &[u8], high: [u8; 4], offset: i32, d: f32, min: f32) -> Self {
        let high = u32::from_le_bytes(high);
        let quant = |at: usize| {
            let byte = low[at % 16];
            let nibble = if at < 16 { byte & 15 } else { byte >> 4 };
            i32::from(nibble) + 16 * (high >> at & 1) as i32 - offset
        };
        Self { d, min, quants: (0..32).map(quant).collect(), groups: vec![(1, 1)] }
    }

    fn plain(d: f32, bytes: &[u8]) -> Self {
        let quants = bytes.iter().map(|&byte| i32::from(byte as i8)).collect();
        Self { d, min: 0.0, quants, groups: vec![(1, 0)] }
    }

    /// Returns the scale and the least value of an element's group.
    pub(super) fn group(&self, element: usize) -> (i32, i32) {
        self.groups[element / (self.quants.len() / self.groups.len())]
    }

    /// Returns the elements.
    pub(super) fn values(&self) -> impl Iterator<Item = f32> {
        self.quants.iter().enumerate().map(|(at, &quant)| {
            let (scale, least) = self.group(at);
            self.d * scale as f32 * quant as f32 - self.min * least as f32
        })
    }
}

pub(super) fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    std::array::from_fn(|byte| bytes[at + byte])
}

/// Two bits of each element: 128 elements share 32 bytes.
fn two_bits(bytes: &[u8], at: usize) -> i32 {
    i32::from(bytes[at / 128 * 32 + at % 32] >> (at % 128 / 32 * 2) & 3)
}

fn q2(bytes: &[u8]) -> QuantBlock {
    QuantBlock {
        d: half(bytes, 80),
        min: half(bytes, 82),
        quants: (0..256).map(|at| two_bits(&bytes[16..], at)).collect(),
        groups: bytes[..16]
            .iter()
            .map(|&byte| (i32::from(byte & 15), i32::from(byte >> 4)))
            .collect(),
    }
}

fn q3(bytes: &[u8]) -> QuantBlock {
    let (mask, scales) = (&bytes[..32], &bytes[96..108]);
    let quant = |at: usize| {
        let is_high = mask[at % 32] >> (at / 32) & 1 == 1;
        two_bits(&bytes[32..], at) - if is_high { 0 } else { 4 }
    };
    let group = |at: usize| {
        let low = scales[at % 8] >> (at / 8 * 4) & 15;
        let high = scales[8 + at % 4] >> (at / 4 * 2) & 3;
        (i32::from(low | high << 4) - 32, 0)
    };
    QuantBlock {
        d: half(bytes, 108),
        min: 0.0,
        quants: (0..256).map(quant).collect(),
        groups: (0..16).map(group).collect(),
    }
}

fn q45(bytes: &[u8], low: &[u8], high: Option<&[u8]>) -> QuantBlock {
    let scales = &bytes[4..16];
    let quant = |at: usize| {
        let byte = low[at / 64 * 32 + at % 32];
        let nibble = if at % 64 < 32 { byte & 15 } else { byte >> 4 };
        let fifth = high.map_or(0, |high| high[at % 32] >> (at / 32) & 1);
        i32::from(nibble | fifth << 4)
    };
    let group = |at: usize| {
        let (scale, least) = match at {
            0..4 => (scales[at] & 63, scales[at + 4] & 63),
            _ => (
                scales[at + 4] & 15 | scales[at - 4] >> 6 << 4,
                scales[at + 4] >> 4 | scales[at] >> 6 << 4,
            ),
        };
        (i32::from(scale), i32::from(least))
    };
    QuantBlock {
        d: half(bytes, 0),
        min: half(bytes, 2),
        quants: (0..256).map(quant).collect(),
        groups: (0..8).map(group).collect(),
    }
}

fn q6(bytes: &[u8]) -> QuantBlock {
    let quant = |at: usize| {
        let byte = bytes[at / 128 * 64 + at % 64];
        let nibble = if at % 128 < 64 { byte & 15 } else { byte >> 4 };
        let high = two_bits(&bytes[128..192], at) as u8;
        i32::from(nibble | high << 4) - 32
    };
    QuantBlock {
        d: half(bytes, 208),
        min: 0.0,
        quants: (0..256).map(quant).collect(),
        groups: bytes[192..208].iter().map(|&byte| (i32::from(byte as i8), 0)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(value: f32) -> [u8; 2] {
        f16::from_f32(value).to_le_bytes()
    }

    fn values(format: Format, parts: &[&[u8]]) -> Vec<f32> {
        let bytes = parts.concat();
        assert_eq!(bytes.len(), format.bytes());
        let values: Vec<f32> = format.decode(&bytes).values().collect();
        assert_eq!(values.len(), format.elements());
        values
    }

    #[test]
    fn blocks_of_32_have_a_scale_and_a_least_value_or_an_offset() {
        let mut low = [0x80_u8; 16];
        low[1] = 0x3f;
        let q4_0 = values(Format::Q4_0, &[&d(0.5), &low]);
        assert_eq!((q4_0[0], q4_0[1], q4_0[16], q4_0[17]), (-4.0, 3.5, 0.0, -2.5));
        let q4_1 = values(Format::Q4_1, &[&d(0.5), &d(10.0), &low]);
        assert_eq!((q4_1[0], q4_1[1], q4_1[16], q4_1[17]), (10.0, 17.5, 14.0, 11.5));
        // The fifth bits of elements 1 and 16.
        let high = (1_u32 << 1 | 1 << 16).to_le_bytes();
        let q5_0 = values(Format::Q5_0, &[&d(2.0), &high, &low]);
        assert_eq!((q5_0[0], q5_0[1], q5_0[16], q5_0[17]), (-32.0, 30.0, 16.0, -26.0));
        let q5_1 = values(Format::Q5_1, &[&d(2.0), &d(-1.0), &high, &low]);
        assert_eq!((q5_1[0], q5_1[1], q5_1[16], q5_1[17]), (-1.0, 61.0, 47.0, 5.0));
        let mut bytes = [0_u8; 32];
        (bytes[0], bytes[31]) = (127, 128);
        let q8_0 = values(Format::Q8_0, &[&d(0.5), &bytes]);
        assert_eq!((q8_0[0], q8_0[1], q8_0[31]), (63.5, 0.0, -64.0));
    }

    #[test]
    fn two_bits_are_spread_over_128_elements() {
        let (mut scales, mut low) = ([0x11_u8; 16], [0_u8; 64]);
        // Element 33 is in the second pair of bits of byte 1; element 255 in the last of byte 63.
        (low[1], low[63]) = (0b1100, 0b1000_0000);
        // The groups of 16 elements: 33 is in group 2.
        scales[2] = 0x5f;
        let q2 = values(Format::Q2K, &[&scales, &low, &d(2.0), &d(1.0)]);
        assert_eq!((q2[0], q2[32], q2[33], q2[255]), (-1.0, -5.0, 2.0 * 15.0 * 3.0 - 5.0, 3.0));
    }

    #[test]
    fn three_bits_have_a_mask_and_scales_of_six_bits() {
        let (mut mask, mut low, mut scales) = ([0_u8; 32], [0_u8; 64], [0_u8; 12]);
        // Element 33: low bits 2 in byte 1, high bit 1 of mask byte 1. Without the bit, 4 is taken.
        (low[1], mask[1]) = (0b1000, 0b10);
        // Scales: group 0 is 33 - 32, group 2 is 34 - 32, group 15 is 63 - 32, the others are -32.
        (scales[0], scales[8]) = (1, 0b10);
        (scales[2], scales[10]) = (2, 0b10);
        (scales[7], scales[11]) = (0xf0, 0b1100_0000);
        let q3 = values(Format::Q3K, &[&mask, &low, &scales, &d(0.5)]);
        assert_eq!((q3[0], q3[32], q3[33]), (0.5 * -4.0, 0.5 * 2.0 * -4.0, 0.5 * 2.0 * 2.0));
        assert_eq!((q3[16], q3[255]), (0.5 * -32.0 * -4.0, 0.5 * 31.0 * -4.0));
    }

    #[test]
    fn four_and_five_bits_have_groups_of_32() {
        let (mut scales, mut low) = ([0_u8; 12], [0_u8; 128]);
        // Group 1: scale 63, least 5. Group 7: scale 15 + 2 * 16, least 3 + 1 * 16.
        (scales[1], scales[5]) = (63, 5);
        (scales[11], scales[3], scales[7]) = (0x3f, 2 << 6, 1 << 6);
        // Element 32 is the high half of byte 0, element 255 that of byte 127.
        (low[0], low[127]) = (0x70, 0xf0);
        let q4 = values(Format::Q4K, &[&d(1.0), &d(0.5), &scales, &low]);
        assert_eq!((q4[0], q4[32], q4[33]), (0.0, 63.0 * 7.0 - 2.5, -2.5));
        assert_eq!((q4[254], q4[255]), (-9.5, 47.0 * 15.0 - 9.5));
        let mut high = [0_u8; 32];
        // The fifth bit of element 33 (group 1) and of 255 (group 7).
        (high[1], high[31]) = (1 << 1, 1 << 7);
        let q5 = values(Format::Q5K, &[&d(1.0), &d(0.5), &scales, &high, &low]);
        assert_eq!((q5[32], q5[33]), (63.0 * 7.0 - 2.5, 63.0 * 16.0 - 2.5));
        assert_eq!(q5[255], 47.0 * 31.0 - 9.5);
    }

    #[test]
    fn six_bits_have_signed_scales() {
        let (mut low, mut high, mut scales) = ([0_u8; 128], [0_u8; 64], [1_u8; 16]);
        // Element 64 is the high half of byte 0 of `low`; its high bits are the third pair.
        (low[0], high[0]) = (0x50, 0b11_0000);
        (low[127], high[63]) = (0x10, 0b0100_0000);
        (scales[4], scales[15]) = (0xfe, 3);
        let q6 = values(Format::Q6K, &[&low, &high, &scales, &d(0.5)]);
        assert_eq!((q6[0], q6[64], q6[65]), (-16.0, 0.5 * -2.0 * 21.0, 0.5 * -2.0 * -32.0));
        assert_eq!((q6[254], q6[255]), (0.5 * 3.0 * -32.0, 0.5 * 3.0 * -15.0));
    }

    #[test]
    fn eight_bits_have_a_scale_of_32_bits() {
        let mut bytes = [0_u8; 288];
        (bytes[0], bytes[255]) = (3, 0xff);
        let q8 = values(Format::Q8K, &[&0.1_f32.to_le_bytes(), &bytes]);
        assert_eq!((q8[0], q8[1], q8[255]), (0.1 * 3.0, 0.0, -0.1));
    }
}
