//! Compiles the C code of the programs.

fn main() {
    cc::Build::new().file("c_heap/native.c").compile("native");
    cc::Build::new().file("c_heap/plain.c").debug(false).compile("plain");
    println!("cargo::rerun-if-changed=c_heap");
}
