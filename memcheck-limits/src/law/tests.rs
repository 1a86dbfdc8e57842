use super::*;

/// All combinations of these sizes, with the figure of each.
fn grid(axes: &[(&str, &[u64])], figure: impl Fn(&[u64]) -> u64) -> Vec<Point> {
    let mut places: Vec<Vec<u64>> = vec![Vec::new()];
    for (_, values) in axes {
        places = places
            .iter()
            .flat_map(|place| values.iter().map(move |v| [place.as_slice(), &[*v]].concat()))
            .collect();
    }
    let point = |place: Vec<u64>| Point {
        at: axes.iter().zip(&place).map(|((size, _), v)| ((*size).to_owned(), *v)).collect(),
        value: figure(&place),
    };
    places.into_iter().map(point).collect()
}

fn sizes(sizes: &[(&str, u64)]) -> Sizes {
    sizes.iter().map(|(size, value)| ((*size).to_owned(), *value)).collect()
}

const SEQ: (&str, &[u64]) = ("seq", &[64, 128, 256, 512]);

/// The bytes of b sequences of length s through a layer of width h with a heads, in f32: weights 4
/// (4 h² + 4 h), activations 4 b s h, scores 4 b a s².
fn attention(b: u64, s: u64, h: u64, a: u64) -> u64 {
    4 * (4 * h * h + 4 * h) + 4 * b * s * h + 4 * b * a * s * s
}

#[test]
fn the_law_of_attention_is_found_with_its_coefficients() {
    let law = find(&grid(&[SEQ], |at| attention(2, at[0], 64, 4))).unwrap();
    // 4 (4*64² + 4*64) = 66,560; 4*2*64 = 512; 4*2*4 = 32.
    assert_eq!(law.to_string(), "66560 + 512*seq + 32*seq^2");
    assert_eq!(law.in_bytes(), "65.0 KiB + 512 B*seq + 32 B*seq^2");
    assert_eq!(law.order().to_string(), "seq^2");
}

#[test]
fn two_sizes_have_one_law() {
    let axes = [("batch", &[1, 2, 4][..]), SEQ];
    let law = find(&grid(&axes, |at| attention(at[0], at[1], 64, 4))).unwrap();
    assert_eq!(law.to_string(), "66560 + 256*batch*seq + 16*batch*seq^2");
    assert_eq!(law.order().to_string(), "batch*seq^2");
    let separate = find(&grid(&axes, |at| 7 + 3 * at[0] + 5 * at[1])).unwrap();
    assert_eq!(separate.order().to_string(), "batch + seq");
}

#[test]
fn a_law_may_have_fractions_and_fall() {
    // The sum of 1..=n, and a figure that falls.
    let law = find(&grid(&[("n", &[1, 2, 3, 4, 5])], |at| at[0] * (at[0] + 1) / 2)).unwrap();
    assert_eq!(law.to_string(), "1/2*n + 1/2*n^2");
    assert_eq!(law.in_bytes(), "1/2 B*n + 1/2 B*n^2");
    assert_eq!(law.at(&sizes(&[("n", 100)])), Some(5_050));
    let law = find(&grid(&[SEQ], |at| 1_000_000 - 3 * at[0])).unwrap();
    assert_eq!((law.to_string(), law.order().to_string()), ("1000000 - 3*seq".into(), "1".into()));
    let nothing = find(&grid(&[SEQ], |_| 0)).unwrap();
    assert_eq!((nothing.in_bytes().as_str(), nothing.to_string().as_str()), ("0 B", "0"));
}

#[test]
fn a_law_needs_a_point_more_than_it_has_coefficients() {
    let square = |at: &[u64]| at[0] * at[0];
    assert!(find(&grid(&[("n", &[1, 2, 3])], square)).is_err(), "any three points have a parabola");
    assert!(find(&grid(&[("n", &[1, 2, 3, 4])], square)).is_ok());
    assert!(find(&grid(&[("n", &[1, 2])], |at| at[0])).is_err(), "any two points have a line");
    assert_eq!(find(&grid(&[("n", &[1, 2])], |_| 9)).unwrap().to_string(), "9");
    assert!(find(&grid(&[("n", &[1, 2, 3, 4, 5, 6, 7])], |at| at[0].pow(5))).is_err());
}

