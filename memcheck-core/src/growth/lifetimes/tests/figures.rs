//! The figures of a decision: call sites, numbers of blocks and of iterations.

use super::super::events::Events;
use super::super::group::KindGroup;
use super::super::programs::{Program, ProgramBlock, Random};
use super::super::step::least_growth;
use super::super::{Budget, Certainty, Decision, Leak, Open, Part, PartPattern, Rate, runs};

const KIB: u64 = 1 << 10;

fn program(blocks: impl IntoIterator<Item = (u32, u32, u32, u64)>) -> Program {
    let block = |(site, born, died, size)| ProgramBlock { site, size, born: Some(born), died };
    Program { blocks: blocks.into_iter().map(block).collect(), ..Program::new(1_100) }
}

fn kept(site: u32, size: u64, at: impl Fn(u32) -> bool) -> Program {
    program((0..1_100).filter(|&born| at(born)).map(|born| (site, born, u32::MAX, size)))
}

fn leak(program: &Program) -> Leak {
    match program.run(&Budget::default()).0 {
        Decision::Leak(leak) => leak,
        other => panic!("{other:?}"),
    }
}

fn exact(bytes: u64, iterations: u64) -> Rate {
    Rate::new(bytes.into(), iterations.into(), Certainty::Exact)
}

#[test]
fn a_part_has_the_call_site_the_size_and_the_blocks_of_its_group() {
    let both = kept(3, KIB, |_| true).and(&kept(7, 64, |at| at % 2 == 0));
    let leak = leak(&both);
    let measured = u64::from(leak.through - 2);
    let part = |site, size, blocks, (bytes, period)| Part {
        site: Some(site),
        size: Some(size),
        rate: exact(bytes, period),
        pattern: PartPattern::Exact { period: period as u32 },
        replaced: false,
        blocks,
        bytes: blocks * size,
    };
    let parts = [part(3, KIB, measured, (KIB, 1)), part(7, 64, measured.div_ceil(2), (64, 2))];
    assert_eq!(leak.parts, parts);
    assert_eq!((leak.rate, leak.whole), (exact(2 * KIB + 64, 2), true));
}

#[test]
fn a_buffer_that_is_replaced_by_a_larger_one_is_a_part_that_is_replaced() {
    let buffer = program((0..1_100).map(|at| (1, at, at + 1, KIB + 64 * u64::from(at))));
    let leak = leak(&buffer);
    assert_eq!((leak.rate, leak.whole, leak.parts.len()), (exact(64, 1), true, 1));
    let part = &leak.parts[0];
    assert_eq!((part.site, part.size, part.replaced, part.blocks), (Some(1), None, true, 1));
}

#[test]
fn an_open_verdict_has_the_live_blocks_and_bytes() {
    let Decision::Open(open) = kept(1, KIB, |at| at == 7 || at == 8).run(&Budget::of(12)).0 else {
        panic!()
    };
    assert_eq!((open.blocks, open.bytes, open.through), (2, 2 * KIB, 12));
    assert_eq!(open.rate, Rate::new((2 * KIB).into(), 10, Certainty::Mean));
    assert_ne!(open.open, Open::Moves);
}

#[test]
fn the_least_growth_is_that_of_settled_blocks_or_of_the_floor() {
    let least = |live: &[i64], left: &[i64], age| {
        let (live, left) = (live.to_vec(), left.to_vec());
        let none = vec![0; live.len()];
        let [born, blocks, live_blocks] = [none.clone(), none.clone(), none];
        let ages = Events::default();
        least_growth(&KindGroup {
            born,
            left,
            blocks,
            live,
            live_blocks,
            largest: None,
            age,
            ages,
            lifetimes: None,
            older: None,
        })
    };
    // A list of two blocks, and two more bytes from the fifth entry on.
    let list = [0, 3, 0, 3, 2, 5, 2, 5];
    assert_eq!(least(&list, &[0; 8], 2), 2);
    assert_eq!(least(&list, &[4, 0, 0, 0, 0, 3, 0, 0], 2), 7);
    assert_eq!(least(&list, &[0, 0, 0, 0, 0, 0, 9, 9], 2), 2, "blocks that may still die");
    // The first entries are no growth, unless the run is too short to leave them out.
    assert_eq!(least(&[0, 8, 8, 9], &[0; 4], 1), 1);
    assert_eq!(least(&[1, 4, 6], &[0; 3], 2), 3);
    assert_eq!(least(&[9, 5, 1], &[0; 3], 1), 0, "it falls");
    assert_eq!(least(&[], &[], 0), 0);
}

