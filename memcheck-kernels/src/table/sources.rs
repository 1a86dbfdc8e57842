//! Compares the table with the sources of candle-kernels, of the version in Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use memcheck_sources::c::{self, Argument};
use memcheck_sources::{folder, text};

use super::{Edition, Kernel, Kind, MODULES, all, known_sources};

/// Kernels of candle that the table leaves out, with the reason.
const NOT_SIMULATED: &[(&str, &str)] = &[];

/// Sources that candle's build script compiles into a library instead of a module. Their launchers
/// are in memcheck-sim (`kernels.rs`), where another test compares them.
const LIBRARY: &str = r#".exclude(&["moe_*.cu", "mmvq_gguf.cu", "mmq_*.cu"])"#;

type Kernels = BTreeMap<String, Vec<Argument>>;

fn sources() -> PathBuf {
    folder("candle-kernels").join("src")
}

/// The kernels of a source text, on a card with this compute capability.
fn kernels_of(source: &str, capability: u8) -> Result<Kernels, String> {
    kernels_in(&sources(), source, capability)
}

/// The kernels of a source text with the headers of a folder.
fn kernels_in(folder: &Path, source: &str, capability: u8) -> Result<Kernels, String> {
    let functions = c::functions(&c::expand(source, folder, capability.into())?)?;
    Ok(functions.into_iter().map(|it| (it.name, it.arguments)).collect())
}

/// The kernels of the table in a module.
fn table(stem: &str, capability: u8) -> BTreeMap<String, Kernel> {
    let rows = super::module(stem).unwrap_or_default().iter();
    let variants = rows.flat_map(|row| row.kinds.iter().map(move |variant| (row, variant)));
    let present = variants.filter(|(_, (_, from))| *from <= capability);
    present
        .map(|(row, &(kind, _))| (format!("{}{}", row.root, kind.suffix()), Kernel { row, kind }))
        .collect()
}

/// The differences between candle's kernels of a module and those of the table, which leaves some
/// out.
fn differences(
    candle: &Kernels,
    table: &BTreeMap<String, Kernel>,
    left_out: &[(&str, &str)],
) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, arguments) in candle {
        let left_out = left_out.iter().any(|(known, _)| known == name);
        match table.get(name) {
            Some(_) if left_out => {
                differences.push(format!("{name} is left out, but it is in the table"))
            }
            None if !left_out => differences.push(format!("{name} is not in the table")),
            Some(kernel) if !fits(*kernel, arguments) => differences.push(format!(
                "{name} has the arguments {arguments:?}, and in the table {:?}",
                kernel.row.arguments
            )),
            _ => {}
        }
    }
    let unknown = table.keys().filter(|name| !candle.contains_key(*name));
    differences.extend(unknown.map(|name| format!("candle has no {name}")));
    differences
}

fn fits(kernel: Kernel, arguments: &[Argument]) -> bool {
    let letters: Vec<char> = kernel.row.arguments.chars().collect();
    letters.len() == arguments.len()
        && letters.iter().zip(arguments).all(|(letter, argument)| match argument {
            Argument::Pointer { is_const } => *letter == if *is_const { 'p' } else { 'w' },
            Argument::Scalar(name) => scalars(*letter, kernel.kind).contains(&name.as_str()),
        })
}

/// The types in C of a scalar with this letter.
fn scalars(letter: char, kind: Kind) -> &'static [&'static str] {
    match letter {
        's' => &["size_t"],
        'l' => &["int64_t"],
        'i' => &["int", "int32_t"],
        'u' => &["unsigned", "unsigned int", "uint32_t"],
        'f' => &["float"],
        'd' => &["double"],
        'b' => &["bool"],
        't' => match kind {
            Kind::U8 => &["uint8_t"],
            Kind::U32 => &["uint32_t"],
            Kind::I16 => &["int16_t"],
            Kind::I32 => &["int32_t"],
            Kind::I64 => &["int64_t"],
            Kind::Bf16 => &["__nv_bfloat16"],
            Kind::F16 => &["__half"],
            Kind::F32 => &["float"],
            Kind::F64 => &["double"],
            Kind::F8 | Kind::Fp8 => &["__nv_fp8_e4m3"],
            Kind::Untyped => &[],
        },
        _ => &[],
    }
}

/// The stems of the sources that become modules.
fn stems() -> BTreeSet<String> {
    let build = text(&folder("candle-kernels").join("build.rs"));
    assert!(build.contains(LIBRARY), "candle compiles other sources into its library: {build}");
    let files = std::fs::read_dir(sources()).expect("the sources").map(|file| file.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "cu"));
    let stems = sources.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let in_library = |stem: &String| stem.starts_with("moe_") || stem.starts_with("mmq_");
    stems.filter(|stem| stem != "mmvq_gguf" && !in_library(stem)).collect()
}

/// The compute capabilities from 7.5 on at which the sources have other kernels.
fn capabilities(source: &str) -> BTreeSet<u8> {
    let compared = source.split("__CUDA_ARCH__").skip(1).filter_map(|rest| {
        let number = rest.trim_start_matches([' ', '<', '>', '=']);
        let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok().and_then(|number| u8::try_from(number / 10).ok())
    });
    compared.filter(|capability| *capability > 75).chain([75]).collect()
}

