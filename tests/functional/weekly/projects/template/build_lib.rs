fn main() {
    #[cfg(OWN_FEATURE)]
    {
        let out = std::path::PathBuf::from(std::env::var("OUT_DIR").unwrap());
        BUILD
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-lib=static=kernels");
    }
}
