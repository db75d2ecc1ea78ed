/* Copies and fills, with what they are given checked when they are put and when they run. */
#include "state.h"

using namespace rm_emulated;

namespace
{
struct rows {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
    size_t extent(size_t pitch) const
    {
        return height ? pitch * (height - 1) + width : 0;
    }
};

bool on_device(const void *p)
{
    const memory_kind k = find(p).kind;
    return k == MEMORY_DEVICE || k == MEMORY_FREED;
}

/* The words of what is wrong; "" if nothing. Pinned and registered memory is the device's too. */
std::string wrong(const rows &r, cudaMemcpyKind kind, int device)
{
    const size_t to = r.extent(r.to_pitch), from = r.extent(r.from_pitch);
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    std::string w = to_device ? wrong_on_device(r.to, to, device) : wrong_on_host(r.to, to);
    if (!w.empty())
        return "copy to " + w;
    w = from_device ? wrong_on_device(r.from, from, device) : wrong_on_host(r.from, from);
    return w.empty() ? w : "copy from " + w;
}

void move(const rows &r)
{
    for (size_t i = 0; i < r.height; i++)
        memmove(r.to + i * r.to_pitch, r.from + i * r.from_pitch, r.width);
}

cudaError_t copy(const char *name, rows r, cudaMemcpyKind kind, cudaStream_t stream, bool wait)
{
    RM_CALL(name);
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (wait)
        if (const cudaError_t rc = unsafe_in_capture())
            return here.gives(rc);
    if (kind == cudaMemcpyDefault)
        kind = on_device(r.to)
                   ? (on_device(r.from) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                   : (on_device(r.from) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
    if (!r.width || !r.height)
        return cudaSuccess;
    const int device = s->device;
    const std::string w = wrong(r, kind, device);
    if (!w.empty()) {
        lose(cudaErrorIllegalAddress, std::string(name) + ": " + w);
        return here.gives(cudaErrorIllegalAddress);
    }
    const size_t bytes = r.width * r.height;
    counts.copies++;
    counts.bytes_in += kind == cudaMemcpyHostToDevice ? bytes : 0;
    counts.bytes_out += kind == cudaMemcpyDeviceToHost ? bytes : 0;
    const void *side = kind == cudaMemcpyHostToDevice   ? static_cast<const void *>(r.from)
                       : kind == cudaMemcpyDeviceToHost ? static_cast<const void *>(r.to)
                                                        : nullptr;
    const bool pageable = side && find(side).kind == MEMORY_UNKNOWN;
    std::shared_ptr<std::vector<char>> staged;
    if (pageable && !capturing(*s)) {
        counts.pageable++;
        if (kind == cudaMemcpyHostToDevice) { /* staged before the call returns */
            staged = std::make_shared<std::vector<char>>(r.extent(r.from_pitch));
            memcpy(staged->data(), r.from, staged->size());
            r.from = staged->data();
        }
    }
    const std::string call_name = name;
    const cudaError_t rc = put(stream, [r, kind, device, staged, call_name] {
        const std::string late = staged ? std::string() : wrong(r, kind, device);
        if (late.empty())
            move(r);
        else
            lose(cudaErrorIllegalAddress, call_name + ", when it ran: " + late);
    });
    if (rc != cudaSuccess)
        return here.gives(rc);
    if (wait || (pageable && kind == cudaMemcpyDeviceToHost && !capturing(*s))) {
        counts.synchronizations++;
        run_until(s, s->last);
    }
    return here.gives(lost());
}

cudaError_t clear(const char *name, void *at, int value, size_t bytes, cudaStream_t stream)
{
    RM_CALL(name);
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (!bytes)
        return cudaSuccess;
    const int device = s->device;
    const std::string w = wrong_on_device(at, bytes, device);
    if (!w.empty()) {
        lose(cudaErrorIllegalAddress, std::string(name) + ": " + w);
        return here.gives(cudaErrorIllegalAddress);
    }
    return here.gives(put(stream, [=] {
        const std::string late = wrong_on_device(at, bytes, device);
        if (late.empty())
            memset(at, value, bytes);
        else
            lose(cudaErrorIllegalAddress, "cudaMemset, when it ran: " + late);
    }));
}
} // namespace

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const rows r = {(char *)to, (const char *)from, bytes, bytes, bytes, 1};
    return copy("cudaMemcpy", r, kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const rows r = {(char *)to, (const char *)from, bytes, bytes, bytes, 1};
    return copy("cudaMemcpyAsync", r, kind, stream, false);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (width > to_pitch || width > from_pitch)
        return cudaErrorInvalidPitchValue;
    const rows r = {(char *)to, (const char *)from, to_pitch, from_pitch, width, height};
    return copy("cudaMemcpy2DAsync", r, kind, stream, false);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    return clear("cudaMemset", at, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    return clear("cudaMemsetAsync", at, value, bytes, stream);
}

cudaError_t rm_cuda_runtime_symbol(void *to, const void *from, size_t bytes, cudaStream_t stream,
                                   bool wait)
{
    RM_CALL("cudaMemcpyToSymbol");
    const auto s = stream_of(stream);
    const std::vector<char> staged((const char *)from, (const char *)from + bytes);
    const cudaError_t rc = put(stream, [=] { memcpy(to, staged.data(), bytes); });
    if (rc == cudaSuccess && wait)
        run_until(s, s->last);
    return here.gives(rc);
}
