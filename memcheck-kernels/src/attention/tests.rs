//! Attention over small sequences.

use super::*;
use crate::harness::TestDevice;

/// One head of width 8. `q`, `k` and `v` have one value for each row.
struct Case {
    device: TestDevice,
    attention: Attention,
    to: u64,
}

fn filled(rows: &[f32]) -> Vec<f16> {
    rows.iter().flat_map(|&value| [f16::from_f32(value); 8]).collect()
}

fn case(q: &[f32], k: &[f32], v: &[f32]) -> Case {
    let mut device = TestDevice::new();
    let rows =
        |address: u64, count: usize| Rows { address, batch: 8 * count as u64, row: 8, head: 8 };
    let to = device.allocate(16 * q.len());
    let attention = Attention {
        q: rows(device.upload(&filled(q)), q.len()),
        k: rows(device.upload(&filled(k)), k.len()),
        v: rows(device.upload(&filled(v)), v.len()),
        o: rows(to, q.len()),
        sums: device.allocate(4 * q.len()),
        sequences: 1,
        heads: 1,
        heads_k: 1,
        width: 8,
        length_q: q.len() as u64,
        length_k: k.len() as u64,
        total_q: q.len() as u64,
        scale: 1.0,
        window: [-1, -1],
        ..Attention::default()
    };
    Case { device, attention, to }
}

impl Case {
    /// Returns the first element of each row; `None` for an unknown row.
    fn rows(&mut self) -> Vec<Option<f32>> {
        self.attention.run(&mut self.device.memory);
        (0..self.attention.length_q)
            .map(|row| {
                let row: Vec<f16> = self.device.download(self.to + 16 * row, 8)?;
                assert!(row.iter().all(|&element| element == row[0]));
                Some(row[0].to_f32())
            })
            .collect()
    }

    fn sums(&self) -> Option<Vec<f32>> {
        self.device.download(self.attention.sums, self.attention.length_q as usize)
    }
}

#[test]
fn equal_scores_give_the_mean_of_the_values() {
    let mut case = case(&[0.0, 0.0], &[1.0, 2.0, 3.0], &[3.0, 6.0, 9.0]);
    assert_eq!(case.rows(), [Some(6.0), Some(6.0)]);
    assert_eq!(case.sums(), Some(vec![3_f32.ln(); 2]));
}

#[test]
fn a_causal_row_sees_the_keys_up_to_its_own_from_the_end() {
    let mut case = case(&[0.0, 0.0], &[0.0; 4], &[4.0, 8.0, 12.0, 24.0]);
    case.attention.is_causal = true;
    case.attention.window = [4, 0];
    assert_eq!(case.rows(), [Some(8.0), Some(12.0)]);
    // A window of one key to the left.
    case.attention.is_causal = false;
    case.attention.window = [1, 0];
    assert_eq!(case.rows(), [Some(10.0), Some(18.0)]);
    // A prefix in which all rows see each other.
    let prefixes = case.device.upload(&[2_i32, 4]);
    case.attention.prefixes = Table { address: prefixes, stride: 2 };
    case.attention.prefix_count = 1;
    assert_eq!(case.rows(), [Some(44.0 / 3.0).map(|x| f16::from_f32(x).to_f32()), Some(18.0)]);
}

#[test]
fn a_row_without_columns_is_zero() {
    let mut case = case(&[1.0, 1.0], &[1.0], &[5.0]);
    case.attention.is_causal = true;
    assert_eq!(case.rows(), [Some(0.0), Some(5.0)]);
    assert_eq!(case.sums(), Some(vec![f32::INFINITY, 8.0]));
}

#[test]
fn scores_have_a_scale_a_cap_and_slopes() {
    // The scores are 0 and 8, so that their weights differ.
    let weights = |score: f32| [f16::from_f32(libm::expf(-score)).to_f32(), libm::expf(-score)];
    let expected = |score: f32| {
        let [weight, exact] = weights(score);
        Some(f16::from_f32((weight * 1.0 + 3.0) / (1.0 + exact)).to_f32())
    };
    let mut case = case(&[1.0], &[0.0, 1.0], &[1.0, 3.0]);
    case.attention.scale = 0.25;
    assert_eq!(case.rows(), [expected(2.0)]);
    case.attention.softcap = 2.0;
    assert_eq!(case.rows(), [expected(2.0 * libm::tanhf(1.0))]);
    case.attention.softcap = 0.0;
    let slopes = case.device.upload(&[0.5_f32]);
    case.attention.slopes = Table { address: slopes, stride: 0 };
    assert_eq!(case.rows(), [expected(2.5)]);
}

#[test]
fn heads_share_keys_and_sequences_have_their_own_lengths() {
    let mut case = case(&[0.0; 4], &[0.0; 3], &[1.0, 5.0, 9.0]);
    let lengths = |device: &mut TestDevice, all: [i32; 3]| device.upload(&all);
    // Two rows of two heads, in two sequences: one row and one key, one row and two keys.
    let attention = &mut case.attention;
    attention.heads = 2;
    attention.sequences = 2;
    attention.ends_q = lengths(&mut case.device, [0, 1, 2]);
    attention.ends_k = lengths(&mut case.device, [0, 1, 3]);
    attention.q = Rows { batch: 0, row: 16, head: 8, ..attention.q };
    attention.o = Rows { batch: 0, row: 16, head: 8, ..attention.o };
    attention.k.batch = 0;
    attention.v.batch = 0;
    (attention.sums_by_head, attention.total_q) = (true, 2);
    assert_eq!(case.rows(), [Some(1.0), Some(1.0), Some(7.0), Some(7.0)]);
    assert_eq!(case.sums(), Some(vec![0.0, 2_f32.ln(), 0.0, 2_f32.ln()]));
}

#[test]
fn keys_are_found_in_their_pages() {
    let mut case = case(&[0.0], &[0.0; 6], &[1.0, 2.0, 30.0, 40.0, 5.0, 6.0]);
    let pages = case.device.upload(&[2_i32, 0]);
    case.attention.pages = Table { address: pages, stride: 2 };
    (case.attention.page_rows, case.attention.length_k) = (2, 3);
    (case.attention.k.batch, case.attention.v.batch) = (16, 16);
    assert_eq!(case.rows(), [Some(4.0)]);
}

#[test]
fn a_row_is_unknown_if_a_key_that_it_sees_is_unknown() {
    let mut case = case(&[0.0, 0.0], &[0.0; 2], &[4.0, 8.0]);
    case.device.memory.overwritten(case.attention.k.address + 16, 16);
    case.attention.is_causal = true;
    assert_eq!(case.rows(), [Some(4.0), None]);
    case.attention.is_causal = false;
    assert_eq!(case.rows(), [None, None]);
}

#[test]
fn a_launch_that_exceeds_the_limits_makes_its_outputs_unknown() {
    let mut case = case(&[0.0, 0.0], &[0.0; 2], &[4.0, 8.0]);
    assert_eq!(case.rows(), [Some(6.0), Some(6.0)]);
    case.attention.length_k = 1 << 20;
    assert_eq!(case.rows(), [None, None]);
    assert_eq!(case.sums(), None);
}
