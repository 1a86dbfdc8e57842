//! Measures the time of an operation, as the limits count them, for each kind of kernel: `cargo bench --profile dev -p
//! memcheck-kernels`. If the counts are right, the times of all rows are of the same order.
//!
//! The profile is the one in which tests use this crate.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memcheck_kernels::quantized::{Format, QuantizedProduct};
use memcheck_kernels::{
    Arguments, Attention, Distribution, Epilogue, FailedAssert, Generator, Image, KernelCode, Kind,
    Limits, Memory, Operand, Product, Rows, Scalars, Shape, Span, Values,
};
use memcheck_limits::size::Size;
use memcheck_limits::values::Contents;

/// Blocks of memory by address, with their sizes.
struct Blocks {
    values: Values,
    sizes: BTreeMap<u64, u64>,
}

impl Memory for Blocks {
    fn values(&self) -> &Values {
        &self.values
    }

    fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }

    fn fail_assert(&mut self, failed: FailedAssert) {
        panic!("{failed:?}");
    }

    fn span(&self, address: u64, length: u64) -> Option<Span> {
        let rest = self.span_to_end(address)?;
        (length <= rest.length).then_some(Span { length, ..rest })
    }

    fn span_to_end(&self, address: u64) -> Option<Span> {
        let (&block, &size) = self.sizes.range(..=address).next_back()?;
        let offset = address - block;
        (offset < size).then(|| Span { block, size, offset, length: size - offset })
    }

    fn host_bytes(&self, _address: u64, _length: u64) -> Option<Vec<u8>> {
        None
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        if let Some(span) = self.span(address, bytes.len() as u64) {
            self.values.write(span, bytes);
        }
    }
}

/// Elements of a launch.
const COUNT: u64 = 1 << 17;
/// Rows and columns of matrices of `COUNT` elements.
const ROWS: u64 = 128;
const COLUMNS: u64 = COUNT / ROWS;

struct Bench {
    memory: Blocks,
}

impl Bench {
    fn new() -> Self {
        let values = Values::new(Limits::of(Contents::AtMost(Size(1 << 50))));
        Self { memory: Blocks { values, sizes: BTreeMap::new() } }
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        let end = self.memory.sizes.last_key_value().map_or(1 << 32, |(at, size)| at + size);
        let address = end.next_multiple_of(512);
        self.memory.sizes.insert(address, bytes);
        address
    }

    fn upload(&mut self, bytes: &[u8]) -> u64 {
        let address = self.allocate(bytes.len() as u64);
        self.memory.write_bytes(address, bytes);
        address
    }

    /// Numbers between 0.5 and 1.5, with the bytes of the type.
    fn numbers(&mut self, kind: &str, count: u64) -> u64 {
        let number = |at: u64| 0.5 + (at * 7919 % 1009) as f32 / 1009.0;
        let bytes: Vec<u8> = (0..count)
            .flat_map(|at| match kind {
                "bf16" => half::bf16::from_f32(number(at)).to_ne_bytes().to_vec(),
                "f16" => half::f16::from_f32(number(at)).to_ne_bytes().to_vec(),
                "f64" => f64::from(number(at)).to_ne_bytes().to_vec(),
                "u32" => (at * 7919 % ROWS).to_ne_bytes()[..4].to_vec(),
                "u8" => vec![(at % 2) as u8],
                _ => number(at).to_ne_bytes().to_vec(),
            })
            .collect();
        self.upload(&bytes)
    }

    /// Launches until the time is measured well enough.
    fn time(&mut self, name: &str, elements: u64, mut launch: impl FnMut(&mut Blocks)) {
        let before = self.memory.values.operations();
        launch(&mut self.memory);
        let operations = self.memory.values.operations() - before;
        let mut best = Duration::MAX;
        let start = Instant::now();
        let mut rounds = 0;
        while rounds < 3 || start.elapsed() < Duration::from_millis(100) {
            let start = Instant::now();
            launch(&mut self.memory);
            best = best.min(start.elapsed());
            rounds += 1;
        }
        let time = best.as_secs_f64() * 1e9;
        println!(
            "{name:<32} {:>10.3} ns/element {:>10.3} operations {:>8.3} ns/operation",
            time / elements as f64,
            operations as f64 / elements as f64,
            time / operations as f64,
        );
    }

