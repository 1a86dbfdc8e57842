//! Products of rows with the matrix of an expert, by candle's launchers in C.
//!
//! A row of the output whose token has no expert is not written.

use half::{bf16, f16};

use super::element::Real;
use super::launch::{AllKnown as _, Source, produce};
use super::memory::Memory;
use super::quantized::{Format, Weights, vector_of};
use super::work::SINGLE_PRODUCT;
use super::{Kind, Known, Unknown};

/// The tokens of a mixture of experts.
#[derive(Debug, Clone, Copy)]
pub struct Routing {
    /// `i32`: the rows of the output, ordered by expert.
    pub tokens: u64,
    /// `i32`: the expert of each of them.
    pub experts: u64,
    /// `f32`: the factor of each row of the output; null without factors. Without, `topk` rows of
    /// the output share a row of the input.
    pub factors: u64,
    /// The number of experts.
    pub count: i32,
    /// The number of experts of each token.
    pub topk: i32,
    /// The rows of the output, and the length of `tokens` and of `experts`.
    pub m: i32,
    /// The rows of an expert's matrix, and the columns of the output.
    pub n: i32,
    /// The columns of an expert's matrix and of the input.
    pub k: i32,
}

/// What a row is multiplied with.
#[derive(Debug, Clone, Copy)]
pub enum Experts {
    /// Elements of the type of the input.
    Plain,
    /// Blocks, which are multiplied with a quantized input.
    Quantized(Format),
    /// Blocks, of which each element is rounded to the type of the input.
    Dequantized(Format),
}

/// A row of the output.
struct Task {
    token: u64,
    input: u64,
    expert: u64,
    factor: f32,
}

impl Routing {
    fn tasks(&self, source: &Source<'_>) -> Known<Vec<Task>> {
        let count = u64::try_from(self.m).map_err(|_| Unknown)?;
        let tokens: Vec<i32> = source.elements(self.tokens, count)?;
        let experts: Vec<i32> = source.elements(self.experts, count)?;
        let each =
            if self.factors == 0 { u64::try_from(self.topk).map_err(|_| Unknown)? } else { 1 };
        let pairs = tokens.into_iter().zip(experts);
        pairs
            .filter(|&(_, expert)| (0..self.count).contains(&expert))
            .map(|(token, expert)| {
                let token = u64::try_from(token).map_err(|_| Unknown)?;
                let factor = match self.factors {
                    0 => 1.0,
                    address => source.elements(address.saturating_add(4 * token), 1)?[0],
                };
                let input = token.checked_div(each).ok_or(Unknown)?;
                Ok(Task { token, input, expert: expert as u64, factor })
            })
            .all_known()
    }

    /// Writes how many tokens each expert has, and where they begin.
    pub fn count(&self, memory: &mut dyn Memory, counts: u64, offsets: u64) {
        let count = u64::try_from(self.count).unwrap_or(0);
        let of_experts = |source: &Source<'_>| -> Known<Vec<i32>> {
            let all: Vec<i32> =
                source.elements(self.experts, u64::try_from(self.m).map_err(|_| Unknown)?)?;
            let mut counts = vec![0; count as usize];
            for expert in all {
                let expert = usize::try_from(expert).map_err(|_| Unknown)?;
                *counts.get_mut(expert).ok_or(Unknown)? += 1;
            }
            Ok(counts)
        };
        produce::<i32>(memory, counts, count, count, of_experts);
        produce::<i32>(memory, offsets, count + 1, count, |source| {
            let mut end = 0;
            let ends = of_experts(source)?.into_iter().map(|count| {
                end += count;
                end
            });
            Ok(std::iter::once(0).chain(ends).collect())
        });
    }

    /// Computes each row of the output. `kind` is the type of the input, and `result` that of the
    /// output.
    pub fn run(
        self,
        memory: &mut dyn Memory,
        experts: Experts,
        (input, kind): (u64, Kind),
        weights: u64,
        (to, result): (u64, Kind),
    ) {
        let [m, n, k] = [self.m, self.n, self.k].map(|it| u64::try_from(it).unwrap_or(0));
        let of_row = n.saturating_mul(k).saturating_mul(SINGLE_PRODUCT);
        let work = m.saturating_mul(of_row);
        let tasks = match memory.values().permits(work) {
            true => self.tasks(&Source::new(memory)),
            false => Err(Unknown),
        };
        let Ok(tasks) = tasks else {
            // The rows that are written are unknown.
            return memory.overwritten_from(to);
        };
        for task in tasks {
            let row = |source: &Source<'_>| -> Known<Vec<f32>> {
                let row = match experts {
                    Experts::Plain => plain(source, kind, [input, weights], [n, k], &task),
                    Experts::Quantized(format) => {
                        let vector = vector_of(source, input, task.input, k)?;
                        let all = Weights { format, address: weights, rows: n, columns: k };
                        all.multiply(source, task.expert, &vector, 1)
                    }
                    Experts::Dequantized(format) => {
                        let x = wide(source, kind, input, task.input, k)?;
                        let all = Weights { format, address: weights, rows: n, columns: k };
                        let round = |value: f32| match kind {
                            Kind::F16 => f16::from_f32(value).to_f32(),
                            _ => bf16::from_f32(value).to_f32(),
                        };
                        all.values(source, task.expert)?
                            .iter()
                            .map(|row| Ok(x.iter().zip(row).map(|(a, &b)| a * round(b)).sum()))
                            .all_known()
                    }
                }?;
                Ok(row.into_iter().map(|value| value * task.factor).collect())
            };
            let address = to.saturating_add(task.token.saturating_mul(n * result.width()));
            match result {
                Kind::F32 => produce::<f32>(memory, address, n, of_row, row),
                Kind::F16 => produce::<f16>(memory, address, n, of_row, |it| rounded(row(it)?)),
                _ => produce::<bf16>(memory, address, n, of_row, |it| rounded(row(it)?)),
            }
        }
    }
}

