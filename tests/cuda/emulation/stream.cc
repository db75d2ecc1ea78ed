/* Streams: what is put on one runs late, when a host thread waits for it or something that depends
 * on it; with random order, streams overtake each other wherever nothing forbids it. */
#include "state.h"

#include <time.h>

using namespace rm_emulated;

namespace rm_emulated
{
namespace
{
#define PATIENCE_S   60    /* with other ranks */
#define MOST_WAITING 4096u /* operations; the oldest run when there are more */

uint64_t numbers;

/* The stream that stands for none, of each device. */
std::shared_ptr<CUstream_st> null_stream(int device)
{
    for (const auto &s : all_streams())
        if (s->null && s->device == device)
            return s;
    auto s = std::make_shared<CUstream_st>();
    s->null = true;
    s->device = device;
    all_streams().push_back(s);
    return s;
}

/* The first operation that keeps this one from running: a stream and a number to pass. */
std::shared_ptr<CUstream_st> obstacle(const CUstream_st &s, const operation &o, uint64_t *number)
{
    if (o.after && !passed(*o.after, o.after_number)) {
        *number = o.after_number;
        return o.after;
    }
    /* The null stream and those that are not apart from it wait for each other. */
    if (!(s.flags & cudaStreamNonBlocking))
        for (const auto &other : all_streams())
            if (other.get() != &s && other->device == s.device && (other->null || s.null) &&
                !(other->flags & cudaStreamNonBlocking) && !passed(*other, o.number)) {
                *number = o.number;
                return other;
            }
    return nullptr;
}

/* It stays in the queue, busy, until it has run. */
void run_first(CUstream_st &s)
{
    const std::function<void()> run = std::move(s.queue.front().run);
    s.busy = true;
    if (run && lost() == cudaSuccess) {
        const touching t;
        run();
    }
    s.busy = false;
    s.queue.pop_front();
}

/* One operation that can run, of any stream. */
bool run_one_of_any(bool at_will)
{
    std::vector<CUstream_st *> can;
    uint64_t number;
    const bool own = at_will && several_devices();
    for (const auto &s : all_streams())
        if (!s->queue.empty() && !s->busy && (!own || s->queue.front().by == pthread_self()) &&
            !obstacle(*s, s->queue.front(), &number))
            can.push_back(s.get());
    if (can.empty())
        return false;
    run_first(*can[draw(can.size())]);
    return true;
}

/* Runs one operation that no caller waits for. With several devices it must be one that this thread
 * put: another thread's operation may wait for a part that this thread is about to put. */
bool run_one_at_will()
{
    return run_one_of_any(true);
}

/* One operation that the first one of the stream waits for, or that one; false: another thread is
 * at it. */
bool run_one_needed(CUstream_st &s)
{
    uint64_t before;
    if (s.busy)
        return false;
    const auto other = obstacle(s, s.queue.front(), &before);
    if (other)
        return run_one_needed(*other);
    run_first(s);
    return true;
}

/* Some of what was put runs at once, but where devices are several: a group of calls puts one part
 * after the other. They may become several while one runs. */
void settle()
{
    size_t waiting = 0;
    if (several_devices())
        return;
    for (const auto &s : all_streams())
        waiting += s->queue.size();
    if (waiting > MOST_WAITING)
        run_all();
    else if (set().order == RANDOM && draw(4) == 0)
        for (uint64_t n = draw(4); n && !several_devices() && run_one_at_will(); n--)
            ;
}
} // namespace

std::vector<std::shared_ptr<CUstream_st>> &all_streams()
{
    static auto *list = new std::vector<std::shared_ptr<CUstream_st>>;
    return *list;
}

bool several_devices()
{
    for (const auto &s : all_streams())
        if (s->device != all_streams().front()->device)
            return true;
    return false;
}

std::shared_ptr<CUstream_st> stream_of(cudaStream_t stream)
{
    if (!stream || stream == cudaStreamLegacy)
        return null_stream(mine().device);
    for (const auto &s : all_streams())
        if (s.get() == stream)
            return s;
    return nullptr;
}

bool passed(const CUstream_st &s, uint64_t number)
{
    return s.queue.empty() || s.queue.front().number > number;
}

void run_until(const std::shared_ptr<CUstream_st> &s, uint64_t number)
{
    if (passed(*s, number))
        return;
    const touching t; /* once for all of it */
    while (!passed(*s, number))
        if (!(set().order == RANDOM && run_one_at_will()) && !run_one_needed(*s))
            step_aside();
}

void run_all()
{
    const auto streams = all_streams();
    for (const auto &s : streams)
        if (!s->queue.empty()) {
            const touching t;
            run_until(s, s->last);
        }
}

/* `after`: a stream and number to wait for; `run`: what to do then. */
static cudaError_t put_operation(CUstream_st &s, operation &&o)
{
    o.number = s.last = ++numbers;
    o.by = pthread_self();
    s.queue.push_back(std::move(o));
    settle();
    return lost();
}

cudaError_t put(cudaStream_t stream, std::function<void()> run)
{
    const auto s = stream_of(stream);
    if (!s)
        return complain(cudaErrorInvalidResourceHandle, "no such stream");
    if (capturing(*s))
        return capture_put(*s, std::move(run));
    if (!(s->flags & cudaStreamNonBlocking))
        for (const auto &other : all_streams())
            if (capturing(*other) && (s->null || other->null) &&
                !(other->flags & cudaStreamNonBlocking))
                return cudaErrorStreamCaptureImplicit;
    operation o;
    o.run = std::move(run);
    return put_operation(*s, std::move(o));
}

cudaError_t put_wait(CUstream_st &s, const std::shared_ptr<CUstream_st> &after, uint64_t number)
{
    operation o;
    o.after = after;
    o.after_number = number;
    return put_operation(s, std::move(o));
}
} // namespace rm_emulated

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    RM_CALL("cudaDeviceGetStreamPriorityRange");
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

