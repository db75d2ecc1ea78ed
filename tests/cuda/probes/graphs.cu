/* Captures and graphs. */
#include "probes.h"

namespace
{
__global__ void scaled(float *x, float by, float plus, unsigned n)
{
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = x[i] * by + plus;
}

/* A capture on a stream of its own. */
struct recording {
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    recording()
    {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    }
    ~recording()
    {
        if (exec)
            cudaGraphExecDestroy(exec);
        if (graph)
            cudaGraphDestroy(graph);
        cudaStreamDestroy(stream);
    }
    int end()
    {
        const int rc = cudaStreamEndCapture(stream, &graph);
        return rc ? rc : (int)cudaGraphInstantiate(&exec, graph, 0);
    }
};
} // namespace

/* Runs as often as it is launched, with the arguments as they were when it was captured. */
PROBE(captured)
{
    probe_memory m(out);
    recording r;
    float by = 2;
    RM_LAUNCH(scaled, 1, 32, 0, r.stream, m.at, by, 1.0f, 64u);
    by = 100;
    cudaMemsetAsync(m.at + 64, 1, 128, r.stream);
    cudaMemcpyAsync(m.at + 128, m.at, 256, cudaMemcpyDeviceToDevice, r.stream);
    cudaStreamCaptureStatus status;
    cudaStreamIsCapturing(r.stream, &status);
    const int rc = r.end();
    if (rc || status != cudaStreamCaptureStatusActive)
        return rc ? rc : -1;
    for (int i = 0; i < 3; i++)
        cudaGraphLaunch(r.exec, r.stream);
    return m.end();
}

/* Nothing runs while it is captured. */
PROBE(only_captured)
{
    probe_memory m(out);
    recording r;
    RM_LAUNCH(scaled, 1, 32, 0, r.stream, m.at, 0.0f, 1.0f, 64u);
    const int rc = r.end();
    return m.end(rc);
}

/* A second stream that takes part: two branches that do not depend on each other, then both. */
static int fork(float *out, bool join)
{
    probe_memory m(out);
    recording r;
    cudaStream_t side;
    cudaEvent_t start, done;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&start, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    RM_LAUNCH(scaled, 1, 32, 0, r.stream, m.at, 0.0f, 3.0f, 128u);
    cudaEventRecord(start, r.stream);
    cudaStreamWaitEvent(side, start, 0);
    RM_LAUNCH(scaled, 1, 32, 0, side, m.at, 2.0f, 0.0f, 64u);
    RM_LAUNCH(scaled, 1, 32, 0, r.stream, m.at + 64, 5.0f, 0.0f, 64u);
    cudaEventRecord(done, side);
    if (join)
        cudaStreamWaitEvent(r.stream, done, 0);
    RM_LAUNCH(scaled, 1, 32, 0, r.stream, m.at + (join ? 0 : 64), 1.0f, 1.0f, join ? 128u : 64u);
    int rc = r.end();
    for (int i = 0; i < 2 && !rc; i++)
        rc = cudaGraphLaunch(r.exec, r.stream);
    rc = m.end(rc);
    cudaStreamDestroy(side);
    cudaEventDestroy(start);
    cudaEventDestroy(done);
    return rc;
}

PROBE(forked)
{
    return fork(out, true);
}

PROBE(unjoined)
{
    return fork(out, false);
}

/* out[0]: what the call gives; returned: what ending the capture gives. */
#define IN_CAPTURE(name, call)                                                                     \
    PROBE(name)                                                                                    \
    {                                                                                              \
        float *x = nullptr, *extra = nullptr;                                                      \
        cudaEvent_t event;                                                                         \
        cudaMalloc(&x, 256);                                                                       \
        cudaEventCreate(&event);                                                                   \
        cudaEventRecord(event, 0);                                                                 \
        int rc;                                                                                    \
        {                                                                                          \
            recording r;                                                                           \
            out[0] = (float)(call);                                                                \
            (void)extra;                                                                           \
            rc = r.end();                                                                          \
        }                                                                                          \
        cudaGetLastError();                                                                        \
        cudaFree(x);                                                                               \
        cudaEventDestroy(event);                                                                   \
        return rc;                                                                                 \
    }
IN_CAPTURE(allocates_in_capture, cudaMalloc(&extra, 256))
IN_CAPTURE(frees_in_capture, cudaFree(x))
IN_CAPTURE(waits_in_capture, cudaStreamSynchronize(r.stream))
IN_CAPTURE(waits_for_all_in_capture, cudaDeviceSynchronize())
IN_CAPTURE(queries_in_capture, cudaEventQuery(event))
IN_CAPTURE(copies_at_once_in_capture, cudaMemcpy(x, x + 8, 32, cudaMemcpyDeviceToDevice))
IN_CAPTURE(follows_outside_in_capture, cudaStreamWaitEvent(r.stream, event, 0))
IN_CAPTURE(nothing_in_capture, 0)
