//! A small Llama whose layers are split over all ranks: each has a part of the heads and of the
//! inner width, and the ranks add their outputs by NCCL.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::nccl::safe::{Comm, Id, ReduceOp};
use candle_core::{CpuStorage, CudaStorage, D, DType, Device, Layout, Result, Shape, Tensor};
use memcheck_runtime::{Trial, mem_test, usage};

const VOCAB: usize = 64;
const HIDDEN: usize = 32;
const INNER: usize = 96;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const BATCH: usize = 2;
const SEQ: usize = 8;

struct AllReduce<'a>(&'a Comm);

impl candle_core::CustomOp1 for AllReduce<'_> {
    fn name(&self) -> &'static str {
        "all-reduce"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        candle_core::bail!("NCCL has no CPU")
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = storage.device().clone();
        let from = storage.as_cuda_slice::<f32>()?;
        let mut to = device.alloc_zeros::<f32>(layout.shape().elem_count())?;
        let done = self.0.all_reduce(from, &mut to, &ReduceOp::Sum);
        done.map_err(candle_core::Error::debug)?;
        Ok((CudaStorage::wrap_cuda_slice(to, device), layout.shape().clone()))
    }
}

struct Layer {
    /// Queries, keys and values.
    projections: [Tensor; 3],
    output: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

/// The part of one rank.
struct Rank {
    embeddings: Tensor,
    layers: Vec<Layer>,
    head: Tensor,
    device: Device,
}

impl Rank {
    fn new(ranks: usize, device: &Device) -> Result<Self> {
        let zeros = |rows: usize, columns: usize| Tensor::zeros((rows, columns), DType::F32, device);
        let (width, inner) = (HIDDEN / ranks, INNER / ranks);
        let layer = |_| {
            Ok(Layer {
                projections: [zeros(HIDDEN, width)?, zeros(HIDDEN, width)?, zeros(HIDDEN, width)?],
                output: zeros(width, HIDDEN)?,
                gate: zeros(HIDDEN, inner)?,
                up: zeros(HIDDEN, inner)?,
                down: zeros(inner, HIDDEN)?,
            })
        };
        Ok(Self {
            embeddings: zeros(VOCAB, HIDDEN)?,
            layers: (0..LAYERS).map(layer).collect::<Result<_>>()?,
            head: zeros(HIDDEN, VOCAB)?,
            device: device.clone(),
        })
    }

    /// Returns the logits, and the keys and values of each layer.
    fn forward(&self, comm: &Comm) -> Result<(Tensor, Vec<[Tensor; 2]>)> {
        let heads = HEADS / comm.world_size();
        let ids = Tensor::zeros(BATCH * SEQ, DType::U32, &self.device)?;
        let mut x = self.embeddings.index_select(&ids, 0)?;
        let mut cache = Vec::new();
        for layer in &self.layers {
            let [q, k, v] = [0, 1, 2].map(|at| {
                let x = x.matmul(&layer.projections[at])?;
                x.reshape((BATCH, SEQ, heads, HIDDEN / HEADS))?.transpose(1, 2)?.contiguous()
            });
            let (q, k, v) = (q?, k?, v?);
            let scores = q.matmul(&k.transpose(D::Minus1, D::Minus2)?)?.exp()?;
            let scores = scores.broadcast_div(&scores.sum_keepdim(D::Minus1)?)?;
            let y = scores.matmul(&v)?.transpose(1, 2)?.contiguous()?;
            let y = y.reshape((BATCH * SEQ, heads * HIDDEN / HEADS))?.matmul(&layer.output)?;
            x = (x + y.apply_op1_no_bwd(&AllReduce(comm))?)?;
            let y = (x.matmul(&layer.gate)?.silu()? * x.matmul(&layer.up)?)?;
            let y = y.matmul(&layer.down)?.apply_op1_no_bwd(&AllReduce(comm))?;
            x = (x + y)?;
            cache.push([k, v]);
        }
        Ok((x.matmul(&self.head)?, cache))
    }
}

/// Runs `work` on each rank, a thread for each, and returns the results.
fn on_each<T: Send>(ranks: &[Rank], work: impl Fn(&Rank, &Comm) -> T + Sync) -> Vec<T> {
    let id = Id::new().unwrap();
    let work = &work;
    std::thread::scope(|scope| {
        let of_rank = |(number, rank)| {
            scope.spawn(move || {
                let rank: &Rank = rank;
                let stream = rank.device.as_cuda_device().unwrap().cuda_stream();
                stream.context().bind_to_thread().unwrap();
                let comm = Comm::from_rank(stream, number, ranks.len(), id).unwrap();
                work(rank, &comm)
            })
        };
        let threads: Vec<_> = ranks.iter().enumerate().map(of_rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[mem_test(device = "cuda", cases(gpus = [2, 4]), baseline = false, max_growth = "0 B")]
fn tensor_parallel(trial: &mut Trial) -> Result<()> {
    let gpus: usize = trial.case("gpus").unwrap();
    let devices = trial.devices().unwrap()[..gpus].to_vec();
    let ranks = devices.iter().map(|device| Rank::new(gpus, device)).collect::<Result<Vec<_>>>()?;
    // Keys and values of a rank's heads in each layer, and all logits.
    let kept = 4 * (2 * LAYERS * BATCH * SEQ * HIDDEN / gpus + BATCH * SEQ * VOCAB);
    trial.iterate(|_| {
        let before: Vec<u64> = devices.iter().map(|device| usage(device).allocated).collect();
        let results = on_each(&ranks, |rank, comm| rank.forward(comm));
        let results = results.into_iter().collect::<Result<Vec<_>>>()?;
        for (device, before) in devices.iter().zip(before) {
            assert_eq!(usage(device).allocated - before, kept as u64);
        }
        drop(results);
        Ok(())
    })
}

#[mem_test(device = "cuda", baseline = false, max_growth = "0 B")]
fn keeps_the_sums(trial: &mut Trial) -> Result<()> {
    let devices = trial.devices().unwrap()[..2].to_vec();
    let ranks = devices.iter().map(|device| Rank::new(2, device)).collect::<Result<Vec<_>>>()?;
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.extend(on_each(&ranks, |rank, comm| -> Result<Tensor> {
            let x = Tensor::ones((BATCH * SEQ, HIDDEN), DType::F32, &rank.device)?;
            let sum = x.apply_op1_no_bwd(&AllReduce(comm))?;
            assert_eq!(sum.flatten_all()?.to_vec1::<f32>()?, vec![2.; BATCH * SEQ * HIDDEN]);
            Ok(sum)
        }));
        Ok(())
    })
}
