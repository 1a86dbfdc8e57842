//! The simulated CUDA device.
