//! The run-time compiler.
//!
//! cudarc 0.19.10 binds these names, and the simulator does not implement them. A call prints its
//! name and returns `NVRTC_ERROR_INTERNAL_ERROR`.

use crate::refused::unsupported;

unsupported! { 11;
    nvrtcGetBundledHeadersInfo nvrtcGetCUBIN nvrtcGetCUBINSize nvrtcGetLTOIR nvrtcGetLTOIRSize
    nvrtcGetNumSupportedArchs nvrtcGetOptiXIR nvrtcGetOptiXIRSize nvrtcGetSupportedArchs
    nvrtcGetTileIR nvrtcGetTileIRSize nvrtcInstallBundledHeaders nvrtcRemoveBundledHeaders
}
