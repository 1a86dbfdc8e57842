//! The declarations of launchers in C, by which Rust calls them.

use std::ffi::c_void;

unsafe extern "C" {
    pub fn launch_add_one(count: usize, out: u64, stream: *mut c_void);
    pub fn launch_scan(x: u64, out: u64, count: i32, stream: *mut c_void) -> i32;
    pub fn launch_mmq_gguf_q4_0(out: u64, factor: f32);
}
