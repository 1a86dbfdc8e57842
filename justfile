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

# The tests before a push, on the CPU and on the simulated GPU.
test:
    cargo test --workspace

# The same, and the tests that take more than five seconds each and guard something rare. CI runs both.
all: test slow

# Only the latter.
slow:
    cargo test -p memcheck-functional --test functional -- --ignored --skip weekly::

# The time of each test of the suite, the slowest first. libtest prints times on
# request of the variable only; it is set for the test executables and not for cargo.
times *ARGS:
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="env RUSTC_BOOTSTRAP=1" \
        cargo test --workspace --tests {{ARGS}} -- -Z unstable-options --report-time \
        | sed -nE 's/^test (.*) \.\.\. (ok|FAILED) <([0-9.]+)s>$/\3 s  \1/p' | sort -rn

# The memory tests, on the simulated GPU and on the CPU.
memcheck *ARGS:
    cargo memcheck {{ARGS}}

# Runs the commands whose output README.md and docs/ show, and writes the blocks and pictures again.
# The results that unit tests present (cargo-memcheck/recorded) too.
outputs:
    OUTPUTS=write cargo test -p memcheck-functional -- --include-ignored outputs:: recorded:: two_results_are_compared

# Writes the list of modules (docs/modules.md) from the first sentence of each module's documentation.
modules:
    MODULES=write cargo test -p memcheck-functional --test functional -- modules::

# Writes the tables of refused functions of the simulated device, and the linker script of the
# simulated toolkit, from the bindings of the cudarc in Cargo.lock.
bindings:
    BINDINGS=write cargo test -p memcheck-sources --test bindings

# Writes the table of candle's CUDA sources that the simulated device knows, from the versions in
# cargo's registry. `cargo fetch` in a package with another version adds that one.
cuda-sources:
    CUDA_SOURCES=write cargo test -p memcheck-kernels --lib known_sources

# Bundles the script and the style of the HTML report. Needs Node.js and npm; `--check` compares.
report-bundle *ARGS:
    scripts/report-bundle {{ARGS}}

# The pictures of the HTML report in docs/images. Needs Chromium.
report-screenshots:
    scripts/report-screenshots

# Licenses, sources and duplicates of the dependencies, and advisories, whose database is
# downloaded. Needs `cargo install cargo-deny --locked`.
deny *WHICH:
    cargo deny --locked check {{WHICH}}

# What users compile, with the oldest versions of other crates that the manifests allow, for the CPU
# and for the simulated device. Compiles candle twice.
minimal:
    scripts/minimal-versions

# What users compile, and the command, with the oldest compilers that the manifests declare.
compilers:
    scripts/oldest-compilers

# The crates of a test process and the workloads on aarch64: under qemu, if the machine is another one.
aarch64 *ARGS:
    scripts/aarch64 {{ARGS}}

# The path of macOS and Windows, on this system. Compiles candle once more on Linux.
portable:
    scripts/portable

# What users compile on macOS and Windows, and the command, for these systems. Needs
# `rustup target add aarch64-apple-darwin x86_64-pc-windows-gnu`.
cross:
    scripts/cross

# The ledger in an interpreter that finds data races, and tries orders of memory that this processor
# never shows. Needs `rustup +nightly component add miri rust-src`.
miri *ARGS:
    MIRIFLAGS="-Zmiri-many-seeds=0..4 -Zmiri-disable-isolation" RUSTFLAGS="--cfg memcheck_portable" \
        cargo +nightly miri test -p memcheck-ledger --lib {{ARGS}}

# The notices of third-party licenses that a binary release contains, in target/NOTICES.md.
# Needs `cargo install cargo-about --locked --features cli`.
notices:
    mkdir -p target
    cargo about generate --locked --fail --manifest-path cargo-memcheck/Cargo.toml \
        --config about.toml about.hbs --output-file target/NOTICES.md

# The pages as a book, in target/book. Needs `cargo install mdbook --no-default-features`.
book:
    mdbook build

# Speed against others, side by side in one run.
bench:
    cargo bench -p memcheck-tests -F detection

# The build by a real CUDA toolkit measures what the simulated one does: fetches the
# toolkit, compiles candle's kernels, needs no GPU.
real:
    scripts/cuda-toolkit >/dev/null
    cargo test -p memcheck-functional weekly::real -- --ignored --nocapture --test-threads 1

# The CUDA tests that candle-core and candle-nn ship, on the simulated device. Prints how many of each file pass.
candle-tests:
    cargo test -p memcheck-functional candle_tests:: -- --include-ignored --nocapture

# One package (tests/candle_versions) with each version of candle, or with one of them: `just candle-versions 0.9.2`. Bytes,
# growth and values are compared with those of tests/candle_versions/expected.tsv. Compiles candle twice for each version.
candle-versions VERSION="":
    {{ if VERSION == "" { "" } else { "CANDLE_VERSION=" + VERSION } }} cargo test -p memcheck-functional candle_versions:: -- \
        --ignored --nocapture

# The defects of crates on top of another version of candle (tests/found_crates), with their accepted
# figures. Compiles that candle for both devices. Needs `protoc`, which candle-onnx calls.
found:
    @command -v protoc >/dev/null || \
        { printf 'error: this machine has no protoc\n  hint: apt-get install protobuf-compiler\n' >&2; exit 1; }
    cargo test -p memcheck-functional found::weekly -- --ignored --nocapture

# A package of the shape of each of 25 projects that use candle (tests/functional/weekly/projects/rows.tsv), or of one of
# them: `just projects moshi`. It adds memcheck, and measures on `cpu` and `sim`. Compiles candle in each version, from the
# registry and from git, with three compilers.
projects PROJECT="":
    for version in 1.88 1.91; do \
        rustup toolchain list | grep -q "^$version" || rustup toolchain install "$version" --profile minimal; \
    done
    PROJECT={{PROJECT}} cargo test -p memcheck-functional weekly::projects -- --ignored --nocapture

