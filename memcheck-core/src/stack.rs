//! Call stacks as people read them: whose code a frame is, which frames are
//! worth showing, and which operation of candle they are.
//!
//! Pure: names in, names out. Addresses are resolved elsewhere.

use serde::{Deserialize, Serialize};

/// One function call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function, without the compiler's hash and type arguments.
    pub function: String,
    /// Its source file, as the compiler was given it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
}

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The program under test.
    User,
    /// candle-core, candle-nn, candle-transformers and their kin.
    Candle,
    /// What carries calls without meaning anything by them: allocator, std,
    /// tracing, rayon, the harness, this tool.
    Plumbing,
    /// Any other library.
    Library,
}

/// Crates that are plumbing.
const PLUMBING: &[&str] = &[
    "std",
    "core",
    "alloc",
    "test",
    "__rustc",
    "hashbrown",
    "memcheck_runtime",
    "memcheck_core",
    "memcheck_sim",
    "tracing",
    "tracing_core",
    "tracing_subscriber",
    "rayon",
    "rayon_core",
    "crossbeam_deque",
    "crossbeam_epoch",
    "crossbeam_utils",
    "cudarc",
    "gemm",
    "gemm_common",
    "gemm_f32",
    "gemm_f64",
    "gemm_f16",
    "dyn_stack",
    "anyhow",
    "libc",
    "pulp",
    "half",
];

impl Frame {
    /// The crate of the function: of its type, where it is a method of a trait;
    /// of the trait, where the type has none (`<T as alloc::vec::SpecFromElem>`).
    pub fn krate(&self) -> &str {
        let of_trait = self.function.strip_prefix('<').and_then(|inner| inner.split_once(" as "));
        let name = match of_trait {
            Some((of_type, of_trait)) if !of_type.contains("::") => of_trait,
            _ => &self.function,
        };
        let name = name.trim_start_matches(['<', '&', '*', '(', '[']);
        let name = name.strip_prefix("dyn ").unwrap_or(name);
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        &name[..end]
    }

    /// Whose code it is. The source file tells libraries from the program; a
    /// frame without one goes by its crate alone.
    pub fn owner(&self) -> Owner {
        let krate = self.krate();
        let has_path = has_path(&self.function);
        if krate.starts_with("candle") && has_path {
            return Owner::Candle;
        }
        if has_path && PLUMBING.contains(&krate) {
            return Owner::Plumbing;
        }
        // A closure or a generic of the standard library that was compiled
        // into the program bears the program's crate, but not its files.
        match self.file.as_deref() {
            Some(file) if is_std(file) => Owner::Plumbing,
            Some(file) if is_library(file) => Owner::Library,
            Some(_) => Owner::User,
            None if has_path => Owner::User,
            // The C runtime, the allocator's shims, the driver.
            None => Owner::Plumbing,
        }
    }

    /// The function without its crate's inner modules: `Tensor::matmul`.
    pub fn short(&self) -> String {
        let plain = plain(&self.function);
        let segments: Vec<&str> =
            plain.split("::").filter(|segment| !is_closure(segment)).collect();
        match segments.as_slice() {
            [] => plain.clone(),
            [.., owner, method] if owner.starts_with(char::is_uppercase) => {
                format!("{owner}::{method}")
            }
            [.., method] => (*method).to_owned(),
        }
    }

    /// The function without type arguments and the trait it is of.
    pub fn path(&self) -> String {
        plain(&self.function)
    }

    /// `file:line`, where known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        Some(self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }
}

/// Whether a function is named with its path, and not by its bare name.
pub fn has_path(function: &str) -> bool {
    function.starts_with('<') || function.split('<').next().is_some_and(|name| name.contains("::"))
}

