//! Growth: whether memory grows over the iterations, by the lifetimes of blocks.

pub mod lifetimes;
pub mod survivors;
