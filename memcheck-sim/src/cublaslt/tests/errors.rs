//! Products that are refused, and the choice of an algorithm.

use super::*;

/// Stores C and D by rows.
fn by_rows_with(setup: &Setup, epilogue: u32) {
    for matrix in [2, 3] {
        setup.layout(matrix, layout::ORDER, 1_i32);
        setup.layout(matrix, layout::LEADING, 4_i64);
    }
    setup.operation(op::EPILOGUE, epilogue);
}

#[test]
fn wrong_products_have_the_errors_of_the_library() {
    type Change = fn(&mut Setup);
    let changes: [(&str, Change, c_int); 27] = [
        ("inner dimensions differ", |it| it.layout(0, layout::COLUMNS, 4_u64), INVALID),
        ("rows of D", |it| it.layout(3, layout::ROWS, 1_u64), INVALID),
        ("columns of C", |it| it.layout(2, layout::COLUMNS, 5_u64), INVALID),
        ("a leading dimension", |it| it.layout(1, layout::LEADING, 2_i64), INVALID),
        ("a negative one", |it| it.layout(1, layout::LEADING, -3_i64), INVALID),
        ("none of D", |it| it.layout(3, layout::LEADING, 0_i64), INVALID),
        ("none of C", |it| it.layout(2, layout::LEADING, 0_i64), OK),
        ("batches", |it| it.layout(0, layout::BATCH_COUNT, 2_i32), INVALID),
        ("the order of C", |it| it.layout(2, layout::ORDER, 1_i32), INVALID),
        ("an order", |it| it.layout(0, layout::ORDER, 9_i32), INVALID),
        ("types of inputs", |it| it.layout(0, layout::TYPE, R_16F), NOT_SUPPORTED),
        ("a type", |it| it.layout(3, layout::TYPE, 99_i32), NOT_SUPPORTED),
        ("the type of scales", |it| it.operation(op::SCALE_TYPE, R_16F), NOT_SUPPORTED),
        ("a computation", |it| it.operation(op::COMPUTE_TYPE, 1_i32), NOT_SUPPORTED),
        ("sums of 16 bits", |it| it.operation(op::COMPUTE_TYPE, COMPUTE_16F), NOT_SUPPORTED),
        ("a transposed C", |it| it.operation(op::TRANS_C, 1_i32), NOT_SUPPORTED),
        ("no bias", |it| it.operation(op::EPILOGUE, 4_u32), INVALID),
        ("a bias", |it| it.operation(op::BIAS, 64_u64), INVALID),
        ("no auxiliary matrix", |it| it.operation(op::EPILOGUE, 160_u32), INVALID),
        ("ReLU by rows", |it| by_rows_with(it, 2), NOT_SUPPORTED),
        ("no epilogue by rows", |it| by_rows_with(it, 1), OK),
        ("no layout of C", |it| it.layouts[2] = 0, OK),
        ("no A", |it| it.addresses[0] = 0, INVALID),
        ("no D", |it| it.addresses[3] = 0, INVALID),
        ("no C", |it| it.addresses[2] = 0, OK),
        ("no operation", |it| it.operation = 0, INVALID),
        ("a layout as operation", |it| it.operation = it.layouts[0], INVALID),
    ];
    for (name, change, expected) in changes {
        let mut setup = Setup::new(R_32F);
        change(&mut setup);
        assert_eq!(setup.run(), expected, "{name}");
        let is_address = setup.addresses.contains(&0);
        let status = setup.heuristic().err().unwrap_or(OK);
        assert_eq!(status, if is_address { OK } else { expected }, "the heuristic: {name}");
    }
    let mut setup = Setup::new(R_32F);
    setup.scales[1] = encoded(R_32F, 1.0);
    setup.addresses[2] = 0;
    assert_eq!(setup.run(), INVALID, "no C, with beta");
    setup.handle = 0;
    assert_eq!((setup.run(), setup.heuristic().err()), (NOT_INITIALIZED, Some(NOT_INITIALIZED)));
    let changes: [fn(&Setup); 2] = [
        |setup| setup.operation(op::TRANS_A, 0_i32),
        |setup| setup.layout(1, layout::LEADING, 17_i64),
    ];
    for change in changes {
        let setup = of_8_bits(R_16BF);
        change(&setup);
        assert_eq!(setup.run(), NOT_SUPPORTED);
    }
}

#[test]
fn an_algorithm_fits_the_limit_of_the_preferences() {
    let matrices = [(R_32F, 4, 8192), (R_32F, 8192, 4), (R_32F, 4, 4), (R_32F, 4, 4)];
    let mut setup = Setup::of(matrices, COMPUTE_32F, R_32F);
    let estimate = |limit: u64| {
        setup.preference(preference::MAX_WORKSPACE, limit);
        let result = setup.heuristic().unwrap();
        assert_eq!(result.state, OK);
        result
    };
    assert_eq!(estimate(0).workspace, 0);
    // 16 parts of 512, and 4 x 4 sums.
    let whole = estimate(1 << 30);
    assert_eq!(whole.workspace, 16 * 4 * 4 * 4);
    let cut = estimate(8 * 4 * 4 * 4).workspace;
    assert_eq!(cut, 7 * 4 * 4 * 4);
    setup.preference(preference::REDUCTION_SCHEMES, 1_u32);
    assert_eq!(estimate(1 << 30).workspace, 0);

    // The workspace must be there, aligned and large enough; its contents become unknown.
    setup.algorithm = Some(whole.algorithm);
    assert_eq!(setup.run(), INVALID);
    let workspace = upload(&vec![0; whole.workspace + 64]);
    for (at, bytes, expected) in [
        (0, whole.workspace, INVALID),
        (workspace + 16, whole.workspace, INVALID),
        (workspace, whole.workspace - 1, INVALID),
        (workspace, whole.workspace, OK),
    ] {
        setup.workspace = (at, bytes);
        assert_eq!(setup.run(), expected, "{at} {bytes}");
    }
    assert!(!is_known(workspace, 1) && is_known(workspace + whole.workspace as u64, 16));
    assert_eq!(download(setup.addresses[3], 4), encoded(R_32F, 8192.0));
    // SAFETY: zeros are an algorithm's bytes, as those of a program that has not filled it.
    setup.algorithm = Some(unsafe { std::mem::zeroed() });
    assert_eq!(setup.run(), INVALID);
}

#[test]
fn a_heuristic_checks_its_parameters() {
    let setup = Setup::new(R_32F);
    let [a, b, c, d] = setup.layouts;
    let (mut count, mut results) = (0, Vec::with_capacity(1));
    let mut ask = |preference, wanted, has_results: bool| {
        // SAFETY: the result pointers are null or have room for one result.
        unsafe {
            let results = Out::new(if has_results { results.as_mut_ptr() } else { null_mut() });
            cublasLtMatmulAlgoGetHeuristic(
                setup.handle,
                setup.operation,
                a,
                b,
                c,
                d,
                preference,
                wanted,
                results,
                out(&mut count),
            )
        }
    };
    assert_eq!(ask(setup.preference, 0, true), INVALID);
    assert_eq!(ask(setup.preference, 1, false), INVALID);
    assert_eq!(ask(0, 1, true), INVALID);
    assert_eq!(ask(setup.preference, 7, true), OK);
    assert_eq!(count, 1);
}