/// Crate and module of a library's source file, by where it lies:
/// `candle_core::tensor`; `None` for a file of the program.
pub fn module_of(file: &str) -> Option<String> {
    let (krate, path) = if let Some((_, rest)) = file.split_once("/registry/src/") {
        let (folder, path) = rest.split_once('/')?.1.split_once("/src/")?;
        (folder.rsplit_once('-').map_or(folder, |(name, _)| name), path)
    } else {
        let (_, rest) = file.split_once("/library/").filter(|_| is_std(file))?;
        rest.split_once("/src/")?
    };
    let modules = path
        .trim_end_matches(".rs")
        .split('/')
        .filter(|module| !matches!(*module, "mod" | "lib" | "main"));
    let krate = krate.replace('-', "_");
    Some(std::iter::once(krate.as_str()).chain(modules).collect::<Vec<_>>().join("::"))
}

fn is_std(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/lib/rustlib/src/")
}

fn is_library(file: &str) -> bool {
    file.contains("/registry/src/") || file.contains("/.cargo/git/")
}

/// A function's path without `<T as Trait>`, type arguments and closures'
/// numbers: `<candle_core::tensor::Tensor as core::ops::Add>::add` becomes
/// `candle_core::tensor::Tensor::add`.
fn plain(function: &str) -> String {
    let mut text = function.to_owned();
    if let Some(inner) = text.strip_prefix('<')
        && let Some((owner, rest)) = split_qualified(inner)
    {
        let owner = owner.split(" as ").next().unwrap_or(owner).trim_start_matches('&');
        text = format!("{owner}{rest}");
    }
    let mut depth = 0u32;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.replace("::::", "::").trim_end_matches("::").to_owned()
}

/// `{closure#0}`, `{{closure}}`.
fn is_closure(segment: &str) -> bool {
    segment.trim_start_matches('{').starts_with("closure")
}

/// `A as B>::rest` at the matching bracket.
fn split_qualified(inner: &str) -> Option<(&str, &str)> {
    let mut depth = 1u32;
    for (at, c) in inner.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
    }
    None
}

/// A call stack without plumbing, the innermost frame first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    /// The frames.
    pub frames: Vec<Frame>,
}

/// Functions of candle that every operation comes through on its way to
/// memory, or that wrap one: not the operation.
const NOT_OPERATIONS: &[&str] = &[
    "from_storage",
    "storage",
    "storage_mut",
    "storage_and_layout",
    "device",
    "apply_op1",
    "apply_op2",
    "apply_op3",
    "apply_op1_no_bwd",
    "apply_op2_no_bwd",
    "apply_op3_no_bwd",
    "apply_op1_arc",
    "apply_op2_arc",
    "apply_op3_arc",
    "clone",
    "cat0",
    "cat_contiguous",
];

/// What candle calls the forward pass of an operation with a kernel of its own.
const KERNELS: [&str; 3] = ["cpu_fwd", "cuda_fwd", "metal_fwd"];

/// `SoftmaxLastDim` as a function is named: `softmax_last_dim`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (at, c) in name.char_indices() {
        if c.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// Whose methods are operations: types, and the modules of those that were
/// inlined, of which line tables know no type.
const OPERANDS: [&str; 8] =
    ["Tensor", "QMatMul", "QTensor", "Var", "tensor", "tensor_cat", "quantized", "variable"];

impl Stack {
    /// Keeps the frames of the program, candle and libraries. Frames of the
    /// harness and whatever called the test stand outside the outermost frame
    /// of the program and go too.
    pub fn trimmed(frames: impl IntoIterator<Item = Frame>) -> Self {
        let mut frames: Vec<Frame> =
            frames.into_iter().filter(|frame| frame.owner() != Owner::Plumbing).collect();
        // Inlining and closures repeat a place: once is enough.
        frames.dedup_by(|a, b| a.place().is_some() && a.place() == b.place());
        Self { frames }
    }