    fn kernel(&mut self, name: &str, shape: Shape, elements: u64, arguments: &[u64]) {
        let kernel = kernel(name);
        let pointers: Vec<_> = arguments
            .iter()
            .map(|argument| std::ptr::from_ref(argument).cast_mut().cast())
            .collect();
        // SAFETY: each argument has 8 bytes, and no width is above 8.
        let read = unsafe { Arguments::read(pointers.as_ptr(), kernel.widths()) };
        let arguments = read.expect("all arguments have an address");
        self.time(name, elements, |memory| kernel.launch(memory, shape, arguments));
    }
}

/// The kernels of candle 0.11.1 by name.
fn kernel(name: &str) -> memcheck_kernels::Kernel {
    for file in [
        "affine", "binary", "cast", "conv", "fill", "indexing", "reduce", "sort", "ternary",
        "unary",
    ] {
        let image = Image::of_text(&format!(
            "// Generated by the stand-in nvcc of memcheck-sim from {file}.cu of candle-kernels 0.11.1: no code\n"
        ));
        if let Some(KernelCode::Known(kernel)) = image.find(name, 90) {
            return kernel;
        }
    }
    panic!("candle has no kernel {name}");
}

fn shape(blocks: u64, threads: [u32; 2]) -> Shape {
    Shape { grid: [blocks as u32, 1, 1], block: [threads[0], threads[1], 1] }
}

fn elementwise(bench: &mut Bench) {
    let flat = shape(COUNT / 1024, [1024, 1]);
    // A transposed matrix, whose elements are not in order.
    let turned: Vec<u8> =
        [COLUMNS, ROWS, 1, COLUMNS].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let turned = bench.upload(&turned);
    for kind in ["f32", "f16", "bf16", "f64"] {
        let (x, y) = (bench.numbers(kind, COUNT), bench.numbers(kind, COUNT));
        let ids = bench.numbers("u8", COUNT);
        let to = bench.allocate(COUNT * 8);
        let name = |root: &str| format!("{root}_{kind}");
        bench.kernel(&name("affine"), flat, COUNT, &[COUNT, 1, 0, x, to, 0, 0]);
        for root in ["badd", "bdiv", "bmaximum", "lt"] {
            bench.kernel(&name(root), flat, COUNT, &[COUNT, 1, 0, x, y, to]);
        }
        for root in [
            "uabs",
            "uceil",
            "ucopy",
            "ucos",
            "uerf",
            "uexp",
            "ugelu",
            "ugelu_erf",
            "ulog",
            "uneg",
            "urelu",
            "uround",
            "usigmoid",
            "usilu",
            "usin",
            "usqr",
            "usqrt",
            "utanh",
        ] {
            bench.kernel(&name(root), flat, COUNT, &[COUNT, 1, 0, x, to]);
        }
        bench.kernel(&name("upowf"), flat, COUNT, &[COUNT, 1, 0, 0x4000_4000, x, to]);
        bench.kernel(&name("ucopy"), flat, COUNT, &[COUNT, 2, turned, x, to]);
        let info: Vec<u8> = [COUNT, 1, 1, 1].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let info = bench.upload(&info);
        bench.kernel(&name("where_u8"), flat, COUNT, &[COUNT, 1, info, ids, x, y, to]);
        bench.kernel(&name("const_set"), flat, COUNT, &[COUNT, 1, 0, 0x3f80_3f80, to]);
        bench.kernel(&name("cast_f32"), flat, COUNT, &[COUNT, 1, 0, x, to]);
        bench.kernel(&format!("cast_{kind}_f64"), flat, COUNT, &[COUNT, 1, 0, x, to]);
    }
}

