use memcheck_runtime::{Trial, mem_test};

unsafe extern "C" {
    safe fn leak_one_kib() -> *mut u8;
    safe fn copy_of_text() -> *mut u8;
    safe fn append(bytes: usize);
    safe fn keep_last(turn: usize);
    safe fn use_all() -> i32;
}

type Result = candle_core::Result<()>;

#[mem_test(max_c_growth = "0 B")]
fn leaks(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_one_kib();
        Ok(())
    })
}

#[mem_test(max_c_growth = "2 KiB")]
fn leaks_less_than_its_limit(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_one_kib();
        Ok(())
    })
}

#[mem_test(max_growth = "0 B")]
fn leaks_without_a_limit(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        leak_one_kib();
        Ok(())
    })
}

#[mem_test(max_c_growth = "0 B")]
fn leaks_copies(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        copy_of_text();
        Ok(())
    })
}

#[mem_test(max_c_growth = "0 B")]
fn appends(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        append(1_000);
        Ok(())
    })
}

#[mem_test(max_c_growth = "0 B", max_growth = "0 B")]
fn clean(trial: &mut Trial) -> Result {
    trial.iterate(|turn| {
        assert_eq!(use_all(), 0);
        keep_last(turn);
        let threads = (0..4).map(|_| std::thread::spawn(|| vec![1u8; 5_000].len()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), 5_000));
        Ok(())
    })
}

#[mem_test(max_c_growth = "0 B", max_growth = "1 MiB", max_retained = "1 MiB")]
fn leaks_in_rust(trial: &mut Trial) -> Result {
    trial.iterate(|_| {
        std::mem::forget(vec![1u8; 2_000]);
        Ok(())
    })
}

#[mem_test(max_c_growth = "0 B")]
fn leaks_beside_a_device(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    trial.iterate(|_| {
        leak_one_kib();
        candle_core::Tensor::zeros(64, candle_core::DType::F32, &device)?;
        Ok(())
    })
}
