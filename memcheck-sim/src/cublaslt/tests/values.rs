//! Products in every layout and type and with every epilogue, against products by their definition.

use super::*;

/// A stored matrix: its shape, its order and the bytes of its batch.
struct Stored {
    rows: usize,
    columns: usize,
    is_by_rows: bool,
    leading: usize,
    stride: usize,
    values: Vec<f64>,
}

impl Stored {
    fn new(operand: usize, [rows, columns]: [usize; 2], is_by_rows: bool, batch: usize) -> Self {
        let (length, lines) = if is_by_rows { (columns, rows) } else { (rows, columns) };
        let leading = length + operand;
        let stride = leading * lines + 2;
        let value = |index| ((index * 7 + operand * 5) % 11) as f64 - 5.0;
        let values = (0..stride * batch).map(value).collect();
        Self { rows, columns, is_by_rows, leading, stride, values }
    }

    fn index(&self, batch: usize, row: usize, column: usize) -> usize {
        let (line, at) = if self.is_by_rows { (row, column) } else { (column, row) };
        batch * self.stride + line * self.leading + at
    }

    fn get(&self, batch: usize, row: usize, column: usize, is_transposed: bool) -> f64 {
        let (row, column) = if is_transposed { (column, row) } else { (row, column) };
        self.values[self.index(batch, row, column)]
    }

    fn describe(&self, setup: &mut Setup, operand: usize, kind: c_int, batch: usize) {
        setup.layout(operand, layout::ROWS, self.rows as u64);
        setup.layout(operand, layout::COLUMNS, self.columns as u64);
        setup.layout(operand, layout::ORDER, i32::from(self.is_by_rows));
        setup.layout(operand, layout::LEADING, self.leading as i64);
        setup.layout(operand, layout::BATCH_COUNT, batch as i32);
        setup.layout(operand, layout::BATCH_STRIDE, self.stride as i64);
        setup.addresses[operand] = upload(&all(kind, self.values.iter().copied()));
    }
}

fn check_layout(kind: c_int, choices: u32) {
    let choice = |bit: u32| choices >> bit & 1 == 1;
    let (transposed, by_rows) = ([choice(0), choice(1)], [choice(2), choice(3), choice(4)]);
    let ([m, n, k], batch) = ([2, 4, 3], 2);
    let turned =
        |[rows, columns]: [usize; 2], it: bool| if it { [columns, rows] } else { [rows, columns] };
    let a = Stored::new(0, turned([m, k], transposed[0]), by_rows[0], batch);
    let b = Stored::new(1, turned([k, n], transposed[1]), by_rows[1], batch);
    let c = Stored::new(2, [m, n], by_rows[2], batch);
    let d = Stored::new(3, [m, n], by_rows[2], batch);
    let mut setup = Setup::new(kind);
    for (operand, matrix) in [&a, &b, &c, &d].into_iter().enumerate() {
        matrix.describe(&mut setup, operand, kind, batch);
    }
    setup.operation(op::TRANS_A, i32::from(transposed[0]));
    setup.operation(op::TRANS_B, i32::from(transposed[1]));
    let scale = if kind == R_64F { R_64F } else { R_32F };
    setup.scales = [encoded(scale, 2.0), encoded(scale, -0.5)];
    assert_eq!(setup.run(), OK);

    let mut expected = d.values.clone();
    for (index, row, column) in (0..batch)
        .flat_map(|i| (0..m).flat_map(move |row| (0..n).map(move |column| (i, row, column))))
    {
        let of_a = |at| a.get(index, row, at, transposed[0]);
        let of_b = |at| b.get(index, at, column, transposed[1]);
        let sum: f64 = (0..k).map(|at| of_a(at) * of_b(at)).sum();
        expected[d.index(index, row, column)] = 2.0 * sum - 0.5 * c.get(index, row, column, false);
    }
    let bytes = download(setup.addresses[3], expected.len() * width(kind));
    let got: Vec<f64> = bytes.chunks_exact(width(kind)).map(|bytes| decoded(kind, bytes)).collect();
    // Rounded once.
    let expected: Vec<f64> =
        expected.into_iter().map(|value| decoded(kind, &encoded(kind, value))).collect();
    assert_eq!(got, expected, "type {kind}, choices {choices:05b}");
}

