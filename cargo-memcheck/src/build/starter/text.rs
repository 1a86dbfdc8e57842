//! The text of the first test and of the workflow.

use std::fmt::Write;

use super::model::{Argument, ModelStruct};
use super::{CommandSource, CrateNames};

/// A copy of the workflow in the documentation; a test compares them.
const WORKFLOW: &str = include_str!("../../../templates/github-actions.yml");

/// The workflow, with the source from which it installs the command.
pub(crate) fn workflow(source: &CommandSource) -> String {
    let lines = WORKFLOW.lines().filter(|line| !line.contains("# For … the address"));
    let text: Vec<&str> = lines.collect();
    format!("{}\n", text.join("\n").replace("--git \"…\"", &source.arguments()))
}

pub(super) fn test(crates: &CrateNames, model: Option<&ModelStruct>) -> String {
    match model {
        Some(model) => test_of_model(crates, model),
        None => test_of_layer(crates),
    }
}

/// A small model of the test itself.
fn test_of_layer(crates: &CrateNames) -> String {
    let CrateNames { candle_core: candle, runtime, .. } = crates;
    format!(
        "//! Memory tests: `cargo memcheck` runs them.

use {candle}::{{DType, Result, Tensor, Var}};
use {runtime}::{{Trial, mem_test}};

/// Replace `weights` by your model, and the body of `iterate` by a step that your program repeats.
#[mem_test(max_growth = \"0 B\")]
fn training_step(trial: &mut Trial) -> Result<()> {{
    let device = trial.device().clone();
    let weights = Var::zeros((64, 64), DType::F32, &device)?;
    let batch = Tensor::ones((8, 64), DType::F32, &device)?;
    trial.iterate(|_| {{
        let loss = batch.matmul(&weights)?.relu()?.mean_all()?;
        loss.backward()?;
        Ok(())
    }})
}}
"
    )
}

fn test_of_model(crates: &CrateNames, model: &ModelStruct) -> String {
    let CrateNames { candle_core: candle, candle_nn, runtime, .. } = crates;
    let name = model.path.rsplit("::").next().unwrap_or_default();
    let all = || model.arguments.iter().chain(&model.forward).map(|(argument, _)| *argument);
    let uses = |wanted: Argument| all().any(|argument| argument == wanted);
    let has_tensor = uses(Argument::Input) || uses(Argument::Ids);
    let mut imports = Vec::new();
    if has_tensor || uses(Argument::DType) || uses(Argument::Weights) {
        imports.push("DType");
    }
    if model.needs_module {
        imports.push("Module");
    }
    imports.push("Tensor");
    let mut text = String::from("//! Memory tests: `cargo memcheck` runs them.\n\n");
    let mut uses_of_crates = vec![
        format!("use {};", model.path),
        format!("use {candle}::{};", braced(&imports)),
        format!("use {runtime}::{{Trial, mem_test}};"),
    ];
    if uses(Argument::Weights)
        && let Some(nn) = candle_nn
    {
        uses_of_crates.push(format!("use {nn}::VarBuilder;"));
    }
    uses_of_crates.sort();
    let _ = writeln!(text, "{}\n", uses_of_crates.join("\n"));
    if uses(Argument::Width) || uses(Argument::Input) {
        text.push_str("/// The width of all layers; change it if the model needs another one.\n");
        text.push_str("const WIDTH: usize = 64;\n\n");
    }
    let function = snake(name);
    let _ = write!(
        text,
        "/// The weights are zeros, because memory does not depend on their values.
#[mem_test(max_growth = \"0 B\")]
fn {function}_forward(trial: &mut Trial) -> Result<(), Box<dyn std::error::Error>> {{
    let device = trial.device().clone();
"
    );
    if uses(Argument::Weights) {
        text.push_str("    let weights = VarBuilder::zeros(DType::F32, &device);\n");
    }
    let written = |list: &[(Argument, bool)]| {
        let list = list.iter().map(|it| expression(*it, &model.defaults));
        list.collect::<Vec<_>>().join(", ")
    };
    let (mutable, asks) =
        (
            if model.is_mutable { "mut " } else { "" },
            |is_fallible: bool| if is_fallible { "?" } else { "" },
        );
    let _ = writeln!(
        text,
        "    let {mutable}model = {name}::{}({}){};",
        model.constructor,
        written(&model.arguments),
        asks(model.is_fallible)
    );
    if uses(Argument::Input) {
        text.push_str("    let input = Tensor::ones((8, WIDTH), DType::F32, &device)?;\n");
    }
    if uses(Argument::Ids) {
        text.push_str("    let ids = Tensor::zeros((1, 8), DType::U32, &device)?;\n");
    }
    let _ = write!(
        text,
        "    trial.iterate(|_| {{
        let _output = model.forward({}){};
        Ok(())
    }})
}}
",
        written(&model.forward),
        asks(model.forward_is_fallible)
    );
    text
}

