//! A small Llama whose layers are split over all ranks: each has a part of the heads and of the
//! inner width, and the ranks add their outputs by NCCL. The ranks are threads or processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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

/// Bytes of the weights of a rank: embeddings and head are on each, and the layers are split.
fn weights(ranks: usize) -> u64 {
    let layer = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * INNER;
    4 * (2 * VOCAB * HIDDEN + LAYERS * layer / ranks) as u64
}

/// Bytes of the activations of a rank at its peak, which is the product of gate and up in the last
/// layer.
fn activations(ranks: usize) -> u64 {
    let tokens = BATCH * SEQ;
    let (hidden, width, inner) = (tokens * HIDDEN, tokens * HIDDEN / ranks, tokens * INNER / ranks);
    let scores = BATCH * HEADS / ranks * SEQ * SEQ;
    // Keys and values of the earlier layers.
    let cache = 2 * width * (LAYERS - 1);
    // Queries, keys, values and the output of the heads; the scores as exponents and as fractions.
    let attention = 4 * width + 2 * scores;
    // The sum before the layer's MLP, and the output of the attention on this rank.
    let sums = 2 * hidden;
    // Gate, its activation, up and the product. The ids are of four bytes, too.
    4 * (cache + attention + sums + 4 * inner + tokens) as u64
}

/// Runs `work` on each rank, a thread for each, and returns the results.
fn on_each<T: Send>(ranks: &[Rank], work: impl Fn(&Rank, &Comm) -> T + Sync) -> Vec<T> {
    let id = Id::new().unwrap();
    let work = &work;
    std::thread::scope(|scope| {
        let of_rank = |(number, rank)| {
            scope.spawn(move || {
                let rank: &Rank = rank;
                work(rank, &comm(rank, number, ranks.len(), id))
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
    trial.iterate(|_| -> Result<()> {
        let before: Vec<u64> = devices.iter().map(|device| usage(device).allocated).collect();
        let results = on_each(&ranks, |rank, comm| rank.forward(comm));
        let results = results.into_iter().collect::<Result<Vec<_>>>()?;
        for (device, before) in devices.iter().zip(before) {
            assert_eq!(usage(device).allocated - before, kept as u64);
        }
        drop(results);
        Ok(())
    })?;
    for device in &devices {
        assert_eq!(usage(device).peak_allocated, weights(gpus) + activations(gpus));
    }
    Ok(())
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

/// The test harness runs this in the processes that the test below starts. It does an iteration for
/// each line that it reads.
#[test]
#[ignore = "is a rank of the test `ranks_are_processes`"]
fn rank() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let (own, ranks) = (number("RANK"), number("RANKS"));
    let device = Device::new_cuda(own).unwrap();
    // Arms the probes.
    assert_eq!(usage(&device).allocated, 0);
    let rank = Rank::new(ranks, &device).unwrap();
    let loaded = usage(&device).allocated;
    let comm = join(&rank, own, ranks);
    for _ in std::io::stdin().lines() {
        rank.forward(&comm).unwrap();
    }
    let figures = usage(&device);
    println!("\nfigures: {loaded} {} {}", figures.peak_allocated, figures.allocated - loaded);
}

/// Joins the communicator, whose id travels through a file, as in candle's `llama_multiprocess`.
fn join(rank: &Rank, own: usize, ranks: usize) -> Comm {
    let file = std::env::var("ID_FILE").unwrap();
    let file = Path::new(&file);
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let bytes = std::fs::read(file).unwrap();
    let id = Id::uninit(std::array::from_fn(|at| bytes[at] as _));
    comm(rank, own, ranks, id)
}

fn comm(rank: &Rank, own: usize, ranks: usize, id: Id) -> Comm {
    let stream = rank.device.as_cuda_device().unwrap().cuda_stream();
    stream.context().bind_to_thread().unwrap();
    Comm::from_rank(stream, own, ranks, id).unwrap()
}

/// Starts the process of a rank on an equal simulated machine.
fn start(own: usize, ranks: usize, file: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["rank", "--exact", "--ignored", "--nocapture"]);
    // The variables of the test that starts it.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMCHECK_")) {
        command.env_remove(name);
    }
    command.env("MEMCHECK_SIM", "4xh200").env("ID_FILE", file);
    command.env("RANK", own.to_string()).env("RANKS", ranks.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Rank 0 is the process of the test, and the record has its figures. Those of the others are marks
/// of the same record.
#[mem_test(
    device = "cuda",
    cases(gpus = [2, 4], keeps = [0, 1]),
    baseline = false,
    max_growth = "0 B",
    timeout = "60s"
)]
fn ranks_are_processes(trial: &mut Trial) -> Result<()> {
    let (gpus, keeps): (usize, usize) = (trial.case("gpus").unwrap(), trial.case("keeps").unwrap());
    let folder = std::env::var("ID_FOLDER").unwrap();
    // The body runs twice, and a test with a finding runs again in another process.
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    let file = Path::new(&folder).join(format!("id-{gpus}-{keeps}-{}-{round}", std::process::id()));
    let mut others: Vec<Child> = (1..gpus).map(|own| start(own, gpus, &file)).collect();
    let rank = Rank::new(gpus, &trial.devices().unwrap()[0])?;
    assert_eq!(trial.usage().allocated, weights(gpus));
    let id = Id::new().unwrap();
    let bytes: Vec<u8> = id.internal().iter().map(|&byte| byte as u8).collect();
    std::fs::write(file.with_extension("new"), bytes).unwrap();
    std::fs::rename(file.with_extension("new"), &file).unwrap();
    let comm = comm(&rank, 0, gpus, id);
    let mut kept = Vec::with_capacity(10_000);
    trial.iterate(|_| {
        for other in &mut others {
            writeln!(other.stdin.as_ref().unwrap()).unwrap();
        }
        let (logits, cache) = rank.forward(&comm)?;
        if keeps == 1 {
            kept.push((logits, cache));
        }
        Result::Ok(())
    })?;
    for (other, own) in others.into_iter().zip(1..) {
        let mut other = other;
        drop(other.stdin.take());
        let lines = BufReader::new(other.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        let figures = lines.filter_map(|line| Some(line.strip_prefix("figures: ")?.to_owned()));
        let figures: Vec<String> = figures.collect();
        assert!(other.wait().unwrap().success());
        trial.mark(format!("rank {own}: {}", figures.concat()));
    }
    Ok(())
}
