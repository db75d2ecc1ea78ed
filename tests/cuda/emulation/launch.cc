#include "shared.h"
#include "state.h"

#include <stdlib.h>

using namespace rm_emulated;

namespace
{
#define SHARED_BY_DEFAULT (48u << 10)
#define MOST_ARGUMENTS    4096u

/* Bytes of dynamic shared memory that a kernel was allowed to have. */
std::map<const void *, size_t> &allowed()
{
    static auto *m = new std::map<const void *, size_t>;
    return *m;
}

size_t allowed_for(const void *kernel)
{
    const auto i = allowed().find(kernel);
    return i == allowed().end() ? SHARED_BY_DEFAULT : i->second;
}

/* One grid after another: two at once would be a mistake of the emulation's own, and its words a
 * race for ThreadSanitizer, which looks no further in. */
void run_alone(const kernel_launch &l)
{
    static const char *running;
    if (running) {
        fprintf(stderr, "emulated device: kernel %s begins within kernel %s\n", l.name, running);
        abort();
    }
    running = l.name;
    run_grid(l);
    running = nullptr;
}

std::string wrong(const kernel_launch &l)
{
    const dim3 b = l.block, g = l.grid;
    if (!b.x || !b.y || !b.z || b.x > 1024 || b.y > 1024 || b.z > 64 ||
        (size_t)b.x * b.y * b.z > 1024)
        return format("a block of %ux%ux%u threads", b.x, b.y, b.z);
    if (!g.x || !g.y || !g.z || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535)
        return format("a grid of %ux%ux%u blocks", g.x, g.y, g.z);
    if (l.shared > allowed_for(l.function))
        return format("%zu bytes of shared memory, %zu are allowed (cudaFuncSetAttribute)",
                      l.shared, allowed_for(l.function));
    if (l.argument_bytes > MOST_ARGUMENTS)
        return format("%zu bytes of arguments", l.argument_bytes);
    return "";
}

std::string wrong_pointer(const kernel_launch &l, int device)
{
    for (size_t i = 0; i < l.pointers.size(); i++) {
        const std::string w = wrong_argument(l.pointers[i], device);
        if (!w.empty())
            return format("kernel %s: pointer %zu of its arguments: ", l.name, i + 1) + w;
    }
    for (const uint64_t word : l.words) {
        const std::string w = wrong_word(word, device);
        if (!w.empty())
            return format("kernel %s: within its arguments: ", l.name) + w;
    }
    return "";
}
} // namespace

namespace rm_emulated
{
void launch(kernel_launch &&l, cudaStream_t stream)
{
    const call here(nullptr);
    if (lost() != cudaSuccess) {
        here.gives(lost());
        return;
    }
    const cudaError_t injected_error = (cudaError_t)injected("launch");
    if (injected_error != cudaSuccess) {
        if (is_sticky(injected_error))
            lose(injected_error, format("kernel %s: injected", l.name));
        here.gives(injected_error);
        return;
    }
    const std::string w = wrong(l);
    if (!w.empty()) {
        here.gives(complain(cudaErrorInvalidConfiguration, format("kernel %s: ", l.name) + w));
        return;
    }
    const auto s = stream_of(stream);
    if (!s) {
        here.gives(
            complain(cudaErrorInvalidResourceHandle, format("kernel %s: no such stream", l.name)));
        return;
    }
    const int device = s->device;
    if (device != mine().device) {
        here.gives(complain(cudaErrorInvalidResourceHandle,
                            format("kernel %s: on a stream of device %d while device %d is current",
                                   l.name, device, mine().device)));
        return;
    }
    if (!capturing(*s))
        counts.launches++;
    const bool recorded = capturing(*s);
    const auto kept = std::make_shared<kernel_launch>(std::move(l));
    here.gives(put(stream, [kept, device, recorded] {
        const std::string bad = wrong_pointer(*kept, device);
        const std::string less = recorded ? wrong(*kept) : ""; /* allowed since */
        if (!bad.empty())
            lose(cudaErrorIllegalAddress, bad);
        else if (!less.empty())
            lose(cudaErrorLaunchFailure, format("kernel %s, of a graph: ", kept->name) + less);
        else
            run_alone(*kept);
    }));
}
} // namespace rm_emulated

cudaError_t rm_cuda_runtime_set_function(const void *kernel, cudaFuncAttribute attribute, int value)
{
    RM_CALL("cudaFuncSetAttribute");
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        (unsigned)value > RM_SHARED_MOST)
        return here.gives(cudaErrorInvalidValue);
    allowed()[kernel] = (size_t)value;
    return cudaSuccess;
}

cudaError_t rm_cuda_runtime_function(cudaFuncAttributes *out, const void *kernel)
{
    RM_CALL("cudaFuncGetAttributes");
    *out = cudaFuncAttributes{};
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->maxDynamicSharedSizeBytes = (int)allowed_for(kernel);
    return cudaSuccess;
}

cudaError_t rm_cuda_runtime_occupancy(int *blocks, const void *kernel, int threads, size_t shared)
{
    RM_CALL("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    *blocks = 0;
    if (threads < 1 || threads > 1024 || shared > allowed_for(kernel))
        return here.gives(cudaErrorInvalidValue);
    *blocks = 2048 / threads;
    if (*blocks > 32)
        *blocks = 32;
    if (shared && (228u << 10) / shared < (size_t)*blocks)
        *blocks = (int)((228u << 10) / shared);
    return cudaSuccess;
}
