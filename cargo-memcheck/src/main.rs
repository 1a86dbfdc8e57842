//! The program `cargo-memcheck`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    cargo_memcheck::main()
}
