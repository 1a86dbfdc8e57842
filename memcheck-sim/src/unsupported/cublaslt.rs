//! cuBLASLt.
//!
//! Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.
//! cudarc binds these names, and the simulator does not implement them. A call prints its name
//! and returns `CUBLAS_STATUS_NOT_SUPPORTED`.

use crate::refused::unsupported;

unsupported! { 15;
    cublasLtCreate cublasLtDestroy cublasLtEmulationDescCreate cublasLtEmulationDescDestroy
    cublasLtEmulationDescGetAttribute cublasLtEmulationDescInit_internal
    cublasLtEmulationDescSetAttribute cublasLtGetProperty cublasLtGroupedMatrixLayoutCreate
    cublasLtGroupedMatrixLayoutInit_internal cublasLtHeuristicsCacheGetCapacity
    cublasLtHeuristicsCacheSetCapacity cublasLtLoggerForceDisable cublasLtLoggerOpenFile
    cublasLtLoggerSetCallback cublasLtLoggerSetFile cublasLtLoggerSetLevel cublasLtLoggerSetMask
    cublasLtMatmul cublasLtMatmulAlgoCapGetAttribute cublasLtMatmulAlgoCheck
    cublasLtMatmulAlgoCheckForStream cublasLtMatmulAlgoConfigGetAttribute
    cublasLtMatmulAlgoConfigSetAttribute cublasLtMatmulAlgoGetHeuristic
    cublasLtMatmulAlgoGetHeuristicForStream cublasLtMatmulAlgoGetIds cublasLtMatmulAlgoInit
    cublasLtMatmulDescCreate cublasLtMatmulDescDestroy cublasLtMatmulDescGetAttribute
    cublasLtMatmulDescInit_internal cublasLtMatmulDescSetAttribute cublasLtMatmulPreferenceCreate
    cublasLtMatmulPreferenceDestroy cublasLtMatmulPreferenceGetAttribute
    cublasLtMatmulPreferenceInit_internal cublasLtMatmulPreferenceSetAttribute
    cublasLtMatrixLayoutCreate cublasLtMatrixLayoutDestroy cublasLtMatrixLayoutGetAttribute
    cublasLtMatrixLayoutInit_internal cublasLtMatrixLayoutSetAttribute cublasLtMatrixTransform
    cublasLtMatrixTransformDescCreate cublasLtMatrixTransformDescDestroy
    cublasLtMatrixTransformDescGetAttribute cublasLtMatrixTransformDescInit_internal
    cublasLtMatrixTransformDescSetAttribute
}
