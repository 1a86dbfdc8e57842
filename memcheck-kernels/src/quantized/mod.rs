//! Kernels on quantized blocks.
//!
//! A product quantizes its vector first, in blocks of 32 elements of 8 bits. This is the device's
//! way. The CPU quantizes the vector in another format for some weights, so that the last digits
//! differ.

mod blocks;
mod dot;
mod matrices;
pub mod tiles;

use half::{bf16, f16};

pub use blocks::Format;
use blocks::QuantBlock;
pub(crate) use dot::Input;
use dot::Q8_1;
pub(super) use matrices::{dequantized_k, matrices};

use super::element::{Element, Real};
use super::launch::{AllKnown as _, Source, produce};
use super::memory::Memory;
use super::reduce::tree;
use super::work::SINGLE_PRODUCT;
use super::{ELEMENT, Kind, Known, Launch, Unknown, with_real};

/// Elements of a row are padded to a multiple of this number.
const ROW_PADDING: u64 = 512;

fn blocks(source: &Source<'_>, format: Format, address: u64, count: u64) -> Known<Vec<QuantBlock>> {
    let length = count.checked_mul(format.bytes() as u64).ok_or(Unknown)?;
    let bytes: Vec<u8> = source.elements(address, length)?;
    Ok(bytes.chunks_exact(format.bytes()).map(|block| format.decode(block)).collect())
}

/// `void* x, T* y`, with the count of `dequantize` or one block for each block of threads
pub(super) fn dequantize(launch: &mut Launch<'_>, format: Format) -> Known {
    let (from, to) = (launch.long(0), launch.long(1));
    let argument = || u64::try_from(launch.value::<i32>(2)).unwrap_or(0);
    let elements = match format {
        Format::Q4_0 | Format::Q4_1 | Format::Q8_0 => 32 * argument(),
        Format::Q5_0 | Format::Q5_1 => argument(),
        _ => 256 * u64::from(launch.shape.grid[0]),
    };
    let each = format.elements() as u64;
    with_real!(launch.kind, T => {
        launch.produce::<T>(to, elements, elements.saturating_mul(ELEMENT), |source| {
            let blocks = blocks(source, format, from, elements.div_ceil(each))?;
            let values = blocks.iter().flat_map(QuantBlock::values).take(elements as usize);
            Ok(values.map(|value| T::from_f64(f64::from(value))).collect())
        })
    })
}

/// `void* src, u32* ids, f32* dst, i64 elements of a row, usize bytes of a row`, a block of threads
/// for each id
pub(super) fn rows(launch: &mut Launch<'_>, format: Option<Format>) -> Known {
    let [from, ids, to, columns, pitch] = std::array::from_fn(|at| launch.long(at));
    let count = u64::from(launch.shape.grid[0]);
    let kind = launch.kind;
    let all = count.saturating_mul(columns);
    launch.produce::<f32>(to, all, all.saturating_mul(ELEMENT), |source| {
        let ids: Vec<u32> = source.elements(ids, count)?;
        let mut rows = Vec::with_capacity(all as usize);
        for id in ids.into_iter().map(u64::from) {
            let row = |pitch: u64| {
                id.checked_mul(pitch).and_then(|offset| from.checked_add(offset)).ok_or(Unknown)
            };
            match format {
                Some(format) => {
                    let each = format.elements() as u64;
                    let blocks = blocks(source, format, row(pitch)?, columns.div_ceil(each))?;
                    rows.extend(blocks.iter().flat_map(QuantBlock::values).take(columns as usize));
                }
                None => {
                    let pitch = columns.checked_mul(kind.width()).ok_or(Unknown)?;
                    rows.extend(singles(source, kind, row(pitch)?, columns)?);
                }
            }
        }
        Ok(rows)
    })
}

fn singles(source: &Source<'_>, kind: Kind, address: u64, count: u64) -> Known<Vec<f32>> {
    match kind {
        Kind::F32 | Kind::Untyped => source.elements(address, count),
        Kind::F16 => Ok(source.elements(address, count)?.into_iter().map(f16::to_f32).collect()),
        Kind::Bf16 => Ok(source.elements(address, count)?.into_iter().map(bf16::to_f32).collect()),
        _ => Err(Unknown),
    }
}