    /// The innermost frame of the program: the line to look at.
    pub fn user(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.owner() == Owner::User)
    }

    /// The operation of candle that allocated: the innermost method of
    /// `Tensor`, or the function of `candle_nn::ops` around it.
    pub fn operation(&self) -> Option<String> {
        let candle = || {
            self.frames
                .iter()
                .take_while(|frame| frame.owner() != Owner::User)
                .filter(|frame| frame.owner() == Owner::Candle)
        };
        let named = |frame: &Frame| {
            let plain = plain(&frame.function);
            let mut segments = plain.rsplit("::").filter(|part| !is_closure(part));
            let method = segments.next()?.to_owned();
            let owner = segments.next().unwrap_or("").to_owned();
            Some((owner, method))
        };
        // Functions of candle-nn that are made of several operations, or of a
        // kernel of their own; `f` is what such a kernel is written in.
        let of_nn = candle()
            .filter_map(named)
            .filter(|(owner, method)| {
                matches!(owner.as_str(), "ops" | "rotary_emb")
                    && method != "f"
                    && !KERNELS.contains(&method.as_str())
            })
            .last();
        // A kernel of its own whose public function leaves no frame behind.
        let of_kernel = || {
            candle().filter_map(named).find_map(|(owner, method)| {
                (KERNELS.contains(&method.as_str()) && owner.starts_with(char::is_uppercase))
                    .then(|| (owner.clone(), snake_case(&owner)))
            })
        };
        let of_tensor = || {
            candle().filter_map(named).find(|(owner, method)| {
                OPERANDS.contains(&owner.as_str())
                    && !method.ends_with("_impl")
                    && !NOT_OPERATIONS.contains(&method.as_str())
            })
        };
        // A public method that only calls on leaves no frame behind: its inner
        // one has its name.
        let of_inner = || {
            let inner = |(owner, method): (String, String)| {
                let method = method.strip_suffix("_impl")?.to_owned();
                OPERANDS.contains(&owner.as_str()).then_some((owner, method))
            };
            candle().filter_map(named).filter_map(inner).last()
        };
        let (_, method) = of_nn.or_else(of_kernel).or_else(of_tensor).or_else(of_inner)?;
        Some(if self.is_backward() && method != "backward" {
            format!("{method} (backward)")
        } else {
            method
        })
    }

    /// Whether it was allocated on behalf of `Tensor::backward`.
    pub fn is_backward(&self) -> bool {
        self.calls("candle_core::backprop::")
    }

    /// Whether it was allocated on behalf of an optimizer's step.
    pub fn is_optimizer(&self) -> bool {
        self.calls("candle_nn::optim::")
    }

    /// Whether a function whose path starts with `prefix` is on the stack.
    pub fn calls(&self, prefix: &str) -> bool {
        self.frames.iter().any(|frame| plain(&frame.function).starts_with(prefix))
    }

    /// What stacks are put in order by, the same in every run.
    pub fn sorted_by(&self) -> Vec<(&str, Option<&str>, Option<u32>)> {
        self.frames
            .iter()
            .map(|frame| (frame.function.as_str(), frame.file.as_deref(), frame.line))
            .collect()
    }

    /// Whether any frame has a line: without line tables none has.
    pub fn has_lines(&self) -> bool {
        self.frames.iter().any(|frame| frame.line.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str) -> Frame {
        let file = (!file.is_empty()).then(|| file.to_owned());
        Frame { function: function.to_owned(), line: file.as_ref().map(|_| 7), file }
    }

    const CANDLE: &str = "/home/u/.cargo/registry/src/index/candle-core-0.11.1/src/tensor.rs";

    #[test]
    fn frames_belong_to_somebody() {
        for (function, file, owner) in [
            ("app::train::step", "src/train.rs", Owner::User),
            ("<app::Model as candle_nn::Module>::forward", "src/model.rs", Owner::User),
            ("candle_core::tensor::Tensor::matmul", CANDLE, Owner::Candle),
            ("<candle_core::tensor::Tensor as core::ops::arith::Add>::add", "", Owner::Candle),
            (
                "core::ops::function::FnOnce::call_once",
                "/rustc/ab/library/core/src/ops.rs",
                Owner::Plumbing,
            ),
            ("<alloc::vec::Vec as core::iter::FromIterator>::from_iter", "", Owner::Plumbing),
            (
                "memcheck_runtime::entry::session::body",
                "memcheck-runtime/src/x.rs",
                Owner::Plumbing,
            ),
            (
                "serde_json::de::from_str",
                "/home/u/.cargo/registry/src/i/serde_json-1/src/de.rs",
                Owner::Library,
            ),
            ("<T as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", "", Owner::Plumbing),
            ("<u8 as app::Weigh>::weigh", "", Owner::User),
            ("__rust_alloc", "", Owner::Plumbing),
            ("cuMemAllocAsync", "", Owner::Plumbing),
            ("main", "", Owner::Plumbing),
        ] {
            assert_eq!(frame(function, file).owner(), owner, "{function}");
        }
    }

    #[test]
    fn an_inlined_function_is_in_the_module_of_its_file() {
        assert_eq!(module_of(CANDLE).as_deref(), Some("candle_core::tensor"));
        let library = "/rustc/ab12/library/alloc/src/vec/mod.rs";
        assert_eq!(module_of(library).as_deref(), Some("alloc::vec"));
        assert_eq!(module_of("/home/u/app/src/model.rs"), None);
    }

    #[test]
    fn a_stack_shows_the_program_and_candle_alone() {
        let stack = Stack::trimmed([
            frame("memcheck_runtime::site::unwind::here", "memcheck-runtime/src/site/unwind.rs"),
            frame("alloc::alloc::alloc", "/rustc/ab/library/alloc/src/alloc.rs"),
            frame("candle_core::tensor::Tensor::matmul", CANDLE),
            frame("app::attention", "src/model.rs"),
            frame("app::attention", "src/model.rs"),
            frame("app::step", "src/main.rs"),
            frame("core::ops::function::FnOnce::call_once", "/rustc/ab/library/core/src/f.rs"),
        ]);
        let functions: Vec<_> = stack.frames.iter().map(|frame| frame.short()).collect();
        assert_eq!(functions, ["Tensor::matmul", "attention", "step"]);
        assert_eq!(stack.user().unwrap().place().as_deref(), Some("src/model.rs:7"));
    }

    #[test]
    fn an_operation_is_the_method_that_the_program_reached() {
        let operation = |functions: &[&str]| {
            Stack { frames: functions.iter().map(|f| frame(f, "")).collect() }.operation()
        };
        let named = |text: &str| Some(text.to_owned());
        assert_eq!(
            operation(&[
                "candle_core::tensor::from_storage",
                "candle_core::tensor::Tensor::matmul",
                "app::f"
            ]),
            named("matmul")
        );
        assert_eq!(
            operation(&[
                "candle_core::tensor::Tensor::exp",
                "candle_nn::ops::softmax",
                "candle_transformers::models::llama::Block::forward",
                "app::f",
            ]),
            named("softmax")
        );
        assert_eq!(
            operation(&[
                "candle_core::tensor::Tensor::matmul",
                "candle_core::backprop::<impl candle_core::tensor::Tensor>::backward",
            ]),
            named("matmul (backward)")
        );
        assert_eq!(
            operation(&[
                "<&candle_core::tensor::Tensor as core::ops::arith::Add<B>>::add",
                "app::f"
            ]),
            named("add")
        );
        assert_eq!(
            operation(&[
                "candle_core::device::Device::zeros",
                "candle_core::tensor::Tensor::zeros_impl",
                "candle_nn::var_builder::get",
            ]),
            named("zeros")
        );
        assert_eq!(
            operation(&[
                "candle_nn::ops::f",
                "<candle_nn::ops::SoftmaxLastDim as candle_core::custom_op::CustomOp1>::cuda_fwd",
                "candle_core::tensor::Tensor::apply_op1_no_bwd",
                "app::f",
            ]),
            named("softmax_last_dim")
        );
        assert_eq!(operation(&["app::f", "candle_core::tensor::Tensor::matmul"]), None);
    }
}
