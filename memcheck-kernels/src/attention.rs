//! Attention by one kernel, as candle-flash-attn's C functions launch it.
//!
//! Scores and sums are made in f32. As in the C code, the exponentials are rounded to the type of
//! the inputs before they are multiplied with the values. A device computes in blocks of columns,
//! so its last bits can differ.

use half::{bf16, f16};

use super::element::Real;
use super::launch::{AllKnown as _, Source, produce};
use super::memory::Memory;
use super::work::SINGLE_PRODUCT;
use super::{Kind, Known, Unknown};

/// A tensor of rows of heads. Strides are in elements.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows {
    /// The address of the first element.
    pub address: u64,
    /// Elements from one sequence to the next; in paged memory, from one page to the next.
    pub batch: u64,
    /// Elements from one row to the next.
    pub row: u64,
    /// Elements from one head to the next.
    pub head: u64,
}

/// A table of numbers of 32 bits on the device, one row for each sequence. Its address is null if
/// the launch does not use it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Table {
    /// The address of the first number.
    pub address: u64,
    /// Numbers from one row to the next.
    pub stride: u64,
}

/// A call of flash-attention. If the description of a field begins with an element type, the field
/// is the address of such elements, or a table of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attention {
    /// Whether the inputs and the output are bf16 instead of f16.
    pub is_bf16: bool,
    /// The queries.
    pub q: Rows,
    /// The keys.
    pub k: Rows,
    /// The values.
    pub v: Rows,
    /// The output.
    pub o: Rows,
    /// `f32`: the logarithm of the sum of each row.
    pub sums: u64,
    /// Whether the sums are in the order (head, row of all sequences) instead of (sequence, head,
    /// row).
    pub sums_by_head: bool,
    /// `i32`: the start of the first sequence, then the end of each. Null if all have the same
    /// length.
    pub ends_q: u64,
    /// The same for keys and values.
    pub ends_k: u64,
    /// The number of sequences.
    pub sequences: u64,
    /// The number of heads of the queries.
    pub heads: u64,
    /// The number of heads of the keys and values.
    pub heads_k: u64,
    /// The elements of a head.
    pub width: u64,
    /// The length of a sequence, or of the longest one.
    pub length_q: u64,
    /// The same for keys and values.
    pub length_k: u64,
    /// Rows of the queries of all sequences.
    pub total_q: u64,
    /// The factor of every score.
    pub scale: f32,
    /// 0 if scores have no cap.
    pub softcap: f32,
    /// Whether a row sees only the columns up to its own. The last row of the queries belongs to
    /// the last column.
    pub is_causal: bool,
    /// Columns to the left and to the right of a row that it sees; both negative for all. It has no
    /// meaning if the attention is causal.
    pub window: [i64; 2],
    /// `f32`: the slope of each head.
    pub slopes: Table,
    /// `i32`: the page of each `page_rows` rows of `k` and `v`.
    pub pages: Table,
    /// The rows of a page.
    pub page_rows: u64,
    /// `i32`: pairs of a start and an end, within which all rows see each other.
    pub prefixes: Table,
    /// The number of these pairs in each row of the table.
    pub prefix_count: u64,
}

/// A sequence: its number, its first rows and its lengths.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    number: u64,
    first: [u64; 2],
    lengths: [u64; 2],
}

impl Attention {
    /// Computes the output and the sums, or makes them unknown.
    pub fn run(&self, memory: &mut dyn Memory) {
        if self.is_bf16 { self.run_in::<bf16>(memory) } else { self.run_in::<f16>(memory) }
    }

    fn run_in<T: Real<Wide = f32>>(&self, memory: &mut dyn Memory) {
        let sequences = self.sequences(&Source::new(memory));
        let of_pair =
            self.heads.saturating_mul(self.width.max(1)).saturating_mul(2 * SINGLE_PRODUCT);
        let work = sequences.as_ref().map_or(u64::MAX, |all| {
            let pairs = all.iter().map(|one| one.lengths[0].saturating_mul(one.lengths[1].max(1)));
            pairs.fold(0, u64::saturating_add).saturating_mul(of_pair)
        });
        let (Ok(sequences), true) = (sequences, memory.values().permits(work)) else {
            return self.forget(memory, T::KIND);
        };
        for sequence in sequences {
            for head in 0..self.heads {
                let of_column = self.width.saturating_mul(2 * SINGLE_PRODUCT);
                let operations = sequence.lengths[1].max(1).saturating_mul(of_column);
                for row in 0..sequence.lengths[0] {
                    let result = self.row::<T>(&Source::new(memory), sequence, head, row);
                    let (elements, sum) = result
                        .map_or((Err(Unknown), Err(Unknown)), |(all, sum)| {
                            (Ok(all), Ok(vec![sum]))
                        });
                    let to = sequence.place(self.o, 0, head, row, T::WIDTH);
                    produce::<T>(memory, to, self.width, operations, |_| elements);
                    produce::<f32>(memory, self.place_of_sum(sequence, head, row), 1, 1, |_| sum);
                }
            }
        }
    }

