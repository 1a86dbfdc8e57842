//! Memory that Rust's allocator and the driver do not see.

use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_c_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn folders_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    trial.iterate(|_| {
        std::mem::forget(std::fs::read_dir("/proc/self")?);
        anyhow::Ok(())
    })
}