/// `f32* x, void* y, i32 kx, i32 kx_padded`, a row for each block of threads along y
pub(super) fn quantize(launch: &mut Launch<'_>) -> Known {
    let (from, to) = (launch.long(0), launch.long(1));
    let [columns, padded] = [2, 3].map(|at| size(launch.value(at)));
    let rows = u64::from(launch.shape.grid[1]);
    quantize_rows(launch.memory, Kind::F32, from, to, [columns, padded, rows]);
    Ok(())
}

fn size(value: i32) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Quantizes rows to blocks of 32 elements: the scale, the true sum, and the quants.
pub fn quantize_rows(
    memory: &mut dyn Memory,
    kind: Kind,
    from: u64,
    to: u64,
    [columns, padded, rows]: [u64; 3],
) {
    let (each, bytes) = (Q8_1.0 as u64, Q8_1.1 as u64);
    let elements = rows.saturating_mul(padded);
    let length = elements.saturating_mul(bytes) / each;
    produce::<u8>(memory, to, length, elements.saturating_mul(ELEMENT), |source| {
        if !padded.is_multiple_of(each) || columns > padded {
            return Err(Unknown);
        }
        let all = singles(source, kind, from, rows.saturating_mul(columns))?;
        let mut result = Vec::with_capacity(length as usize);
        for number in 0..rows as usize {
            let mut row = all[number * columns as usize..][..columns as usize].to_vec();
            row.resize(padded as usize, 0.0);
            for block in row.chunks_exact(Q8_1.0) {
                quantize_block(block, &mut result)?;
            }
        }
        Ok(result)
    });
}

fn quantize_block(block: &[f32], to: &mut Vec<u8>) -> Known {
    let largest = block.iter().fold(0_f32, |largest, x| largest.max(x.abs()));
    let d = largest / 127.0;
    f16::from_f32(d).store(to);
    f16::from_f32(tree(block.to_vec(), |a, b| a + b)?).store(to);
    to.extend(block.iter().map(|x| {
        let quant = if largest == 0.0 { 0.0 } else { (x / d).round() };
        quant as i8 as u8
    }));
    Ok(())
}

/// A product of quantized rows and quantized vectors.
#[derive(Debug, Clone, Copy)]
pub struct QuantizedProduct {
    /// The format of the weights.
    pub format: Format,
    /// The address of the rows of weights.
    pub weights: u64,
    /// The address of the quantized vectors: blocks of 32 elements (36 bytes) for `run`, and of 128
    /// (144 bytes) for `run_tiled`.
    pub vectors: u64,
    /// The address of the results: of the type that `run` gets, or f32 for `run_tiled`.
    pub to: u64,
    /// The elements of a row of weights.
    pub columns: u64,
    /// The number of rows of weights.
    pub rows: u64,
    /// Blocks from one vector to the next.
    pub vector_stride: u64,
    /// Elements from one result to the next.
    pub stride: u64,
    /// The number of vectors.
    pub batch: u64,
}

/// `void* x, void* y, f32* dst, i32 ncols_x, i32 nrows_x, i32 nrows_y, i32 nrows_dst`
pub(super) fn vectors(launch: &mut Launch<'_>, format: Format, batch: u64) -> Known {
    let [weights, vectors, to] = [0, 1, 2].map(|at| launch.long(at));
    let [columns, rows, padded, stride] = [3, 4, 5, 6].map(|at| size(launch.value(at)));
    let vector_stride = padded / Q8_1.0 as u64;
    let product = QuantizedProduct {
        format,
        weights,
        vectors,
        to,
        columns,
        rows,
        vector_stride,
        stride,
        batch,
    };
    product.run(launch.memory, Kind::F32)
}

impl QuantizedProduct {
    /// Computes the product. `kind` is the type of the results.
    pub fn run(self, memory: &mut dyn Memory, kind: Kind) -> Known {
        // The device uses fewer threads for more vectors.
        let warps = if self.batch <= 4 { 4 } else { 2 };
        self.run_with(memory, kind, |row, vector| dot::product(self.format, row, vector, warps))
    }