#[test]
fn the_table_has_the_kernels_of_candle_with_their_arguments() {
    let modules: BTreeSet<String> = MODULES.iter().map(|(stem, _)| (*stem).to_owned()).collect();
    assert_eq!(stems(), modules);
    let mut compared = BTreeSet::new();
    for stem in &modules {
        let source = text(&sources().join(format!("{stem}.cu")));
        for capability in capabilities(&source) {
            let candle = kernels_of(&source, capability).expect(stem);
            let differences = differences(&candle, &table(stem, capability), NOT_SIMULATED);
            assert!(differences.is_empty(), "{stem}, capability {capability}: {differences:#?}");
            compared.extend(candle.into_keys());
        }
    }
    for (name, reason) in NOT_SIMULATED {
        assert!(!reason.is_empty(), "{name} has no reason");
        assert!(compared.contains(*name), "candle has no {name}, so that it cannot be left out");
    }
    let ours = all().map(|row| row.kinds.len()).sum::<usize>() + NOT_SIMULATED.len();
    assert_eq!(compared.len(), ours);
}

/// Those of the versions in cargo's registry.
#[test]
fn each_edition_has_the_kernels_of_its_versions() {
    let mut compared = 0;
    for (version, folder) in known_sources::versions("candle-kernels").into_values() {
        let Some(edition) = Edition::of(&version) else { continue };
        let folder = folder.join("src");
        for (stem, rows) in MODULES {
            let source = text(&folder.join(format!("{stem}.cu")));
            let candle = kernels_in(&folder, &source, 90).expect(stem);
            let mut expected = table(stem, 90);
            expected.retain(|name, kernel| {
                let found = edition.find(rows, name, 90);
                let is_same = |found: &Kernel| {
                    (found.row.root, found.kind, found.row.arguments)
                        == (kernel.row.root, kernel.kind, kernel.row.arguments)
                };
                assert!(found.as_ref().is_none_or(is_same), "{found:?} instead of {name}");
                found.is_some()
            });
            let differences = differences(&candle, &expected, NOT_SIMULATED);
            assert!(differences.is_empty(), "{version}, {stem}: {differences:#?}");
            compared += candle.len();
        }
    }
    assert!(compared >= all().map(|row| row.kinds.len()).sum::<usize>());
}

/// Each change of a copy of candle's source is found.
#[test]
fn changed_sources_differ_from_the_table() {
    let source = text(&sources().join("affine.cu"));
    let changed = |from: &str, to: &str| {
        assert!(source.contains(from), "{from}");
        kernels_of(&source.replacen(from, to, 1), 90)
            .map(|candle| differences(&candle, &table("affine", 90), &[]))
    };
    assert_eq!(changed("affine_f32", "affine_f32"), Ok(Vec::new()));
    let renamed = ["affine_half is not in the table", "candle has no affine_f16"];
    assert_eq!(changed("affine_f16", "affine_half").unwrap(), renamed);
    assert_eq!(
        changed("AFFINE_OP(double, affine_f64, x * mul + add)", "").unwrap(),
        ["candle has no affine_f64"]
    );
    // One macro defines all ten kernels.
    // One macro defines all ten kernels.
    for (from, to) in [
        ("    const TYPENAME mul, \\\n", ""),
        ("const TYPENAME mul,", "const float mul,"),
        ("const size_t *info,", "const size_t info,"),
        ("const TYPENAME *inp,", "TYPENAME *inp,"),
        ("const size_t num_dims,", "const int num_dims,"),
    ] {
        let found = changed(from, to).unwrap();
        assert!(found.len() >= 9 && found[0].contains("has the arguments"), "{from}: {found:?}");
    }
    let error = changed("AFFINE_OP(float, affine_f32", "NEW_OP(float, affine_f32").unwrap_err();
    assert!(error.contains("the macro NEW_OP is not defined"), "{error}");
    // A kernel must be in the table, or on the list of those that are left out.
    let candle = kernels_of(&source.replacen("affine_f16", "affine_half", 1), 90).unwrap();
    let found = differences(&candle, &table("affine", 90), &[("affine_half", "a reason")]);
    assert_eq!(found, ["candle has no affine_f16"]);
    let found = differences(&candle, &table("affine", 90), &[("affine_f32", "a reason")]);
    assert!(found.contains(&"affine_f32 is left out, but it is in the table".to_owned()));
    // A new capability is found, and so are the kernels that need it.
    let newer = source.replacen(">= 800", ">= 1000", 1);
    assert_eq!(Vec::from_iter(capabilities(&newer)), [75, 89, 100]);
    let candle = kernels_of(&newer, 89).unwrap();
    assert_eq!(differences(&candle, &table("affine", 89), &[]), ["candle has no affine_bf16"]);
}

#[test]
fn every_name_of_the_table_occurs_once() {
    let names =
        all().flat_map(|row| row.kinds.iter().map(|it| format!("{}{}", row.root, it.0.suffix())));
    let names: Vec<String> = names.collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
