//! Collectives of NCCL between threads, in groups of one thread, and between processes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaStream};
use candle_core::cuda_backend::cudarc::nccl::safe::{Comm, Id, ReduceOp, group_end, group_start};
use memcheck_runtime::{Trial, mem_test};

fn streams(trial: &mut Trial) -> anyhow::Result<Vec<Arc<CudaStream>>> {
    let devices = trial.devices()?.iter();
    Ok(devices.map(|device| device.as_cuda_device().unwrap().cuda_stream()).collect())
}

fn join(stream: &Arc<CudaStream>, rank: usize, size: usize, id: Id) -> Comm {
    stream.context().bind_to_thread().unwrap();
    Comm::from_rank(stream.clone(), rank, size, id).unwrap()
}

/// Calls each collective once, as rank `comm.rank()` of two.
fn collectives(comm: &Comm) {
    let (stream, rank) = (comm.stream(), comm.rank());
    let upload = |values: &[f32]| stream.clone_htod(values).unwrap();
    let empty = |count: usize| stream.alloc_zeros::<f32>(count).unwrap();
    let values = |slice: &CudaSlice<f32>| stream.clone_dtoh(slice).unwrap();
    let own = upload(&[1. + rank as f32, 10.]);
    let mut both = empty(2);
    for (operation, expected) in [
        (ReduceOp::Sum, [3., 20.]),
        (ReduceOp::Prod, [2., 100.]),
        (ReduceOp::Max, [2., 10.]),
        (ReduceOp::Min, [1., 10.]),
        (ReduceOp::Avg, [1.5, 10.]),
    ] {
        comm.all_reduce(&own, &mut both, &operation).unwrap();
        assert_eq!(values(&both), expected);
    }
    comm.broadcast((rank == 1).then_some(&own), &mut both, 1).unwrap();
    assert_eq!(values(&both), [2., 10.]);
    let mut all = empty(4);
    comm.all_gather(&own, &mut all).unwrap();
    assert_eq!(values(&all), [1., 10., 2., 10.]);
    let mut part = empty(1);
    comm.reduce_scatter(&own, &mut part, &ReduceOp::Sum).unwrap();
    assert_eq!(values(&part), [[3.], [20.]][rank]);
    let mut sum = empty(2);
    comm.reduce(&own, (rank == 0).then_some(&mut sum), &ReduceOp::Sum, 0).unwrap();
    assert_eq!(values(&sum), [[3., 20.], [0., 0.]][rank]);
    let other = 1 - rank as i32;
    group_start().unwrap();
    comm.recv(&mut both, other).unwrap();
    comm.send(&own, other).unwrap();
    group_end().unwrap();
    assert_eq!(values(&both), [2. - rank as f32, 10.]);
}

#[mem_test(device = "cuda", baseline = false, max_growth = "0 B")]
fn collectives_between_threads(trial: &mut Trial) -> anyhow::Result<()> {
    let streams = streams(trial)?;
    trial.iterate(|_| {
        let id = Id::new().unwrap();
        std::thread::scope(|scope| {
            for (rank, stream) in streams.iter().enumerate() {
                scope.spawn(move || collectives(&join(stream, rank, 2, id)));
            }
        });
        anyhow::Ok(())
    })
}

#[mem_test(device = "cuda", baseline = false, max_growth = "0 B")]
fn one_thread_in_groups(trial: &mut Trial) -> anyhow::Result<()> {
    let streams = streams(trial)?;
    trial.iterate(|_| {
        let comms = Comm::from_devices(streams.clone()).unwrap();
        let mut buffers: Vec<_> =
            comms.iter().map(|it| it.stream().clone_htod(&[it.rank() as f32 + 1.]).unwrap()).collect();
        group_start().unwrap();
        for (comm, buffer) in comms.iter().zip(&mut buffers) {
            comm.all_reduce_in_place(buffer, &ReduceOp::Sum).unwrap();
        }
        group_end().unwrap();
        for (comm, buffer) in comms.iter().zip(&buffers) {
            assert_eq!(comm.stream().clone_dtoh(buffer).unwrap(), [3.]);
        }
        anyhow::Ok(())
    })
}

#[mem_test(device = "cuda", baseline = false, iterations = 2, warmup = 0)]
fn ranks_that_disagree(trial: &mut Trial) -> anyhow::Result<()> {
    let streams = streams(trial)?;
    trial.iterate(|_| {
        let id = Id::new().unwrap();
        let call = |rank: usize| {
            let comm = join(&streams[rank], rank, 2, id);
            let mut buffer = comm.stream().alloc_zeros::<f32>(1 + rank).unwrap();
            comm.all_reduce_in_place(&mut buffer, &ReduceOp::Sum).map(drop)
        };
        let results = std::thread::scope(|scope| {
            let threads = [0, 1].map(|rank| scope.spawn(move || call(rank)));
            threads.map(|thread| thread.join().unwrap())
        });
        for result in results {
            result.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        }
        Ok(())
    })
}

static ROUND: AtomicUsize = AtomicUsize::new(0);

/// The id travels through a file, as in candle's `llama_multiprocess`. Both ranks are tests that
/// run at the same time, so that each has a record. Neither is followed beyond its iterations,
/// because the other one can end before.
#[mem_test(
    device = "cuda",
    cases(rank = [0, 1]),
    max_iterations = 10,
    baseline = false,
    max_growth = "0 B"
)]
fn rank_of_its_own_process(trial: &mut Trial) -> anyhow::Result<()> {
    let rank: usize = trial.case("rank")?;
    let stream = streams(trial)?[rank].clone();
    // The body runs twice.
    let name = format!("id-{}", ROUND.fetch_add(1, Ordering::Relaxed));
    let file = PathBuf::from(std::env::var("ID_FOLDER")?).join(name);
    let id = if rank == 0 {
        let id = Id::new().unwrap();
        let bytes: Vec<u8> = id.internal().iter().map(|&byte| byte as u8).collect();
        std::fs::write(file.with_extension("new"), bytes)?;
        std::fs::rename(file.with_extension("new"), file)?;
        id
    } else {
        while !file.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let bytes = std::fs::read(file)?;
        Id::uninit(std::array::from_fn(|at| bytes[at] as _))
    };
    let comm = join(&stream, rank, 2, id);
    trial.iterate(|_| {
        collectives(&comm);
        anyhow::Ok(())
    })
}
