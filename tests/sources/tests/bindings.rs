//! Generates the lists of CUDA's functions that are not written by hand: the tables of refused
//! functions of memcheck-sim, and the linker script of the simulated toolkit. `BINDINGS=write`
//! writes them; otherwise the test compares them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use memcheck_sources::cuda::{self, ABSENT};
use memcheck_sources::rust::{Function, declared};
use memcheck_sources::{folder, text, workspace};

/// A library whose functions return a status.
struct Library {
    /// Its module of cudarc, which is the name of the table.
    name: &'static str,
    /// The first line of the table's documentation.
    title: &'static str,
    /// The status of a refused call, with its name.
    code: u32,
    status: &'static str,
    /// The type that cudarc declares for it.
    returns: &'static str,
}

const LIBRARIES: [Library; 8] = [
    Library {
        name: "driver",
        title: "The driver API: graphs, virtual memory management, arrays, textures and more.",
        code: 801,
        status: "CUDA_ERROR_NOT_SUPPORTED",
        returns: "CUresult",
    },
    Library {
        name: "cublas",
        title: "cuBLAS: the functions that neither candle nor the safe API of cudarc calls.",
        code: 15,
        status: "CUBLAS_STATUS_NOT_SUPPORTED",
        returns: "cublasStatus_t",
    },
    Library {
        name: "cublaslt",
        title: "cuBLASLt: transforms of matrices, algorithms by number, groups, emulation and the log.",
        code: 15,
        status: "CUBLAS_STATUS_NOT_SUPPORTED",
        returns: "cublasStatus_t",
    },
    Library {
        name: "curand",
        title: "cuRAND: quasi-random numbers and distributions.",
        code: 999,
        status: "CURAND_STATUS_INTERNAL_ERROR",
        returns: "curandStatus_t",
    },
    Library {
        name: "nvrtc",
        title: "The run-time compiler.",
        code: 11,
        status: "NVRTC_ERROR_INTERNAL_ERROR",
        returns: "nvrtcResult",
    },
    Library {
        name: "runtime",
        title: "The runtime API: the functions that candle's C code does not call.",
        code: 801,
        status: "cudaErrorNotSupported",
        returns: "cudaError_t",
    },
    Library {
        name: "cudnn",
        title: "cuDNN (candle's feature `cudnn`).",
        code: 3000,
        status: "CUDNN_STATUS_NOT_SUPPORTED",
        returns: "cudnnStatus_t",
    },
    Library {
        name: "nccl",
        title: "NCCL (candle's feature `nccl`).",
        code: 3,
        status: "ncclInternalError",
        returns: "ncclResult_t",
    },
];

/// Launchers of candle-flash-attn and candle-flash-attn-v3, on which this workspace does not depend.
const FLASH: [&str; 2] = ["run_mha", "run_mha_v3"];

/// The functions for a build for the CPU.
const NO_DEVICE: &str = "memcheck-runtime/src/probe/no_device.rs";

const GENERATED: &str =
    "Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.";

/// The sources of the simulated device without the generated tables.
fn simulator() -> String {
    let mut folders = vec![workspace().join("memcheck-sim/src")];
    let mut sources = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.ends_with("unsupported") {
                continue;
            } else if path.is_dir() {
                folders.push(path);
            } else {
                sources.push_str(&text(&path));
            }
        }
    }
    sources
}