fn rounded<T: Real>(row: Vec<f32>) -> Known<Vec<T>> {
    Ok(row.into_iter().map(|value| T::from_f64(f64::from(value))).collect())
}

/// Reads row `number` of `columns` elements in f32.
fn wide(
    source: &Source<'_>,
    kind: Kind,
    address: u64,
    number: u64,
    columns: u64,
) -> Known<Vec<f32>> {
    fn of<T: Real>(source: &Source<'_>, address: u64, offset: u64, columns: u64) -> Known<Vec<f32>>
    where
        T::Wide: Into<f32>,
    {
        let offset = offset.checked_mul(T::WIDTH as u64).ok_or(Unknown)?;
        let row: Vec<T> = source.elements(address.checked_add(offset).ok_or(Unknown)?, columns)?;
        Ok(row.into_iter().map(|x| x.wide().into()).collect())
    }
    let offset = number.checked_mul(columns).ok_or(Unknown)?;
    match kind {
        Kind::F16 => of::<f16>(source, address, offset, columns),
        Kind::Bf16 => of::<bf16>(source, address, offset, columns),
        _ => of::<f32>(source, address, offset, columns),
    }
}

/// Sums in f32. The order within the device's tensor cores is not documented.
fn plain(
    source: &Source<'_>,
    kind: Kind,
    [input, weights]: [u64; 2],
    [n, k]: [u64; 2],
    task: &Task,
) -> Known<Vec<f32>> {
    let x = wide(source, kind, input, task.input, k)?;
    let first = task.expert.checked_mul(n).ok_or(Unknown)?;
    (first..first + n)
        .map(|row| {
            let row = wide(source, kind, weights, row, k)?;
            Ok(x.iter().zip(row).map(|(a, b)| a * b).sum())
        })
        .all_known()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::TestDevice;
    use crate::quantized::quantize_rows;

    /// Three rows of two tokens with two experts each; the last one has an expert that does not
    /// exist.
    fn routing(device: &mut TestDevice, factors: u64, k: i32) -> Routing {
        let tokens = device.upload(&[2_i32, 0, 1]);
        let experts = device.upload(&[0_i32, 1, 7]);
        Routing { tokens, experts, factors, count: 2, topk: 2, m: 3, n: 2, k }
    }

    #[test]
    fn each_token_is_multiplied_with_its_expert() {
        let mut device = TestDevice::new();
        let routing = routing(&mut device, 0, 2);
        let input = device.upload(&[1.0, 2.0, 3.0, 4.0].map(f16::from_f32));
        let weights = [1.0, 0.0, 0.0, 1.0, 10.0, 0.0, 0.0, 100.0].map(f16::from_f32);
        let weights = device.upload(&weights);
        let to = device.upload(&[f16::NEG_ONE; 6]);
        let memory = &mut device.memory;
        routing.run(memory, Experts::Plain, (input, Kind::F16), weights, (to, Kind::F16));
        // Row 2 has the input of token 1 and expert 0, row 0 that of token 0 and expert 1.
        let expected = [10.0, 200.0, -1.0, -1.0, 3.0, 4.0].map(f16::from_f32);
        assert_eq!(device.download(to, 6), Some(expected.to_vec()));
    }

    #[test]
    fn with_factors_each_row_has_its_own_input() {
        let mut device = TestDevice::new();
        let factors = device.upload(&[0.5_f32, 0.0, 2.0]);
        let routing = routing(&mut device, factors, 2);
        let input = device.upload(&[1.0, 2.0, 0.0, 0.0, 5.0, 6.0].map(bf16::from_f32));
        let weights = [1.0, 0.0, 0.0, 1.0, 10.0, 0.0, 0.0, 100.0].map(bf16::from_f32);
        let weights = device.upload(&weights);
        let to = device.allocate(12);
        let memory = &mut device.memory;
        routing.run(memory, Experts::Plain, (input, Kind::Bf16), weights, (to, Kind::Bf16));
        assert_eq!(device.download(to, 2), Some([5.0, 100.0].map(bf16::from_f32).to_vec()));
        assert_eq!(device.download(to + 8, 2), Some([10.0, 12.0].map(bf16::from_f32).to_vec()));
        // The row without an expert stays as it was.
        assert_eq!(device.download::<bf16>(to + 4, 1), None);
    }

    #[test]
    fn quantized_experts_are_multiplied_in_both_ways() {
        let mut device = TestDevice::new();
        let routing = routing(&mut device, 0, 32);
        let block = |quant: u8| [&f16::ONE.to_le_bytes()[..], &[quant; 32]].concat();
        let weights = device.upload(&[block(1), block(2), block(3), block(4)].concat());
        let inputs = [vec![127_f32; 32], vec![254.0; 32]].concat();
        let (from, quantized) = (device.upload(&inputs), device.allocate(2 * 16 * 36));
        quantize_rows(&mut device.memory, Kind::F32, from, quantized, [32, 512, 2]);
        let one = 127_f32 * 32.0;
        let expected = [3.0 * one, 4.0 * one, -1.0, -1.0, 2.0 * one, 4.0 * one];
        let halves = device.upload(&inputs.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
        for (experts, input) in [
            (Experts::Quantized(Format::Q8_0), (quantized, Kind::F32)),
            (Experts::Dequantized(Format::Q8_0), (halves, Kind::F16)),
        ] {
            let to = device.upload(&[-1_f32; 6]);
            routing.run(&mut device.memory, experts, input, weights, (to, Kind::F32));
            assert_eq!(device.download(to, 6), Some(expected.to_vec()), "{experts:?}");
        }
    }

    #[test]
    fn an_unknown_routing_makes_the_output_unknown_and_an_unknown_input_its_rows() {
        let mut device = TestDevice::new();
        let mut routing = routing(&mut device, 0, 2);
        let (input, weights) = (device.allocate(16), device.upload(&[1_f32; 8]));
        device.memory.write_bytes(input, &[0; 8]);
        let to = device.upload(&[9_f32; 6]);
        let memory = &mut device.memory;
        routing.run(memory, Experts::Plain, (input, Kind::F32), weights, (to, Kind::F32));
        assert_eq!(device.download(to, 4), Some(vec![0_f32, 0.0, 9.0, 9.0]));
        assert_eq!(device.download::<f32>(to + 16, 1), None);
        routing.experts = device.allocate(12);
        let memory = &mut device.memory;
        routing.run(memory, Experts::Plain, (input, Kind::F32), weights, (to, Kind::F32));
        assert!(!device.is_known(to));
    }

    #[test]
    fn the_tokens_of_each_expert_are_counted() {
        let mut device = TestDevice::new();
        let mut routing = routing(&mut device, 0, 2);
        routing.experts = device.upload(&[0_i32, 1, 1]);
        let (counts, offsets) = (device.allocate(8), device.allocate(12));
        routing.count(&mut device.memory, counts, offsets);
        assert_eq!(device.download(counts, 2), Some(vec![1_i32, 2]));
        assert_eq!(device.download(offsets, 3), Some(vec![0_i32, 1, 3]));
    }
}
