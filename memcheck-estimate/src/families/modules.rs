//! Classifies every module of candle-transformers. The tests fail if a new version adds a module,
//! or if a module that could not be read becomes readable.

use std::collections::BTreeSet;

use super::architectures;
use crate::candle_sources::{modules, source};

#[derive(Debug, PartialEq)]
enum Support {
    /// The module implements these architectures.
    Known(&'static [&'static str]),
    /// The module's files have the type of this architecture and are estimated as such.
    Like(&'static str),
    /// The module sets its sizes in code, so no type of it can be read from a file.
    InCode,
    /// The module needs an image, or data computed from one.
    Images,
    /// The module reads or generates sound.
    Sound,
    /// The module is a part of other modules and not a model.
    Part,
}

use Support::{Images, InCode, Known, Like, Part, Sound};

#[rustfmt::skip]
const MODULES: &[(&str, Support)] = &[
    ("based", Known(&["based"])),
    ("beit", Images),
    ("bert", Known(&["bert"])),
    ("bigcode", Known(&["gpt_bigcode"])),
    ("blip", Images),
    ("blip_text", Images),
    ("chatglm", InCode),
    ("chinese_clip", Images),
    ("clip", Images),
    ("codegeex4_9b", Like("chatglm")),
    ("colpali", Images),
    ("convmixer", Images),
    ("convnext", Images),
    ("csm", Sound),
    ("dac", Sound),
    ("debertav2", Known(&["deberta-v2"])),
    ("deepseek2", Known(&["deepseek_v2"])),
    ("depth_anything_v2", Images),
    ("dinov2", Images),
    ("dinov2reg4", Images),
    ("distilbert", Known(&["distilbert"])),
    ("efficientnet", Images),
    ("efficientvit", Images),
    ("encodec", Sound),
    ("eva2", Images),
    ("falcon", Known(&["falcon"])),
    ("fastvit", Images),
    ("flux", Images),
    ("gemma", Known(&["gemma"])),
    ("gemma2", Known(&["gemma2"])),
    ("gemma3", Known(&["gemma3", "gemma3_text"])),
    ("gemma4", Known(&["gemma4", "gemma4_text"])),
    ("glm4", Known(&["chatglm"])),
    ("glm4_new", Known(&["glm4"])),
    ("granite", Known(&["granite"])),
    ("granitemoehybrid", Known(&["granitemoehybrid"])),
    ("helium", Known(&["helium"])),
    ("hiera", Images),
    ("jina_bert", Known(&["jina-bert"])),
    ("lfm2", Known(&["lfm2"])),
    ("llama", Known(&["llama"])),
    ("llama2_c", InCode),
    ("llama2_c_weights", Part),
    ("llava", Images),
    ("mamba", Known(&["mamba"])),
    ("mamba2", Known(&["mamba2"])),
    ("marian", Known(&["marian"])),
    ("metavoice", Sound),
    ("mimi", Sound),
    ("mistral", Known(&["mistral"])),
    ("mixformer", Known(&["mixformer-sequential", "phi-msft"])),
    ("mixtral", Known(&["mixtral"])),
    ("mmdit", Images),
    ("mobileclip", Images),
    ("mobilenetv4", Images),
    ("mobileone", Images),
    ("modernbert", Known(&["modernbert"])),
    ("moondream", Images),
    ("mpt", InCode),
    ("nomic_bert", Known(&["nomic_bert"])),
    // The module reads Mistral's type, but sets the values of that type in code.
    ("nvembed_v2", InCode),
    ("olmo", Known(&["olmo"])),
    ("olmo2", Known(&["olmo2"])),
    ("openclip", Images),
    ("paddleocr_vl", Images),
    ("paligemma", Images),
    ("parler_tts", Sound),
    // The module has a configuration, but no model reads it.
    ("persimmon", Part),
    ("phi", Known(&["phi"])),
    ("phi3", Known(&["phi3"])),
    ("pixtral", Images),
    ("qwen2", Known(&["qwen2"])),
    ("qwen2_moe", Known(&["qwen2_moe"])),
    ("qwen3", Known(&["qwen3"])),
    ("qwen3_moe", Known(&["qwen3_moe"])),
    ("qwen3_vl", Images),
    ("recurrent_gemma", Known(&["recurrent_gemma"])),
    ("repvgg", Images),
    ("resnet", Images),
    ("rwkv_v5", Known(&["rwkv5"])),
    ("rwkv_v6", Known(&["rwkv6"])),
    ("rwkv_v7", Known(&["rwkv7"])),
    ("segformer", Images),
    ("segment_anything", Images),
    ("siglip", Images),
    ("smol", Known(&["smollm3"])),
    ("snac", Sound),
    ("stable_diffusion", Images),
    ("stable_lm", Known(&["stablelm", "stablelm_epoch"])),
    ("starcoder2", Known(&["starcoder2"])),
    ("stella_en_v5", Known(&["new", "stella_en_v5"])),
    ("t5", Known(&["mt5", "t5", "umt5"])),
    ("trocr", Images),
    ("vgg", Images),
    ("vit", Images),
    ("voxtral", Sound),
    // Whisper's prompt is text that follows 30 seconds of sound.
    ("whisper", Known(&["whisper"])),
    ("with_tracing", Part),
    ("wuerstchen", Images),
    ("xlm_roberta", Known(&["camembert", "roberta", "xlm-roberta"])),
    ("yi", InCode),
    // The text encoder of Z-Image is a Qwen 3.
    ("z_image", Images),
];

#[test]
fn every_module_of_candle_is_classified() {
    let present: BTreeSet<String> =
        modules().into_iter().filter(|name| !name.starts_with("quantized_")).collect();
    let classified: BTreeSet<String> =
        MODULES.iter().map(|&(module, _)| module.to_owned()).collect();
    assert_eq!(present, classified);
}

#[test]
fn every_architecture_belongs_to_one_module() {
    let mut named: Vec<&str> = MODULES
        .iter()
        .flat_map(|(_, support)| match support {
            Known(names) => names.iter().copied(),
            _ => [].iter().copied(),
        })
        .collect();
    named.sort_unstable();
    assert_eq!(named, architectures());
    for (module, support) in MODULES {
        if let Like(name) = support {
            assert!(named.contains(name), "{module}");
        }
    }
}

#[test]
fn modules_with_sizes_in_code_have_no_type_to_parse() {
    for (module, _) in MODULES.iter().filter(|(_, support)| *support == InCode) {
        assert!(!source(module).contains("Deserialize"), "{module} can be read now");
    }
    // BigCode's type cannot be read either, so the estimator has its own type for it.
    let read = |module| source(module).contains("Deserialize");
    assert!(read("llama") && read("smol") && !read("bigcode"));
}
