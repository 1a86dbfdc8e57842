//! candle-onnx, which evaluates ONNX graphs.

/// Each value of a graph is kept until the graph has been evaluated.
mod values {
    use std::collections::HashMap;

    use candle_onnx::onnx::{GraphProto, ModelProto, NodeProto, ValueInfoProto};

    crate::pair! {
        candle_onnx::eval => crate::changed::onnx_eval;
        compared |device| {
            let node = |index: usize| NodeProto {
                op_type: "Relu".to_owned(),
                input: vec![format!("x{index}")],
                output: vec![format!("x{}", index + 1)],
                ..NodeProto::default()
            };
            let output = ValueInfoProto { name: "x16".to_owned(), ..ValueInfoProto::default() };
            let graph = GraphProto {
                node: (0..16).map(node).collect(),
                output: vec![output],
                ..GraphProto::default()
            };
            let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
            let input = crate::input((1024, 256), device)?;
            let values = subject::simple_eval(&model, HashMap::from([("x0".to_owned(), input)]))?;
            crate::compare(|| Ok(values["x16"].clone()))?;
            Ok(values)
        }
    }
}
