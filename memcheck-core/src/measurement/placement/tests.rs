//! Tests modules from scopes, their peaks from steps, and plans from peaks.

use super::*;

fn scope(parent: u32, name: &str, kind: ScopeKind) -> ModuleScope {
    ModuleScope { parent, name: name.to_owned(), kind }
}

/// Two layers between an embedding and a head in one span. The head's weights are loaded first.
fn scopes() -> Vec<ModuleScope> {
    use ScopeKind::{Indexed, Plain, Replicated};
    vec![
        scope(0, "head", Plain),        // 1
        scope(0, "embed", Plain),       // 2
        scope(0, "layers.0", Indexed),  // 3
        scope(0, "layers.1", Indexed),  // 4
        scope(0, "forward", Plain),     // 5
        scope(5, "embed", Plain),       // 6
        scope(5, "layers.0", Indexed),  // 7
        scope(7, "attention", Plain),   // 8
        scope(8, "mask", Replicated),   // 9
        scope(8, "experts.4", Indexed), // 10
        scope(5, "layers.1", Indexed),  // 11
        scope(5, "head", Plain),        // 12
    ]
}

fn step(scope: u32, bytes: i64, iteration: u32) -> Step {
    Step { scope, place: (scope, 0), bytes: bytes.unsigned_abs(), came: bytes > 0, iteration }
}

/// The weights are 100 (embed), 10 and 10 (layers), and 50 (head); the prompt is 1. In each pass,
/// the embeddings are 4, the mask is 2, and the logits are 9. Each layer has a scratch of 7, a
/// cache of 3 that stays, and an output of 4.
fn passes() -> Vec<Step> {
    let mut steps = vec![step(1, 50, 0), step(2, 100, 0), step(3, 10, 0), step(4, 10, 0)];
    steps.push(step(0, 1, 0));
    for iteration in 1..=2 {
        let mut now = |scope, bytes| steps.push(step(scope, bytes, iteration));
        now(6, 4);
        now(10, 7);
        now(9, 2);
        now(8, 3);
        now(10, -7);
        now(7, 4);
        now(6, -4);
        now(11, 7);
        now(11, 3);
        now(11, -7);
        now(11, 4);
        now(7, -4);
        now(12, 9);
        now(11, -4);
        now(12, -9);
    }
    steps
}

#[test]
fn modules_are_layers_and_their_siblings_in_the_order_of_work() {
    let measured = measure(&scopes(), &passes()).unwrap();
    let names: Vec<&str> = measured.modules.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(names, ["embed", "layers.0", "layers.1", "head"]);
    let row = |weights, cache, activations, input| (weights, cache, activations, input);
    let figures: Vec<_> = measured
        .modules
        .iter()
        .map(|module| row(module.weights, module.cache, module.activations, module.input))
        .collect();
    // A layer's peak in the second pass has its scratch, its new cache and the old one.
    assert_eq!(figures, [row(100, 0, 4, 0), row(10, 6, 7, 4), row(10, 6, 7, 4), row(50, 0, 9, 4)]);
    assert_eq!((measured.outside, measured.replicated), (1, 4));
}

#[test]
fn the_peak_of_a_run_is_that_of_a_device_which_holds_it_alone() {
    let measured = measure(&scopes(), &passes()).unwrap();
    // Weights, prompt, masks, caches and 4 + 9 with the logits, more than 4 + 7 with the scratch.
    assert_eq!(measured.whole(), 170 + 1 + 4 + 12 + 4 + 9);
    // The first layer alone: weights, masks, the copy of its input, caches and its scratch.
    assert_eq!(measured.peak(1, 2), 10 + 4 + 4 + 6 + 7);
    // Both layers: the second uses the output of the first without a copy.
    assert_eq!(measured.peak(1, 3), 20 + 4 + 6 + 4 + 6 + 7);
    // Masks are counted only on devices with layers.
    assert_eq!(measured.peak(3, 4), 50 + 4 + 9);
    assert_eq!(measured.peak(0, 1), 100 + 1 + 4);
    // Without the output of the first layer, which is on another device.
    assert_eq!(measured.peak(0, 2), 110 + 1 + 4 + 6 + 4 + 7);
    assert_eq!(measured.peak(2, 2), 0);
}

