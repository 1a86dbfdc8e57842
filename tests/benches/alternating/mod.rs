//! The shared part of the benchmarks that compare whole programs: the programs take turns. Each
//! program is an example of this package that times itself on request.

mod program;
mod rounds;

pub(crate) use program::{LAYOUTS, Program, link};
pub(crate) use rounds::{Row, rounds};

pub(crate) fn time(nanoseconds: f64) -> String {
    if nanoseconds < 1e3 {
        format!("{nanoseconds:.2} ns")
    } else if nanoseconds < 1e6 {
        format!("{:.2} µs", nanoseconds / 1e3)
    } else {
        format!("{:.3} ms", nanoseconds / 1e6)
    }
}