    /// Computes the product. `dot` multiplies a row and a vector.
    fn run_with(
        self,
        memory: &mut dyn Memory,
        kind: Kind,
        dot: impl Fn(&[QuantBlock], &[Input]) -> Known<f32>,
    ) -> Known {
        let dims = [self.rows, self.columns, self.batch];
        let product = |work: u64, dim: u64| work.saturating_mul(dim.max(1));
        let work = dims.into_iter().fold(SINGLE_PRODUCT, product);
        let result = match memory.values().permits(work) {
            true => self.compute(&Source::new(memory), dot),
            false => Err(Unknown),
        };
        match &result {
            Ok(_) => {
                memory.values_mut().count_operations(work);
            }
            // The vectors of a large batch are not visited one by one.
            Err(Unknown) if self.batch > 8 => return Err(Unknown),
            Err(Unknown) => {}
        }
        with_real!(kind, T => {
            for number in 0..self.batch {
                let offset = number.saturating_mul(self.stride).saturating_mul(T::WIDTH as u64);
                let to = self.to.saturating_add(offset);
                let result = result.as_ref().map(|all| &all[number as usize]);
                produce::<T>(memory, to, self.rows, 0, |_| {
                    let result = result.map_err(|_| Unknown)?;
                    Ok(result.iter().map(|&value| T::from_f64(f64::from(value))).collect())
                });
            }
            Ok(())
        })
    }

    fn compute(
        self,
        source: &Source<'_>,
        dot: impl Fn(&[QuantBlock], &[Input]) -> Known<f32>,
    ) -> Known<Vec<Vec<f32>>> {
        let vectors = (0..self.batch)
            .map(|number| {
                let offset = number.saturating_mul(self.vector_stride * Q8_1.1 as u64);
                vector(source, self.vectors.saturating_add(offset), self.columns)
            })
            .all_known()?;
        let mut results = vec![Vec::new(); vectors.len()];
        let each = self.columns / self.format.elements() as u64;
        for number in 0..self.rows {
            let offset = number.saturating_mul(each * self.format.bytes() as u64);
            let row = blocks(source, self.format, self.weights.saturating_add(offset), each)?;
            for (result, vector) in results.iter_mut().zip(&vectors) {
                result.push(dot(&row, vector)?);
            }
        }
        Ok(results)
    }
}

fn vector(source: &Source<'_>, address: u64, columns: u64) -> Known<Vec<Input>> {
    let count = columns.div_ceil(Q8_1.0 as u64);
    let bytes: Vec<u8> = source.elements(address, count.saturating_mul(Q8_1.1 as u64))?;
    Ok(bytes.chunks_exact(Q8_1.1).map(Input::decode).collect())
}

/// `void* x, f32* y, f32* dst, i32 ncols, i32 nrows`
///
/// The product with a vector that is not quantized, of blocks with 32 elements. In each step of 64
/// columns a thread has two elements.
pub(super) fn dequantized_vector(launch: &mut Launch<'_>, format: Format) -> Known {
    let [weights, y, to] = [0, 1, 2].map(|at| launch.long(at));
    let [columns, rows] = [3, 4].map(|at| size(launch.value(at)));
    let work = rows.saturating_mul(columns).saturating_mul(SINGLE_PRODUCT);
    launch.produce::<f32>(to, rows, work, |source| {
        // With half a step, the device reads beyond the row.
        if !columns.is_multiple_of(64) {
            return Err(Unknown);
        }
        let y: Vec<f32> = source.elements(y, columns)?;
        let each = columns / format.elements() as u64;
        let blocks = blocks(source, format, weights, rows.saturating_mul(each))?;
        let values: Vec<f32> = blocks.iter().flat_map(QuantBlock::values).collect();
        (0..rows as usize)
            .map(|row| {
                let row = &values[row * y.len()..][..y.len()];
                let mut lanes = vec![0_f32; 32];
                for (number, (row, y)) in row.chunks_exact(32).zip(y.chunks_exact(32)).enumerate() {
                    for at in 0..16 {
                        let pair = match format {
                            Format::Q8_0 => [2 * at, 2 * at + 1],
                            _ => [at, at + 16],
                        };
                        let lane = &mut lanes[number % 2 * 16 + at];
                        pair.iter().for_each(|&element| *lane += row[element] * y[element]);
                    }
                }
                tree(lanes, |a, b| a + b)
            })
            .collect()
    })
}

