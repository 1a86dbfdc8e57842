#pragma once
#include <cuda_runtime.h>

inline void *scratch_of(size_t n, cudaStream_t stream) {
    void *scratch;
    cudaMallocAsync(&scratch, n, stream);
    return scratch;
}
