//! Of `functional/c_heap.rs`: tests with the C code of `c_heap/`.

use memcheck_runtime::{Trial, mem_test};

unsafe extern "C" {
    safe fn leak_one_kib() -> *mut u8;
    safe fn leak_2000() -> *mut u8;
    safe fn copy_of_text() -> *mut u8;
    safe fn append(bytes: usize);
    safe fn keep_last(turn: usize);
    safe fn use_all() -> i32;
    safe fn map_pages(bytes: usize) -> i32;
}

type Result = candle_core::Result<()>;

#[mem_test(baseline = false, max_c_growth = "0 B")]
fn leaks(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_one_kib();
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "0 B")]
fn leaks_without_lines(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_2000();
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "2 KiB")]
fn leaks_less_than_its_limit(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_one_kib();
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn leaks_without_a_limit(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_one_kib();
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "0 B")]
fn leaks_copies(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        copy_of_text();
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "0 B")]
fn appends(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        append(1_000);
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "0 B", max_growth = "0 B")]
fn clean(trial: &mut Trial) -> Result {
    trial.iterate(|turn| {
        assert_eq!(use_all(), 0);
        keep_last(turn);
        // One after the other, because their blocks would have another peak in each run.
        for _ in 0..4 {
            let thread = std::thread::spawn(|| vec![1u8; 5_000].len());
            assert_eq!(thread.join().unwrap(), 5_000);
        }
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "0 B", max_growth = "1 MiB", max_retained = "1 MiB")]
fn leaks_in_rust(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        std::mem::forget(vec![1u8; 2_000]);
        Ok(())
    })
}

#[mem_test(baseline = false, max_c_growth = "0 B")]
fn leaks_beside_a_device(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    trial.iterate(|_| {
        leak_one_kib();
        candle_core::Tensor::zeros(64, candle_core::DType::F32, &device)?;
        Ok(())
    })
}

#[mem_test(baseline = false, max_rss_growth = "16 KiB", max_c_growth = "0 B")]
fn maps_pages(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        assert_eq!(map_pages(65_536), 0);
        Ok(())
    })
}

#[mem_test(baseline = false, max_rss_growth = "16 KiB")]
fn resident_memory_is_bounded(trial: &mut Trial) -> Result {
    let mut kept = std::collections::VecDeque::new();
    trial.iterate(|turn| {
        kept.push_back(vec![1u8; 30_000 + turn * 7_919 % 50_000]);
        if kept.len() > 20 {
            kept.pop_front();
        }
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn maps_a_file(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    let weights = candle_core::Tensor::ones((256, 256), candle_core::DType::F32, &device)?;
    let path = std::env::temp_dir().join(format!("{}.safetensors", std::process::id()));
    let weights = std::collections::HashMap::from([("weights", weights)]);
    candle_core::safetensors::save(&weights, &path)?;
    // SAFETY: only this test has the name of the file.
    let mapped = unsafe { candle_core::safetensors::MmapedSafetensors::new(&path) }?;
    trial.iterate(|_| {
        let sum = mapped.load("weights", &device)?.sum_all()?.to_scalar::<f32>()?;
        assert_eq!(sum, 65_536.0);
        trial.mark("loaded");
        candle_core::Result::Ok(())
    })?;
    std::fs::remove_file(&path)?;
    Ok(())
}
