/* Captures and graphs. A node is what was put on a capturing stream, with the nodes it depends on;
 * with random order, a launch runs them in any order that these allow. */
#include "state.h"

#include <set>
#include <thread>

using namespace rm_emulated;

struct CUgraphNode_st {
    std::function<void()> run;
    std::vector<size_t> after;
};

struct CUgraph_st {
    std::vector<CUgraphNode_st> nodes;
};

struct CUgraphExec_st {
    std::shared_ptr<CUgraph_st> graph;
};

namespace rm_emulated
{
struct capture {
    CUstream_st *origin;
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    bool invalid;
    std::vector<CUgraphNode_st> nodes;
};

namespace
{
std::vector<std::shared_ptr<capture>> &captures()
{
    static auto *list = new std::vector<std::shared_ptr<capture>>;
    return *list;
}

std::set<CUgraph_st *> &graphs()
{
    static auto *list = new std::set<CUgraph_st *>;
    return *list;
}

std::set<CUgraphExec_st *> &execs()
{
    static auto *list = new std::set<CUgraphExec_st *>;
    return *list;
}

void merge(std::vector<size_t> *into, const std::vector<size_t> &more)
{
    for (const size_t n : more)
        if (std::find(into->begin(), into->end(), n) == into->end())
            into->push_back(n);
}

/* Whether `node` is `to` or something before it. */
bool leads(const capture &c, size_t node, const std::vector<size_t> &to)
{
    for (const size_t t : to)
        if (t == node || leads(c, node, c.nodes[t].after))
            return true;
    return false;
}

/* An order of the nodes; with random order, any that their dependences allow. */
std::vector<size_t> order_of(const CUgraph_st &g)
{
    const size_t n = g.nodes.size();
    std::vector<bool> ran(n);
    std::vector<size_t> order;
    while (order.size() < n) {
        std::vector<size_t> can;
        for (size_t i = 0; i < n && (can.empty() || set().order == RANDOM); i++) {
            bool ready = !ran[i];
            for (const size_t before : g.nodes[i].after)
                ready = ready && ran[before];
            if (ready)
                can.push_back(i);
        }
        const size_t next = can.size() > 1 ? can[draw(can.size())] : can[0];
        ran[next] = true;
        order.push_back(next);
    }
    return order;
}

void run_node(const CUgraph_st &g, size_t node)
{
    if (lost() != cudaSuccess)
        return;
    g.nodes[node].run();
    counts.graph_nodes++;
}

cudaError_t put_graph(cudaStream_t stream, const std::shared_ptr<CUgraph_st> &graph)
{
    return put(stream, [graph] {
        for (const size_t node : order_of(*graph))
            run_node(*graph, node);
    });
}

/* Node by node: one that waits for another device lets that one run, which may come to the next
 * such node before this one goes on. */
cudaError_t put_nodes(cudaStream_t stream, const std::shared_ptr<CUgraph_st> &graph)
{
    cudaError_t rc = cudaSuccess;
    for (const size_t node : order_of(*graph))
        if (rc == cudaSuccess)
            rc = put(stream, [graph, node] { run_node(*graph, node); });
    return rc;
}
} // namespace

uint64_t forget_graphs()
{
    const uint64_t left = graphs().size() + execs().size();
    for (CUgraph_st *g : graphs())
        delete g;
    for (CUgraphExec_st *e : execs())
        delete e;
    graphs().clear();
    execs().clear();
    captures().clear();
    return left;
}

cudaError_t unsafe_in_capture()
{
    for (const auto &c : captures())
        if (c->mode == cudaStreamCaptureModeGlobal ||
            (c->mode == cudaStreamCaptureModeThreadLocal &&
             c->thread == std::this_thread::get_id())) {
            c->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
    return cudaSuccess;
}

bool capturing(const CUstream_st &s)
{
    return s.capture != nullptr;
}

cudaError_t capture_put(CUstream_st &s, std::function<void()> run)
{
    if (s.capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    s.capture->nodes.push_back({std::move(run), s.tails});
    s.tails = {s.capture->nodes.size() - 1};
    return cudaSuccess;
}

cudaError_t capture_event(CUstream_st &s, cudaEvent_t event)
{
    if (s.capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    event->captured = true;
    event->capture = s.capture;
    event->nodes = s.tails;
    return cudaSuccess;
}

cudaError_t capture_wait(const std::shared_ptr<CUstream_st> &s, cudaEvent_t event)
{
    const auto c = event->capture.lock();
    if (!event->captured || (s->capture && s->capture != c)) {
        if (s->capture)
            s->capture->invalid = true;
        return cudaErrorStreamCaptureIsolation;
    }
    if (!c)
        return cudaErrorCapturedEvent; /* its capture has ended */
    if (c->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (!s->capture) { /* the stream takes part from here on */
        s->capture = c;
        s->tails.clear();
    }
    merge(&s->tails, event->nodes);
    return cudaSuccess;
}
} // namespace rm_emulated

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    RM_CALL("cudaStreamBeginCapture");
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (s->null)
        return here.gives(cudaErrorStreamCaptureUnsupported);
    if (s->capture)
        return here.gives(cudaErrorInvalidValue);
    const capture c = {s.get(), mode, std::this_thread::get_id(), false, {}};
    s->capture = std::make_shared<capture>(c);
    s->tails.clear();
    captures().push_back(s->capture);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = nullptr;
    RM_CALL("cudaStreamEndCapture");
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    if (!s->capture || s->capture->origin != s.get())
        return here.gives(s->capture ? cudaErrorStreamCaptureUnmatched : cudaErrorInvalidValue);
    const auto c = s->capture;
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
        return here.gives(cudaErrorStreamCaptureWrongThread);
    bool joined = true;
    for (const auto &other : all_streams())
        if (other->capture == c) {
            for (const size_t t : other->tails)
                joined = joined && leads(*c, t, s->tails);
            if (other != s)
                other->capture.reset();
        }
    s->capture.reset();
    captures().erase(std::find(captures().begin(), captures().end(), c));
    if (c->invalid)
        return here.gives(cudaErrorStreamCaptureInvalidated);
    if (!joined)
        return here.gives(cudaErrorStreamCaptureUnjoined);
    *graph = new CUgraph_st{std::move(c->nodes)};
    graphs().insert(*graph);
    counts.graphs++;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    RM_CALL("cudaStreamIsCapturing");
    const auto s = stream_of(stream);
    if (!s)
        return here.gives(cudaErrorInvalidResourceHandle);
    *status = !s->capture           ? cudaStreamCaptureStatusNone
              : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    RM_CALL("cudaGraphInstantiate");
    if (!graphs().count(graph))
        return here.gives(cudaErrorInvalidValue);
    if (const cudaError_t rc = unsafe_in_capture()) /* it allocates */
        return here.gives(rc);
    *exec = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph)};
    execs().insert(*exec);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t)
{
    RM_CALL("cudaGraphUpload");
    return here.gives(execs().count(exec) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    RM_CALL("cudaGraphLaunch");
    if (!execs().count(exec))
        return here.gives(cudaErrorInvalidValue);
    const auto graph = exec->graph;
    counts.graph_launches++;
    return here.gives(several_devices() ? put_nodes(stream, graph) : put_graph(stream, graph));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    RM_CALL("cudaGraphGetNodes");
    if (!graphs().count(graph))
        return here.gives(cudaErrorInvalidValue);
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < graph->nodes.size() ? &graph->nodes[i] : nullptr;
    *count = graph->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    RM_CALL("cudaGraphDestroy");
    if (!graphs().erase(graph))
        return here.gives(cudaErrorInvalidValue);
    delete graph;
    counts.graphs--;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    RM_CALL("cudaGraphExecDestroy");
    if (!execs().erase(exec))
        return here.gives(cudaErrorInvalidValue);
    delete exec;
    return cudaSuccess;
}