#[test]
fn figures_that_are_off_by_a_byte_have_no_law() {
    for off in 0..4 {
        let mut points = grid(&[SEQ], |at| 16 * at[0] * at[0]);
        points[off].value += 1;
        // Three points on a line would be a law, but these are on a parabola.
        let Err(NoLaw::Uneven { about, few }) = find(&points) else { panic!("{off}") };
        assert_eq!((about.to_string().as_str(), few.len()), ("seq^2", 0));
    }
}

#[test]
fn a_peak_that_moves_has_a_law_from_that_size_on() {
    // Below 128 the upload of the weights is the peak, above it the scores are.
    let axis: (&str, &[u64]) = ("seq", &[32, 64, 128, 256, 512, 1024]);
    let law = find(&grid(&[axis], |at| (50_000 + at[0]).max(4 * at[0] * at[0]))).unwrap();
    assert_eq!(law.to_string(), "4*seq^2 for seq >= 128");
    assert_eq!(law.to_string().parse(), Ok(law));
}

#[test]
fn figures_in_steps_of_a_granule_have_an_order_but_no_law() {
    let granule = |bytes: u64| bytes.div_ceil(512) * 512;
    for (axis, figure, order) in [
        (SEQ, (|s| 100 * s) as fn(u64) -> u64, "seq"),
        (SEQ, |s| 3 * s * s, "seq^2"),
        (("seq", &[100, 200, 300, 400]), |s| 40 * s, "seq"),
        (("seq", &[100, 200, 300, 400]), |s| 40 * s * s, "seq^2"),
    ] {
        let points = grid(&[axis], |at| granule(figure(at[0]) + 7 * (at[0] % 9)));
        match find(&points) {
            Err(NoLaw::Uneven { about, .. }) => assert_eq!(about.to_string(), order),
            other => assert_eq!(other.map(|law| law.order().to_string()), Ok(order.to_owned())),
        }
    }
}