/// The functions that a source defines: a name with parameters that have types, which a call has
/// not, or after `fn`.
fn defined(source: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let brackets = source.match_indices('(');
    let names = brackets.filter_map(|(at, _)| {
        let before = &source[..at];
        let start = before.rfind(|c| !is_part(c)).map_or(0, |last| last + 1);
        let after = source[at + 1..].trim_start();
        let parameter = after.trim_start_matches(is_part);
        let is_typed = parameter.len() < after.len()
            && parameter.starts_with(':')
            && !parameter.starts_with("::");
        (is_typed || before[..start].ends_with("fn ")).then_some(&before[start..])
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// The refused functions of each table.
fn refused(simulated: &BTreeSet<&str>) -> BTreeMap<&'static str, Vec<String>> {
    let mut tables: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, (library, function)) in cuda::functions() {
        let is_absent = ABSENT.iter().any(|(absent, _)| *absent == name);
        if simulated.contains(name.as_str()) || is_absent {
            continue;
        }
        let row = LIBRARIES.iter().find(|row| row.name == library).expect(library);
        let table = match function.returns.as_deref() {
            // A caller ignores what a function without a result leaves in the register.
            None => library,
            Some(status) if status == row.returns => library,
            Some("*const ::core::ffi::c_char") => "texts",
            Some("usize") => "sizes",
            Some(other) => panic!(
                "{name} returns {other}: define it in memcheck-sim, or add a macro for this type \
                 to unsupported/mod.rs, or the name to ABSENT of tests/sources/src/cuda.rs"
            ),
        };
        tables.entry(table).or_default().push(name);
    }
    tables
}

/// The names in lines of up to 100 characters, as rustfmt would leave them.
fn wrapped(names: &[String]) -> String {
    let mut lines = vec!["   ".to_owned()];
    for name in names {
        if lines.last().is_some_and(|line| line.len() + 1 + name.len() > 100) {
            lines.push("   ".to_owned());
        }
        let last = lines.last_mut().expect("a line");
        last.push(' ');
        last.push_str(name);
    }
    lines.join("\n")
}

fn table(library: &Library, names: &[String]) -> String {
    let Library { title, code, status, .. } = library;
    format!(
        "//! {title}\n//!\n//! {GENERATED}\n//! cudarc binds these names, and the simulator does \
         not implement them. A call prints its name\n//! and returns `{status}`.\n\n\
         use crate::refused::unsupported;\n\nunsupported! {{ {code};\n{}\n}}\n",
        wrapped(names)
    )
}

/// The functions that return something else than a status.
fn others(tables: &BTreeMap<&str, Vec<String>>) -> String {
    let names = |table| wrapped(&tables[table]);
    format!(
        "//! The functions that return a text or a number.\n//!\n//! {GENERATED}\n\n\
         texts! {{\n{}\n}}\n\nsizes! {{\n{}\n}}\n",
        names("texts"),
        names("sizes")
    )
}

/// The function of memcheck-runtime that answers for a function of CUDA on a machine without a GPU.
fn answer_without_gpu(name: &str, library: &str, function: &Function) -> String {
    let row = LIBRARIES.iter().find(|row| row.name == library).expect(library);
    let answer = match (name, function.returns.as_deref()) {
        ("cuGetErrorName", _) => "error_name",
        ("cuGetErrorString", _) => "error_text",
        // A caller ignores what a function without a result leaves in the register.
        (_, None) => library,
        (_, Some(status)) if status == row.returns => library,
        (_, Some("*const ::core::ffi::c_char")) => "text",
        (_, Some("usize")) => "number",
        (_, Some(other)) => panic!("{name} returns {other}: add an answer to {NO_DEVICE}"),
    };
    format!("memcheck_no_device_{answer}")
}

fn linker_script(simulated: &BTreeSet<&str>) -> String {
    let launchers = declared(&text(&folder("candle-kernels").join("src/ffi.rs")));
    let mut launchers: BTreeSet<String> = launchers.into_iter().map(|it| it.name).collect();
    for name in FLASH {
        assert!(simulated.contains(name), "memcheck-sim does not define {name}");
        launchers.insert(name.to_owned());
    }
    // The variants for the per-thread default stream, which nvcc and not cudarc calls.
    let per_thread = simulated.iter().filter(|it| it.starts_with("cu") && it.ends_with("_ptsz"));
    let mut answers: BTreeMap<String, String> = per_thread
        .map(|name| {
            let library = if name.starts_with("cuda") { "runtime" } else { "driver" };
            ((*name).to_owned(), format!("memcheck_no_device_{library}"))
        })
        .collect();
    let is_absent = |name: &str| ABSENT.iter().any(|(absent, _)| *absent == name);
    let functions = cuda::functions().into_iter().filter(|(name, _)| !is_absent(name));
    answers.extend(functions.map(|(name, (library, function))| {
        let answer = answer_without_gpu(&name, library, &function);
        (name, answer)
    }));
    let launcher = || "memcheck_no_device_launcher".to_owned();
    answers.insert("memcheck_launch".to_owned(), launcher());
    let prefixed = |name: &String| format!("memcheck_sim_{name}");
    answers.extend(launchers.iter().map(|name| (prefixed(name), launcher())));
    let runtime = text(&workspace().join(NO_DEVICE));
    let used: BTreeSet<&String> = answers.values().collect();
    for answer in &used {
        assert!(runtime.contains(&format!("fn {answer}(")), "{NO_DEVICE} has no {answer}");
    }
    // A linker can evaluate a line at once, so that the names that other lines use come first.
    let absent = used.iter().map(|answer| format!("PROVIDE({answer} = 0);\n"));
    let provided = answers.iter().map(|(name, answer)| format!("PROVIDE({name} = {answer});\n"));
    let forwarded = launchers.iter().map(|name| format!("PROVIDE({name} = {});\n", prefixed(name)));
    let provided: String = absent.chain(provided).chain(forwarded).collect();
    format!(
        "/* The simulated CUDA toolkit's libcuda: a linker script in place of a library.\n   \
         {GENERATED}\n\n   \
         memcheck-sim and memcheck-runtime, inside the binary, define these functions.\n   \
         In a build for the CPU, which does not contain memcheck-sim, they are those of\n   \
         memcheck-runtime that answer as on a machine without a GPU.\n   \
         A test executable of the same package that does not name memcheck-runtime is\n   \
         linked without either, and carries no memory test: there the names are given\n   \
         an address that cannot be called. PROVIDE steps back where a name is defined:\n   \
         a launcher of candle is that of memcheck-sim, unless the program defines one\n   \
         of the same name. */\n\
         {provided}"
    )
}

fn generated() -> BTreeMap<PathBuf, String> {
    let source = simulator();
    let simulated = defined(&source);
    let tables = refused(&simulated);
    let folder = workspace().join("memcheck-sim/src/unsupported");
    let files = LIBRARIES.iter().map(|library| {
        let names = tables.get(library.name).map_or(&[][..], Vec::as_slice);
        (folder.join(format!("{}.rs", library.name)), table(library, names))
    });
    let script = workspace().join("cargo-memcheck/toolkit/libcuda.ld");
    let more = [(folder.join("others.rs"), others(&tables)), (script, linker_script(&simulated))];
    files.chain(more).collect()
}

#[test]
fn the_lists_of_functions_are_those_of_cudarc() {
    let write = std::env::var_os("BINDINGS").is_some_and(|value| value == "write");
    for (path, expected) in generated() {
        if write {
            std::fs::write(&path, expected).expect("the file is written");
            continue;
        }
        let (committed, expected) = (text(&path), expected);
        let words = |text: &str| -> BTreeSet<String> {
            text.split_whitespace().map(str::to_owned).collect()
        };
        let (old, new) = (words(&committed), words(&expected));
        assert!(
            committed == expected,
            "{} is not current; missing: {:?}; superfluous: {:?}. `just bindings` writes it",
            path.display(),
            new.difference(&old).collect::<Vec<_>>(),
            old.difference(&new).collect::<Vec<_>>()
        );
    }
}

#[test]
fn definitions_are_distinguished_from_calls() {
    let source = "fn cuA() { stream::cuB(made, 0) } ffi::driver: cuC(\n  dptr: *mut u64) {}
        forwards! { cuD(it: Handle) => stream::cuE(it); } cuF(Kind::A); cuG();";
    assert_eq!(Vec::from_iter(defined(source)), ["cuA", "cuC", "cuD"]);
}
