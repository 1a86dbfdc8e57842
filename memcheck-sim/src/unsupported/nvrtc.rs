//! The run-time compiler.
//!
//! The names that cudarc 0.19.10 binds and the simulator does not answer. A
//! call prints its name and gives `NVRTC_ERROR_INTERNAL_ERROR`.

use crate::refused::unsupported;

unsupported! { 11;
    nvrtcAddNameExpression nvrtcCompileProgram nvrtcCreateProgram nvrtcDestroyProgram
    nvrtcGetBundledHeadersInfo nvrtcGetCUBIN nvrtcGetCUBINSize nvrtcGetLTOIR nvrtcGetLTOIRSize
    nvrtcGetLoweredName nvrtcGetNumSupportedArchs nvrtcGetOptiXIR nvrtcGetOptiXIRSize
    nvrtcGetPTX nvrtcGetPTXSize nvrtcGetProgramLog nvrtcGetProgramLogSize nvrtcGetSupportedArchs
    nvrtcGetTileIR nvrtcGetTileIRSize nvrtcInstallBundledHeaders nvrtcRemoveBundledHeaders
}
