//! Finds the candle operation of a stack.

use super::frame::{Frame, is_closure, plain};
use super::{Owner, Stack};

/// Functions that every operation calls, or that wrap one. They must not be reported.
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

/// Types with operations as methods. Line tables lack the type of an inlined method, so modules
/// too.
const OPERANDS: [&str; 8] =
    ["Tensor", "QMatMul", "QTensor", "Var", "tensor", "tensor_cat", "quantized", "variable"];

impl Stack {
    /// The innermost method of `Tensor`, or the function of `candle_nn::ops` around it. If C code
    /// without debug information has allocated, its function.
    pub fn operation(&self) -> Option<String> {
        if let Some(function) = self.frames.first().filter(|frame| frame.is_c_function()) {
            return Some(function.function.clone());
        }
        let named = |frame: &Frame| {
            let plain = plain(&frame.function);
            let mut segments = plain.rsplit("::").filter(|part| !is_closure(part));
            let method = segments.next()?.to_owned();
            let owner = segments.next().unwrap_or("").to_owned();
            Some((owner, method))
        };
        // Names are parsed once, because that is most of the time of an explanation.
        let of_candle: Vec<(String, String)> = self
            .frames
            .iter()
            .map(|frame| (frame, frame.owner()))
            .take_while(|(_, owner)| *owner != Owner::User)
            .filter(|(_, owner)| *owner == Owner::Candle)
            .filter_map(|(frame, _)| named(frame))
            .collect();
        let candle = || of_candle.iter();
        // Functions of candle-nn of several operations or with an own kernel, a function `f`.
        let of_nn = candle()
            .rfind(|(owner, method)| {
                matches!(owner.as_str(), "ops" | "rotary_emb")
                    && method != "f"
                    && !KERNELS.contains(&method.as_str())
            })
            .map(|(_, method)| method.clone());
        // The public function of an operation with its own kernel was inlined, so it has no frame.
        let of_kernel = || {
            candle().find_map(|(owner, method)| {
                (KERNELS.contains(&method.as_str()) && owner.starts_with(char::is_uppercase))
                    .then(|| snake_case(owner))
            })
        };
        let of_tensor = || {
            let is_operation = |(owner, method): &&(String, String)| {
                OPERANDS.contains(&owner.as_str())
                    && !method.ends_with("_impl")
                    && !NOT_OPERATIONS.contains(&method.as_str())
            };
            candle().find(is_operation).map(|(_, method)| method.clone())
        };
        // A method that only calls its inner one has no frame, but the inner name contains it.
        let of_inner = || {
            let inner = |(owner, method): &(String, String)| {
                let method = method.strip_suffix("_impl")?;
                OPERANDS.contains(&owner.as_str()).then(|| method.to_owned())
            };
            candle().filter_map(inner).next_back()
        };
        let method = of_nn.or_else(of_kernel).or_else(of_tensor).or_else(of_inner)?;
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
            let frames = functions.iter().map(|f| frame(f, "")).collect();
            Stack { frames, ..Stack::default() }.operation()
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
