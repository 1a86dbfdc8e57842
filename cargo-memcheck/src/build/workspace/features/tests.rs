//! Which feature of a package is its own for CUDA.

use serde_json::{Value, json};

use super::super::example::{Example, REGISTRY, package, workspace};
use super::choice::{OwnFeature, choose};
use super::enabled::Graph;
use super::*;

fn core() -> Example {
    let core = package("candle-core").of("0.11.1", REGISTRY);
    let core =
        core.declared("cudarc", "^0.19", json!({ "optional": true, "features": ["driver"] }));
    core.features(json!({
        "cuda": ["dep:cudarc", "candle-ug?/cuda"], "cudnn": ["cuda", "cudarc?/cudnn"],
        "metal": [], "nccl": ["cuda"],
    }))
}

fn nn(core: &Example) -> Example {
    package("candle-nn").of("0.11.1", REGISTRY).on(core).features(json!({
        "cuda": ["candle-core/cuda"], "cudnn": ["candle-core/cudnn"],
    }))
}

fn runtime(core: &Example) -> Example {
    package("memcheck-runtime").of("0.1.0", REGISTRY).on(core).features(json!({
        "cuda": ["candle-core/cuda"], "sim": ["cuda"],
    }))
}

/// The choice for a package with these features, of which `active` are on. It depends on candle-core,
/// on candle-nn as `nn`, on a layer that passes its feature `gpu` on, and on the runtime.
fn choice_with(features: Value, active: &[&'static str]) -> OwnFeature {
    let core = core();
    let nn = nn(&core);
    let layer = package("layer").on(&nn).features(json!({ "gpu": ["candle-nn/cuda"] }));
    let runtime = runtime(&core);
    let app = package("app").on(&core).on_as(&nn, Some("nn")).on(&layer).on(&runtime);
    let optional = json!({ "optional": true });
    let app = app.declared("candle-transformers", "^0.11", optional.clone());
    let app = app.declared("candle-flash-attn", "^0.11", optional.clone());
    let app = app.declared("cudarc", "^0.19", optional.clone());
    let app = app.declared("ort", "^2", optional).features(features).active(active);
    let workspace = workspace("/ws", &[&app, &core, &nn, &layer, &runtime]);
    let packages = workspace.test_packages();
    let graph = Graph::new(workspace.metadata());
    choose(&graph, graph.package(&packages[0].package.id).unwrap())
}

fn choice(features: Value) -> OwnFeature {
    choice_with(features, &[])
}

fn chosen(name: &str) -> OwnFeature {
    OwnFeature::Chosen(name.to_owned())
}

#[test]
fn a_feature_that_enables_candles_cuda_is_chosen_whatever_its_path() {
    for feature in ["candle-core/cuda", "nn/cuda", "nn?/cuda", "layer/gpu"] {
        assert_eq!(choice(json!({ "gpu": [feature] })), chosen("gpu"), "{feature}");
        let with_more = json!({
            "cuda": [feature], "cudnn": ["cuda", "candle-core/cudnn"], "nccl": ["cuda"],
            "flash-attn": ["cuda", "dep:candle-flash-attn"], "full": ["cuda", "fast"], "fast": [],
            "default": ["fast"],
        });
        assert_eq!(choice(with_more), chosen("cuda"), "{feature}");
    }
    assert_eq!(choice(json!({ "cuda": ["dep:cudarc"] })), chosen("cuda"), "by its name");
    assert_eq!(choice(json!({ "gpu": ["inner"], "inner": ["nn/cuda"] })), chosen("inner"));
}

#[test]
fn a_feature_that_is_about_something_else_is_not_chosen() {
    for features in [
        json!({}),
        json!({ "gpu": ["dep:cudarc"], "fast": [] }),
        // The switches of memcheck itself.
        json!({ "measured": ["memcheck-runtime/sim"] }),
        json!({ "metal": ["candle-core/metal"] }),
        json!({ "default": ["candle-core/cuda"] }),
    ] {
        assert_eq!(choice(features.clone()), OwnFeature::None, "{features}");
    }
    let on = choice_with(json!({ "cuda": ["candle-core/cuda"] }), &["cuda"]);
    assert_eq!(on, OwnFeature::None, "it is on already");
}

#[track_caller]
fn assert_unclear(found: OwnFeature, named: &[&str], part: &str) {
    let OwnFeature::Unclear { features, why } = found else { panic!("{found:?}") };
    assert_eq!(features, named);
    assert!(why.contains(part), "{why}");
}

#[test]
fn a_choice_that_is_not_clear_is_left_to_the_user() {
    let several = json!({ "a": ["nn/cuda"], "b": ["layer/gpu"], "both": ["a", "b"] });
    assert_unclear(choice(several.clone()), &["a", "b"], "several features");
    assert_eq!(choice_with(several, &["b"]), OwnFeature::None, "the user has chosen");
    let flash = json!({ "flash-attn": ["candle-core/cuda", "dep:candle-flash-attn"] });
    assert_unclear(choice(flash), &["flash-attn"], "`flash-attn` needs more than CUDA");
    let fast = json!({ "cuda": ["candle-core/cuda", "dep:candle-flash-attn"] });
    assert_unclear(choice(fast), &["cuda"], "`candle-flash-attn` needs more than CUDA");
    let cudnn = json!({ "cuda": ["candle-core/cudnn"] });
    assert_unclear(choice(cudnn), &["cuda"], "`cudnn` needs more than CUDA");
    let optional = json!({ "cuda": ["candle-core/cuda", "candle-transformers/cuda"] });
    assert_unclear(choice(optional), &["cuda"], "optional `candle-transformers`");
    let metal = json!({ "cuda": ["candle-core/cuda"], "metal": ["candle-core/metal"] });
    assert_unclear(choice_with(metal, &["metal"]), &["cuda"], "`metal` is on");
    assert_unclear(choice(json!({ "cuda": [] })), &["cuda"], "no feature of candle");
    let unknown = choice(json!({ "cuda": ["ort/cuda"] }));
    assert_unclear(unknown, &["cuda"], "`ort` is not in the dependency graph");
}

#[test]
fn an_optional_candle_that_a_weak_entry_names_is_not_added() {
    let weak = json!({ "cuda": ["candle-core/cuda", "candle-transformers?/cuda"] });
    assert_eq!(choice(weak), chosen("cuda"));
}

fn listed_for(features: &[&str]) -> Vec<Vec<String>> {
    let core = core();
    let runtime = runtime(&core);
    let package = |name| package(name).on(&core).on(&runtime);
    let one = package("one").features(json!({ "cuda": [], "fast": [] }));
    let two = package("two").features(json!({ "cuda": [] }));
    let workspace = workspace("/ws", &[&one, &two, &core, &runtime]);
    let mut packages = workspace.test_packages();
    let features: Vec<String> = features.iter().map(ToString::to_string).collect();
    let sets = listed(&packages, &features, "--features-gpu");
    for (package, set) in packages.iter_mut().zip(sets) {
        package.features.insert(DeviceKind::Sim, set);
    }
    packages.iter().map(|package| package.own_features(DeviceKind::Sim)).collect()
}

#[test]
fn a_listed_feature_is_that_of_each_package_that_has_it() {
    assert_eq!(listed_for(&["cuda"]), [["one/cuda"], ["two/cuda"]]);
    assert_eq!(listed_for(&["fast", "two/cuda"]), [vec!["one/fast"], vec!["two/cuda"]]);
    // Cargo reports a feature that no package has, and knows those of dependencies.
    assert_eq!(listed_for(&["fats"]), [["one/fats"], ["two/fats"]]);
    assert_eq!(listed_for(&["candle-core/cudnn"]), [["candle-core/cudnn"], ["candle-core/cudnn"]]);
}

#[test]
fn the_header_of_a_baseline_has_the_features_of_its_package() {
    let core = core();
    let runtime = runtime(&core);
    let app = package("app").on(&core).on(&runtime).features(json!({ "cuda": [] }));
    let workspace = workspace("/ws", &[&app, &core, &runtime]);
    let mut package = workspace.test_packages().remove(0);
    assert_eq!(package.feature_fact(DeviceKind::Sim), None);
    let names = vec!["cuda".to_owned(), "fast".to_owned()];
    package.features.insert(DeviceKind::Sim, DeviceFeatures { names, by: OWN });
    assert_eq!(package.feature_fact(DeviceKind::Sim).as_deref(), Some("cuda,fast"));
    assert_eq!(package.feature_fact(DeviceKind::Cpu), None);
}

#[test]
fn a_note_names_the_feature_and_the_flags() {
    let note = unclear("app", &["a".to_owned(), "b".to_owned()], "several features enable it");
    assert_eq!(
        note,
        "features `a`, `b` of app are off in the build for a GPU, because several features enable \
         it: `--features-gpu a` switches `a` on, and `--no-package-cuda` leaves out this note"
    );
}

#[test]
fn a_library_of_the_workspace_is_named_if_its_tests_are_another_package() {
    let core = core();
    let runtime = runtime(&core);
    let features = json!({ "cuda": ["candle-core/cuda"] });
    let library = package("library").on(&core).features(features);
    let tests = package("tests").on(&core).on(&library).on(&runtime);
    let workspace = workspace("/ws", &[&library, &tests, &core, &runtime]);
    let packages = workspace.test_packages();
    let graph = Graph::new(workspace.metadata());
    let notes = |names: &[&str]| {
        let names = names.iter().map(ToString::to_string).collect();
        let mut notes = Vec::new();
        let sets = [DeviceFeatures { names, by: OWN }];
        workspace.note_libraries(&graph, &packages, &sets, &mut notes);
        notes.join("")
    };
    assert!(notes(&[]).contains("`--features-gpu library/cuda`"), "{}", notes(&[]));
    assert_eq!(notes(&["gpu"]), "");
}
