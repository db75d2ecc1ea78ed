/* Marks are events, captured updates are graphs. */
#include "learner/backend/cuda/collective.h"
#include "learner/backend/cuda/memory.h"

#include <errno.h>
#include <stdlib.h>

struct rm_queue_mark {
    cudaEvent_t event;
    bool set;
};

struct rm_device_graph {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct rm_device_graph *next; /* the next graph of the backend */
};

int rm_cuda_mark_create(struct rm_backend *b, struct rm_queue_mark **mark, struct rm_error *error)
{
    struct rm_queue_mark *m = static_cast<struct rm_queue_mark *>(calloc(1, sizeof *m));
    *mark = NULL;
    if (!m)
        return rm_fail(error, -ENOMEM, "no memory for a mark");
    rm_cuda_use(rm_cuda_of(b)); /* an event belongs to its device */
    if (!RM_CUDA(rm_cuda_of(b), cudaEventCreateWithFlags(&m->event, cudaEventDisableTiming |
                                                                        cudaEventBlockingSync))) {
        free(m);
        rm_cuda_failed(b, error);
        return -EIO;
    }
    *mark = m;
    return 0;
}

void rm_cuda_mark_destroy(struct rm_backend *b, struct rm_queue_mark *mark)
{
    if (!mark)
        return;
    RM_CUDA(rm_cuda_of(b), cudaEventDestroy(mark->event));
    free(mark);
}

void rm_cuda_mark(struct rm_backend *b, enum rm_queue stream, struct rm_queue_mark *mark)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c) && RM_CUDA(c, cudaEventRecord(mark->event, c->streams[stream])))
        mark->set = true;
}

void rm_cuda_follow(struct rm_backend *b, enum rm_queue stream, struct rm_queue_mark *mark)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c) && mark->set)
        RM_CUDA(c, cudaStreamWaitEvent(c->streams[stream], mark->event, 0));
}

bool rm_cuda_passed(struct rm_backend *b, struct rm_queue_mark *mark)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rm_cuda_ready(c) || !mark->set)
        return true;
    const cudaError_t rc = rm_cuda_asked(cudaEventQuery(mark->event));
    if (rc == cudaErrorNotReady)
        return false;
    rm_cuda_ok(c, rc, "cudaEventQuery");
    return true;
}

void rm_cuda_wait(struct rm_backend *b, struct rm_queue_mark *mark)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rm_cuda_ready(c) || !mark->set)
        return;
    c->counts.synchronizations++;
    rm_cuda_await_event(c, mark->event);
}

void rm_cuda_finish(struct rm_backend *b)
{
    struct rm_cuda *c = rm_cuda_of(b);
    for (int i = 0; i < RM_QUEUES && rm_cuda_ready(c); i++)
        rm_cuda_await_stream(c, (enum rm_queue)i);
    c->counts.synchronizations++;
}

int rm_cuda_capture(struct rm_backend *b, struct rm_error *error)
{
    struct rm_cuda *c = rm_cuda_of(b);
    c->allocations_at_capture = c->counts.allocations;
    if (RM_CUDA(c, cudaStreamBeginCapture(rm_cuda_stream(c), cudaStreamCaptureModeThreadLocal))) {
        c->capturing = true;
        return 0;
    }
    rm_cuda_failed(b, error);
    return -EIO;
}

int rm_cuda_captured(struct rm_backend *b, struct rm_device_graph **graph, struct rm_error *error)
{
    struct rm_cuda *c = rm_cuda_of(b);
    struct rm_device_graph *g = static_cast<struct rm_device_graph *>(calloc(1, sizeof *g));
    *graph = NULL;
    c->capturing =
        false; /* ended after errors too, because other backends of the thread continue */
    if (!g)
        return rm_fail(error, -ENOMEM, "no memory for a graph");
    g->next = c->graphs;
    c->graphs = g;
    const cudaError_t ended = cudaStreamEndCapture(rm_cuda_stream(c), &g->graph);
    if (rm_cuda_ready(c) && rm_cuda_ok(c, ended, "cudaStreamEndCapture")) {
        *graph = g;
        return 0;
    }
    rm_cuda_graph_destroy(b, g);
    rm_cuda_failed(b, error);
    return -EIO;
}

int rm_cuda_instantiate(struct rm_backend *b, struct rm_device_graph *g, struct rm_error *error)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c) && RM_CUDA(c, cudaGraphInstantiate(&g->exec, g->graph, 0)) &&
        RM_CUDA(c, cudaGraphUpload(g->exec, rm_cuda_stream(c))))
        return 0;
    rm_cuda_failed(b, error);
    return -EIO;
}

void rm_cuda_launch(struct rm_backend *b, struct rm_device_graph *graph)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c) && RM_CUDA(c, cudaGraphLaunch(graph->exec, rm_cuda_stream(c))))
        c->counts.graph_launches++;
}

static void drop(struct rm_cuda *c, struct rm_device_graph *g)
{
    if (g->exec)
        RM_CUDA(c, cudaGraphExecDestroy(g->exec));
    if (g->graph)
        RM_CUDA(c, cudaGraphDestroy(g->graph));
    g->exec = NULL;
    g->graph = NULL;
}

void rm_cuda_graphs_drop(struct rm_cuda *c)
{
    for (struct rm_device_graph *g = c->graphs; g; g = g->next)
        drop(c, g);
}

void rm_cuda_graph_destroy(struct rm_backend *b, struct rm_device_graph *graph)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!graph)
        return;
    rm_cuda_abandon(c);
    drop(c, graph);
    struct rm_device_graph **at = &c->graphs;
    while (*at != graph)
        at = &(*at)->next;
    *at = graph->next;
    free(graph);
}
