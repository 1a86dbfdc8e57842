/* The simulated NVML, as a library that nvml-wrapper can open by path, with what
   is simulated of CUPTI in it.

   It knows nothing: each function jumps to the one that memcheck-sim, inside the
   test binary, has set for it. Build: cc -shared -fPIC -O1 -o libnvidia-ml.so.1 nvml.c

   Every parameter of these functions is an integer or a pointer, of which there
   are at most four, so four words pass any of them on, in the C calling
   conventions of x86-64 and AArch64. */

typedef void *word;
typedef word function(word, word, word, word);

#define DRIVER_NOT_LOADED ((word)9)

#define FUNCTIONS(F) \
    F(nvmlInit_v2) \
    F(nvmlInitWithFlags) \
    F(nvmlShutdown) \
    F(nvmlSystemGetDriverVersion) \
    F(nvmlSystemGetNVMLVersion) \
    F(nvmlSystemGetCudaDriverVersion) \
    F(nvmlSystemGetCudaDriverVersion_v2) \
    F(nvmlDeviceGetCount_v2) \
    F(nvmlDeviceGetHandleByIndex_v2) \
    F(nvmlDeviceGetHandleByUUID) \
    F(nvmlDeviceGetIndex) \
    F(nvmlDeviceGetName) \
    F(nvmlDeviceGetUUID) \
    F(nvmlDeviceGetPciInfo_v3) \
    F(nvmlDeviceGetCudaComputeCapability) \
    F(nvmlDeviceGetMemoryInfo) \
    F(nvmlDeviceGetMemoryInfo_v2) \
    F(nvmlDeviceGetMigMode) \
    F(nvmlDeviceIsMigDeviceHandle) \
    F(nvmlDeviceGetMaxMigDeviceCount) \
    F(nvmlDeviceGetMigDeviceHandleByIndex) \
    F(nvmlSystemGetProcessName) \
    F(nvmlDeviceGetComputeRunningProcesses) \
    F(nvmlDeviceGetComputeRunningProcesses_v2) \
    F(nvmlDeviceGetComputeRunningProcesses_v3) \
    F(nvmlDeviceGetGraphicsRunningProcesses_v3) \
    F(cuptiGetVersion) \
    F(cuptiActivityRegisterCallbacks) \
    F(cuptiActivityEnable) \
    F(cuptiActivityDisable) \
    F(cuptiActivityEnableAllocationSource) \
    F(cuptiActivityFlushAll) \
    F(cuptiActivityGetNextRecord) \
    F(cuptiActivityGetNumDroppedRecords) \
    F(cuptiGetResultString)

#define DEFINE(name) \
    static function *to_##name; \
    word name(word a, word b, word c, word d) \
    { \
        return to_##name ? to_##name(a, b, c, d) : DRIVER_NOT_LOADED; \
    }
FUNCTIONS(DEFINE)

static function *to_nvmlErrorString;
word nvmlErrorString(word code)
{
    return to_nvmlErrorString ? to_nvmlErrorString(code, 0, 0, 0) : (word) "Driver Not Loaded";
}

static const struct {
    const char *name;
    function **to;
} table[] = {
#define ENTRY(name) { #name, &to_##name },
    FUNCTIONS(ENTRY)
    ENTRY(nvmlErrorString)
};

static int same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* Sets where the function called `name` jumps to. 0, or -1 for an unknown name. */
int memcheck_nvml_set(const char *name, void *target)
{
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (same(table[i].name, name)) {
            *table[i].to = (function *)target;
            return 0;
        }
    }
    return -1;
}
