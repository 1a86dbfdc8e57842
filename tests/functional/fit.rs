//! `fit`: the largest value of a case for which a card has room, exactly, and the messages if no
//! value is found.

use serde_json::Value;

use crate::fixture::{Programs, Run};

/// A number above the range of u64, and the largest u64.
const TOO_MANY: &str = "99999999999999999999";
const U64_MAX: &str = "18446744073709551615";

fn fit(programs: &Programs, arguments: &[&str]) -> Run {
    let mut all = vec!["fit", "--message-format", "json"];
    all.extend(arguments);
    programs.memcheck(&all)
}

/// The object of each device.
fn devices(run: &Run) -> Vec<Value> {
    run.json().into_iter().filter(|line| line["type"] == "fit").collect()
}

fn tried(device: &Value) -> Vec<u64> {
    let attempts = device["attempts"].as_array().expect("attempts are a list");
    attempts.iter().map(|tried| tried["value"].as_u64().expect("a number")).collect()
}

/// The law of the peaks so far decides the next value to try. The answer is a value that ran.
fn assert_laws_predict_the_attempts(programs: &Programs, of_64_mib: &str) {
    let search = |test, device| {
        let arguments = [test, "--param", "seq", "--margin", "0%", "--device", device];
        devices(&fit(programs, &arguments).exits(0)).remove(0)
    };
    // 1 MiB + 4096 s + 16 s² <= 64 MiB: s <= -128 + sqrt(128² + 63 MiB / 16 B), so 1907. Four
    // values suffice for the parabola. A straight line through the last values took 18 attempts.
    let found = search("fit::attention", of_64_mib);
    let peak = |seq: u64| (1 << 20) + 4096 * seq + 16 * seq * seq;
    assert!(peak(1907) <= 64 << 20 && 64 << 20 < peak(1908));
    assert_eq!((&found["largest"], &found["failed"]), (&1907.into(), &1908.into()));
    assert_eq!(found["peak_allocated"], peak(1907));
    assert_eq!(tried(&found), [1, 2, 16, 128, 1907, 1908]);
    let predicted = serde_json::json!({
        "space": "cuda:0", "law": "1048576 + 4096*seq + 16*seq^2", "attempts": 4,
        "largest": 1907, "peak_allocated": peak(1907),
    });
    assert_eq!(found["predicted"], predicted);

    // The first three peaks are on a line, which predicts 200 KiB / 4 KiB = 50 positions. 50
    // positions need as much as 64.
    let found = search("fit::doubling", "sim:t4,capacity=200KiB");
    assert_eq!((&found["largest"], &found["failed"]), (&32.into(), &33.into()));
    assert_eq!(found["peak_allocated"], 32 * 4096);
    assert_eq!(tried(&found), [1, 2, 16, 50, 49, 32, 40, 36, 34, 33]);
    assert_eq!(found["predicted"]["largest"], 50);
    let human = |test| programs.memcheck(&["fit", test, "--param", "seq", "--device", of_64_mib]);
    human("fit::attention").exits(0).prints(
        "after 4 attempts peak = 1.00 MiB + 4.00 KiB*seq + 16 B*seq^2 predicted seq=1855 with",
    );
}

/// A test that fails after a search without a result is out of memory, because the device refused
/// the last attempt. A test that fails with another error after a search is not.
fn assert_searches_of_a_program(programs: &Programs) {
    let run = programs.run("sim:t4", &["fit::no_batch_", "fit::a_batch_"]).exits(100);
    // 3 MiB for one element and 1 MiB of weights exceed 2 MiB, and 3 TiB exceed a T4.
    for (test, code, wanted) in [
        ("no_batch_fits", "does-not-fit", 3_u64 << 20),
        ("no_batch_has_room", "out-of-memory", 3 << 40),
    ] {
        assert_eq!(run.codes(test), [code], "{test}");
        let finding = run.test(test)["findings"][0].clone();
        assert_eq!(finding["figure"], wanted + (1 << 20), "{test}");
        let site = &finding["sites"][0];
        assert_eq!(site["note"], "requested and refused", "{site}");
        assert_eq!(site["bytes"], wanted, "{site}");
        let function = site["function"].as_str().expect("a line");
        assert!(function.contains("largest"), "{function}");
    }
    // 6 GiB for each element: a T4 has room for two, and it refused three last.
    assert_eq!(run.codes("a_batch_has_room"), ["test-failed"]);
}