static cudaError_t create(cudaStream_t *stream, unsigned flags, int priority, const char *name)
{
    RM_CALL(name);
    if (flags & ~cudaStreamNonBlocking)
        return here.gives(cudaErrorInvalidValue);
    auto s = std::make_shared<CUstream_st>();
    s->device = mine().device;
    s->flags = flags;
    s->priority = priority;
    all_streams().push_back(s);
    counts.streams++;
    *stream = s.get();
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return create(stream, cudaStreamDefault, 0, "cudaStreamCreate");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return create(stream, flags, 0, "cudaStreamCreateWithFlags");
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    return create(stream, flags, priority, "cudaStreamCreateWithPriority");
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    RM_CALL("cudaStreamDestroy");
    const auto s = stream_of(stream);
    if (!s || s->null)
        return here.gives(cudaErrorInvalidResourceHandle);
    run_until(s, s->last); /* its work is done even so */
    auto &list = all_streams();
    for (size_t i = 0; i < list.size(); i++)
        if (list[i] == s)
            list.erase(list.begin() + (ptrdiff_t)i);
    counts.streams--;
    return here.gives(lost());
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    RM_CALL("cudaStreamSynchronize");
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    counts.synchronizations++;
    run_until(s, s->last);
    return here.gives(lost());
}

cudaError_t cudaDeviceSynchronize()
{
    RM_CALL("cudaDeviceSynchronize");
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    counts.synchronizations++;
    run_all();
    return here.gives(lost());
}

/* Not ready at least once; then what it waits for runs. */
static cudaError_t query(const std::shared_ptr<CUstream_st> &s, uint64_t number)
{
    if (passed(*s, number))
        return lost();
    if (set().order != RANDOM)
        run_until(s, number);
    else
        for (uint64_t n = 1 + draw(8); n; n--)
            if (!run_one_at_will() && (passed(*s, number) || !run_one_needed(*s)))
                break;
    return cudaErrorNotReady;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    RM_CALL("cudaStreamQuery");
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    return here.gives(query(s, s->last));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    RM_CALL("cudaLaunchHostFunc");
    return here.gives(put(stream, [=] { function(data); }));
}

namespace rm_emulated
{
bool wait_while(bool (*waiting)(void *), void *data)
{
    const time_t start = time(nullptr);
    while (waiting(data)) {
        if (lost() != cudaSuccess || time(nullptr) - start > PATIENCE_S)
            return false;
        if (!run_one_of_any(false))
            step_aside();
    }
    return true;
}

uint64_t forget_streams()
{
    const uint64_t left = counts.streams;
    all_streams().clear();
    return left;
}

cudaError_t query_mark(const std::shared_ptr<CUstream_st> &s, uint64_t number)
{
    return query(s, number);
}
} // namespace rm_emulated
