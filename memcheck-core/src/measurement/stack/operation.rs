//! Finds the candle operation of a stack.

use super::frame::{Frame, is_closure, plain};
use super::{Owner, Stack};

/// Functions of candle that every operation calls to allocate, or that wrap an operation. They must
/// not be reported as operations.
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

/// Candle's names for the forward pass of an operation with its own kernel.
const KERNELS: [&str; 3] = ["cpu_fwd", "cuda_fwd", "metal_fwd"];

/// Converts `SoftmaxLastDim` to the name of a function, `softmax_last_dim`.
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

/// The types whose methods are operations, and the modules of these types. The modules are needed
/// because line tables do not contain the type of an inlined method.
const OPERANDS: [&str; 8] =
    ["Tensor", "QMatMul", "QTensor", "Var", "tensor", "tensor_cat", "quantized", "variable"];

impl Stack {
    /// The candle operation that allocated: the innermost method of `Tensor`, or the function of
    /// `candle_nn::ops` around it.
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
        // Functions of candle-nn that consist of several operations or of their own kernel. Such a
        // kernel is written in a function `f`.
        let of_nn = candle()
            .filter_map(named)
            .filter(|(owner, method)| {
                matches!(owner.as_str(), "ops" | "rotary_emb")
                    && method != "f"
                    && !KERNELS.contains(&method.as_str())
            })
            .last();
        // An operation with its own kernel whose public function left no frame, because it was
        // inlined.
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
        // A public method that only calls its inner method leaves no frame. The name of the inner
        // method contains its name.
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
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;

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