    /// Makes the outputs unknown.
    fn forget(&self, memory: &mut dyn Memory, kind: Kind) {
        let last = |count: u64, stride: u64| count.saturating_sub(1).saturating_mul(stride);
        let rows = match self.ends_q {
            0 => last(self.sequences, self.o.batch).saturating_add(last(self.length_q, self.o.row)),
            _ => last(self.total_q, self.o.row),
        };
        let heads = last(self.heads, self.o.head);
        let elements = rows.saturating_add(heads).saturating_add(self.width);
        memory.overwritten(self.o.address, elements.saturating_mul(kind.width()));
        let rows = match self.sums_by_head {
            true => self.total_q,
            false => self.sequences.saturating_mul(self.length_q),
        };
        memory.overwritten(self.sums, rows.saturating_mul(self.heads).saturating_mul(4));
    }

    fn sequences(&self, source: &Source<'_>) -> Known<Vec<Sequence>> {
        let ends = |address: u64| -> Known<Option<Vec<i32>>> {
            match address {
                0 => Ok(None),
                _ => source.elements(address, self.sequences.saturating_add(1)).map(Some),
            }
        };
        let ends = [ends(self.ends_q)?, ends(self.ends_k)?];
        let equal = [self.length_q, self.length_k];
        let sequence = |number: u64| {
            let range = |side: usize| -> Known<(u64, u64)> {
                let Some(ends) = &ends[side] else { return Ok((0, equal[side])) };
                let [start, end] = [ends[number as usize], ends[number as usize + 1]];
                let start = u64::try_from(start).map_err(|_| Unknown)?;
                let end = u64::try_from(end).map_err(|_| Unknown)?;
                Ok((start, end.saturating_sub(start)))
            };
            let (q, k) = (range(0)?, range(1)?);
            Ok(Sequence { number, first: [q.0, k.0], lengths: [q.1, k.1] })
        };
        // A launch with so many sequences exceeds the limit for its operations.
        if self.sequences > u64::from(u32::MAX) {
            return Err(Unknown);
        }
        (0..self.sequences).map(sequence).all_known()
    }

    fn place_of_sum(&self, sequence: Sequence, head: u64, row: u64) -> u64 {
        let index = if self.sums_by_head {
            head * self.total_q + sequence.first[0] + row
        } else {
            (sequence.number * self.heads + head) * self.length_q + row
        };
        self.sums.saturating_add(index.saturating_mul(4))
    }

    /// Computes one row of the output, and the logarithm of its sum.
    fn row<T: Real<Wide = f32>>(
        &self,
        source: &Source<'_>,
        sequence: Sequence,
        head: u64,
        row: u64,
    ) -> Known<(Vec<T>, f32)> {
        let address = sequence.place(self.q, 0, head, row, T::WIDTH);
        let q: Vec<f32> = wide(source.elements::<T>(address, self.width)?);
        let head_k = head.checked_div(self.heads / self.heads_k.max(1)).ok_or(Unknown)?;
        let slope = self.slope(source, sequence, head)?;
        let prefixes = self.prefixes(source, sequence)?;
        // The rows of the queries end with the rows of the keys.
        let position = row as i64 + sequence.lengths[1] as i64 - sequence.lengths[0] as i64;
        let mut scores = Vec::new();
        for column in 0..sequence.lengths[1] {
            if !self.sees(position, column as i64, &prefixes) {
                continue;
            }
            let address = self.place_of_key(source, sequence, self.k, head_k, column, T::WIDTH)?;
            let k = wide(source.elements::<T>(address, self.width)?);
            let product: f32 = q.iter().zip(k).map(|(a, b)| a * b).sum();
            let score = match self.softcap {
                cap if cap > 0.0 => cap * libm::tanhf(product * (self.scale / cap)),
                _ => product * self.scale,
            };
            let bias = match self.is_causal {
                true => column as i64,
                false => -(position - column as i64).abs(),
            };
            scores.push((column, score + slope * bias as f32));
        }
        let largest = scores.iter().fold(f32::NEG_INFINITY, |a, &(_, b)| a.max(b));
        let mut sums = vec![0_f32; self.width as usize];
        let mut total = 0_f32;
        for (column, score) in scores {
            let weight =
                if largest == f32::NEG_INFINITY { 0.0 } else { libm::expf(score - largest) };
            total += weight;
            let weight = T::from_f64(f64::from(weight)).wide();
            let address = self.place_of_key(source, sequence, self.v, head_k, column, T::WIDTH)?;
            let v = wide(source.elements::<T>(address, self.width)?);
            sums.iter_mut().zip(v).for_each(|(sum, value)| *sum += weight * value);
        }
        // A row that sees no column is 0.
        let is_empty = total == 0.0 || total.is_nan();
        let inverse = if is_empty { 1.0 } else { 1.0 / total };
        let all = sums.into_iter().map(|sum| T::from_f64(f64::from(sum * inverse))).collect();
        Ok((all, if is_empty { f32::INFINITY } else { largest + libm::logf(total) }))
    }

