//! cuBLASLt: transforms of matrices, algorithms by number, groups, emulation and the log.
//!
//! Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.
//! cudarc binds these names, and the simulator does not implement them. A call prints its name
//! and returns `CUBLAS_STATUS_NOT_SUPPORTED`.

use crate::refused::unsupported;

unsupported! { 15;
    cublasLtEmulationDescCreate cublasLtEmulationDescDestroy cublasLtEmulationDescGetAttribute
    cublasLtEmulationDescInit_internal cublasLtEmulationDescSetAttribute
    cublasLtGroupedMatrixLayoutCreate cublasLtGroupedMatrixLayoutInit_internal
    cublasLtLoggerForceDisable cublasLtLoggerOpenFile cublasLtLoggerSetCallback
    cublasLtLoggerSetFile cublasLtLoggerSetLevel cublasLtLoggerSetMask
    cublasLtMatmulAlgoCapGetAttribute cublasLtMatmulAlgoCheck cublasLtMatmulAlgoCheckForStream
    cublasLtMatmulAlgoConfigGetAttribute cublasLtMatmulAlgoConfigSetAttribute
    cublasLtMatmulAlgoGetHeuristicForStream cublasLtMatmulAlgoGetIds cublasLtMatmulAlgoInit
    cublasLtMatmulDescInit_internal cublasLtMatmulPreferenceInit_internal
    cublasLtMatrixLayoutInit_internal cublasLtMatrixTransform cublasLtMatrixTransformDescCreate
    cublasLtMatrixTransformDescDestroy cublasLtMatrixTransformDescGetAttribute
    cublasLtMatrixTransformDescInit_internal cublasLtMatrixTransformDescSetAttribute
}