#[test]
fn without_a_layer_there_are_no_modules() {
    assert_eq!(measure(&scopes()[..2], &passes()), None);
    assert_eq!(measure(&[], &[]), None);
}

fn weights(weights: &[u64]) -> Modules {
    let peaks = (0..weights.len())
        .map(|first| {
            (first..weights.len()).map(|last| weights[first..=last].iter().sum()).collect()
        })
        .collect();
    let named = |(place, &weights): (usize, &u64)| Module {
        name: format!("layers.{place}"),
        weights,
        ..Module::default()
    };
    Modules {
        modules: weights.iter().enumerate().map(named).collect(),
        peaks,
        ..Modules::default()
    }
}

/// The fullest device of the best of all ways to cut: bytes, and bytes that may be used.
fn best(modules: &Modules, from: usize, usable: &[u64]) -> (u64, u64) {
    let count = modules.modules.len();
    let (now, rest) = usable.split_first().unwrap();
    let larger = |a: (u64, u64), b: (u64, u64)| if a.0 * b.1 >= b.0 * a.1 { a } else { b };
    let smaller = |a: (u64, u64), b: (u64, u64)| if a.0 * b.1 <= b.0 * a.1 { a } else { b };
    if rest.is_empty() {
        return (modules.peak(from, count), *now);
    }
    let least = usize::from(from == 0);
    (from + least..=count)
        .map(|end| larger((modules.peak(from, end), *now), best(modules, end, rest)))
        .reduce(smaller)
        .unwrap()
}

#[test]
fn a_plan_equals_the_best_of_all_assignments() {
    let mut seed = 7_u64;
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most + 1
    };
    for _ in 0..300 {
        let modules: Vec<u64> = (0..random(7)).map(|_| random(50)).collect();
        let modules = weights(&modules);
        let usable: Vec<u64> = (0..random(4)).map(|_| 1_000 * random(3)).collect();
        let plan = plan(&modules, &usable).unwrap();
        let fullest = plan
            .shares
            .iter()
            .map(|share| (share.peak, share.usable))
            .reduce(|a, b| if a.0 * b.1 >= b.0 * a.1 { a } else { b })
            .unwrap();
        let expected = best(&modules, 0, &usable);
        assert_eq!(fullest.0 * expected.1, expected.0 * fullest.1, "{modules:?} {usable:?}");
        let placed: Vec<usize> =
            plan.shares.iter().flat_map(|share| share.modules.clone()).collect();
        assert_eq!(placed, (0..modules.modules.len()).collect::<Vec<_>>());
    }
}

#[test]
fn a_larger_device_gets_more_modules() {
    let plan = plan(&weights(&[10; 6]), &[100, 50]).unwrap();
    assert_eq!(plan.shares[0].modules, 0..4);
    assert_eq!((plan.shares[1].peak, plan.shares[1].usable), (20, 50));
}

#[test]
fn missing_memory_is_reported() {
    let error = plan(&weights(&[600, 600, 600]), &[1_000, 700]).unwrap_err().to_string();
    assert_eq!(
        error,
        "the devices have too little memory: cuda:0 needs 1,200 B (1.17 KiB) and may use 1,000 B, \
         200 B are missing"
    );
    assert_eq!(plan(&weights(&[]), &[1]), Err(Short::Nothing));
    assert_eq!(plan(&weights(&[1]), &[]), Err(Short::Nothing));
}

#[test]
fn a_device_map_keeps_its_order_and_round_trips() {
    let modules = weights(&[1; 12]);
    let map = plan(&modules, &[100, 100]).unwrap().device_map(&modules);
    let json = serde_json::to_string(&map).unwrap();
    assert!(json.starts_with("{\"layers.0\":0,\"layers.1\":0,"), "{json}");
    assert!(json.ends_with("\"layers.10\":1,\"layers.11\":1}"), "{json}");
    assert_eq!(serde_json::from_str::<DeviceMap>(&json).unwrap(), map);
    // As in accelerate, a name applies to all modules inside it, and the longest match wins.
    let map: DeviceMap = serde_json::from_str("{\"\":2,\"layers\":1,\"layers.1\":0}").unwrap();
    let devices = ["layers.1", "layers.11", "layers.1.mlp", "head"].map(|name| map.device(name));
    assert_eq!(devices, [Some(0), Some(1), Some(0), Some(2)]);
    assert_eq!(DeviceMap::default().device("head"), None);
}
