fn main() {
    #[cfg(OWN_FEATURE)]
    {
        let out = std::path::PathBuf::from(std::env::var("OUT_DIR").unwrap());
        let kernels = bindgen_cuda::Builder::default().build_ptx().unwrap();
        kernels.write(out.join("ptx.rs")).unwrap();
    }
}