    fn sees(&self, position: i64, column: i64, prefixes: &[[i64; 2]]) -> bool {
        let [left, right] = self.window;
        let in_window = if self.is_causal {
            column <= position
        } else if left < 0 && right < 0 {
            true
        } else {
            (position - left..=position + right).contains(&column)
        };
        let within = |&[start, end]: &[i64; 2]| {
            (start..end).contains(&position) && (start..end).contains(&column)
        };
        in_window || prefixes.iter().any(within)
    }

    fn slope(&self, source: &Source<'_>, sequence: Sequence, head: u64) -> Known<f32> {
        if self.slopes.address == 0 {
            return Ok(0.0);
        }
        let index = sequence.number.saturating_mul(self.slopes.stride).saturating_add(head);
        let address = self.slopes.address.saturating_add(index.saturating_mul(4));
        Ok(source.elements::<f32>(address, 1)?[0])
    }

    fn prefixes(&self, source: &Source<'_>, sequence: Sequence) -> Known<Vec<[i64; 2]>> {
        // The kernel reads them only if a mask is needed.
        let has_mask = self.is_causal || self.window.iter().any(|&side| side >= 0);
        if self.prefixes.address == 0 || !has_mask {
            return Ok(Vec::new());
        }
        let skipped = sequence.number.saturating_mul(self.prefixes.stride).saturating_mul(4);
        let address = self.prefixes.address.saturating_add(skipped);
        let words: Vec<i32> = source.elements(address, self.prefix_count.saturating_mul(2))?;
        Ok(words.chunks_exact(2).map(|pair| [i64::from(pair[0]), i64::from(pair[1])]).collect())
    }

    fn place_of_key(
        &self,
        source: &Source<'_>,
        sequence: Sequence,
        rows: Rows,
        head: u64,
        row: u64,
        width: usize,
    ) -> Known<u64> {
        if self.pages.address == 0 {
            return Ok(sequence.place(rows, 1, head, row, width));
        }
        let number = row.checked_div(self.page_rows).ok_or(Unknown)?;
        let index = sequence.number.saturating_mul(self.pages.stride).saturating_add(number);
        let address = self.pages.address.saturating_add(index.saturating_mul(4));
        let page: i32 = source.elements(address, 1)?[0];
        let page = u64::try_from(page).map_err(|_| Unknown)?;
        let offset = page * rows.batch + (row % self.page_rows) * rows.row + head * rows.head;
        Ok(rows.address.saturating_add(offset.saturating_mul(width as u64)))
    }
}

impl Sequence {
    /// Returns the address of a row of a head. `side` is 0 for queries and 1 for keys.
    fn place(&self, rows: Rows, side: usize, head: u64, row: u64, width: usize) -> u64 {
        // A tensor of sequences of several lengths has a batch stride of 0.
        let first = self.number * rows.batch + (self.first[side] + row) * rows.row;
        let offset = first.saturating_add(head * rows.head);
        rows.address.saturating_add(offset.saturating_mul(width as u64))
    }
}

fn wide<T: Real<Wide = f32>>(elements: Vec<T>) -> Vec<f32> {
    elements.into_iter().map(Real::wide).collect()
}

#[cfg(test)]
mod tests;