#[test]
fn a_clean_program_is_quiet_for_the_iterations_since_its_last_event() {
    let cache = kept(1, KIB, |at| (3..9).contains(&at));
    let (decision, iterations, _) = cache.run(&Budget::default());
    assert_eq!(decision, Decision::Clean { quiet_for: iterations - 9 });
    assert!(iterations - 9 >= Budget::default().quiet);
}

#[test]
fn an_exact_leak_does_not_wait_for_the_container_that_keeps_its_blocks() {
    let table = |site, bytes: u64| {
        program((0..11).map(|power: u32| (site, (1 << power) / 2, 1 << power, bytes << power)))
    };
    let blocks = kept(1, KIB, |_| true);
    let with_table = leak(&blocks.clone().and(&table(2, 8)));
    assert_eq!(
        (with_table.rate, with_table.whole, with_table.parts.len()),
        (exact(KIB, 1), true, 1)
    );
    // A table of more than a sixteenth of the blocks' bytes counts as growth.
    let large = leak(&blocks.and(&table(2, 512)));
    assert!(large.rate > exact(KIB, 1), "{large:?}");
}

#[test]
fn growth_that_accelerates_has_the_mean_of_the_measured_iterations_and_its_increase() {
    let kept = |power| {
        let size = move |at: u32| KIB * u64::from(at + 1).pow(power);
        program((0..1_100).map(|at| (1, at, u32::MAX, size(at))))
    };
    // A list of the blocks, whose capacity doubles.
    let list = program((6..11).map(|power: u32| (2, 1 << power, 2 << power, 16 << power)));
    for (power, more) in [(1, KIB), (2, 0)] {
        let added: u64 = (2..12).map(|at: u64| KIB * (at + 1).pow(power)).sum();
        for budget in [Budget::default(), Budget::of(1_002), Budget::of(1_002).to_the_end()] {
            for program in [kept(power), kept(power).and(&list)] {
                let Decision::Leak(leak) = program.run(&budget).0 else { panic!("{budget:?}") };
                let rate = Rate::new(added.into(), 10, Certainty::Growing);
                assert_eq!((leak.rate, leak.whole), (rate, true), "{power} {budget:?}");
                let pattern = PartPattern::Growing { period: 1, more };
                assert_eq!(leak.parts[0].pattern, pattern, "{power} {budget:?}");
            }
        }
        assert!(leak(&kept(power)).through < 200, "it need not be followed to the end");
        let longer = Budget::default().of_measured(20);
        let Decision::Leak(leak) = kept(power).run(&longer).0 else { panic!("{power}") };
        let added: u64 = (2..22).map(|at: u64| KIB * (at + 1).pow(power)).sum();
        assert_eq!(leak.rate, Rate::new(added.into(), 20, Certainty::Growing));
    }
}

#[test]
fn a_buffer_that_gets_longer_by_more_each_time_accelerates() {
    let size = |at: u32| 4 * u64::from(at * (at + 1) / 2 + 1);
    let leak = leak(&program((0..1_100).map(|at| (1, at, at + 1, size(at)))));
    // The sizes after the measured iterations 2 to 11 rise by 4 x 3 to 4 x 11.
    assert_eq!(leak.rate, Rate::new((3..=11).map(|at| 4 * at).sum(), 9, Certainty::Growing));
    assert_eq!(leak.parts[0].pattern, PartPattern::Growing { period: 1, more: 4 });
}

#[test]
fn an_irregular_leak_is_found_when_the_budget_ends() {
    for p in [0.6, 0.8] {
        let mut random = Random(9);
        let at: Vec<bool> = (0..1_100).map(|_| random.chance(p)).collect();
        let leak = leak(&kept(1, KIB, |born| at[born as usize]));
        assert!(leak.whole && leak.rate.certainty == Certainty::Mean, "{leak:?}");
        // A cache that fills slowly looks alike for as long as hits are rare.
        assert_eq!(leak.through, Budget::default().most);
    }
}

#[test]
fn a_series_of_a_damaged_record_has_a_bounded_length() {
    let read = |repeats: u64| {
        let text = format!("[1,{repeats}]");
        runs::deserialize(&mut serde_json::Deserializer::from_str(&text))
    };
    assert_eq!(read(1 << 16).unwrap().len(), 1 << 16);
    assert!(read((1 << 16) + 1).is_err());
}
