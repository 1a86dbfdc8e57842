//! Compares the launchers with the declarations by which candle-kernels calls them.

use std::collections::BTreeMap;

use memcheck_sources::rust::declared;
use memcheck_sources::{folder, text};

use super::{
    ALIGN_TYPES, EXPORTS, MMQ_QUANTIZE_TYPES, MMQ_TYPES, MMVQ_QUANTIZE_TYPES, MMVQ_TYPES,
    OTHERS_TYPES,
};

/// Launchers of candle that the simulated device does not have, with the reason.
const NOT_SIMULATED: &[(&str, &str)] = &[];

/// The classes of the arguments of each function.
type Launchers = BTreeMap<String, Result<Vec<Class>, String>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A pointer, in the simulator the address of device memory.
    Pointer,
    /// A stream, which candle-kernels declares as a pointer or as an integer of its width.
    Stream,
    Int,
    Long,
    Bool,
}

/// The declarations of candle.
fn candle(source: &str) -> Launchers {
    let class = |name: &str, ty: &str| match ty {
        "*mut c_void" | "i64" if name == "stream" => Ok(Class::Stream),
        "i32" => Ok(Class::Int),
        "i64" => Ok(Class::Long),
        "bool" => Ok(Class::Bool),
        _ if ty.starts_with('*') => Ok(Class::Pointer),
        _ => Err(format!("the type {ty} is not known")),
    };
    let functions = declared(source).into_iter().map(|it| {
        let classes = it.arguments.iter().map(|argument| class(&argument.name, &argument.ty));
        (it.name, classes.collect())
    });
    functions.collect()
}

/// The launchers of the simulated device.
fn simulated() -> Launchers {
    // Macros print types with spaces.
    let class = |ty: &&str| match &*ty.replace(' ', "") {
        "u64" => Ok(Class::Pointer),
        "*mutc_void" => Ok(Class::Stream),
        "c_int" => Ok(Class::Int),
        "c_longlong" => Ok(Class::Long),
        "bool" => Ok(Class::Bool),
        ty => Err(format!("the type {ty} is not known")),
    };
    let tables =
        [OTHERS_TYPES, MMVQ_TYPES, MMVQ_QUANTIZE_TYPES, MMQ_TYPES, MMQ_QUANTIZE_TYPES, ALIGN_TYPES];
    let launchers = tables.into_iter().flatten();
    launchers.map(|(name, types)| ((*name).to_owned(), types.iter().map(class).collect())).collect()
}

fn differences(candle: &Launchers, simulated: &Launchers) -> Vec<String> {
    let left_out = |name: &&String| NOT_SIMULATED.iter().any(|(known, _)| known == name);
    let names = candle.keys().chain(simulated.keys().filter(|name| !candle.contains_key(*name)));
    let differing = names.filter(|name| candle.get(*name) != simulated.get(*name));
    differing
        .filter(|name| !left_out(name))
        .map(|name| {
            format!("{name}: candle {:?}, simulated {:?}", candle.get(name), simulated.get(name))
        })
        .collect()
}

fn declarations() -> String {
    text(&folder("candle-kernels").join("src/ffi.rs"))
}

#[test]
fn the_launchers_are_those_of_candle_with_their_arguments() {
    let (candle, simulated) = (candle(&declarations()), simulated());
    let differences = differences(&candle, &simulated);
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(candle.values().all(Result::is_ok), "{candle:?}");
    for (name, reason) in NOT_SIMULATED {
        assert!(candle.contains_key(*name) && !simulated.contains_key(*name), "{name}: {reason}");
    }
    let exported = EXPORTS.iter().flat_map(|table| table.iter()).count();
    assert_eq!(exported, simulated.len());
}

/// Each change of a copy of candle's declarations is found.
#[test]
fn changed_declarations_differ_from_the_launchers() {
    let source = declarations();
    for (from, to, found) in [
        ("fn moe_gemm_gguf(", "fn moe_gemm_gguf_new(", 2),
        ("fn launch_mmvq_gguf_q4_0_f32_plain(", "fn launch_mmvq_gguf_q4_0_f64_plain(", 2),
        ("        is_prefill: bool,\n", "", 1),
        ("        is_prefill: bool,\n", "        is_prefill: i32,\n", 1),
        ("        input: *const f32, ", "        input: f32, ", 1),
        ("        input: *const f32, ", "        input: i64, ", 1),
    ] {
        let changed = source.replacen(from, to, 1);
        assert_ne!(changed, source, "{from}");
        let differences = differences(&candle(&changed), &simulated());
        assert_eq!(differences.len(), found, "{from} to {to}: {differences:#?}");
    }
}
