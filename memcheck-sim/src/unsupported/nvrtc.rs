//! The run-time compiler.
//!
//! Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.
//! cudarc binds these names, and the simulator does not implement them. A call prints its name
//! and returns `NVRTC_ERROR_INTERNAL_ERROR`.

use crate::refused::unsupported;

unsupported! { 11;
    nvrtcGetBundledHeadersInfo nvrtcGetCUBIN nvrtcGetCUBINSize nvrtcGetLTOIR nvrtcGetLTOIRSize
    nvrtcGetNumSupportedArchs nvrtcGetOptiXIR nvrtcGetOptiXIRSize nvrtcGetSupportedArchs
    nvrtcGetTileIR nvrtcGetTileIRSize nvrtcInstallBundledHeaders nvrtcRemoveBundledHeaders
}
