//! Published models: the exact number of their parameters, from configurations with their published
//! hyper-parameters.

use std::collections::BTreeMap;

use memcheck_core::size::exact;
use memcheck_core::wire::exit;

use super::{config, estimate, figures};
use crate::fixture::workspace;

/// A decoder with gated feed-forward layers and RMS norms, of vocabulary v, width h, feed-forward
/// f, layers l, queries q and keys k (heads x head width): embeddings (1, tied, or 2) v h + l (2 h
/// q + 2 h k + 3 h f + norms h) + h.
#[expect(clippy::too_many_arguments, reason = "the letters of the formula")]
const fn gated(e: u64, v: u64, h: u64, f: u64, l: u64, q: u64, k: u64, norms: u64) -> u64 {
    e * v * h + l * (2 * h * q + 2 * h * k + 3 * h * f + norms * h) + h
}

/// The same with a router and experts of feed-forward f instead of one feed-forward.
const fn routed(v: u64, h: u64, f: u64, l: u64, q: u64, k: u64, experts: u64) -> u64 {
    gated(2, v, h, 0, l, q, k, 2) + l * experts * (3 * h * f + h)
}

const fn linear(from: u64, to: u64) -> u64 {
    from * to + to
}

/// A transformer layer of BERT's kind without norms: four projections and two linear layers, with
/// biases.
const fn biased(h: u64, f: u64) -> u64 {
    4 * linear(h, h) + linear(h, f) + linear(f, h)
}

/// v h of embeddings, p and t of positions and types, l layers with two norms.
const fn bert(v: u64, p: u64, t: u64, h: u64, f: u64, l: u64) -> u64 {
    (v + p + t) * h + 2 * h + l * (biased(h, f) + 4 * h)
}

/// Encoder and decoder of l layers each with i = heads x head width and relative positions in b
/// buckets for each head. The model has no biases.
const fn t5(v: u64, d: u64, i: u64, f: u64, l: u64, buckets: u64) -> u64 {
    let encoder = l * (4 * d * i + 2 * d * f + 2 * d) + d + buckets;
    let decoder = l * (8 * d * i + 2 * d * f + 3 * d) + d + buckets;
    v * d + encoder + decoder
}

/// Projections with biases, except for the keys.
const fn whisper_attention(d: u64) -> u64 {
    4 * d * d + 3 * d
}

/// Two convolutions over m mels, l layers each with 4 d of feed-forward, and p learned positions of
/// the decoder. Its head is the embedding.
const fn whisper(v: u64, m: u64, d: u64, l: u64, p: u64) -> u64 {
    let ff = linear(d, 4 * d) + linear(4 * d, d);
    let encoder = linear(3 * m, d) + linear(3 * d, d) + l * (whisper_attention(d) + ff + 4 * d);
    let decoder = (v + p) * d + l * (2 * whisper_attention(d) + ff + 6 * d);
    encoder + decoder + 4 * d
}

/// The vision model of Gemma 3: SigLIP with 27 layers over 64 x 64 patches of 14 x 14, and the
/// projection to tokens of the text model's width.
const fn gemma_3_vision() -> u64 {
    let d = 1152;
    let patches = linear(3 * 14 * 14, d) + 64 * 64 * d;
    patches + 27 * (biased(d, 4304) + 4 * d) + 2 * d + d * 2560 + d
}

/// DeepSeek-V2-Lite: latent attention with 16 heads of 128 + 64 and a rank of 512. All layers but
/// the first have 64 experts of 1408 and one of 2816.
const fn deepseek_v2_lite() -> u64 {
    let (h, heads) = (2048, 16);
    let query = h * heads * (128 + 64);
    let latent = h * (512 + 64) + 512 + 512 * heads * (128 + 128);
    let layer = query + latent + heads * 128 * h + 2 * h;
    let routed = 64 * h + 64 * 3 * h * 1408 + 3 * h * 2816;
    2 * 102_400 * h + 27 * layer + 3 * h * 10_944 + 26 * routed + h
}

/// Phi with parallel layers, each with one norm.
const fn phi(h: u64, l: u64) -> u64 {
    51_200 * h + linear(h, 51_200) + l * (biased(h, 4 * h) + 2 * h) + 2 * h
}

