//! Of `functional/live.rs`.

/// Holds 32 MiB, and 1 MiB more every 100 ms, for three seconds.
fn grows() -> usize {
    let model = vec![1_u8; 32 << 20]; // line: model
    let mut kept = Vec::with_capacity(30);
    for _ in 0..30 {
        kept.push(vec![1_u8; 1 << 20]);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    model.len() + kept.len()
}

#[memcheck_runtime::mem_test(baseline = false, iterations = 1, warmup = 0)]
fn growing() {
    println!("from the test");
    assert!(grows() > 0);
}
