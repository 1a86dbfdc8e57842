//! Files of weights, on the host. They are sparse files of zeros.

use std::io::Write as _;

use tempfile::NamedTempFile;

/// Writes a header, and zeros behind it.
fn file(header: &[u8], zeros: u64) -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(header)?;
    file.as_file().set_len(header.len() as u64 + zeros)?;
    Ok(file)
}

/// The file is read as a whole, and its tensors are copies.
mod safetensors {
    use std::collections::{BTreeMap, HashMap};
    use std::path::Path;

    use candle_core::safetensors::load;
    use candle_core::{DType, Device, Result, Tensor};

    use std::fs::File;
    use std::io::{Read as _, Seek as _, SeekFrom};

    #[derive(serde::Deserialize)]
    struct Stored {
        shape: Vec<usize>,
        data_offsets: (u64, u64),
    }

    /// Reads one tensor after the other.
    fn load_each(path: &Path, device: &Device) -> Result<HashMap<String, Tensor>> {
        let mut file = File::open(path)?;
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let mut header = vec![0; u64::from_le_bytes(length) as usize];
        file.read_exact(&mut header)?;
        let stored: BTreeMap<String, Stored> =
            serde_json::from_slice(&header).map_err(candle_core::Error::wrap)?;
        let load = |(name, Stored { shape, data_offsets: (start, end) })| {
            let mut data = vec![0; (end - start) as usize];
            file.seek(SeekFrom::Start(8 + header.len() as u64 + start))?;
            file.read_exact(&mut data)?;
            Ok((name, Tensor::from_raw_buffer(&data, DType::F32, &shape, device)?))
        };
        stored.into_iter().map(load).collect()
    }

    crate::pair! {
        self::load => self::load_each, device = "cpu";
        |device| {
            let tensor = |n: usize| format!(
                r#""t{n}":{{"dtype":"F32","shape":[512,512],"data_offsets":[{},{}]}}"#,
                n << 20, (n + 1) << 20
            );
            let json = format!("{{{}}}", (0..8).map(tensor).collect::<Vec<_>>().join(","));
            let header = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
            let file = super::file(&header, 8 << 20)?;
            Ok(subject(file.path(), device)?)
        }
    }
}

/// Each tensor is read as bytes and then copied.
mod gguf {
    use candle_core::Result;
    use candle_core::quantized::gguf_file::Content;
    use candle_core::quantized::{QStorage, QTensor};

    use std::fs::File;
    use std::io::{Read as _, Seek as _, SeekFrom};

    fn candle(file: &mut File, device: &candle_core::Device) -> Result<QTensor> {
        Content::read(file)?.tensor(file, "weight", device)
    }

    /// Reads the values in parts, into the place where they stay.
    fn in_place(file: &mut File, _: &candle_core::Device) -> Result<QTensor> {
        let content = Content::read(file)?;
        let weight = &content.tensor_infos["weight"];
        let elements = weight.shape.elem_count();
        let mut values = Vec::with_capacity(elements);
        file.seek(SeekFrom::Start(content.tensor_data_offset + weight.offset))?;
        let mut part = [0; 4096];
        while values.len() < elements {
            file.read_exact(&mut part)?;
            let (values_of_part, _) = part.as_chunks::<4>();
            values.extend(values_of_part.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        }
        QTensor::new(QStorage::Cpu(Box::new(values)), weight.shape.clone())
    }

    crate::pair! {
        self::candle => self::in_place, device = "cpu";
        |device| {
            let name = b"weight";
            let words = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
            let mut header = [&b"GGUF"[..], &3_u32.to_le_bytes(), &words(&[1, 0, 6]), name].concat();
            header.extend([&2_u32.to_le_bytes()[..], &words(&[1024, 1024])].concat());
            header.extend([&0_u32.to_le_bytes()[..], &words(&[0])].concat());
            header.resize(header.len().next_multiple_of(32), 0);
            let file = super::file(&header, 4 << 20)?;
            Ok(subject(&mut File::open(file.path())?, device)?)
        }
    }
}