# candle's features `cudnn` and `nccl`, `estimate --flash-attn`, the proof of `doctor`, bindgen_cuda, a
# fork of candle-kernels, and tokenizers with onig. Compiles candle with other features, and downloads bindgen_cuda and onig.
features:
    cargo test -p memcheck-functional -- --ignored --test-threads 1 candle_features bindgen_cuda \
        kernels_of_an_unknown_source estimated_flash_attention doctor_proves tokenizers_with_onig

# Another compiler, wrapper, toolchain or linker, and other flags, are measured in the next run. Compiles candle three times for each device.
rebuilds:
    cargo test -p memcheck-functional weekly::compilers -- --ignored --test-threads 1

# The readers of other ecosystems read the exports, Chromium and axe the pages, and shells the completions
# (CONTRIBUTING.md, "An export"). A reader that this machine lacks is an error here; the test suite skips it.
readers:
    READERS=all cargo test -p memcheck-functional -- --nocapture \
        reports:: perfetto:: memory_viz:: report_ completions:: action:: recipes::

# The outputs of every architecture, and the tokens that are sampled from them, on the simulated
# device and on the CPU. `mamba2` pads its prompt to 256 tokens, so that it needs larger limits
# than a test has by default.
logits:
    MEMCHECK_VALUES="16 GiB" just simulated test --profile dev -p memcheck-estimate --test logits \
        --features memcheck-runtime/sim,memcheck-runtime/nn-cuda,memcheck-runtime/transformers-cuda \
        -- --nocapture

# Measures every architecture on the simulated device, and compares docs/survey.md and docs/survey.json.
# `SURVEY=write just survey` writes them. The device has more memory than any card, so that every model fits.
survey:
    MEMCHECK_SIM=h200,capacity=1TiB just simulated test --profile dev -p memcheck-estimate --test survey \
        --features memcheck-runtime/sim,memcheck-runtime/nn-cuda,memcheck-runtime/transformers-cuda

# The tiny models of the survey with candle 0.9.2, 0.10.2 and 0.11.1, and the call sites at the peaks that differ
# (docs/survey-versions.json). `SURVEY=write just survey-versions` writes them, and then `SURVEY=write just survey` the page.
# Compiles candle once for each version.
survey-versions:
    nice -n 19 cargo test -p memcheck-functional survey_versions:: -- --ignored --nocapture

# Random operations on the simulated device and on the CPU, until the device has launched this
# number of kernels or the seconds are over. The first difference is made smaller and printed.
differential LAUNCHES="10000000" SECONDS="36000":
    just simulated run -p memcheck-tests --example differential --features differential,simulated -- \
        {{LAUNCHES}} {{SECONDS}}

# Runs cargo with the simulated toolkit. Crates come from the build of `cargo memcheck`.
[private]
simulated *ARGS:
    #!/usr/bin/env bash
    set -euo pipefail
    eval "$(cargo memcheck env)"
    export CARGO_BUILD_BUILD_DIR="$PWD/target" CARGO_TARGET_DIR="$PWD/target/memcheck/sim"
    exec cargo {{ARGS}}

# Thirty runs on each device, bit by bit.
exactness:
    cargo test -p memcheck-functional exactness -- --ignored --nocapture

# SIGKILL, one signal and two signals at 100 random moments of each. Prints a table. FAULTS_SEED=2 tries other moments.
faults:
    cargo test -p memcheck-functional hundred_moments -- --ignored --nocapture

# Eight runs at the same time in one tree, a hundred times. CONCURRENT_ROUNDS=20 repeats them twenty times.
concurrent:
    cargo test -p memcheck-functional a_hundred_times -- --ignored --nocapture

# A test that writes 10 GiB of output or progress, and a record of 1 GiB. Prints the memory of the command.
floods:
    cargo test -p memcheck-functional ten_gibibytes -- --ignored --nocapture

# Changes one operator, value, field or match arm of the verdict at a time, and lists the changes
# that no unit test notices. All of them take an hour of one core; `just mutants --shard 0/10
# --sharding round-robin` takes a tenth. Needs `cargo install cargo-mutants --locked`.
mutants *ARGS:
    CARGO_PROFILE_DEV_DEBUG=0 cargo mutants -p memcheck-core {{ARGS}}

# Mutates the inputs of TARGET (results, report, archive, snapshot, machine, attribute or configuration) for an hour.
# A crash is written to `fuzz/artifacts`; it belongs in `fuzz/corpus/TARGET` with its repair. Stable Rust is enough.
# Needs `cargo install cargo-fuzz --locked` and a C++ compiler.
fuzz TARGET *ARGS="-max_total_time=3600":
    #!/usr/bin/env bash
    set -euo pipefail
    if [ "{{TARGET}}" = configuration ]; then
        exec cargo test -p memcheck-estimate fuzzing -- --ignored --nocapture
    fi
    mkdir -p fuzz/found/{{TARGET}}
    cargo fuzz run --sanitizer none {{TARGET}} fuzz/found/{{TARGET}} fuzz/corpus/{{TARGET}} -- \
        -timeout=1 -rss_limit_mb=512 -max_len=65536 -close_fd_mask=2 {{ARGS}}

# Time and memory of 100,000 tests, a million holders, scopes of depth 10,000 and 100,000 survivors, and of the double.
scale:
    cargo test --release -p cargo-memcheck --lib large_inputs -- --ignored --nocapture --test-threads 1
