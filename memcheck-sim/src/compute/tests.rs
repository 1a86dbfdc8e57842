//! Tests of launches, whatever they compute.

use super::harness::{Device, arguments};
use super::*;

#[test]
fn a_kernel_that_is_not_computed_makes_what_it_writes_unknown() {
    let mut device = Device::new();
    let (x, weights) = (device.upload(&[1_u8; 64]), device.upload(&[1_u8; 64]));
    let out = device.upload(&[1_u8; 64]);
    device.launch(
        "mul_mat_q4_0",
        &arguments![x, weights, out + 16, 1_i32, 1_i32, 1_i32, 1_i32, 1_i32],
    );
    assert_eq!(device.download(x, 64), Some(vec![1_u8; 64]));
    assert_eq!(device.download(weights, 64), Some(vec![1_u8; 64]));
    assert_eq!(device.download(out, 16), Some(vec![1_u8; 16]));
    assert_eq!(device.download::<u8>(out + 16, 1), None);
    assert_eq!(device.download::<u8>(out + 63, 1), None);
}

#[test]
fn a_kernel_without_a_row_makes_unknown_what_it_can_reach() {
    let mut device = Device::new();
    let blocks = [0; 3].map(|_| device.upload(&[1_u8; 64]));
    // A pointer, and a structure with a pointer into a block.
    let mut structure = vec![0; 8];
    structure.extend((blocks[1] + 8).to_ne_bytes());
    let parameters = [blocks[0].to_ne_bytes().to_vec(), structure, vec![7; 4]];
    launch_unknown(&mut device.machine, &parameters);
    assert_eq!(blocks.map(|block| device.is_known(block)), [false, false, true]);
    launch_opaque(&mut device.machine);
    assert!(!device.is_known(blocks[2]));
}

#[test]
fn a_launch_that_exceeds_a_limit_has_an_unknown_result() {
    let mut device = Device::new();
    let most = crate::values::Limits::DEFAULT.launch / ELEMENT;
    let (from, to) =
        (device.allocate(4 * most as usize + 4), device.allocate(4 * most as usize + 4));
    device.machine.fill(from, &[0], 4 * most as usize + 4).unwrap();
    device.launch("uexp_f32", &arguments![most, 0_u64, 0_u64, from, to]);
    assert_eq!(device.download(to, 1), Some(vec![1_f32]));
    device.launch("uexp_f32", &arguments![most + 1, 0_u64, 0_u64, from, to]);
    assert_eq!(device.download::<f32>(to, 1), None);
}