fn expression((argument, is_borrowed): (Argument, bool), defaults: &[String]) -> String {
    let value = match argument {
        Argument::Weights => "weights.clone()".to_owned(),
        Argument::Device => "device".to_owned(),
        Argument::DType => "DType::F32".to_owned(),
        Argument::Width => "WIDTH".to_owned(),
        Argument::Small => "1e-5".to_owned(),
        Argument::No => "false".to_owned(),
        Argument::Absent => "None".to_owned(),
        Argument::Default(number) => format!("{}::default()", defaults[number]),
        Argument::Input => "input".to_owned(),
        Argument::Ids => "ids".to_owned(),
        Argument::Zero => "0".to_owned(),
    };
    match (is_borrowed, argument) {
        (true, Argument::Weights) => "&weights".to_owned(),
        (true, _) => format!("&{value}"),
        (false, Argument::Device | Argument::Input | Argument::Ids) => format!("{value}.clone()"),
        (false, _) => value,
    }
}

fn braced(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        _ => format!("{{{}}}", names.join(", ")),
    }
}

/// `BertLayer` as `bert_layer`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for (number, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && number > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates() -> CrateNames {
        CrateNames {
            candle_core: "candle".to_owned(),
            candle_nn: Some("candle_nn".to_owned()),
            runtime: "memcheck_runtime".to_owned(),
            library: Some("app".to_owned()),
        }
    }

    #[test]
    fn a_test_of_a_model_makes_its_arguments() {
        let model = ModelStruct {
            path: "app::model::BertLayer".to_owned(),
            constructor: "new".to_owned(),
            arguments: vec![
                (Argument::Width, false),
                (Argument::Default(0), true),
                (Argument::Weights, false),
            ],
            is_fallible: true,
            forward: vec![(Argument::Input, true), (Argument::Absent, false)],
            forward_is_fallible: true,
            needs_module: true,
            is_mutable: false,
            defaults: vec!["app::Config".to_owned()],
        };
        let text = test(&crates(), Some(&model));
        for part in [
            "use app::model::BertLayer;\nuse candle::{DType, Module, Tensor};\n",
            "use candle_nn::VarBuilder;\n",
            "fn bert_layer_forward(trial: &mut Trial)",
            "BertLayer::new(WIDTH, &app::Config::default(), weights.clone())?;",
            "model.forward(&input, None)?;",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn without_a_model_the_test_has_its_own() {
        let text = test(&crates(), None);
        assert!(text.contains("use candle::{DType, Result, Tensor, Var};"), "{text}");
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn the_workflow_gets_the_source_of_the_command() {
        assert!(WORKFLOW.contains("--git \"…\""));
        for (source, arguments) in [
            (CommandSource::Git("https://host/m".to_owned()), "--git \"https://host/m\""),
            (CommandSource::Registry("^0.1.0".to_owned()), "--version \"^0.1.0\""),
        ] {
            let text = workflow(&source);
            let install = format!("cargo install {arguments} cargo-memcheck --locked\n");
            assert!(text.contains(&install) && !text.contains('…'), "{text}");
        }
    }
}
