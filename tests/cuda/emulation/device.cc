#include "shared.h"
#include "state.h"

#include <stdlib.h>

using namespace rm_emulated;

namespace
{
struct name {
    cudaError_t error;
    const char *name, *text;
};
#define E(error, text)                                                                             \
    {                                                                                              \
        error, #error, text                                                                        \
    }
const name names[] = {
    E(cudaSuccess, "no error"),
    E(cudaErrorInvalidValue, "invalid argument"),
    E(cudaErrorMemoryAllocation, "out of memory"),
    E(cudaErrorInitializationError, "initialization error"),
    E(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    E(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    E(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    E(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    E(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    E(cudaErrorInvalidDeviceFunction, "invalid device function"),
    E(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    E(cudaErrorInvalidDevice, "invalid device ordinal"),
    E(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    E(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    E(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    E(cudaErrorNotReady, "device not ready"),
    E(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    E(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    E(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    E(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    E(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    E(cudaErrorContextIsDestroyed, "context is destroyed"),
    E(cudaErrorAssert, "device-side assert triggered"),
    E(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already "
                                            "mapped"),
    E(cudaErrorHostMemoryNotRegistered,
      "pointer does not correspond to a registered memory region"),
    E(cudaErrorHardwareStackError, "hardware stack error"),
    E(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    E(cudaErrorMisalignedAddress, "misaligned address"),
    E(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    E(cudaErrorInvalidPc, "invalid program counter"),
    E(cudaErrorLaunchFailure, "unspecified launch failure"),
    E(cudaErrorNotPermitted, "operation not permitted"),
    E(cudaErrorNotSupported, "operation not supported"),
    E(cudaErrorSystemNotReady, "system not yet initialized"),
    E(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver "
                                     "combination"),
    E(cudaErrorMpsConnectionFailed, "MPS client failed to connect to the MPS control daemon or the "
                                    "MPS server"),
    E(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    E(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    E(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    E(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    E(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    E(cudaErrorStreamCaptureImplicit,
      "operation would make the legacy stream depend on a capturing "
      "blocking stream"),
    E(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing "
                              "stream"),
    E(cudaErrorStreamCaptureWrongThread,
      "attempt to terminate a thread-local capture sequence from "
      "another thread"),
    E(cudaErrorUnknown, "unknown error"),
};
#undef E

const name &look(cudaError_t error)
{
    static const name unknown = {cudaErrorUnknown, "unrecognized error code",
                                 "unrecognized error code"};
    for (const name &n : names)
        if (n.error == error)
            return n;
    return unknown;
}

#define PROCESSORS 4 /* few, so that threads have several elements */

/* CUDA_DEVICE_ORDER may number devices by their places on the bus. Without it the driver has its
 * own order, which is the reverse here. */
int place_of(int device)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    return order && strcmp(order, "PCI_BUS_ID") == 0 ? device : (int)set().devices - 1 - device;
}
} // namespace

const char *cudaGetErrorString(cudaError_t error)
{
    return look(error).text;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return look(error).name;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    RM_CALL("cudaDriverGetVersion");
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    RM_CALL("cudaGetDeviceCount");
    *count = (int)set().devices;
    return here.gives(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    RM_CALL("cudaGetDeviceProperties");
    if (device < 0 || (unsigned)device >= set().devices)
        return here.gives(cudaErrorInvalidDevice);
    *p = cudaDeviceProp{};
    snprintf(p->name, sizeof p->name, "Emulated device");
    for (int i = 0; i < 16; i++)
        p->uuid.bytes[i] = (char)(i == 15 ? place_of(device) : 0xe0 + i);
    p->totalGlobalMem = set().memory;
    p->sharedMemPerBlock = 48u << 10;
    p->sharedMemPerBlockOptin = RM_SHARED_MOST;
    p->sharedMemPerMultiprocessor = 228u << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->totalConstMem = 65536;
    p->major = (int)set().capability / 10;
    p->minor = (int)set().capability % 10;
    p->multiProcessorCount = PROCESSORS;
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
    p->asyncEngineCount = 3;
    p->streamPrioritiesSupported = 1;
    p->hostRegisterSupported = p->hostRegisterReadOnlySupported = 1;
    p->canUseHostPointerForRegisteredMem = 1;
    p->l2CacheSize = 50 << 20;
    p->memoryBusWidth = 5120;
    p->pciBusID = place_of(device) + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    RM_CALL("cudaDeviceGetAttribute");
    cudaDeviceProp p;
    const cudaError_t rc = cudaGetDeviceProperties(&p, device);
    if (rc != cudaSuccess)
        return rc;
    const struct {
        cudaDeviceAttr attribute;
        int value;
    } table[] = {
        {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
        {cudaDevAttrMaxSharedMemoryPerBlock, (int)p.sharedMemPerBlock},
        {cudaDevAttrWarpSize, p.warpSize},
        {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
        {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
        {cudaDevAttrL2CacheSize, p.l2CacheSize},
        {cudaDevAttrComputeCapabilityMajor, p.major},
        {cudaDevAttrComputeCapabilityMinor, p.minor},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, (int)p.sharedMemPerMultiprocessor},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)p.sharedMemPerBlockOptin},
        {cudaDevAttrHostRegisterSupported, p.hostRegisterSupported},
        {cudaDevAttrHostRegisterReadOnlySupported, p.hostRegisterReadOnlySupported},
        {cudaDevAttrCanUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem},
    };
    for (const auto &row : table)
        if (row.attribute == attribute) {
            *value = row.value;
            return cudaSuccess;
        }
    return here.gives(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int length, int device)
{
    RM_CALL("cudaDeviceGetPCIBusId");
    if (device < 0 || (unsigned)device >= set().devices)
        return here.gives(cudaErrorInvalidDevice);
    snprintf(out, (size_t)length, "0000:%02x:00.0", place_of(device) + 1);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    RM_CALL("cudaSetDevice");
    if (device < 0 || (unsigned)device >= set().devices)
        return here.gives(set().devices ? cudaErrorInvalidDevice : cudaErrorNoDevice);
    mine().device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    RM_CALL("cudaGetDevice");
    *device = mine().device;
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned)
{
    RM_CALL("cudaSetDeviceFlags");
    return cudaSuccess;
}