/// StarCoder with learned positions and one head of 128 for keys and values.
const fn starcoder(v: u64, p: u64, h: u64, l: u64) -> u64 {
    let layer = linear(h, h + 2 * 128) + linear(h, h) + linear(h, 4 * h) + linear(4 * h, h) + 4 * h;
    (v + p) * h + l * layer + 2 * h
}

/// Marian with shared embeddings and a bias of the logits. Its positions are computed.
const fn marian(v: u64, d: u64, l: u64) -> u64 {
    let encoder = biased(d, 4 * d) + 4 * d;
    let decoder = biased(d, 4 * d) + 4 * linear(d, d) + 6 * d;
    v * d + v + l * (encoder + decoder)
}

/// Based with 5 layers of linear attention, with 16 features for each of 16 heads, 5 of sliding
/// attention, and convolutions over 3 in the others.
const fn based(v: u64, h: u64, l: u64) -> u64 {
    let convolution = linear(h, 4 * h) + linear(2 * h, h) + 3 * 2 * h;
    let mixers = (l - 10) * convolution + 5 * (2 * h * h + 2 * h * 16 * 16) + 5 * 4 * h * h;
    v * h + mixers + l * (h * 4 * h + 2 * h * h + 2 * h) + h
}

/// Gemma 4 with 31 billion parameters: every sixth layer has heads of 512, and 4 of them for the
/// keys. candle loads a projection of the values in these layers, which have none in the file.
const fn gemma_4_text() -> u64 {
    let (v, h, f) = (262_144, 5376, 21_504);
    let sliding = gated(0, v, h, f, 50, 32 * 256, 16 * 256, 4) + 50 * 2 * 256;
    sliding + gated(0, v, h, f, 10, 32 * 512, 4 * 512, 4) - h + 10 * 2 * 512 + v * h
}

/// The vision model of Gemma 4: 27 gated layers with norms of queries and keys, and the projection
/// to tokens of the text model's width.
const fn gemma_4_vision() -> u64 {
    let d = 1152;
    let layer = 4 * d * d + 3 * d * 4304 + 4 * d + 2 * 72;
    3 * 16 * 16 * d + 2 * 10_240 * d + 27 * layer + d * 5376
}

/// The number of the file of Gemma 4 has its embeddings twice, and no values in 10 of the layers.
const fn gemma_4_difference() -> i64 {
    (10 * 5376 * 4 * 512) as i64 - gemma_4_vision() as i64 - 262_144 * 5376
}

/// RecurrentGemma: 8 of 26 layers have attention, with one head of 256 for the keys.
const fn recurrent_gemma(v: u64, h: u64) -> u64 {
    let feed = 2 * linear(h, 3 * h) + linear(3 * h, h);
    let gates = 2 * (h * h / 10 + h) + h;
    let recurrent = 3 * linear(h, h) + 4 * h + h + gates;
    let attention = h * h + 2 * h * 256 + linear(h, h);
    v * h + 26 * (feed + 2 * h) + 18 * recurrent + 8 * attention + h
}

/// Mamba 2 with the inner width 2 h, 128 states and heads of 64.
const fn mamba2(v: u64, h: u64, l: u64) -> u64 {
    let (inner, states, heads) = (2 * h, 128, 2 * h / 64);
    let mixed = inner + 2 * states;
    let layer = h * (inner + mixed + heads) + 5 * mixed + 3 * heads + inner + inner * h + h;
    v * h + l * layer + h
}

/// RWKV 5 and 6, by the formula of their authors, which has 14 and 464 small vectors for each layer.
const fn rwkv(v: u64, d: u64, l: u64, vectors: u64) -> u64 {
    13 * d * d * l + vectors * d * l + 4 * d + 2 * d * v
}

/// Mamba with the inner width 2 h, 16 states, a convolution over 4 and steps of rank h / 16.
const fn mamba(v: u64, h: u64, l: u64) -> u64 {
    let (inner, states, rank) = (2 * h, 16, h / 16);
    let steps = inner * (rank + 2 * states) + linear(rank, inner);
    let layer = h * 2 * inner + 5 * inner + steps + inner * states + inner + inner * h + h;
    v * h + l * layer + h
}