#[test]
fn every_order_and_transposition_of_every_type_is_computed() {
    for kind in [R_32F, R_64F, R_16F, R_16BF] {
        (0..32).for_each(|choices| check_layout(kind, choices));
    }
}

/// A product of ones, so that each sum is 3, and a bias of -4 and 1.
fn with_epilogue(number: u32) -> Setup {
    let setup = Setup::new(R_32F);
    setup.operation(op::EPILOGUE, number);
    let is_known =
        [1, 2, 4, 6, 32, 36, 130, 134, 136, 152, 160, 164, 192, 208, 256, 512].contains(&number);
    if !is_known || number & (4 | 16 | 256 | 512) != 0 {
        setup.operation(op::BIAS, upload(&all(R_32F, [-4.0, 1.0, 7.0, 7.0, 7.0])));
    }
    if number & 128 != 0 {
        setup.operation(op::AUX, upload(&[0; 256]));
        setup.operation(op::AUX_LEADING, 128_i64);
    }
    setup
}

#[test]
fn epilogues_are_applied_after_the_scales() {
    let gelu = |x: f32| {
        let factor = (2.0 / std::f32::consts::PI).sqrt();
        0.5 * x * (1.0 + (factor * (x + 0.044715 * x * x * x)).tanh())
    };
    // Sums of 3 with the bias: -1 and 4.
    let table: [(u32, [f32; 2]); 8] = [
        (1, [3.0, 3.0]),
        (2, [3.0, 3.0]),
        (4, [-1.0, 4.0]),
        (6, [0.0, 4.0]),
        (32, [gelu(3.0); 2]),
        (36, [gelu(-1.0), gelu(4.0)]),
        (134, [0.0, 4.0]),
        (164, [gelu(-1.0), gelu(4.0)]),
    ];
    for (number, expected) in table {
        let setup = with_epilogue(number);
        assert_eq!(setup.run(), OK, "{number}");
        let bytes = download(setup.addresses[3], 32);
        for (index, bytes) in bytes.chunks_exact(4).enumerate() {
            let (got, expected) = (decoded(R_32F, bytes) as f32, expected[index % 2]);
            assert!((got - expected).abs() < 1e-6, "epilogue {number}: {got}, not {expected}");
        }
    }
    // beta's part comes before the function.
    let mut setup = with_epilogue(2);
    setup.scales[1] = encoded(R_32F, -5.0);
    assert_eq!(setup.run(), OK);
    assert_eq!(download(setup.addresses[3], 32), all(R_32F, [0.0; 8]));
}

#[test]
fn outputs_beside_the_matrix_become_unknown_and_nothing_else() {
    let value = |setup: &Setup, attribute| {
        descriptors::change(setup.operation, operation::TABLE, |it| Ok(it.get(attribute) as u64))
    };
    // The bytes of the auxiliary matrix of 4 columns and of the bias's gradient that are written.
    for (number, is_computed, aux, gradient) in [
        (130, true, 3 * 16 + 1, 0),
        (160, true, 3 * 128 * 4 + 8, 0),
        (136, false, 0, 0),
        (152, false, 0, 8),
        (192, false, 0, 0),
        (208, false, 0, 8),
        (256, true, 0, 8),
        (512, true, 0, 16),
        // A number that no CUDA has yet.
        (1024, false, 0, 0),
    ] {
        let setup = with_epilogue(number);
        if number == 160 {
            setup.operation(op::AUX, upload(&[0; 2048]));
        }
        assert_eq!(setup.run(), OK, "{number}");
        assert_eq!(is_known(setup.addresses[3], 32), is_computed, "{number}");
        let unknown = |attribute, length: u64| {
            let address = value(&setup, attribute).unwrap();
            let all = if address == 0 { 0 } else { length };
            (0..all).filter(|&byte| !is_known(address + byte, 1)).count()
        };
        let length = if number == 160 { 2048 } else { 256 };
        assert_eq!(unknown(op::AUX, length), aux, "{number}");
        assert_eq!(unknown(op::BIAS, 20), gradient, "{number}");
    }
}

