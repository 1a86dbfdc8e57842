//! Models in GGUF files.

use std::io::Cursor;

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};

/// Writes a file with tensors, and reads its header.
fn file(
    metadata: &[(&str, Value)],
    tensors: &[(&str, Vec<usize>)],
) -> anyhow::Result<(Content, Cursor<Vec<u8>>)> {
    let metadata: Vec<_> = metadata.iter().map(|(name, value)| (*name, value)).collect();
    let mut written = Vec::new();
    for (name, shape) in tensors {
        let values = crate::input(shape.as_slice(), &Device::Cpu)?;
        written.push((*name, QTensor::quantize(&values, GgmlDType::F32)?));
    }
    let tensors: Vec<_> = written.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let mut file = Cursor::new(Vec::new());
    gguf_file::write(&mut file, &metadata, &tensors)?;
    file.set_position(0);
    Ok((Content::read(&mut file)?, file))
}

/// The masks of all prompt lengths outlive their sessions.
mod quantized_llama {
    use candle_core::quantized::gguf_file::Value::{F32, U32};

    crate::pair! {
        candle_transformers::models::quantized_llama => crate::changed::quantized_llama;
        compared |device| {
            let metadata = [
                ("llama.attention.head_count", U32(2)), ("llama.attention.head_count_kv", U32(2)),
                ("llama.block_count", U32(0)), ("llama.embedding_length", U32(32)),
                ("llama.rope.dimension_count", U32(16)),
                ("llama.attention.layer_norm_rms_epsilon", F32(1e-5)),
            ];
            let tensors = [("token_embd.weight", vec![64, 32]), ("output_norm.weight", vec![32])];
            let (content, mut file) = super::file(&metadata, &tensors)?;
            let mut model = subject::ModelWeights::from_gguf(content, &mut file, device)?;
            for length in (32..=512).step_by(32) {
                let logits = model.forward(&crate::prompt(length, device)?, 0)?;
                crate::compare(|| Ok(logits))?;
                model.clear_kv_cache();
            }
            Ok(model)
        }
    }
}

/// Each layer has the tables of the rotary embedding for 131,072 positions, although there are only
/// two different ones. The sizes of a head and the layers are those of Gemma 3 with a billion
/// parameters.
mod quantized_gemma3 {
    use candle_core::quantized::gguf_file::Value::{F32, U32};

    const HEAD: usize = 256;

    fn tensors(layers: usize) -> Vec<(String, Vec<usize>)> {
        let names = "attn_q attn_k attn_v attn_output attn_q_norm attn_k_norm attn_norm \
                     post_attention_norm ffn_norm post_ffw_norm ffn_gate ffn_up ffn_down";
        let shape = |name: &str| match name {
            "attn_q" | "attn_k" | "attn_v" => vec![HEAD, 1],
            "attn_output" => vec![1, HEAD],
            "attn_q_norm" | "attn_k_norm" => vec![HEAD],
            name if name.ends_with("norm") => vec![1],
            _ => vec![1, 1],
        };
        let layer = |layer| {
            let name = move |name: &str| (format!("blk.{layer}.{name}.weight"), shape(name));
            names.split_whitespace().map(name)
        };
        let ends = [
            ("token_embd.weight".to_owned(), vec![4, 1]),
            ("output_norm.weight".to_owned(), vec![1]),
        ];
        ends.into_iter().chain((0..layers).flat_map(layer)).collect()
    }

    crate::pair! {
        candle_transformers::models::quantized_gemma3 => crate::changed::quantized_gemma3, device = "cuda";
        compared |device| {
            let metadata = [
                ("gemma3.attention.head_count", U32(1)), ("gemma3.attention.head_count_kv", U32(1)),
                ("gemma3.block_count", U32(crate::size(26, 6) as u32)),
                ("gemma3.embedding_length", U32(1)),
                ("gemma3.attention.key_length", U32(HEAD as u32)),
                ("gemma3.attention.value_length", U32(HEAD as u32)),
                ("gemma3.attention.layer_norm_rms_epsilon", F32(1e-6)),
                ("gemma3.attention.sliding_window", U32(512)),
            ];
            let tensors = tensors(crate::size(26, 6));
            let tensors: Vec<_> = tensors.iter().map(|(name, shape)| (name.as_str(), shape.clone())).collect();
            let (content, mut file) = super::file(&metadata, &tensors)?;
            let mut model = subject::ModelWeights::from_gguf(content, &mut file, device)?;
            crate::compare(|| model.forward(&crate::prompt(8, device)?, 0))?;
            Ok(model)
        }
    }
}
