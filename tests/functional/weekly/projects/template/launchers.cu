extern "C" void launch_halve(const size_t n, float *out, cudaStream_t stream) {
    halve<<<(n + 255) / 256, 256, 0, stream>>>(n, out);
}
