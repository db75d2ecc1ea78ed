#include "state.h"

#include <set>
#include <time.h>

using namespace rm_emulated;

namespace
{
std::set<CUevent_st *> &events()
{
    static auto *list = new std::set<CUevent_st *>;
    return *list;
}

double now_ms()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool is_event(cudaEvent_t e)
{
    return events().count(e) != 0;
}
} // namespace

uint64_t rm_emulated::forget_events()
{
    const uint64_t left = events().size();
    for (CUevent_st *e : events())
        delete e;
    events().clear();
    return left;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    RM_CALL("cudaEventCreateWithFlags");
    CUevent_st *e = new CUevent_st;
    e->flags = flags;
    e->device = mine().device;
    events().insert(e);
    counts.events++;
    *event = e;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    RM_CALL("cudaEventDestroy");
    if (!is_event(event))
        return here.gives(cudaErrorInvalidResourceHandle);
    events().erase(event);
    delete event;
    counts.events--;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    RM_CALL("cudaEventRecord");
    const auto s = stream_of(stream);
    if (!s || !is_event(event) || event->device != s->device)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (capturing(*s))
        return here.gives(capture_event(*s, event));
    const auto at = std::make_shared<double>(-1.0);
    const bool timed = !(event->flags & cudaEventDisableTiming);
    const cudaError_t rc = put(stream, [at, timed] {
        if (timed)
            *at = now_ms();
    });
    if (rc != cudaSuccess)
        return here.gives(rc);
    event->captured = false;
    event->stream = s;
    event->number = s->last;
    event->at_ms = at;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    RM_CALL("cudaStreamWaitEvent");
    const auto s = stream_of(stream);
    if (!s || !is_event(event))
        return here.gives(cudaErrorInvalidResourceHandle);
    if (capturing(*s) || event->captured)
        return here.gives(capture_wait(s, event));
    if (!event->stream)
        return cudaSuccess; /* never recorded: nothing to wait for */
    return here.gives(put_wait(*s, event->stream, event->number));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    RM_CALL("cudaEventQuery");
    if (!is_event(event))
        return here.gives(cudaErrorInvalidResourceHandle);
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    if (event->captured)
        return here.gives(cudaErrorCapturedEvent);
    return here.gives(event->stream ? query_mark(event->stream, event->number) : lost());
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    RM_CALL("cudaEventSynchronize");
    if (!is_event(event))
        return here.gives(cudaErrorInvalidResourceHandle);
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    if (event->captured)
        return here.gives(cudaErrorCapturedEvent);
    counts.synchronizations++;
    if (event->stream)
        run_until(event->stream, event->number);
    return here.gives(lost());
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    RM_CALL("cudaEventElapsedTime");
    *ms = 0;
    for (CUevent_st *e : {from, to}) {
        if (!is_event(e) || !e->stream || (e->flags & cudaEventDisableTiming))
            return here.gives(cudaErrorInvalidResourceHandle);
        if (!passed(*e->stream, e->number))
            return here.gives(cudaErrorNotReady);
    }
    *ms = (float)(*to->at_ms - *from->at_ms);
    return cudaSuccess;
}