/// The estimated order, and the sizes that have too few values.
fn estimated(axes: &[(&str, &[u64])], figure: impl Fn(&[u64]) -> u64) -> (String, Sizes) {
    match find(&grid(axes, figure)) {
        Err(NoLaw::Uneven { about, few }) => (about.to_string(), few),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_values_give_the_nearest_power_of_their_step() {
    const TWO: (&str, &[u64]) = ("n", &[1, 8]);
    for (figure, order) in [
        ((|n| 100 * n) as fn(u64) -> u64, "n"),
        (|n| 100 * n * n, "n^2"),
        // (64 + 512) / (8 + 8) is 36. On a logarithmic scale 8^2 = 64 is nearer to it than 8^1 = 8.
        (|n| 8 * n + 8 * n * n, "n^2"),
        // Weights hide how fast the rest grows, but not that it grows.
        (|n| (1 << 20) + 100 * n, "n"),
        (|n| 1_000 - 3 * n, "1"),
    ] {
        assert_eq!(estimated(&[TWO], |at| figure(at[0])), (order.to_owned(), sizes(&[("n", 2)])));
    }
    // A constant is an exact law.
    assert_eq!(find(&grid(&[TWO], |_| 9)).unwrap().to_string(), "9");
    // A power of 2 needs four values, and a line needs three.
    let square = |at: &[u64]| at[0] * at[0];
    let three = estimated(&[("n", &[1, 2, 4])], square);
    assert_eq!(three, ("n^2".to_owned(), sizes(&[("n", 3)])));
    assert!(find(&grid(&[("n", &[1, 2, 4])], |at| 7 * at[0])).is_ok());
    // Only the size with too few values is reported, not the one that has enough.
    let both = estimated(&[TWO, SEQ], |at| 4_096 * at[0] * at[1]);
    assert_eq!(both, ("n*seq".to_owned(), sizes(&[("n", 2)])));
}

#[test]
fn a_missing_combination_is_an_error() {
    let mut points = grid(&[("batch", &[1, 2, 4]), SEQ], |at| at[0] * at[1]);
    points.pop();
    assert_eq!(find(&points), Err(NoLaw::Incomplete { given: 11, expected: 12 }));
    points.push(points[0].clone());
    assert_eq!(find(&points), Err(NoLaw::Incomplete { given: 11, expected: 12 }));
    assert_eq!(find(&[]), Err(NoLaw::Incomplete { given: 0, expected: 1 }));
}

/// A generator that yields the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn random_polynomials_are_found_coefficient_by_coefficient() {
    let mut random = Random(9);
    for _ in 0..300 {
        let (b_power, s_power) = (random.below(3) as u32, random.below(4) as u32);
        let mut terms: Vec<(Monomial, Fraction)> = Vec::new();
        for b in 0..=b_power {
            for s in 0..=s_power {
                let amount = random.below(5) * random.below(1 << 18);
                let powers = [("batch".to_owned(), b), ("seq".to_owned(), s)];
                terms.push((Monomial::new(powers), Fraction::whole(amount)));
            }
        }
        let law = Law::new(terms);
        let mut values = |count: u32| -> Vec<u64> {
            let mut values: Vec<u64> = Vec::new();
            while values.len() < count as usize {
                let value = random.below(300);
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            values
        };
        let (batches, lengths) = (values(b_power + 3), values(s_power + 2));
        let axes = [("batch", &batches[..]), ("seq", &lengths[..])];
        let figure = |at: &[u64]| law.at(&sizes(&[("batch", at[0]), ("seq", at[1])])).unwrap();
        assert_eq!(find(&grid(&axes, figure)).as_ref(), Ok(&law));
        assert_eq!(law.to_string().parse().as_ref(), Ok(&law));
    }
}

#[test]
fn the_largest_size_fits_and_the_next_does_not() {
    let law: Law = "66560 + 256*batch*seq + 16*batch*seq^2".parse().unwrap();
    for (batch, capacity) in [(1, 1 << 30), (7, 24 << 30), (64, u64::MAX)] {
        let fixed = sizes(&[("batch", batch)]);
        let Largest::Upto(seq) = largest(&law, "seq", &fixed, capacity) else { panic!() };
        let need = |seq| law.at(&sizes(&[("batch", batch), ("seq", seq)]));
        assert!(need(seq).is_some_and(|bytes| bytes <= capacity), "{seq}");
        assert!(need(seq + 1).is_none_or(|bytes| bytes > capacity), "{seq}");
    }
    let largest_seq =
        |law: &str, capacity| largest(&law.parse().unwrap(), "seq", &sizes(&[]), capacity);
    assert_eq!(largest_seq("100 + 10*seq", 155), Largest::Upto(5));
    assert_eq!(largest_seq("100 + 10*seq", 109), Largest::None);
    assert_eq!(largest_seq("100 + 10*batch", 155), Largest::Any);
    assert_eq!(largest_seq("10*seq for seq >= 16", 200), Largest::Upto(20));
    assert_eq!(largest_seq("10*seq for seq >= 16", 159), Largest::None);
    assert_eq!(largest_seq("1/2*seq + 1/2*seq^2", 5_050), Largest::Upto(100));
}

#[test]
fn a_figure_that_falls_has_no_largest_size() {
    let largest_seq =
        |law: &str, capacity| largest(&law.parse().unwrap(), "seq", &sizes(&[]), capacity);
    // The exact value of the negative term overflows at large sizes, but the figure still fits.
    for law in ["100 - 1*seq", "100 - 1*seq^2", "100 - 3*seq^4", "100 - 1/3*batch*seq^3 - 7*seq^4"]
    {
        assert_eq!(largest_seq(law, 155), Largest::Any, "{law}");
    }
    assert_eq!(largest_seq("100 + 1000*seq - 1*seq^4", 1 << 20), Largest::Any);
    assert_eq!(largest_seq("100 - 1*seq^4", 98), Largest::None);
    // A positive term that overflows does not fit.
    assert_eq!(largest_seq("100 - 1000*seq^3 + 1*seq^4", 100), Largest::Upto(1_000));
}

#[test]
fn an_invalid_law_is_an_error() {
    for text in ["", "seq", "4*", "1 + ", "1 + 2", "x*seq", "1 for seq", "1 for seq >= x", "1/0"] {
        assert!(text.parse::<Law>().is_err(), "{text}");
    }
}
