//! The CUDA sources of candle that the simulated device knows.
//!
//! Generated from the packages in cargo's registry: `just cuda-sources` writes it, and a test of
//! memcheck-kernels compares it.

use super::{Identity, KnownSource};

const fn source(
    identity: u64,
    package: &'static str,
    file: &'static str,
    versions: &'static [&'static str],
) -> KnownSource {
    KnownSource { identity: Identity::new(identity), package, file, versions }
}

#[rustfmt::skip]
pub(super) static KNOWN: &[KnownSource] = &[
    source(0x1f5994dfa997b9c9, "candle-flash-attn", "kernels/flash_api.cu", &["0.11.1"]),
    source(0xc0bf3731bd076ac3, "candle-flash-attn-v3", "hkernel/flash_api.cu", &["0.11.1"]),
    source(0x7a01ea4327ef235f, "candle-kernels", "src/affine.cu", &["0.9.2", "0.10.2"]),
    source(0x066de560feff2800, "candle-kernels", "src/affine.cu", &["0.11.0"]),
    source(0x309318c16018b6e7, "candle-kernels", "src/affine.cu", &["0.11.1"]),
    source(0x9003beb7312bafda, "candle-kernels", "src/binary.cu", &["0.9.2", "0.10.2"]),
    source(0x0ebde84ceadc1e2f, "candle-kernels", "src/binary.cu", &["0.11.0"]),
    source(0x169cde2990cf00cb, "candle-kernels", "src/binary.cu", &["0.11.1"]),
    source(0x7cfd2f7e9ac1a025, "candle-kernels", "src/cast.cu", &["0.9.2", "0.10.2"]),
    source(0xc46da39506daf56e, "candle-kernels", "src/cast.cu", &["0.11.0"]),
    source(0x1afd0c9f42028bcf, "candle-kernels", "src/cast.cu", &["0.11.1"]),
    source(0x5fa98da8fa999787, "candle-kernels", "src/conv.cu", &["0.9.2", "0.10.2"]),
    source(0x6872c37e839ea568, "candle-kernels", "src/conv.cu", &["0.11.0"]),
    source(0xfd0b33f75b0d963f, "candle-kernels", "src/conv.cu", &["0.11.1"]),
    source(0x80c0d7f95f751753, "candle-kernels", "src/fill.cu", &["0.9.2", "0.10.2"]),
    source(0x53796e5ace1bf07c, "candle-kernels", "src/fill.cu", &["0.11.0"]),
    source(0x053c71fbdf5823db, "candle-kernels", "src/fill.cu", &["0.11.1"]),
    source(0xa91bf29694178133, "candle-kernels", "src/indexing.cu", &["0.9.2", "0.10.2"]),
    source(0x2954055f3f33df5c, "candle-kernels", "src/indexing.cu", &["0.11.0"]),
    source(0x2f7db03e76e4b93b, "candle-kernels", "src/indexing.cu", &["0.11.1"]),
    source(0xa3c7e48f8c359af2, "candle-kernels", "src/mmq_gguf/mmq_instance_q2_k.cu", &["0.11.0", "0.11.1"]),
    source(0xb3d84061920f8d2d, "candle-kernels", "src/mmq_gguf/mmq_instance_q3_k.cu", &["0.11.0", "0.11.1"]),
    source(0x46ccaf65eea1834d, "candle-kernels", "src/mmq_gguf/mmq_instance_q4_0.cu", &["0.11.0", "0.11.1"]),
    source(0x9894abc6672e088a, "candle-kernels", "src/mmq_gguf/mmq_instance_q4_1.cu", &["0.11.0", "0.11.1"]),
    source(0x726c8c5a88bdc714, "candle-kernels", "src/mmq_gguf/mmq_instance_q4_k.cu", &["0.11.0", "0.11.1"]),
    source(0x7cea53d7bb150922, "candle-kernels", "src/mmq_gguf/mmq_instance_q5_0.cu", &["0.11.0", "0.11.1"]),
    source(0x6d234e5e00201685, "candle-kernels", "src/mmq_gguf/mmq_instance_q5_1.cu", &["0.11.0", "0.11.1"]),
    source(0x9dee90e2e323d68f, "candle-kernels", "src/mmq_gguf/mmq_instance_q5_k.cu", &["0.11.0", "0.11.1"]),
    source(0x33f92924c155fbce, "candle-kernels", "src/mmq_gguf/mmq_instance_q6_k.cu", &["0.11.0", "0.11.1"]),
    source(0x439466fed02ec419, "candle-kernels", "src/mmq_gguf/mmq_instance_q8_0.cu", &["0.11.0", "0.11.1"]),
    source(0x79e72ae53410347d, "candle-kernels", "src/mmq_gguf/mmq_quantize.cu", &["0.11.0", "0.11.1"]),
    source(0xd721b2902820ff7a, "candle-kernels", "src/mmvq_gguf.cu", &["0.11.0", "0.11.1"]),
    source(0xb9ffe23e698882cc, "candle-kernels", "src/moe/moe_align.cu", &["0.11.1"]),
    source(0xae447b3ed8a33757, "candle-kernels", "src/moe/moe_gguf.cu", &["0.9.2", "0.10.2", "0.11.0", "0.11.1"]),
    source(0x147cd11d70bd2f2c, "candle-kernels", "src/moe/moe_wmma.cu", &["0.9.2"]),
    source(0x0b3cb4a81735aace, "candle-kernels", "src/moe/moe_wmma.cu", &["0.10.2", "0.11.0", "0.11.1"]),
    source(0x64351fea63a9e508, "candle-kernels", "src/moe/moe_wmma_gguf.cu", &["0.9.2", "0.10.2", "0.11.0", "0.11.1"]),
    source(0x189e6470149afb2d, "candle-kernels", "src/quantized.cu", &["0.9.2", "0.10.2"]),
    source(0xc205ad49133cdde1, "candle-kernels", "src/quantized.cu", &["0.11.0", "0.11.1"]),
    source(0x07f3712cd25a33cb, "candle-kernels", "src/reduce.cu", &["0.9.2", "0.10.2"]),
    source(0xdbb0256a851a7194, "candle-kernels", "src/reduce.cu", &["0.11.0"]),
    source(0x074dddbd12ebcf17, "candle-kernels", "src/reduce.cu", &["0.11.1"]),
    source(0x7e5fc0c3e2988ae0, "candle-kernels", "src/sort.cu", &["0.9.2", "0.10.2"]),
    source(0x13a8ab7a43934185, "candle-kernels", "src/sort.cu", &["0.11.0"]),
    source(0x5bc6e003b10e1928, "candle-kernels", "src/sort.cu", &["0.11.1"]),
    source(0xc8ce7dc66b318f8f, "candle-kernels", "src/ternary.cu", &["0.9.2", "0.10.2"]),
    source(0x73f92ab513d44150, "candle-kernels", "src/ternary.cu", &["0.11.0"]),
    source(0x39ed023354abfa17, "candle-kernels", "src/ternary.cu", &["0.11.1"]),
    source(0xe7512419fb05a431, "candle-kernels", "src/unary.cu", &["0.9.2", "0.10.2"]),
    source(0x8babe1bb5af3c912, "candle-kernels", "src/unary.cu", &["0.11.0"]),
    source(0xa3270f484eba2071, "candle-kernels", "src/unary.cu", &["0.11.1"]),
];
