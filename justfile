# What a contributor runs. `just` alone lists it.
default:
    @just --list

# Everything that CI runs.
ci:
    bash .ci/run

# Format and lint.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- --deny warnings
    bash .ci/lint

# All tests, on the CPU and on the simulated GPU.
test:
    cargo test --workspace

# The memory tests, on the simulated GPU and on the CPU.
memcheck *ARGS:
    cargo memcheck {{ARGS}}

# Speed against others, side by side in one run.
bench:
    cargo bench -p memcheck-tests

# The build by a real CUDA toolkit measures what the simulated one does: fetches the
# toolkit, compiles candle's kernels, needs no GPU.
real:
    scripts/cuda-toolkit >/dev/null
    cargo test -p memcheck-tests --test functional real:: -- --ignored --nocapture --test-threads 1

# Thirty runs on each device, bit by bit.
exactness:
    cargo test -p memcheck-tests --test functional exactness -- --ignored --nocapture
