//! NCCL (candle's feature `nccl`).
//!
//! cudarc 0.19.10 binds these names, and the simulator does not implement them. A call prints its
//! name and returns `ncclInternalError`.

use crate::refused::unsupported;

unsupported! { 3;
    ncclAllGather ncclAllReduce ncclAlltoAll ncclBcast ncclBroadcast ncclCommAbort ncclCommCount
    ncclCommCuDevice ncclCommDeregister ncclCommDestroy ncclCommFinalize ncclCommGetAsyncError
    ncclCommGetUniqueId ncclCommGrow ncclCommInitAll ncclCommInitRank ncclCommInitRankConfig
    ncclCommInitRankScalable ncclCommMemStats ncclCommRegister ncclCommResume ncclCommRevoke
    ncclCommShrink ncclCommSplit ncclCommSuspend ncclCommUserRank ncclCommWindowDeregister
    ncclCommWindowRegister ncclGather ncclGetUniqueId ncclGetVersion ncclGroupEnd
    ncclGroupSimulateEnd ncclGroupStart ncclMemAlloc ncclMemFree ncclParamBind ncclParamDumpAll
    ncclParamGet ncclParamGetAllParameterKeys ncclParamGetI16 ncclParamGetI32 ncclParamGetI64
    ncclParamGetI8 ncclParamGetParameter ncclParamGetStr ncclParamGetU16 ncclParamGetU32
    ncclParamGetU64 ncclParamGetU8 ncclPutSignal ncclRecv ncclRedOpCreatePreMulSum
    ncclRedOpDestroy ncclReduce ncclReduceScatter ncclResetDebugInit ncclScatter ncclSend
    ncclSignal ncclWaitSignal ncclWinGetUserPtr
}
