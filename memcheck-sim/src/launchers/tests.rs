//! Tests that call the function as a stub does.

use std::sync::Mutex;

use super::*;
use crate::driver::{current, tests::context};
use crate::machine::with;
use crate::unsimulated::observe_unsimulated_launches;

/// The launches that were reported: name, source, and whether the launcher replaces one of candle.
static REPORTED: Mutex<Vec<(String, String, bool)>> = Mutex::new(Vec::new());

fn reported(name: &str) -> Vec<(String, bool)> {
    let reported = REPORTED.lock().unwrap();
    let of_name = reported.iter().filter(|it| it.0 == name);
    of_name.map(|(_, source, replaces)| (source.clone(), *replaces)).collect()
}

fn prepare() {
    context(0);
    observe_unsimulated_launches(|launch| {
        let Unsimulated { name, source, replaces_candle, .. } = launch;
        let mut reported = REPORTED.lock().unwrap();
        reported.push((name.to_owned(), source.to_owned(), replaces_candle));
    });
}

/// A block with known contents.
fn upload(words: &[u64]) -> u64 {
    with(|machine| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let block = machine.allocate(current::get(), bytes.len())?;
        machine.write_bytes(block, &bytes);
        Ok(block)
    })
    .unwrap()
}

fn is_known(block: u64) -> bool {
    with(|machine| Ok(machine.known_bytes(block, 8).is_some())).unwrap()
}

fn launch(name: &'static CStr, source: &'static CStr, letters: &'static CStr, values: &[u64]) {
    let launcher = Launcher {
        name: name.as_ptr(),
        source: source.as_ptr(),
        arguments: letters.as_ptr(),
        allocations: c"".as_ptr(),
    };
    let mut values = values.to_vec();
    let pointers: Vec<*mut c_void> = values.iter_mut().map(|it| (&raw mut *it).cast()).collect();
    // SAFETY: each letter has a pointer to a value of 8 bytes.
    unsafe { memcheck_launch(&launcher, pointers.as_ptr()) }
}

const SOURCE: &CStr = c"src/a.cu of app 0.1.0";

#[test]
fn the_memory_behind_the_arguments_becomes_unknown() {
    prepare();
    let blocks = [0; 4].map(|_| upload(&[1, 2]));
    let array = upload(&[blocks[2], 5]);
    let name = c"tests_writes";
    launch(name, SOURCE, c"plips", &[blocks[0] + 8, blocks[1], 7, array, 0]);
    let known = blocks.map(is_known);
    assert_eq!((known, is_known(array)), ([false, false, false, true], false));
    // Memory behind a pointer to const is only read, unless another argument can write to it.
    let [read, written] = [0; 2].map(|_| upload(&[1]));
    launch(name, SOURCE, c"cp", &[read, written]);
    assert_eq!([read, written].map(is_known), [true, false]);
    launch(name, SOURCE, c"cp", &[read, read]);
    assert!(!is_known(read));
    // A stream that is something else: the launch has an effect all the same.
    launch(name, SOURCE, c"ps", &[0, blocks[3]]);
    assert!(!is_known(blocks[3]));
    assert_eq!(reported("tests_writes"), vec![("src/a.cu of app 0.1.0".to_owned(), false); 4]);
}

#[test]
fn a_registered_function_computes_a_launcher() {
    prepare();
    memcheck_kernels::register_kernel("tests_registered", |launch| {
        let address = u64::from_ne_bytes(launch.argument(0)?.try_into().ok()?);
        let count = launch.argument(1)?.first().copied()?;
        assert_eq!((launch.grid(), launch.argument(1)?.len()), ([1; 3], 4));
        launch.write(address, &[count; 8])
    });
    let block = upload(&[0]);
    launch(c"tests_registered", SOURCE, c"pi", &[block, 3]);
    let found = with(|machine| Ok(machine.known_bytes(block, 8))).unwrap();
    assert_eq!((found, reported("tests_registered")), (Some(vec![3; 8]), Vec::new()));
}

#[test]
fn everything_becomes_unknown_if_the_arguments_do_not_show_what_is_written() {
    let mut machine = Machine::new(&"h200".parse().unwrap());
    let context = machine.retain_primary(0).unwrap();
    let host = [0_u64; 2];
    let mut known_after = |letters: &'static str, argument: u64| {
        let block = machine.allocate(context, 8).unwrap();
        machine.write_bytes(block, &[1; 8]);
        let call = LauncherCall {
            name: "tests".into(),
            source: "",
            allocations: "",
            letters,
            parameters: letters.chars().map_while(parameter).collect(),
            arguments: vec![argument.to_ne_bytes().to_vec()],
        };
        call.run(&mut machine);
        machine.known_bytes(block, 8).is_some()
    };
    assert!(known_after("p", 0));
    assert!(!known_after("p?", 0));
    assert!(!known_after("c?", 0));
    // An array of pointers on the host.
    assert!(known_after("q", 0));
    assert!(!known_after("q", host.as_ptr() as u64));
}

#[test]
fn a_launcher_with_the_name_of_one_of_candle_is_reported() {
    prepare();
    for (name, source, replaces) in [
        (c"launch_mmq_gguf_q4_0", SOURCE, true),
        (c"launch_mmq_gguf_q4_1", c"src/a.cu of candle-kernels 0.12.0", false),
        (c"run_mha", SOURCE, true),
        (c"tests_other_name", SOURCE, false),
    ] {
        launch(name, source, c"", &[]);
        let source = source.to_str().unwrap().to_owned();
        assert_eq!(reported(name.to_str().unwrap()), [(source, replaces)]);
    }
}