/// LFM2: 10 convolutions over 3 and 6 layers of attention with 8 of 32 heads for the keys.
const fn lfm2(v: u64, h: u64, f: u64) -> u64 {
    let convolution = 3 * h * h + 3 * h + h * h;
    let attention = 2 * h * h + 2 * h * h / 4 + 2 * h / 32;
    v * h + 10 * convolution + 6 * attention + 16 * (3 * h * f + 2 * h) + h
}

/// RWKV 7: ranks 64 of decay and rate, 128 of the gate, and 32 of the residual, which every layer
/// but the first has.
const fn rwkv7(v: u64, c: u64, l: u64) -> u64 {
    let ranks = 2 * c * (64 + 64 + 128);
    let layer = 4 * c * c + 2 * c * 4 * c + ranks + 18 * c;
    2 * v * c + l * layer + (l - 1) * rwkv7_residual(c) + 4 * c
}

const fn rwkv7_residual(c: u64) -> u64 {
    2 * c * 32 + c
}

/// A configuration, its published number of parameters, and the number that candle loads, with its
/// closed formula. A comment gives the reason of each difference.
struct Published {
    name: &'static str,
    published: u64,
    loaded: u64,
    difference: i64,
}

const fn same(name: &'static str, published: u64, loaded: u64) -> Published {
    Published { name, published, loaded, difference: 0 }
}

