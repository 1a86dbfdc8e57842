//! Tests of launches, whatever they compute.

use super::harness::{TestDevice, arguments};
use super::*;

use proptest::prelude::*;

#[test]
fn a_kernel_that_cannot_be_computed_makes_what_it_writes_unknown() {
    let mut device = TestDevice::new();
    let (x, out) = (device.upload(&[1_u8; 64]), device.upload(&[1_u8; 64]));
    // Without a layout, the number of results is not known.
    device.launch("sum_f32", &arguments![6_u64, 2_u64, 1_u64, 0_u64, x, out + 16]);
    assert_eq!(device.download(x, 64), Some(vec![1_u8; 64]));
    assert_eq!(device.download(out, 16), Some(vec![1_u8; 16]));
    assert_eq!(device.download::<u8>(out + 16, 1), None);
    assert_eq!(device.download::<u8>(out + 63, 1), None);
}

#[test]
fn a_kernel_without_a_row_makes_unknown_what_it_can_reach() {
    let mut device = TestDevice::new();
    let blocks = [0; 3].map(|_| device.upload(&[1_u8; 64]));
    // A pointer, and a structure with a pointer into a block.
    let mut structure = vec![0; 8];
    structure.extend((blocks[1] + 8).to_ne_bytes());
    let arguments = [blocks[0].to_ne_bytes().to_vec(), structure, vec![7; 4]];
    forget_arguments(&mut device.memory, &[8, 16, 4].map(Parameter::of_size), &arguments);
    assert_eq!(blocks.map(|block| device.is_known(block)), [false, false, true]);
    // An array of addresses, of which one is in a block.
    let array = device.upload(&[1_i64, blocks[2] as i64 + 8]);
    let pointer = [Parameter::of_size(8)];
    forget_arguments(&mut device.memory, &pointer, &[array.to_ne_bytes().to_vec()]);
    assert_eq!([array, blocks[2]].map(|block| device.is_known(block)), [false, false]);
    let rest = device.upload(&[1_u8; 64]);
    launch_opaque(&mut device.memory);
    assert!(!device.is_known(rest));
}

#[test]
fn memory_behind_a_pointer_to_const_stays_known() {
    let mut device = TestDevice::new();
    let [read, written] = [0; 2].map(|_| device.upload(&[1_u8; 64]));
    let to_const = Parameter { size: 8, is_to_const: true };
    let any = Parameter::of_size(8);
    let mut known_after = |parameters: [Parameter; 2], addresses: [u64; 2], asked: [u64; 2]| {
        let arguments = addresses.map(|address| address.to_ne_bytes().to_vec());
        forget_arguments(&mut device.memory, &parameters, &arguments);
        let known = asked.map(|block| device.is_known(block));
        device.memory.write_bytes(written, &[1; 64]);
        known
    };
    assert_eq!(known_after([to_const, any], [read, written], [read, written]), [true, false]);
    assert_eq!(known_after([any, to_const], [written + 8, read], [read, written]), [true, false]);
    // The other pointer can write to the same block.
    assert_eq!(
        known_after([to_const, any], [written, written + 8], [read, written]),
        [true, false]
    );
    // A table in constant memory with the address of a block that the kernel can write.
    let table = device.upload(&[written as i64, 5]);
    forget_arguments(&mut device.memory, &[to_const], &[table.to_ne_bytes().to_vec()]);
    assert_eq!([table, written].map(|block| device.is_known(block)), [true, false]);
}

#[test]
fn a_launch_that_exceeds_a_limit_has_an_unknown_result() {
    let mut device = TestDevice::new();
    let work = unary::Op::Exp.work(Kind::F32);
    let most = crate::values::Limits::DEFAULT.launch / work;
    let (from, to) =
        (device.allocate(4 * most as usize + 4), device.allocate(4 * most as usize + 4));
    device.memory.zero_bytes(from, 4 * most + 4);
    device.launch("uexp_f32", &arguments![most, 0_u64, 0_u64, from, to]);
    assert_eq!(device.download(to, 1), Some(vec![1_f32]));
    device.launch("uexp_f32", &arguments![most + 1, 0_u64, 0_u64, from, to]);
    assert_eq!(device.download::<f32>(to, 1), None);
}

#[test]
fn an_access_that_ends_outside_of_its_block_is_counted() {
    let mut device = TestDevice::new();
    let (from, to) = (device.upload(&[1_f32; 2]), device.upload(&[1_f32; 4]));
    device.launch("uexp_f32", &arguments![2_u64, 0_u64, 0_u64, from, to]);
    assert_eq!(device.memory.values.outside(), 0);
    device.launch("uexp_f32", &arguments![200_u64, 0_u64, 0_u64, from, to]);
    // The read of the input, and the result that becomes unknown.
    assert_eq!(device.memory.values.outside(), 2);
}

/// An argument: an address in or near one of two blocks, a small number, or any number.
fn argument() -> impl Strategy<Value = (u8, u64)> {
    (0..6_u8, prop_oneof![0..12_u64, any::<u64>()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_launch_panics_or_reads_outside_of_a_block(
        (row, kind) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        arguments in prop::collection::vec(argument(), 16),
        layout in prop::collection::vec(prop_oneof![0..5_u64, any::<u64>()], 8),
        grid in prop::array::uniform3(prop_oneof![1..5_u32, 1..65_536_u32]),
        block in prop::array::uniform3(1..11_u32),
    ) {
        let rows: Vec<_> = table::all().collect();
        let row = *row.get(&rows);
        let kernel = table::Kernel { row, kind: kind.get(row.kinds).0 };
        let mut device = TestDevice::new();
        let words: Vec<i64> = layout.into_iter().map(|word| word as i64).collect();
        let (info, data) = (device.upload(&words), device.upload(&[1_u8; 256]));
        let values: Vec<[u8; 8]> = arguments
            .into_iter()
            .take(kernel.widths().count())
            .map(|(kind, number)| match kind {
                0 => info,
                1 => data,
                2 => data + number % 300,
                3 => 0,
                _ => number,
            })
            .map(u64::to_ne_bytes)
            .collect();
        let shape = Shape { grid, block };
        kernel.launch(&mut device.memory, shape, Arguments::of(&values));
    }
}