fn rows(bench: &mut Bench) {
    let info: Vec<u8> =
        [ROWS, COLUMNS, COLUMNS, 1].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let info = bench.upload(&info);
    for kind in ["f32", "f16", "bf16", "f64"] {
        let (x, alpha) = (bench.numbers(kind, COUNT), bench.numbers(kind, COLUMNS));
        let to = bench.allocate(COUNT * 8);
        let name = |root: &str| format!("{root}_{kind}");
        let wide = shape(ROWS, [1024, 1]);
        for root in ["fast_sum", "fast_max", "fast_argmax"] {
            bench.kernel(&name(root), wide, COUNT, &[COUNT, COLUMNS, 2, info, x, to]);
        }
        bench.kernel(&name("softmax"), shape(ROWS, [1, 32]), COUNT, &[x, to, COLUMNS]);
        let eps = u64::from(1e-5_f32.to_bits());
        bench.kernel(&name("rmsnorm"), wide, COUNT, &[x, to, alpha, COLUMNS, 1024, eps]);
        bench.kernel(&name("layernorm"), wide, COUNT, &[x, to, alpha, alpha, COLUMNS, 1024, eps]);
        // Rows of 64 columns, as candle-nn's own test has them.
        let (narrow, warp) = (COUNT / 64, shape(COUNT / 64, [32, 1]));
        bench.kernel(&name("softmax"), shape(narrow, [1, 32]), COUNT, &[x, to, 64]);
        bench.kernel(&name("rmsnorm"), warp, COUNT, &[x, to, alpha, 64, 32, eps]);
        bench.kernel(&name("layernorm"), warp, COUNT, &[x, to, alpha, alpha, 64, 32, eps]);
        let (bh, td) = (COUNT / 8192, 8192);
        bench.kernel(&name("rope"), wide, COUNT, &[x, x, x, to, bh, td, 64, 0]);
        bench.kernel(&name("asort_asc"), wide, COUNT, &[x, to, COLUMNS, COLUMNS]);
        let ids = bench.numbers("u32", ROWS);
        let of_ids: Vec<u8> = [ROWS, 1_u64].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let of_ids = bench.upload(&of_ids);
        let arguments = [COUNT, 1, of_ids, ids, x, to, 1, ROWS, ROWS, COLUMNS];
        bench.kernel(&name("is_u32"), wide, COUNT, &arguments);
        let ids = bench.numbers("u32", COUNT);
        let arguments = [COUNT, ids, x, to, 1, ROWS, ROWS, COLUMNS];
        bench.kernel(&name("gather_u32"), wide, COUNT, &arguments);
        let arguments = [ids, ROWS, x, to, 1, ROWS, ROWS, COLUMNS];
        bench.kernel(&name("ia_u32"), wide, COUNT, &arguments);
    }
}

fn random(bench: &mut Bench) {
    let to = bench.allocate(COUNT * 8);
    for (kind, name) in [(Kind::F32, "f32"), (Kind::F64, "f64")] {
        let normal = Distribution::Normal { mean: 0.0, deviation: 1.0 };
        for (root, distribution) in [("uniform", Distribution::Uniform), ("normal", normal)] {
            let mut generator = Generator::default();
            bench.time(&format!("{root} {name}"), COUNT, |memory| {
                generator.generate(memory, (kind, to), COUNT, distribution);
            });
        }
    }
}

fn products(bench: &mut Bench) {
    for (kind, name) in
        [(Kind::F32, "f32"), (Kind::F16, "f16"), (Kind::Bf16, "bf16"), (Kind::F64, "f64")]
    {
        for [m, n, k] in [
            [4, 4, 4],
            [64, 1, 64],
            [32, 32, 32],
            [256, 64, 256],
            [1024, 128, 256],
            [256, 128, 1024],
            [256, 1, 256],
            [8192, 1, 256],
        ] {
            for transposed in [true, false] {
                let (a, b) = (bench.numbers(name, m * k), bench.numbers(name, k * n));
                let c = bench.allocate(m * n * kind.width());
                let operand = |address, transposed, leading| Operand {
                    address,
                    transposed,
                    leading,
                    stride: 0,
                };
                let product = Product {
                    m,
                    n,
                    k,
                    batch: 1,
                    inputs: kind,
                    output: kind,
                    // A linear layer of candle has transposed weights.
                    a: operand(a, transposed, if transposed { k } else { m }),
                    b: operand(b, false, k),
                    c: operand(c, false, m),
                    scales: Some(Scalars { alpha: 1.0, beta: 0.0 }),
                    epilogue: Epilogue::default(),
                };
                let turned = if transposed { "t" } else { "" };
                bench.time(&format!("product {name}{turned} {m} {n} {k}"), m * n * k, |memory| {
                    product.run(memory)
                });
            }
        }
    }
}

