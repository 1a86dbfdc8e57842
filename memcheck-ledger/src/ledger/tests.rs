//! Tests of the ledger. A process has one ledger, so each test uses its own space and addresses.

use memcheck_limits::space::Space;

use super::*;

fn map_table() {
    prepare().expect("address space for the table");
}

#[test]
fn the_peak_is_the_highest_sum_and_unknown_frees_change_nothing() {
    map_table();
    let space = Space::Cuda(20);
    allocated(space, 0x10_0000, 100);
    allocated(space, 0x20_0000, 50);
    assert_eq!(freed(0x10_0000).map(|block| block.size), Some(100));
    assert_eq!(freed(0x10_0000), None);
    allocated(space, 0x30_0000, 70);
    let now = snapshot(space);
    assert_eq!((now.live, now.peak, now.allocations, now.frees), (120, 150, 3, 1));
}

#[test]
fn a_reset_peak_stays_part_of_the_whole_peak() {
    map_table();
    let space = Space::Cuda(25);
    let peaks = || (snapshot(space).peak, snapshot(space).whole_peak);
    allocated(space, 0x18_0000, 100);
    allocated(space, 0x19_0000, 50);
    freed(0x18_0000);
    reset_peak(space);
    assert_eq!(peaks(), (50, 150));
    allocated(space, 0x18_0000, 10);
    reset_peak(space);
    assert_eq!(peaks(), (60, 150));
    allocated(space, 0x1a_0000, 100);
    assert_eq!(peaks(), (160, 160));
    assert_eq!([0x18_0000, 0x19_0000, 0x1a_0000].map(|at| freed(at).is_some()), [true; 3]);
}

#[test]
fn a_window_keeps_its_peak_across_resets() {
    map_table();
    let space = Space::Cuda(26);
    let peaks = || (snapshot(space).peak, snapshot(space).whole_peak);
    allocated(space, 0x1b_0000, 300);
    freed(0x1b_0000);
    reset_peak(space);
    let window = PeakWindow::open(space);
    allocated(space, 0x1b_0000, 100);
    freed(0x1b_0000);
    reset_peak(space);
    allocated(space, 0x1c_0000, 10);
    assert_eq!(window.close(), 100);
    assert_eq!(peaks(), (10, 300), "the window leaves no trace");
    assert_eq!(freed(0x1c_0000).map(|block| block.size), Some(10));
}

#[test]
fn a_failed_free_leaves_its_block_live() {
    map_table();
    let space = Space::Cuda(21);
    allocated(space, 0x11_0000, 64);
    let unfreed = || {
        let mut blocks = Vec::new();
        each_unfreed(|address, block| blocks.push((address, block)));
        blocks.retain(|(_, block)| block.space == space);
        blocks
    };
    assert_eq!(unfreed(), [], "the program holds it");
    let block = freed(0x11_0000).unwrap();
    free_failed(0x11_0000, block);
    assert_eq!(unfreed(), [(0x11_0000, block)]);
    let now = snapshot(space);
    assert_eq!((now.live, now.failed_frees, now.frees), (64, 1, 0));
    assert_eq!(freed(0x11_0000), Some(block));
    allocated(space, 0x11_0000, 64);
    assert_eq!(unfreed(), [], "this is another block");
    freed(0x11_0000);
}

#[test]
fn a_moved_block_is_counted_exactly_once() {
    map_table();
    let space = Space::Cuda(22);
    allocated(space, 0x12_0000, 1_000);
    let old = taken(0x12_0000).unwrap();
    moved(old, space, 0x13_0000, 1_500);
    let now = snapshot(space);
    assert_eq!((now.live, now.peak, now.allocations), (1_500, 1_500, 2));
    let old = taken(0x13_0000).unwrap();
    put_back(0x13_0000, old);
    assert_eq!(freed(0x13_0000).map(|block| block.size), Some(1_500));
    assert_eq!(snapshot(space).live, 0);
}

