use super::*;

use memcheck_limits::values::Contents;
use proptest::prelude::*;

const SIZE: u64 = 16;

fn values(bytes: u64) -> Values {
    Values::new(Limits { bytes, ..Limits::DEFAULT })
}

fn span(block: u64, offset: u64, length: u64) -> Span {
    Span { block, size: SIZE, offset, length }
}

/// The bytes of a range; `None` for those that are unknown.
fn seen(values: &Values, block: u64) -> Vec<Option<u8>> {
    let mut all = vec![None; SIZE as usize];
    let unknown = values.read(span(block, 0, SIZE), |offset, part| match part {
        Part::Zeros(length) => all[offset as usize..][..length as usize].fill(Some(0)),
        Part::Bytes(bytes) => {
            for (at, &byte) in bytes.iter().enumerate() {
                all[offset as usize + at] = Some(byte);
            }
        }
    });
    assert_eq!(unknown as usize, all.iter().filter(|byte| byte.is_none()).count());
    all
}

#[test]
fn zeros_and_unknown_bytes_are_different_and_need_no_storage() {
    let mut values = values(SIZE);
    let huge = Span { block: 9, size: 1 << 40, offset: 0, length: 1 << 40 };
    values.zero(huge);
    assert!(values.view(huge).unwrap().knows(0, huge.size));
    values.forget(Span { offset: 5, length: 3, ..huge });
    let view = values.view(Span { offset: 4, ..huge }).unwrap();
    assert!(!view.knows(0, huge.size - 4) && view.knows(0, 1) && !view.knows(1, 1));
    assert!(view.bytes().is_none());
    assert_eq!(values.bytes(Span { offset: 0, length: 5, ..huge }).unwrap(), [0_u8; 5].as_slice());
    assert_eq!(values.bytes(Span { offset: 7, length: 2, ..huge }), None);
    assert_eq!(values.stored, 0);
    assert_eq!(values.bytes(span(1, 0, 0)), None);
}

#[test]
fn a_block_that_exceeds_the_limit_becomes_unknown() {
    const LARGE: u64 = SMALL + 1;
    let large = |block| Span { block, size: LARGE, offset: 4, length: 2 };
    let knows = |values: &Values, block, first| {
        values.view(Span { offset: 0, ..large(block) }).is_some_and(|view| view.knows(first, 1))
    };
    let mut values = values(2 * LARGE);
    for block in [1 << 20, 2 << 20, 3 << 20] {
        values.zero(Span { offset: 0, length: LARGE, ..large(block) });
        values.write(large(block), &[1, 2]);
    }
    assert_eq!(values.stored, 2 * LARGE);
    assert_eq!(values.bytes(large(2 << 20)).unwrap(), [1_u8, 2].as_slice());
    assert!(values.view(large(3 << 20)).is_none());
    // A small block still has room.
    values.write(span(100, 0, 2), &[1, 2]);
    assert_eq!(values.stored, 2 * LARGE + SIZE);
    values.forget_block(1 << 20);
    values.forget_block(100);
    values.write(large(3 << 20), &[1, 2]);
    assert!(knows(&values, 3 << 20, 4) && !knows(&values, 3 << 20, 3));
    values.zero(Span { offset: 0, length: LARGE, ..large(3 << 20) });
    assert_eq!(values.stored, LARGE);
    values.forget_all();
    assert_eq!((values.stored, values.blocks.len()), (0, 0));
}

#[test]
fn without_contents_every_byte_is_unknown() {
    let mut values = Values::new(Limits::of(Contents::Never));
    values.write(span(100, 0, 2), &[1, 2]);
    values.zero(span(100, 0, SIZE));
    values.copy(span(200, 0, SIZE), span(100, 0, SIZE));
    for block in [100, 200] {
        assert_eq!(seen(&values, block), [None; SIZE as usize]);
    }
    assert!(values.blocks.is_empty() && !values.permits(1));
}

#[test]
fn a_copy_within_a_block_reads_before_it_writes() {
    let mut values = values(1 << 10);
    values.write(span(100, 0, 4), &[1, 2, 3, 4]);
    values.copy(span(100, 2, 6), span(100, 0, 6));
    assert_eq!(
        seen(&values, 100)[..9],
        [Some(1), Some(2), Some(1), Some(2), Some(3), Some(4), None, None, None]
    );
}

proptest! {
    #[test]
    fn contents_equal_a_model_of_single_bytes(
        steps in prop::collection::vec((0..4_u8, 0..2_u64, 0..SIZE, 1..=SIZE, any::<u8>()), 0..40)
    ) {
        let mut values = values(1 << 10);
        let mut model = [[None; SIZE as usize]; 2];
        for (kind, block, offset, length, byte) in steps {
            let length = length.min(SIZE - offset);
            let range = offset as usize..(offset + length) as usize;
            let address = |block: u64| 1000 * (block + 1);
            let at = span(address(block), offset, length);
            let target = block as usize;
            match kind {
                0 => {
                    values.forget(at);
                    model[target][range].fill(None);
                }
                1 => {
                    values.zero(at);
                    model[target][range].fill(Some(0));
                }
                2 => {
                    values.write(at, &vec![byte; length as usize]);
                    model[target][range].fill(Some(byte));
                }
                _ => {
                    // From the start of the other block.
                    let other = 1 - block;
                    values.copy(at, span(address(other), 0, length));
                    let source = model[other as usize];
                    model[target][range].copy_from_slice(&source[..length as usize]);
                }
            }
            for block in 0..2 {
                prop_assert_eq!(seen(&values, address(block)), model[block as usize].to_vec());
            }
            let stored: usize = values.blocks.values().map(|contents| contents.bytes.len()).sum();
            prop_assert_eq!(stored as u64, values.stored);
        }
    }
}
