//! The answers of programs about the machine: the loader's list of libraries, and that of
//! nvidia-smi.

use crate::build::toolchain::gpu::read_gpus;
use crate::system::libraries::Linked;

/// The input is read as either of the answers.
pub fn machine(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (stdout, stderr) = text.split_once('\0').unwrap_or((&text, &text));
    let linked = Linked::read(stdout, stderr);
    let _ = linked.below(std::path::Path::new("/lib")).count();
    read_gpus(stdout, stderr);
}