#[test]
fn vectors_of_a_batch_have_a_stride() {
    let mut setup = with_epilogue(4);
    (0..4).for_each(|matrix| setup.layout(matrix, layout::BATCH_COUNT, 2_i32));
    setup.layout(3, layout::BATCH_STRIDE, 8_i64);
    setup.operation(op::BIAS_STRIDE, 1_i64);
    setup.addresses[3] = allocate(64);
    assert_eq!(setup.run(), OK);
    let expected = [[-1.0, 4.0]; 4].into_iter().chain([[4.0, 10.0]; 4]).flatten();
    assert_eq!(download(setup.addresses[3], 64), all(R_32F, expected));
}

#[test]
fn scales_can_be_on_the_device() {
    let setup = Setup::new(R_32F);
    setup.operation(op::POINTER_MODE, 1_i32);
    let [alpha, beta] = [2.0, 10.0].map(|value| upload(&encoded(R_32F, value)));
    let run = |setup: &Setup| {
        let [a, b, c, d] = setup.addresses;
        let [a_layout, b_layout, c_layout, d_layout] = setup.layouts;
        // SAFETY: the algorithm is null.
        unsafe {
            let none = In::new(null());
            cublasLtMatmul(
                setup.handle,
                setup.operation,
                alpha,
                a,
                a_layout,
                b,
                b_layout,
                beta,
                c,
                c_layout,
                d,
                d_layout,
                none,
                0,
                0,
                0,
            )
        }
    };
    assert_eq!(run(&setup), OK);
    assert_eq!(download(setup.addresses[3], 32), all(R_32F, [16.0; 8]));
    // Vectors of scales are not computed.
    setup.operation(op::POINTER_MODE, 2_i32);
    assert_eq!(run(&setup), OK);
    assert!(!is_known(setup.addresses[3], 32));
}

#[test]
fn products_of_8_bits_have_factors() {
    let setup = of_8_bits(R_16BF);
    for (attribute, factor) in [(op::A_SCALE, 0.5), (op::B_SCALE, 0.25), (op::D_SCALE, 100.0)] {
        setup.operation(attribute, upload(&encoded(R_32F, factor)));
    }
    assert_eq!(setup.run(), OK);
    // The factor of D is only for an output of 8 bits.
    assert_eq!(download(setup.addresses[3], 64), all(R_16BF, [2.0; 32]));

    let setup = of_8_bits(R_8F);
    let [sixteenth, largest] = [0.0625, 0.0].map(|value| upload(&encoded(R_32F, value)));
    setup.operation(op::D_SCALE, sixteenth);
    setup.operation(op::AMAX_D, largest);
    assert_eq!(setup.run(), OK);
    assert_eq!(download(setup.addresses[3], 32), [0x38; 32]);
    assert!(!is_known(largest, 1));
    // Factors of blocks are not computed.
    setup.operation(op::A_SCALE, sixteenth);
    setup.operation(op::A_SCALE_MODE, 5_i32);
    assert_eq!(setup.run(), OK);
    assert!(!is_known(setup.addresses[3], 32));
}

#[test]
fn products_that_are_not_computed_overwrite_their_output_only() {
    let ints = [(R_8I, 2, 3), (R_8I, 3, 4), (R_32I, 2, 4), (R_32I, 2, 4)];
    let mut setup = Setup::of(ints, COMPUTE_32I, R_32I);
    let before = upload(&[0; 48]);
    setup.addresses[3] = before + 8;
    assert_eq!(setup.run(), OK);
    assert!((0..32).all(|byte| !is_known(before + 8 + byte, 1)));
    assert!(is_known(before, 8) && is_known(before + 40, 8));

    // An order of tiles, and an array of pointers.
    let setup = Setup::new(R_32F);
    (0..4).for_each(|matrix| setup.layout(matrix, layout::ORDER, 2_i32));
    assert_eq!(setup.run(), OK);
    assert!(!is_known(setup.addresses[3], 1));
    let mut setup = Setup::new(R_32F);
    (0..4).for_each(|matrix| setup.layout(matrix, layout::BATCH_MODE, 1_u32));
    let output = setup.addresses[3];
    setup.addresses[3] = upload(&output.to_ne_bytes());
    assert_eq!(setup.run(), OK);
    assert!(!is_known(output, 1) && is_known(setup.addresses[0], 24));
}
