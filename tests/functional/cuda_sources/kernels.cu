#include "scratch.cuh"

__global__ void add_one(const size_t n, float *out) {
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] += 1.0f; }
}

// Two launchers in the forms that packages use: by a macro, and in a block.
#define LAUNCHER(NAME, T) \
    extern "C" void launch_##NAME(const size_t n, T *out, cudaStream_t stream) { \
        NAME<<<(n + 255) / 256, 256, 0, stream>>>(n, out); \
    }
LAUNCHER(add_one, float)

extern "C" {
int launch_scan(const float *x, float *out, int n, void *stream) {
    void *scratch = scratch_of(n, static_cast<cudaStream_t>(stream));
    return scratch == nullptr;
}

// A launcher of candle-kernels has this name, and 14 other arguments.
void launch_mmq_gguf_q4_0(float *out, float factor) {
    add_one<<<1, 256>>>(256, out);
}
}