/// `void* w, void* q8_1 in, u32* ids, f32* out, i32 n, k, batch, topk, k_padded, input_dim1`
///
/// The kernel takes `n * k / 256` blocks for an expert in each format, which for blocks of 32
/// elements is too few. It is computed in the same way.
pub(super) fn experts(launch: &mut Launch<'_>, format: Format) -> Known {
    let [weights, inputs, ids, to] = [0, 1, 2, 3].map(|at| launch.long(at));
    let [rows, columns, _, _, padded, shared] = [4, 5, 6, 7, 8, 9].map(|at| size(launch.value(at)));
    let [_, batch, each] = launch.shape.grid.map(u64::from);
    let tasks = batch.saturating_mul(each);
    let count = tasks.saturating_mul(rows);
    let work = count.saturating_mul(columns.max(1)).saturating_mul(SINGLE_PRODUCT);
    launch.produce::<f32>(to, count, work, |source| {
        let ids: Vec<u32> = source.elements(ids, tasks)?;
        let mut result = Vec::with_capacity(count as usize);
        let of_expert = rows.saturating_mul(columns) / 256 * format.bytes() as u64;
        for (task, id) in ids.into_iter().enumerate() {
            let task = task as u64;
            let input = if shared == 1 { task / each } else { task };
            let offset = u64::from(id).saturating_mul(of_expert);
            let product = QuantizedProduct {
                format,
                weights: weights.saturating_add(offset),
                vectors: inputs
                    .saturating_add(input.saturating_mul(padded / Q8_1.0 as u64 * Q8_1.1 as u64)),
                to,
                columns,
                rows,
                vector_stride: 0,
                stride: 0,
                batch: 1,
            };
            let dot = |row: &[QuantBlock], vector: &[Input]| dot::product(format, row, vector, 4);
            result.append(&mut product.compute(source, dot)?[0]);
        }
        Ok(result)
    })
}

/// The matrices of experts.
pub(crate) struct Weights {
    pub(crate) format: Format,
    pub(crate) address: u64,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
}

impl Weights {
    fn expert(&self, source: &Source<'_>, number: u64) -> Known<Vec<Vec<QuantBlock>>> {
        let each = self.columns / self.format.elements() as u64;
        let bytes = each * self.format.bytes() as u64;
        let offset = number.saturating_mul(self.rows).saturating_mul(bytes);
        let address = self.address.saturating_add(offset);
        let row = |row| blocks(source, self.format, address.saturating_add(row * bytes), each);
        (0..self.rows).map(row).all_known()
    }

    /// Multiplies an expert and a vector.
    pub(crate) fn multiply(
        &self,
        source: &Source<'_>,
        expert: u64,
        vector: &[Input],
        warps: usize,
    ) -> Known<Vec<f32>> {
        let rows = self.expert(source, expert)?;
        rows.iter().map(|row| dot::product(self.format, row, vector, warps)).collect()
    }

    /// Returns the elements of an expert.
    pub(crate) fn values(&self, source: &Source<'_>, expert: u64) -> Known<Vec<Vec<f32>>> {
        let rows = self.expert(source, expert)?;
        Ok(rows.iter().map(|row| row.iter().flat_map(QuantBlock::values).collect()).collect())
    }
}

/// Reads vector `number`, of which each is padded to a multiple of 512 elements.
pub(crate) fn vector_of(
    source: &Source<'_>,
    address: u64,
    number: u64,
    columns: u64,
) -> Known<Vec<Input>> {
    let padded = columns.next_multiple_of(ROW_PADDING) / Q8_1.0 as u64 * Q8_1.1 as u64;
    vector(source, address.saturating_add(number.saturating_mul(padded)), columns)
}

#[cfg(test)]
mod tests;