#[test]
#[ignore = "slow: just all"]
fn row_16_the_largest_batch_is_exact_on_every_card_and_bad_input_is_told() {
    let programs = Programs::of("fit");
    let mib = |mib: u64| mib << 20;
    let cards = ["8MiB", "64MiB", "1GiB"].map(|size| format!("sim:t4,capacity={size}"));
    let [small, middle, large] = cards.each_ref().map(String::as_str);
    let devices_flags = ["--device", small, "--device", middle, "--device", large];

    // (capacity - 1 MiB) / 3 MiB, rounded down. The search must try the answer and its successor.
    let run = fit(
        &programs,
        &[&["fit::forward", "--param", "batch", "--margin", "0%"][..], &devices_flags].concat(),
    );
    let run = run.exits(0);
    assert_eq!(run.summary()["exit_code"], 0);
    let found = devices(&run);
    assert_eq!(found.len(), 3);
    for (line, capacity) in found.iter().zip([mib(8), mib(64), mib(1024)]) {
        let largest = (capacity - mib(1)) / mib(3);
        assert_eq!(line["largest"], largest, "{line}");
        assert_eq!(line["peak_allocated"], mib(1) + largest * mib(3), "{line}");
        assert_eq!((&line["capacity"], &line["usable"]), (&capacity.into(), &capacity.into()));
        assert_eq!(line["failed"], largest + 1, "{line}");
        let refused = serde_json::json!({
            "space": "cuda:0", "requested": (largest + 1) * mib(3), "live": mib(1),
        });
        assert_eq!(line["refused"], refused, "{line}");
        let attempts = line["attempts"].as_array().unwrap();
        for value in [largest, largest + 1] {
            let tried = attempts.iter().find(|tried| tried["value"] == value).unwrap();
            assert_eq!(tried["has_room"], value == largest, "{tried}");
        }
        assert_eq!(attempts[0]["beside"], serde_json::json!(["peak-limit"]), "{attempts:?}");
    }
    // A straight line through the first two values predicts 21, but a step is at most eightfold.
    assert_eq!(tried(&found[1]), [1, 2, 16, 21, 22]);
    assert_laws_predict_the_attempts(&programs, middle);
    assert_searches_of_a_program(&programs);
    // The limits of the attribute and baselines must not influence the search.
    assert!(!programs.have_snapshots());

    // A margin, and a capacity for all devices: 5 % of 64 MiB stay free, 19 * 3 + 1 = 58 MiB.
    let run = fit(&programs, &["fit::forward", "--param", "batch", "--device", middle]).exits(0);
    assert_eq!(devices(&run)[0]["largest"], 19);
    let run = fit(
        &programs,
        &[
            "fit::forward",
            "--param",
            "batch",
            "--device",
            large,
            "--fits",
            "64 MiB",
            "--margin",
            "0%",
        ],
    );
    assert_eq!(devices(&run.exits(0))[0]["largest"], 21);

    // A test that panics when an allocation is refused, with a value for the other case: 64 MiB / 1
    // MiB, / 0.5 MiB.
    for (dtype, largest) in [("dtype=f32", 64), ("dtype=f16", 128)] {
        let arguments = [
            "fit::of_two",
            "--param",
            "batch",
            "--case",
            dtype,
            "--device",
            middle,
            "--margin",
            "0%",
        ];
        assert_eq!(devices(&fit(&programs, &arguments).exits(0))[0]["largest"], largest, "{dtype}");
    }
    let ambiguous = ["fit::of_two", "--param", "batch", "--device", middle];
    fit(&programs, &ambiguous).exits(2).prints("dtype=f16").prints("--case NAME=VALUE");

    // The ends of the range: the largest value fits, or the smallest one does not.
    let run =
        fit(&programs, &["fit::forward", "--param", "batch", "--to", "5", "--device", middle]);
    let run = run.exits(0).prints("the largest value that --to allows");
    assert_eq!(
        (&devices(&run)[0]["largest"], &devices(&run)[0]["failed"]),
        (&5.into(), &Value::Null)
    );
    let run =
        fit(&programs, &["fit::forward", "--param", "batch", "--from", "3", "--device", small]);
    assert_eq!(devices(&run.exits(100))[0]["largest"], Value::Null);

    // The same in the human output.
    let human = programs.memcheck(&["fit", "fit::forward", "--param", "batch", "--device", middle]);
    let human = human
        .exits(0)
        .prints("has findings that do not concern room: peak-limit")
        .prints("5% of each simulated");
    assert!(human.stdout.contains("largest batch"), "{}", human.stdout);
    assert!(human.stdout.contains("58.0 MiB"), "{}", human.stdout);

    if !std::path::Path::new("/dev/nvidia0").exists() {
        fit(&programs, &["fit::forward", "--param", "batch", "--device", "cuda"]).exits(105);
    }
    for (arguments, code, expected) in [
        (&["fit::forward", "--param", "batch", "--from", "0"][..], 2, "0 is not a value to try"),
        (&["fit::forward", "--param", "batch", "--from", "9", "--to", "8"], 2, "9 is above 8"),
        (&["fit::forward", "--param", "batch", "--device", "sim:h2000"], 2, "did you mean `h200`?"),
        (&["fit::forward", "--param", "batch", "--device", "cpu"], 2, "has no capacity"),
        (&["fit::forward", "--param", "batch", "--margin", "100%"], 2, "leaves no memory of sim:"),
        (
            &["fit::forward", "--param", "batch", "--margin", "150%"],
            2,
            "`--margin 0%` uses the whole capacity",
        ),
        (
            &["fit::forward", "--param", "batch", "--to", TOO_MANY],
            2,
            "from 1 to 18446744073709551615",
        ),
        (&["fit::forward", "--param", "batch", "--from", "-1"], 2, "'-1'"),
        (
            &["fit::forward", "--param", "batch", "--fits", "99999999999TiB"],
            2,
            "more bytes than 64 bits can count",
        ),
        // 3 * batch overflows. The test panics, which is not a lack of memory.
        (
            &["fit::forward", "--param", "batch", "--from", U64_MAX, "--to", U64_MAX],
            100,
            "test-failed",
        ),
        (&["fit::forward", "--param", "seq"], 2, "has a case `seq`: their cases are `batch`"),
        (&["fit::without_cases", "--param", "batch"], 2, "these tests have no cases"),
        (&["fit::of_two", "--param", "dtype"], 2, "fit searches numbers only"),
        (&["fit::of_two", "--param", "batch", "--case", "dtype=bf16"], 2, "`dtype=bf16`"),
        (&["fit::forward"], 2, "--param <NAME>"),
        (&["--param", "batch"], 2, "fit needs one test"),
        (&["no_such_test", "--param", "batch"], 4, "no memory test matches `no_such_test`"),
        (&["fit::not_above", "--param", "batch"], 100, "batch=8 on sim:h200"),
    ] {
        fit(&programs, arguments).exits(code).prints(expected);
    }
    programs.configure("[default]\nmax_grwth = 1\n");
    fit(&programs, &["fit::forward", "--param", "batch"]).exits(96).prints("memcheck.toml");
}