#[test]
fn a_block_that_moves_to_an_unknown_space_is_removed_and_counts_as_lost() {
    map_table();
    let space = Space::Cuda(27);
    allocated(space, 0x14_0000, 1_000);
    let (old, lost) = (taken(0x14_0000).unwrap(), lost_events());
    let of_unknown = events_of_unknown_gpus();
    moved(old, Space::Cuda(u16::MAX), 0x15_0000, 1_500);
    assert_eq!((lost_events(), events_of_unknown_gpus()), (lost + 1, of_unknown + 1));
    let now = snapshot(space);
    assert_eq!((now.live, now.allocations, now.frees), (0, 1, 1));
    assert_eq!(freed(0x15_0000), None);
}

#[test]
fn concurrent_counts_are_exact_to_the_byte() {
    map_table();
    let space = Space::Cuda(23);
    // An interpreter takes a second for a thousand blocks.
    const THREADS: u64 = if cfg!(miri) { 3 } else { 8 };
    const BLOCKS: u64 = if cfg!(miri) { 20 } else { 2_000 };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..3 {
                    let address = |i: u64| 0x1000_0000_0000 + (thread << 32) + (i << 8);
                    for i in 0..BLOCKS {
                        allocated(space, address(i), i + 1);
                    }
                    for i in 0..BLOCKS {
                        // The last round keeps every tenth block.
                        if round < 2 || i % 10 != 0 {
                            assert_eq!(freed(address(i)).map(|block| block.size), Some(i + 1));
                        }
                    }
                }
            });
        }
    });
    let kept: u64 = (0..BLOCKS).filter(|i| i % 10 == 0).map(|i| i + 1).sum();
    let now = snapshot(space);
    assert_eq!(now.live, THREADS * kept);
    assert_eq!(now.allocations, THREADS * BLOCKS * 3);
    let whole: u64 = BLOCKS * (BLOCKS + 1) / 2;
    assert!((whole..=whole * THREADS).contains(&now.peak), "{now:?}");
}

/// The blocks of one space in a census, sorted: size, iteration of birth and count.
fn blocks_of(space: Space, census: &census::Census) -> Vec<(u64, u32, u64)> {
    let mut blocks: Vec<_> = census
        .iter()
        .filter(|(kind, _)| kind.space == space)
        .map(|(kind, &count)| (kind.size, kind.birth, count))
        .collect();
    blocks.sort_unstable();
    blocks
}

// Births come from the iteration of the process, and changes can be taken only once, so other tests
// must not use them.
#[test]
fn changes_add_up_to_the_census() {
    map_table();
    let space = Space::Cuda(24);
    let address = |iteration: u32, size: u64| 0x5000_0000 + u64::from(iteration) * 0x1000 + size;
    for iteration in 1..=4u32 {
        begin_iteration(iteration);
        allocated(space, address(iteration, 40), 40);
        allocated(space, address(iteration, 60), 60);
        allocated(space, address(iteration, 80), 80);
        freed(address(iteration, 80));
        if iteration > 2 {
            freed(address(iteration - 2, 60));
        }
        let changes = Changes::take().expect("few have died");
        assert_eq!(blocks_of(space, &changes.added), [(40, iteration, 1), (60, iteration, 1)]);
        let removed: &[_] = if iteration > 2 { &[(60, iteration - 2, 1)] } else { &[] };
        assert_eq!(blocks_of(space, &changes.removed), removed);
    }
    let old = taken(address(1, 40)).unwrap();
    put_back(address(1, 40), old);
    let old = taken(address(2, 40)).unwrap();
    moved(old, space, address(2, 50), 50);
    let changes = Changes::take().expect("few have died");
    assert_eq!(
        (blocks_of(space, &changes.added), blocks_of(space, &changes.removed)),
        (vec![(50, 4, 1)], vec![(40, 2, 1)])
    );
    assert_eq!(
        blocks_of(space, &census()),
        [(40, 1, 1), (40, 3, 1), (40, 4, 1), (50, 4, 1), (60, 3, 1), (60, 4, 1)]
    );
    begin_iteration(0);
}
