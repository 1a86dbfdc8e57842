//! The tensors that a header declares, and their checks.

use std::collections::BTreeMap;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, TensorInfo};
use memcheck_core::size::Size;

use crate::host;
use crate::problem::Problem;

/// A tensor as the file declares it.
#[derive(Debug)]
pub(super) struct StoredTensor {
    pub(super) dtype: GgmlDType,
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// The position of its first byte in the file.
    pub(super) start: u64,
}

/// Returns the name of a type as llama.cpp writes it, in small letters: `q4_0`, `q4_k`.
pub(super) fn type_name(dtype: GgmlDType) -> String {
    let name = format!("{dtype:?}").to_lowercase();
    match name.strip_suffix('k') {
        Some(digits) => format!("{digits}_k"),
        None => name,
    }
}

/// Returns the elements and bytes of a tensor; `None` if it has no elements, or more bytes than
/// any file.
fn extent(info: &TensorInfo) -> Option<(u64, u64)> {
    let mut dims = info.shape.dims().iter();
    let elements = dims.try_fold(1_u64, |all, &dim| all.checked_mul(dim.try_into().ok()?))?;
    let blocks = elements.div_ceil(info.ggml_dtype.block_size() as u64);
    let bytes = blocks.checked_mul(info.ggml_dtype.type_size() as u64)?;
    (elements > 0 && bytes < 1 << 62).then_some((elements, bytes))
}

/// Returns the tensors of a header by their names, and rejects tensors that candle cannot load.
pub(super) fn stored_tensors(content: &Content) -> Result<BTreeMap<String, StoredTensor>, Problem> {
    let available = host::available();
    let mut tensors = BTreeMap::new();
    let mut infos: Vec<_> = content.tensor_infos.iter().collect();
    infos.sort_by_key(|&(name, _)| name);
    for (name, info) in infos {
        let Some((elements, bytes)) = extent(info) else {
            return Err(Problem::invalid_question(format!(
                "the tensor `{name}` of the header has the impossible shape {:?}",
                info.shape
            )));
        };
        if let Some(available) =
            available.filter(|&available| host_bytes(info, elements) > available)
        {
            return Err(Problem::not_measured(format!(
                "candle loads a tensor by way of the host, where `{name}` takes {}, but {} are \
                 available",
                Size(host_bytes(info, elements)),
                Size(available)
            ))
            .hint("use a machine with more memory"));
        }
        let start = content.tensor_data_offset.saturating_add(info.offset);
        let dtype = info.ggml_dtype;
        tensors.insert(name.clone(), StoredTensor { dtype, elements, bytes, start });
    }
    check_places(&tensors)?;
    Ok(tensors)
}

/// Rejects tensors at the same place, because the reader knows a tensor by its first byte.
fn check_places(tensors: &BTreeMap<String, StoredTensor>) -> Result<(), Problem> {
    let mut starts = BTreeMap::new();
    for (name, tensor) in tensors {
        if let Some(other) = starts.insert(tensor.start, name) {
            return Err(Problem::invalid_question(format!(
                "the tensors `{other}` and `{name}` of the header begin at the same byte"
            )));
        }
    }
    Ok(())
}

/// Returns the memory of the host that loading a tensor takes. The bytes of a quantized tensor stay
/// zeros that the kernel has not written. candle converts other types on the host: it copies them
/// twice, and writes a list of `f32`.
fn host_bytes(info: &TensorInfo, elements: u64) -> u64 {
    let bytes = match info.ggml_dtype {
        GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => {
            4 + 2 * info.ggml_dtype.type_size() as u64
        }
        _ => 1,
    };
    elements.saturating_mul(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_llama_cpp() {
        let names = [GgmlDType::Q4_0, GgmlDType::Q6K, GgmlDType::BF16].map(type_name);
        assert_eq!(names, ["q4_0", "q6_k", "bf16"]);
    }
}