#[rustfmt::skip]
const PUBLISHED: &[Published] = &[
    same("llama-2-7b", 6_738_415_616, gated(2, 32_000, 4096, 11_008, 32, 4096, 4096, 2)),
    same("llama-2-70b", 68_976_648_192, gated(2, 32_000, 8192, 28_672, 80, 8192, 1024, 2)),
    same("llama-3-8b", 8_030_261_248, gated(2, 128_256, 4096, 14_336, 32, 4096, 1024, 2)),
    same("llama-3-70b", 70_553_706_496, gated(2, 128_256, 8192, 28_672, 80, 8192, 1024, 2)),
    same("mistral-7b-v0.1", 7_241_732_096, gated(2, 32_000, 4096, 14_336, 32, 4096, 1024, 2)),
    same("mixtral-8x7b-v0.1", 46_702_792_704, routed(32_000, 4096, 14_336, 32, 4096, 1024, 8)),
    // Biases of queries, keys and values.
    same("qwen2-7b", 7_615_616_512,
        gated(2, 152_064, 3584, 18_944, 28, 3584, 512, 2) + 28 * (3584 + 2 * 512)),
    // A norm of queries and one of keys, each as wide as a head.
    same("qwen3-8b", 8_190_735_360,
        gated(2, 151_936, 4096, 12_288, 36, 4096, 1024, 2) + 36 * 2 * 128),
    same("qwen3-30b-a3b", 30_532_122_624,
        routed(151_936, 2048, 768, 48, 4096, 512, 128) + 48 * 2 * 128),
    same("qwen3-235b-a22b", 235_093_634_560,
        routed(151_936, 4096, 1536, 94, 8192, 512, 128) + 94 * 2 * 128),
    same("gemma-2b", 2_506_172_416, gated(1, 256_000, 2048, 16_384, 18, 2048, 256, 2)),
    same("gemma-7b", 8_537_680_896, gated(1, 256_000, 3072, 24_576, 28, 4096, 4096, 2)),
    same("gemma-2-2b", 2_614_341_888, gated(1, 256_000, 2304, 9216, 26, 2048, 1024, 4)),
    same("phi-3-mini-4k", 3_821_079_552, gated(2, 32_064, 3072, 8192, 32, 3072, 3072, 2)),
    // One norm per layer, because attention and feed-forward have the same input.
    same("phi-2", 2_779_683_840, phi(2560, 32)),
    same("phi-2-msft", 2_779_683_840, phi(2560, 32)),
    same("phi-1.5", 1_418_270_720, phi(2048, 24)),
    same("t5-small", 60_506_624, t5(32_128, 512, 512, 2048, 6, 32 * 8)),
    // No biases, and no norm before the first attention.
    same("modernbert-base", 149_014_272,
        50_368 * 768 + 22 * (4 * 768 * 768 + 3 * 768 * 1152 + 2 * 768) + 768),
    // The file as the authors published it, with many fields that estimates do not need.
    same("llama-3.1-8b", 8_030_261_248, gated(2, 128_256, 4096, 14_336, 32, 4096, 1024, 2)),
    same("smollm2-135m", 134_515_008, gated(1, 49_152, 576, 1536, 30, 576, 192, 2)),
    same("smollm3-3b", 3_075_098_624, gated(1, 128_256, 2048, 11_008, 36, 2048, 512, 2)),
    same("mistral-7b-v0.3", 7_248_023_552, gated(2, 32_768, 4096, 14_336, 32, 4096, 1024, 2)),
    same("qwen2.5-0.5b", 494_032_768,
        gated(1, 151_936, 896, 4864, 24, 896, 128, 2) + 24 * (896 + 2 * 128)),
    same("gemma-2-9b", 9_241_705_984, gated(1, 256_000, 3584, 14_336, 42, 4096, 2048, 4)),
    same("gemma-3-1b", 999_885_952,
        gated(1, 262_144, 1152, 6912, 26, 1024, 256, 4) + 26 * 2 * 256),
    same("phi-4", 14_659_507_200, gated(2, 100_352, 5120, 17_920, 40, 5120, 1280, 2)),
    // Norms of queries and keys over all heads.
    same("olmo-2-7b", 7_298_617_344,
        gated(2, 100_352, 4096, 11_008, 32, 4096, 4096, 2) + 32 * 2 * 4096),
    same("stablelm-3b-4e1t", 2_795_443_200,
        gated(2, 50_304, 2560, 6912, 32, 2560, 2560, 4) + 2560),
    same("starcoder2-3b", 3_030_371_328, 49_152 * 3072 + 2 * 3072
        + 30 * (2 * linear(3072, 3072) + 2 * linear(3072, 256) + linear(3072, 12_288)
            + linear(12_288, 3072) + 4 * 3072)),
    // Queries, keys and values are one projection with a bias.
    same("glm-4-9b", 9_399_951_360,
        gated(2, 151_552, 4096, 13_696, 40, 4096, 256, 2) + 40 * (4096 + 2 * 256)),
    same("deepseek-v2-lite", 15_706_484_224, deepseek_v2_lite()),
    same("mamba-130m", 129_135_360, mamba(50_280, 768, 24)),
    same("lfm2-1.2b", 1_170_340_608, lfm2(65_536, 2048, 8192)),
    same("t5-large", 737_668_096, t5(32_128, 1024, 1024, 4096, 24, 32 * 16)),
    // Gated feed-forward layers, and an untied head.
    same("flan-t5-base", 247_577_856,
        t5(32_128, 768, 768, 2048, 12, 32 * 12) + 2 * 12 * 768 * 2048 + 32_128 * 768),
    same("distilbert-base-uncased", 66_362_880, bert(30_522, 512, 0, 768, 3072, 6)),
    // Relative positions with a norm, instead of absolute ones.
    same("deberta-v3-base", 183_831_552,
        bert(128_100, 0, 0, 768, 3072, 12) + 512 * 768 + 2 * 768),
    same("nomic-embed-text-v1.5", 136_731_648,
        (30_528 + 2) * 768 + 2 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 3072 + 4 * 768)),
    // Gated, with biases except for those of the gate.
    same("gte-large-en-v1.5", 434_139_136,
        bert(30_528, 0, 2, 1024, 4096, 24) + 24 * (1024 * 4096 - 4096)),
    // One norm per layer, and one head for keys and values. The file has an untied head.
    same("falcon-7b", 7_217_189_760, 2 * 65_024 * 4544 + 2 * 4544
        + 32 * (4544 * (4544 + 2 * 64) + 4544 * 4544 + 8 * 4544 * 4544 + 2 * 4544)),
    // As glm-4-9b, with two more norms per layer.
    same("glm-4-9b-0414", 9_400_279_040,
        gated(2, 151_552, 4096, 13_696, 40, 4096, 256, 4) + 40 * (4096 + 2 * 256)),
    same("granite-4.0-micro", 3_402_836_480, gated(1, 100_352, 2560, 8192, 40, 2560, 512, 2)),
    same("helium-1-preview-2b", 2_172_643_840, gated(2, 48_000, 2560, 7040, 24, 2560, 2560, 2)),
    // No norm has a weight.
    same("olmo-1b", 1_176_764_416, gated(1, 50_304, 2048, 8192, 16, 2048, 2048, 0) - 2048),
    // Biases of queries, keys and values.
    same("stablelm-2-1.6b", 1_644_515_328,
        gated(2, 100_352, 2048, 5632, 24, 2048, 2048, 4) + 2048 + 24 * 3 * 2048),
    same("stella-en-1.5b-v5", 1_543_268_864,
        gated(1, 151_646, 1536, 8960, 28, 1536, 256, 2) + 28 * (1536 + 2 * 256)),
    // These biases too, and an expert for every token with its gate.
    same("qwen1.5-moe-a2.7b", 14_315_784_192, routed(151_936, 2048, 1408, 24, 2048, 2048, 60)
        + 24 * (3 * 2048 + 3 * 2048 * 5632 + 2048)),
    same("recurrentgemma-2b", 2_682_862_080, recurrent_gemma(256_000, 2560)),
    same("mamba2-130m", 128_989_632, mamba2(50_288, 768, 24)),
    same("rwkv-5-world-1b5", 1_577_754_624, rwkv(65_536, 2048, 24, 14)),
    same("rwkv-6-world-1b6", 1_599_873_024, rwkv(65_536, 2048, 24, 464)),
    same("based-360m", 362_620_928, based(50_264, 1024, 27)),
    same("opus-mt-fr-en", 74_669_178, marian(59_514, 512, 6)),
    // Gated feed-forward layers, and an untied head.
    same("mt5-small", 300_176_768,
        t5(250_112, 512, 384, 1024, 8, 32 * 6) + 2 * 8 * 512 * 1024 + 250_112 * 512),
    // candle loads the positions of the first layers only.
    same("umt5-base", 592_035_072,
        t5(256_384, 768, 768, 2048, 12, 32 * 12) + 2 * 12 * 768 * 2048 + 256_384 * 768),
    same("camembert-base", 110_031_360, bert(32_005, 514, 1, 768, 3072, 12)),
    // Only the text part of the model with images.
    Published { name: "gemma-4-31b", published: 32_682_372_656,
        loaded: gemma_4_text(), difference: gemma_4_difference() },
    Published { name: "gemma-4-31b-text", published: 32_682_372_656,
        loaded: gemma_4_text(), difference: gemma_4_difference() },
    Published { name: "gemma-3-4b", published: 4_300_079_472,
        loaded: gated(1, 262_208, 2560, 10_240, 34, 2048, 1024, 4) + 34 * 2 * 256,
        difference: -(gemma_3_vision() as i64) },
    // candle loads an untied head, although the model's head is its embeddings.
    Published { name: "granite-3.1-8b", published: 8_170_848_256,
        loaded: gated(2, 49_155, 4096, 12_800, 40, 4096, 1024, 2),
        difference: 49_155 * 4096 },
    // candle ignores the file's parameters for the residual of the first layer.
    Published { name: "rwkv7-0.1b", published: 191_084_544,
        loaded: rwkv7(65_536, 768, 12), difference: -(rwkv7_residual(768) as i64) },
    // The number of the file has its embeddings twice.
    Published { name: "starcoder", published: 15_819_446_272,
        loaded: starcoder(49_152, 8192, 6144, 40), difference: -(49_152 * 6144) },
    // candle's model has no pooler.
    Published { name: "xlm-roberta-base", published: 278_043_648,
        loaded: bert(250_002, 514, 1, 768, 3072, 12), difference: -(linear(768, 768) as i64) },
    // Gated, with biases except for those of the gate.
    Published { name: "jina-embeddings-v2-base-en", published: 137_368_320,
        loaded: bert(30_528, 0, 2, 768, 3072, 12) + 12 * (768 * 3072 - 3072),
        difference: -(linear(768, 768) as i64) },
    Published { name: "roberta-base", published: 124_645_632,
        loaded: bert(50_265, 514, 1, 768, 3072, 12), difference: -(linear(768, 768) as i64) },
    Published { name: "bert-base-uncased", published: 109_482_240,
        loaded: bert(30_522, 512, 2, 768, 3072, 12), difference: -(linear(768, 768) as i64) },
    // candle computes the positions of the encoder, so they are not parameters.
    Published { name: "whisper-large-v3", published: 1_543_490_560,
        loaded: whisper(51_866, 128, 1280, 32, 448), difference: -(1500 * 1280) },
    Published { name: "whisper-tiny", published: 37_760_640,
        loaded: whisper(51_865, 80, 384, 4, 448), difference: -(1500 * 384) },
];

