//! Of `functional/floods.rs`.

use std::io::Write;

use memcheck_runtime::{Trial, mem_test};

fn mebibytes() -> usize {
    std::fs::read_to_string(crate::folder().join("mebibytes")).unwrap().parse().unwrap()
}

fn flood(mebibytes: usize, mut to: impl Write, piece: &[u8]) {
    let piece = piece.repeat((1 << 20) / piece.len());
    (0..mebibytes).for_each(|_| to.write_all(&piece).unwrap());
    to.flush().unwrap();
}

fn progress() -> std::fs::File {
    std::fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap()
}

#[mem_test(baseline = false, iterations = 1, warmup = 0, max_allocations = 0)]
fn output(_trial: &mut Trial) {
    print!("first");
    flood(mebibytes(), std::io::stdout().lock(), b"x");
    flood(20, std::io::stderr().lock(), b"\xff\x00");
    println!("last");
    std::process::exit(3);
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn one_line_of_progress(_trial: &mut Trial) {
    flood(mebibytes(), progress(), b"x");
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn many_lines_of_progress(_trial: &mut Trial) {
    flood(mebibytes(), progress(), b"\xff{}\n{\"iteration\":1,\"of\":2,\"live\":3456789}\n");
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn record(_trial: &mut Trial) {
    std::fs::File::create(crate::report()).unwrap().set_len(1 << 30).unwrap();
    std::process::exit(0);
}
