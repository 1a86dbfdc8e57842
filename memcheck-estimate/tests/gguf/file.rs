//! Writes headers of GGUF files, without tensor data, in the layouts of llama.cpp.

/// A type of tensors: its number, and the elements and bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) name: &'static str,
    number: u32,
    pub(super) block: u64,
    pub(super) bytes: u64,
}

const fn of_type(name: &'static str, number: u32, block: u64, bytes: u64) -> Type {
    Type { name, number, block, bytes }
}

pub(super) const F32: Type = of_type("f32", 0, 1, 4);
pub(super) const F16: Type = of_type("f16", 1, 1, 2);
pub(super) const Q4_0: Type = of_type("q4_0", 2, 32, 18);
pub(super) const Q8_0: Type = of_type("q8_0", 8, 32, 34);
pub(super) const Q4_K: Type = of_type("q4_k", 12, 256, 144);
pub(super) const Q6_K: Type = of_type("q6_k", 14, 256, 210);
/// A type of llama.cpp that candle does not read.
pub(super) const IQ4_NL: Type = of_type("iq4_nl", 20, 32, 18);

#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub(super) name: String,
    /// The first dimension is the one whose elements are next to each other.
    pub(super) dims: Vec<u64>,
    pub(super) of_type: Type,
}

impl Tensor {
    pub(super) fn elements(&self) -> u64 {
        // Hostile headers have more elements than can be counted.
        self.dims.iter().fold(1, |all, &dim| all.saturating_mul(dim))
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.elements() / self.of_type.block).saturating_mul(self.of_type.bytes)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Number(u32),
    Numbers(Vec<u32>),
    Fraction(f32),
    Text(String),
}

/// The header of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Header {
    pub(super) metadata: Vec<(String, Value)>,
    pub(super) tensors: Vec<Tensor>,
}

impl Header {
    pub(super) fn new(architecture: &str, numbers: &[(&str, u32)]) -> Self {
        let name = ("general.architecture".to_owned(), Value::Text(architecture.to_owned()));
        let numbers = numbers
            .iter()
            .map(|&(key, number)| (format!("{architecture}.{key}"), Value::Number(number)));
        let metadata = [name].into_iter().chain(numbers).collect();
        Self { metadata, tensors: Vec::new() }
    }

    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.metadata.retain(|(other, _)| other != key);
        self.metadata.push((key.to_owned(), value));
        self
    }

    pub(super) fn tensor(&mut self, name: impl Into<String>, dims: &[u64], of_type: Type) {
        self.tensors.push(Tensor { name: name.into(), dims: dims.to_vec(), of_type });
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tensors.iter().map(Tensor::bytes).sum()
    }

    pub(super) fn elements(&self) -> u64 {
        self.tensors.iter().map(Tensor::elements).sum()
    }

    /// Returns the file up to its first tensor.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            text(&mut file, key);
            write_value(&mut file, value);
        }
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            text(&mut file, &tensor.name);
            file.extend((tensor.dims.len() as u32).to_le_bytes());
            for dim in &tensor.dims {
                file.extend(dim.to_le_bytes());
            }
            file.extend(tensor.of_type.number.to_le_bytes());
            file.extend(offset.to_le_bytes());
            offset = offset.saturating_add(tensor.bytes().div_ceil(32).saturating_mul(32));
        }
        file
    }
}

fn text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

fn write_value(file: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) => {
            file.extend(4_u32.to_le_bytes());
            file.extend(number.to_le_bytes());
        }
        Value::Fraction(number) => {
            file.extend(6_u32.to_le_bytes());
            file.extend(number.to_le_bytes());
        }
        Value::Text(words) => {
            file.extend(8_u32.to_le_bytes());
            text(file, words);
        }
        Value::Numbers(numbers) => {
            file.extend(9_u32.to_le_bytes());
            file.extend(4_u32.to_le_bytes());
            file.extend((numbers.len() as u64).to_le_bytes());
            for number in numbers {
                file.extend(number.to_le_bytes());
            }
        }
    }
}
