//! Models in GGUF files. Only the header of the file is read: candle's quantized models load
//! tensors of zeros with the types and shapes that the header declares.
//!
//! ```text
//! header (read and checked) -> models (candle's module) -> zeros (the reader of the tensors)
//! ```

mod header;
mod models;
mod tensors;
mod zeros;

use std::path::Path;

use candle_core::{DType, Device};
use memcheck_core::size::{both, counted};
use memcheck_core::wire::estimate::StoredTensors;

use crate::families::Model;
use crate::problem::Problem;

use self::header::Header;
use self::models::Quantized;
use self::tensors::{StoredTensor, type_name};
use self::zeros::Zeros;

/// A GGUF file whose header has passed all checks.
#[derive(Debug)]
pub(crate) struct GgufFile {
    header: Header,
    quantized: &'static Quantized,
}

/// How candle loads the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GgufOptions {
    /// The type of the activations, for the modules that let the program choose it.
    pub(crate) dtype: DType,
    pub(crate) flash_attn: bool,
}

impl GgufFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let header = Header::read(path)?;
        let quantized = models::find(&header.architecture)?;
        Ok(Self { header, quantized })
    }

    /// Returns the architecture, which is the prefix of the file's metadata.
    pub(crate) fn architecture(&self) -> &str {
        &self.header.architecture
    }

    /// Returns the type of most of the bytes.
    pub(crate) fn main_type(&self) -> String {
        let types = by_type(self.header.tensors.values());
        types.first().map(|stored| stored.r#type.clone()).unwrap_or_default()
    }

    pub(crate) fn heads(&self) -> Option<u64> {
        self.header.number("attention.head_count")
    }

    /// Returns the name of the limit of positions, and the limit.
    pub(crate) fn positions(&self) -> Option<(String, u64)> {
        match self.quantized.most_positions {
            Some(most) => {
                let name = format!("`MAX_SEQ_LEN` of candle's `{}`", self.quantized.module);
                Some((name, most as u64))
            }
            None => {
                let key = "context_length";
                let name = format!("`{}.{key}`", self.header.architecture);
                Some((name, self.header.number(key)?))
            }
        }
    }

    /// Bytes per element of the mask that candle builds on the host.
    pub(crate) fn mask(&self) -> u64 {
        self.quantized.mask
    }

    pub(crate) fn has_flash_attention(&self) -> bool {
        self.quantized.flash_attn
    }

    pub(crate) fn reads_one_sequence(&self) -> bool {
        self.quantized.one_sequence
    }

    /// True if the program chooses the type of the activations.
    pub(crate) fn has_dtype(&self) -> bool {
        self.quantized.has_dtype
    }

    /// True if candle's code reads on the host which tokens go to which expert.
    pub(crate) fn reads_routing(&self) -> bool {
        self.quantized.module == "quantized_llama"
            && self.header.number("expert_count").is_some_and(|experts| experts > 1)
    }

    /// Loads candle's model, and returns it with the tensors that it has read.
    pub(crate) fn load(
        &self,
        options: GgufOptions,
        device: &Device,
    ) -> Result<(Box<dyn Model>, Stored), Problem> {
        let mut zeros = Zeros::new(self.header.starts());
        let model = (self.quantized.load)(self.header.content(), &mut zeros, device, options)?;
        Ok((model, self.stored(&zeros)))
    }

    fn stored(&self, zeros: &Zeros) -> Stored {
        let was_read = |name: &str| zeros.was_read(name);
        let tensors = || self.header.tensors.iter();
        let read = tensors().filter(|(name, _)| was_read(name)).map(|(_, tensor)| tensor);
        let unread: Vec<_> = tensors().filter(|(name, _)| !was_read(name)).collect();
        let mut notes = Vec::new();
        if let Some((first, _)) = unread.first() {
            let bytes = unread.iter().map(|(_, tensor)| tensor.bytes).sum();
            notes.push(format!(
                "candle's `{}` does not read {} of the file, such as `{first}`: {}",
                self.quantized.module,
                counted(unread.len() as u64, "tensor", "tensors"),
                both(bytes)
            ));
        }
        Stored { types: by_type(read), notes }
    }
}

/// The tensors of a file that candle has read.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) types: Vec<StoredTensors>,
    pub(crate) notes: Vec<String>,
}

impl Stored {
    pub(crate) fn elements(&self) -> u64 {
        self.types.iter().map(|stored| stored.elements).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.types.iter().map(|stored| stored.bytes).sum()
    }
}

/// Adds the tensors of each type. The type with the most bytes is the first.
fn by_type<'a>(tensors: impl Iterator<Item = &'a StoredTensor>) -> Vec<StoredTensors> {
    let mut types: Vec<StoredTensors> = Vec::new();
    for tensor in tensors {
        let name = type_name(tensor.dtype);
        let known = types.iter().position(|stored| stored.r#type == name);
        let place = known.unwrap_or_else(|| {
            types.push(StoredTensors { r#type: name, tensors: 0, elements: 0, bytes: 0 });
            types.len() - 1
        });
        let stored = &mut types[place];
        stored.tensors += 1;
        stored.elements += tensor.elements;
        stored.bytes += tensor.bytes;
    }
    types.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.r#type.cmp(&b.r#type)));
    types
}
