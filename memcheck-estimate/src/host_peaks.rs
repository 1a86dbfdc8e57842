//! Measures the memory of the host while a model is loaded to a device, from safetensors with the
//! two builders of candle, or from a GGUF file.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Shape};
use candle_nn::VarBuilder;
use memcheck_core::wire::estimate::Question;
use memcheck_runtime::{reset_peak, usage};
use serde_json::{Map, Value, json};

use crate::measure::{self, Loaded};
use crate::problem::Problem;
use crate::question::{self, CheckedQuestion, WeightSource};

/// The largest number of bytes of the host that were live while a model was loaded. Blocks below
/// 1 KiB do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPeaks {
    /// A model from a safetensors file.
    Safetensors {
        /// The size of the file.
        file: u64,
        /// From a file that is mapped into memory: the pages of the file do not count.
        mapped: u64,
        /// From a file that is read into a buffer, which counts.
        buffered: u64,
    },
    /// A quantized model from a GGUF file.
    Gguf {
        /// The bytes of the tensors in the file.
        tensors: u64,
        /// The peak, without the header that was read before.
        peak: u64,
    },
}

pub(crate) fn measure(question: &Question, device: &Device) -> Result<HostPeaks, Problem> {
    let checked = question::check(question)?;
    match &checked.source {
        WeightSource::Config { .. } => of_safetensors(&checked, device),
        WeightSource::Gguf(file) => {
            let load = || file.load(checked.options(), device);
            let (peak, (_, stored)) = peak(load)?;
            Ok(HostPeaks::Gguf { tensors: stored.bytes(), peak })
        }
    }
}

fn of_safetensors(checked: &CheckedQuestion, device: &Device) -> Result<HostPeaks, Problem> {
    let dtype = checked.dtype;
    let file = file(&Loaded::load(checked, false, device)?.weights.tensors(dtype));
    let (buffered, _) = peak(|| {
        // What `std::fs::read` returns.
        let bytes = file.clone();
        let builder = VarBuilder::from_buffered_safetensors(bytes, dtype, device)?;
        measure::load_with(checked, builder, device)
    })?;
    // A model takes a builder without a borrow. The bytes are live before the measurement, as the
    // pages of a mapped file are, which candle reads by the same functions.
    let bytes: &'static [u8] = file.leak();
    let (mapped, _) = peak(|| {
        let builder = VarBuilder::from_slice_safetensors(bytes, dtype, device)?;
        measure::load_with(checked, builder, device)
    })?;
    Ok(HostPeaks::Safetensors { file: bytes.len() as u64, mapped, buffered })
}

/// Returns the peak of the host's bytes during `load` above those before, and its result.
fn peak<R>(load: impl FnOnce() -> Result<R, Problem>) -> Result<(u64, R), Problem> {
    let before = usage(&Device::Cpu).allocated;
    reset_peak(&Device::Cpu);
    let loaded = load()?;
    Ok((usage(&Device::Cpu).peak_allocated.saturating_sub(before), loaded))
}

/// Returns a safetensors file with these tensors, whose elements are zeros.
fn file(tensors: &BTreeMap<String, (Shape, DType)>) -> Vec<u8> {
    let mut end = 0;
    let entries = tensors.iter().map(|(name, (shape, dtype))| {
        let start = end;
        end += shape.elem_count() * dtype.size_in_bytes();
        let dtype = dtype.as_str().to_uppercase();
        let entry = json!({ "dtype": dtype, "shape": shape.dims(), "data_offsets": [start, end] });
        (name.clone(), entry)
    });
    let mut header = Value::Object(entries.collect::<Map<_, _>>()).to_string();
    // The tensors begin at a multiple of 8 bytes, as in files of the safetensors crate.
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + end, 0);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candle_reads_the_tensors_of_a_written_file() -> candle_core::Result<()> {
        let tensors = [("b", (vec![2, 3], DType::F16)), ("a", (vec![5], DType::F32))];
        let tensors = tensors.map(|(name, (dims, dtype))| (name.to_owned(), (dims.into(), dtype)));
        let bytes = file(&tensors.into());
        let read = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)?;
        assert_eq!((read["b"].dims(), read["b"].dtype()), (&[2, 3][..], DType::F16));
        assert_eq!((read["a"].dims(), read["a"].dtype()), (&[5][..], DType::F32));
        assert_eq!(read.len(), 2);
        Ok(())
    }
}
