//! Of `functional/async_bodies.rs`: async bodies, and the server of docs/reference/servers.md.

use std::future::Future;
use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};
use tokio::sync::{Mutex, mpsc, oneshot};

/// Runs everything on this thread, so that the order of requests is the same in each run.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("the runtime starts").block_on(future)
}

struct Model {
    weights: Tensor,
    answers: Vec<Tensor>,
    keeps_answers: bool,
}

impl Model {
    fn load(device: &Device, keeps_answers: bool) -> Result<Self> {
        let weights = Tensor::ones(1024, DType::F32, device)?;
        Ok(Self { weights, answers: Vec::new(), keeps_answers })
    }

    fn answer(&mut self, input: &Tensor) -> Result<Tensor> {
        let output = (&self.weights * input)?; // line: answer
        if self.keeps_answers {
            self.answers.push(output.clone());
        }
        Ok(output)
    }
}

struct Request {
    input: Tensor,
    answer: oneshot::Sender<Result<Tensor>>,
}

async fn serve(model: Arc<Mutex<Model>>, mut requests: mpsc::Receiver<Request>) {
    while let Some(Request { input, answer }) = requests.recv().await {
        let output = model.lock().await.answer(&input);
        // The client may have gone.
        let _ = answer.send(output);
    }
}

async fn serves(trial: &Trial, keeps_answers: bool) -> anyhow::Result<()> {
    let device = trial.device();
    let model = Arc::new(Mutex::new(Model::load(device, keeps_answers)?));
    let (requests, queue) = mpsc::channel(4);
    let server = tokio::spawn(serve(model, queue));
    let result = trial.iterate_async(async |_| {
        let input = Tensor::ones(1024, DType::F32, device)?;
        let (answer, answered) = oneshot::channel();
        requests.send(Request { input, answer }).await?;
        answered.await??;
        anyhow::Ok(())
    });
    result.await?;
    drop(requests);
    server.await?;
    Ok(())
}

#[mem_test(block_on = block_on, max_growth = "0 B", baseline = false)]
async fn server(trial: &mut Trial) -> anyhow::Result<()> {
    serves(trial, false).await
}

#[mem_test(block_on = block_on, max_growth = "0 B", baseline = false)]
async fn server_that_keeps_answers(trial: &mut Trial) -> anyhow::Result<()> {
    serves(trial, true).await
}

/// Tasks run on two threads. Those that have not ended are dropped with the runtime, after the body.
fn block_on_threads<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("the runtime starts").block_on(future)
}

#[mem_test(block_on = block_on, max_growth = "0 B", baseline = false)]
async fn tasks_that_never_end(trial: &mut Trial) -> Result<()> {
    starts_tasks(trial).await
}

#[mem_test(block_on = block_on_threads, max_growth = "0 B", baseline = false)]
async fn tasks_on_threads_that_never_end(trial: &mut Trial) -> Result<()> {
    starts_tasks(trial).await
}

/// Starts a task for each request, which never ends.
async fn starts_tasks(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial
        .iterate_async(|_| async {
            let input = Tensor::ones(1024, DType::F32, &device)?; // line: task
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(input);
            });
            tokio::task::yield_now().await;
            Ok(())
        })
        .await
}

#[mem_test(device = "cuda", block_on = block_on, baseline = false, fault_sweep)]
async fn server_without_memory(trial: &mut Trial) -> anyhow::Result<()> {
    serves(trial, false).await
}

/// An input stays in the list if its output cannot be computed.
#[mem_test(device = "cuda", block_on = block_on, baseline = false, fault_sweep)]
async fn list_without_memory(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    let weights = Tensor::ones(1024, DType::F32, device)?;
    let mut inputs = Vec::with_capacity(64);
    trial
        .iterate_async(async |_| {
            let input = Tensor::ones(1024, DType::F32, device)?; // line: input
            inputs.push(input.clone());
            tokio::task::yield_now().await;
            (&weights * &input)?; // line: refused
            inputs.pop();
            Result::Ok(())
        })
        .await
}

#[mem_test(block_on = block_on, baseline = false)]
async fn fails(trial: &mut Trial) -> anyhow::Result<()> {
    trial.iterate_async(async |_| anyhow::bail!("no model")).await
}

#[mem_test(block_on = block_on, max_growth = "0 B", baseline = false)]
async fn of_device(device: &Device) -> Result<()> {
    let input = Tensor::ones(1024, DType::F32, device)?;
    tokio::task::yield_now().await;
    drop(input);
    Ok(())
}

#[mem_test(block_on = block_on, max_growth = "0 B", baseline = false)]
async fn allocates_no_memory() {
    tokio::task::yield_now().await;
}

#[mem_test(block_on = block_on, baseline = false, cases(height = [1, 4]))]
async fn of_cases(trial: &mut Trial) -> anyhow::Result<()> {
    let rows: usize = trial.case("height")?;
    let device = trial.device();
    let body = async |_| {
        let input = Tensor::ones((rows, 1024), DType::F32, device)?;
        tokio::task::yield_now().await;
        drop(input);
        anyhow::Ok(())
    };
    trial.iterate_async(body).await
}

/// The peak is 8 KiB higher in every second process, as if two requests had met.
#[mem_test(max_growth = "0 B")]
fn differs_from_run_to_run(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    let requests = trial.unmeasured(|| {
        let path = crate::folder().join("processes");
        let before = std::fs::read(&path).unwrap_or_default();
        std::fs::write(path, [&before[..], b"."].concat()).expect("the file is written");
        1 + 2 * (before.len() % 2)
    });
    trial.iterate(|_| Tensor::ones((requests, 1024), DType::F32, device).map(drop))
}

#[mem_test(max_growth = "0 B")]
fn is_the_same_in_each_run(device: &Device) -> Result<()> {
    Tensor::ones(1024, DType::F32, device).map(drop)
}
