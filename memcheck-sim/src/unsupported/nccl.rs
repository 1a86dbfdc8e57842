//! NCCL (candle's feature `nccl`).
//!
//! Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.
//! cudarc binds these names, and the simulator does not implement them. A call prints its name
//! and returns `ncclInternalError`.

use crate::refused::unsupported;

unsupported! { 3;
    ncclAlltoAll ncclCommDeregister ncclCommGetUniqueId ncclCommGrow ncclCommInitRankScalable
    ncclCommMemStats ncclCommRegister ncclCommResume ncclCommRevoke ncclCommShrink ncclCommSplit
    ncclCommSuspend ncclCommWindowDeregister ncclCommWindowRegister ncclGather ncclGroupSimulateEnd
    ncclMemAlloc ncclMemFree ncclParamBind ncclParamDumpAll ncclParamGet
    ncclParamGetAllParameterKeys ncclParamGetI16 ncclParamGetI32 ncclParamGetI64 ncclParamGetI8
    ncclParamGetParameter ncclParamGetStr ncclParamGetU16 ncclParamGetU32 ncclParamGetU64
    ncclParamGetU8 ncclPutSignal ncclRedOpCreatePreMulSum ncclRedOpDestroy ncclResetDebugInit
    ncclScatter ncclSignal ncclWaitSignal ncclWinGetUserPtr
}