fn images(bench: &mut Bench) {
    for kind in ["f32", "f16"] {
        // 16 channels of 64 x 64 pixels, and 16 filters of 3 x 3.
        let (pixels, filters, taps) =
            (16 * 64 * 64_u64, 16 * 16 * 9_u64, 16 * 62 * 62 * 16 * 9_u64);
        let (x, weights) = (bench.numbers(kind, pixels), bench.numbers(kind, filters));
        let to = bench.allocate(taps * 8);
        let words = [1, 16, 64, 64, 65_536, 4096, 64, 1, 16, 16, 3, 3, 144, 9, 3, 1];
        let info: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        let info = bench.upload(&info);
        let wide = shape(1, [1024, 1]);
        let arguments = [16 * 62 * 62, 62, 62, 1, 0, 1, info, x, weights, to];
        bench.kernel(&format!("conv2d_{kind}"), wide, taps, &arguments);
        let columns = 62 * 62 * 16 * 9;
        let arguments = [columns, 62, 62, 3, 3, 1, 0, 1, info, x, to];
        bench.kernel(&format!("im2col_{kind}"), wide, columns, &arguments);
        let arguments = [16 * 32 * 32, 2, 2, 2, 2, info, x, to];
        bench.kernel(&format!("max_pool2d_{kind}"), wide, pixels, &arguments);
    }
}

fn attention(bench: &mut Bench) {
    let (heads, length, width) = (4, 128, 64);
    let x = bench.numbers("f16", heads * length * width);
    let rows = |address| Rows { address, batch: 0, row: heads * width, head: width };
    let to = bench.allocate(heads * length * width * 2);
    let attention = Attention {
        q: rows(x),
        k: rows(x),
        v: rows(x),
        o: rows(to),
        sums: bench.allocate(heads * length * 4),
        sequences: 1,
        heads,
        heads_k: heads,
        width,
        length_q: length,
        length_k: length,
        total_q: length,
        scale: 0.125,
        window: [-1, -1],
        ..Attention::default()
    };
    let products = 2 * heads * length * length * width;
    bench.time("attention f16", products, |memory| attention.run(memory));
}

fn quantized(bench: &mut Bench) {
    let (rows, columns) = (1024, 1024);
    for (format, bytes, name) in [
        (Format::Q8_0, 34 * 32, "q8_0"),
        (Format::Q4_0, 18 * 32, "q4_0"),
        (Format::Q4K, 144 * 4, "q4_k"),
    ] {
        let weights = bench.upload(&vec![1; rows * bytes]);
        for batch in [1, 8] {
            let vectors = bench.upload(&vec![1; batch * columns / 128 * 144]);
            let to = bench.allocate((rows * batch * 4) as u64);
            let [columns, rows, batch] = [columns, rows, batch].map(|it| it as u64);
            let product = QuantizedProduct {
                format,
                weights,
                vectors,
                to,
                columns,
                rows,
                vector_stride: columns / 32,
                stride: rows,
                batch,
            };
            let products = rows * columns * batch;
            let result = |memory: &mut Blocks| product.run(memory, Kind::F32).expect("it is known");
            bench.time(&format!("quantized {name} {batch}"), products, result);
            let tiled = |memory: &mut Blocks| product.run_tiled(memory);
            bench.time(&format!("quantized {name} {batch}, tiled"), products, tiled);
        }
    }
}

fn main() {
    for group in [elementwise, rows, images, attention, quantized, random, products] {
        group(&mut Bench::new());
    }
}