#[test]
fn the_page_of_sources_lists_every_published_model() {
    let page = workspace().join("memcheck-estimate/configs/README.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows: BTreeMap<&str, &str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, rest)| (name, rest.split(" | ").nth(1).unwrap_or_default()))
        .collect();
    let ours: BTreeMap<&str, String> = PUBLISHED
        .iter()
        .map(|Published { name, published, .. }| (*name, exact(*published)))
        .collect();
    assert_eq!(rows.len(), ours.len());
    for (name, published) in ours {
        assert_eq!(rows.get(name), Some(&published.as_str()), "{name}");
        let file = workspace().join(format!("memcheck-estimate/configs/{name}.json"));
        assert!(file.exists(), "{name}");
    }
}

#[test]
#[ignore = "slow: just all"]
fn estimates_have_the_published_numbers_of_parameters() {
    for Published { name, published, loaded, difference } in PUBLISHED {
        assert_eq!(published.checked_add_signed(*difference), Some(*loaded), "{name}");
        // candle's Phi, Mixtral and Whisper mix element types, so they run in f32 only.
        let mixed = ["phi-2", "mixtral-8x7b-v0.1", "whisper-large-v3"].contains(name);
        let dtype: &[&str] =
            if mixed { &["--seq", "8", "--dtype", "f32"] } else { &["--seq", "8"] };
        let figures = match *name {
            // A longer prompt fails in candle, because several heads of keys are not contiguous.
            "based-360m" | "gemma-3-4b" => figures(name, &["--seq", "1"]),
            // candle reads the values of the router, which are zeros on the simulated device, so
            // the model is only loaded.
            "deepseek-v2-lite" => {
                let run = estimate(&config(name), dtype).exits(exit::NOT_MEASURED);
                run.json().swap_remove(0)
            }
            _ => figures(name, dtype),
        };
        let size = if figures["dtype"] == "f32" { 4 } else { 2 };
        assert_eq!(figures["parameters"], *loaded, "{name}");
        // candle loads the embeddings of this model a second time, as its head.
        let copied = if *name == "starcoder" { 49_152 * 6144 } else { 0 };
        assert_eq!(figures["weights"], (loaded + copied) * size, "{name}");
    }
}

#[test]
fn a_model_that_the_simulated_device_cannot_run_is_only_loaded() {
    let options = ["--seq", "8", "--device", "sim:h200"];
    let run = estimate(&config("deepseek-v2-lite"), &options).exits(exit::NOT_MEASURED);
    let lines = run.json();
    // The model did not run, so the report must not claim that it fits on a card.
    assert_eq!((lines.len(), &lines[0]["cards"]), (2, &serde_json::json!([])));
    assert_eq!(lines[0]["inference"], serde_json::Value::Null);
    let file = config("deepseek-v2-lite");
    let human = crate::fixture::memcheck(
        &crate::fixture::workspace(),
        &["estimate", "--config", &file, "--seq", "8"],
    );
    assert!(
        human.stdout.contains("not measured: candle's `deepseek_v2` reads"),
        "{}",
        human.stdout
    );
    // The message for a longer prompt of Gemma 3 must name the prompt that works.
    let gemma = estimate(&config("gemma-3-4b"), &["--seq", "8"]).exits(exit::NOT_MEASURED);
    gemma.prints("use --seq 1 to measure the weights");
}

#[test]
fn the_constant_state_of_rwkv_has_its_closed_formula() {
    let [short, long] = ["2", "64"].map(|seq| figures("rwkv7-0.1b", &["--seq", seq]));
    // In each of 12 layers, 12 heads of 64 x 64 in f32, and the last token twice in bf16.
    let state = 12 * (12 * 64 * 64 * 4 + 2 * 768 * 2);
    for figures in [&short, &long] {
        assert_eq!(figures["tables"], state);
        assert_eq!(figures["inference"]["cache"], 0);
        assert_eq!(figures["inference"]["logits"], 65_536 * 2);
    }
}
