/* A grid's blocks, one after another; a block's threads, each until it waits. A thread that never
 * waits is a plain call: the fiber it ran on takes the next thread. So a fiber is entered once, and
 * what sanitizers know of its stack does not grow; but a fiber that a thread has abandoned is
 * entered again. */
#include "shared.h"
#include "state.h"
#include "switch.h"

#include <stdlib.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace rm_emulated
{
namespace
{
enum thread_state { FRESH, READY, WAITING, DONE };

struct thread {
    thread_state state;
    wait_kind waits;
    place at;
    int value;
    unsigned mask;
    context *on;
    uint3 index;
};

/* Lanes of a warp that wait for each other. Their words stay valid until they meet again, so there
 * are two sets. */
struct meeting {
    unsigned mask, arrived;
    wait_kind kind;
    place at;
    unsigned set;
    unsigned long long words[2][32];
};

/* A barrier of some of the threads: who waits there. */
struct part {
    unsigned threads;
    place at;
    std::vector<unsigned> waiting;
};

struct block {
    const kernel_launch *launch;
    std::vector<thread> threads;
    std::vector<unsigned> order;
    std::vector<std::vector<meeting>> meetings; /* of each warp */
    part parts[16];
    unsigned count, cursor, current;
    bool waited, failed;
    int result;             /* of a barrier */
    std::vector<bool> held; /* in random order: warps that stay behind for `passes` more passes */
    unsigned passes;
};

/* Never destroyed: a process may end while others of its threads are in here. */
block &now = *new block;
context host;
std::vector<context *> &stacks = *new std::vector<context *>; /* that no thread is on */

void enter(unsigned t)
{
    now.current = t;
    now.threads[t].state = READY;
    threadIdx = now.threads[t].index;
}

void fiber()
{
    arrived(&host);
    for (;;) {
        now.launch->thread();
        now.threads[now.current].state = DONE;
        /* The next one in order, if it is fresh, right here. */
        context *on = now.threads[now.current].on;
        if (now.cursor < now.count && now.threads[now.order[now.cursor]].state == FRESH) {
            const unsigned next = now.order[now.cursor++];
            now.threads[next].on = on;
            enter(next);
            continue;
        }
        stacks.push_back(on);
        switch_to(on, &host); /* until resume() has another thread for it */
    }
}

context *a_stack()
{
    if (stacks.empty()) {
        context *c = new context;
        if (make_stack(c)) {
            fprintf(stderr, "emulated device: no memory for the stacks of a block\n");
            abort();
        }
        prepare(c, fiber);
        return c;
    }
    context *c = stacks.back();
    stacks.pop_back();
    return c;
}

std::string name(unsigned t)
{
    const uint3 i = now.threads[t].index;
    return format("thread (%u,%u,%u)", i.x, i.y, i.z);
}

std::string where(unsigned t)
{
    static const char *const words[] = {"",
                                        "__syncthreads",
                                        "__syncthreads_or",
                                        "__syncthreads_and",
                                        "__syncthreads_count",
                                        "__syncwarp",
                                        "a shuffle",
                                        "a vote",
                                        "a matrix",
                                        "a barrier of some threads"};
    const thread &th = now.threads[t];
    if (th.state == DONE)
        return name(t) + " has ended";
    return name(t) + " is at " + words[th.waits] + format(" (%s:%u)", th.at.file, th.at.line);
}

void fail(cudaError_t error, const std::string &why)
{
    now.failed = true;
    lose(error, format("kernel %s, block (%u,%u,%u): ", now.launch->name, blockIdx.x, blockIdx.y,
                       blockIdx.z) +
                    why);
}

/* Ends the block from within a thread. */
[[noreturn]] void give_up()
{
    switch_to(now.threads[now.current].on, &host);
    abort();
}

void wait()
{
    thread &t = now.threads[now.current];
    const unsigned self = now.current;
    t.state = WAITING;
    now.waited = true;
    switch_to(t.on, &host);
    now.threads[self].waits = WAIT_NONE;
}

void resume(unsigned t)
{
    thread &th = now.threads[t];
    if (th.state == FRESH)
        th.on = a_stack();
    enter(t);
    switch_to(&host, th.on);
}

/* The order of this pass over the threads. */
void arrange()
{
    const unsigned n = now.count;
    if (set().order != RANDOM)
        return;
    for (unsigned i = n; i > 1; i--)
        std::swap(now.order[i - 1], now.order[draw(i)]);
    if (now.passes-- > 0)
        return;
    now.passes = (unsigned)draw(64);
    for (size_t w = 0; w < now.held.size(); w++)
        now.held[w] = draw(2);
}

/* Lets all warps go on. Returns whether one was held. */
bool let_go()
{
    bool any = false;
    for (size_t w = 0; w < now.held.size(); w++) {
        any = any || now.held[w];
        now.held[w] = false;
    }
    return any;
}

/* All that still run wait: lets them go if they stand at one barrier. */
bool release()
{
    unsigned first = now.count, ended = now.count;
    int any = 0, all = 1, count = 0;
    for (unsigned i = 0; i < now.count; i++) {
        if (now.threads[i].state == DONE) {
            ended = i;
            continue;
        }
        if (first == now.count)
            first = i;
        any |= now.threads[i].value != 0;
        all &= now.threads[i].value != 0;
        count += now.threads[i].value != 0;
    }
    if (first == now.count)
        return false; /* the block is done */
    const thread &f = now.threads[first];
    for (unsigned i = first; i < now.count; i++) {
        const thread &t = now.threads[i];
        if (t.state == DONE)
            continue;
        if (t.waits >= WAIT_WARP || t.waits != f.waits || t.at.line != f.at.line ||
            strcmp(t.at.file, f.at.file) != 0) {
            const unsigned other = i != first ? first : ended != now.count ? ended : now.count - 1;
            fail(cudaErrorLaunchFailure, where(i) + ", but " + where(other));
            return false;
        }
    }
    if (ended != now.count) {
        fail(cudaErrorLaunchFailure, where(first) + ", but " + where(ended));
        return false;
    }
    now.result = f.waits == WAIT_OR ? any : f.waits == WAIT_AND ? all : count;
    for (thread &t : now.threads)
        t.state = READY;
    return true;
}

void run_threads()
{
    bool ready = true;
    while (ready && !now.failed) {
        bool moved = false;
        arrange();
        for (now.cursor = 0; now.cursor < now.count && !now.failed;) {
            const unsigned t = now.order[now.cursor++];
            if (!now.held[t / 32] &&
                (now.threads[t].state == FRESH || now.threads[t].state == READY)) {
                resume(t);
                moved = true;
            }
        }
        if (!now.failed && !moved && !let_go())
            ready = release();
    }
    if (now.failed)
        for (thread &t : now.threads)
            if (t.state != FRESH && t.state != DONE) {
                prepare(t.on, fiber); /* left where it stood */
                stacks.push_back(t.on);
            }
}

void start_block()
{
    const dim3 b = now.launch->block;
    now.failed = false;
    unsigned t = 0;
    for (unsigned z = 0; z < b.z; z++)
        for (unsigned y = 0; y < b.y; y++)
            for (unsigned x = 0; x < b.x; x++)
                now.threads[t++] = thread{FRESH, WAIT_NONE, {}, 0, 0, nullptr, {x, y, z}};
    for (unsigned i = 0; i < now.count; i++)
        now.order[i] = set().order == REVERSE ? now.count - 1 - i : i;
    for (auto &warp : now.meetings)
        warp.clear();
    now.held.assign(now.meetings.size(), false);
    now.passes = 0;
    for (part &p : now.parts)
        p.waiting.clear();
    forget_copies();
}
} // namespace

int barrier(wait_kind kind, int value, place at)
{
    thread &t = now.threads[now.current];
    t.waits = kind;
    t.at = at;
    t.value = value;
    wait();
    return now.result;
}

void barrier_of(unsigned which, unsigned threads, place at)
{
    if (which < 1 || which > 15 || threads % 32 || threads > now.count)
        trap("no such barrier of some threads", at);
    part &p = now.parts[which];
    if (p.waiting.empty()) {
        p.threads = threads;
        p.at = at;
    } else if (p.threads != threads || p.at.line != at.line || strcmp(p.at.file, at.file) != 0) {
        trap("threads are at different barriers of one number", at);
    }
    if (p.waiting.size() + 1 == threads) {
        for (const unsigned t : p.waiting)
            now.threads[t].state = READY;
        p.waiting.clear();
        now.waited = true;
        return;
    }
    p.waiting.push_back(now.current);
    thread &t = now.threads[now.current];
    t.waits = WAIT_PART;
    t.at = at;
    wait();
}

unsigned thread_of_block()
{
    return now.current;
}

unsigned lane()
{
    return now.current % 32;
}

unsigned lanes()
{
    const unsigned first = now.current / 32 * 32;
    return now.count - first < 32 ? now.count - first : 32;
}

const unsigned long long *meet(wait_kind kind, unsigned mask, unsigned long long word, place at)
{
    const unsigned own = lane(), there = lanes();
    if (there < 32)
        mask &= (1u << there) - 1u;
    if (!(mask >> own & 1))
        trap("a lane that is not in the mask it gives", at);
    std::vector<meeting> &warp = now.meetings[now.current / 32];
    size_t m = 0;
    while (m < warp.size() && warp[m].mask != mask)
        m++;
    if (m == warp.size()) {
        warp.emplace_back();
        warp[m].mask = mask;
        warp[m].arrived = warp[m].set = 0;
    }
    if (!warp[m].arrived) {
        warp[m].kind = kind;
        warp[m].at = at;
        warp[m].set ^= 1;
    } else if (warp[m].kind != kind || warp[m].at.line != at.line ||
               strcmp(warp[m].at.file, at.file) != 0) {
        static char words[512]; /* nothing on this stack is destroyed */
        snprintf(words, sizeof words,
                 "lanes of a warp meet at different places, the others at %s:%u", warp[m].at.file,
                 warp[m].at.line);
        trap(words, at);
    }
    const unsigned in = warp[m].set;
    warp[m].words[in][own] = word;
    warp[m].arrived |= 1u << own;
    if (warp[m].arrived == mask) {
        const unsigned first = now.current - own;
        warp[m].arrived = 0;
        for (unsigned i = 0; i < there; i++)
            if ((mask >> i & 1) && i != own)
                now.threads[first + i].state = READY;
        now.waited = true;
    } else {
        thread &t = now.threads[now.current];
        t.waits = kind;
        t.at = at;
        t.mask = mask;
        wait();
    }
    return now.meetings[now.current / 32][m].words[in];
}

void trap(const char *what, place at)
{
    fail(cudaErrorLaunchFailure,
         name(now.current) + format(": %s (%s:%u)", what, at.file, at.line));
    give_up();
}

void run_grid(const kernel_launch &l)
{
    const size_t blocks = (size_t)l.grid.x * l.grid.y * l.grid.z;
    now.launch = &l;
    now.count = l.block.x * l.block.y * l.block.z;
    now.threads.resize(now.count);
    now.order.resize(now.count);
    now.meetings.resize((now.count + 31) / 32);
    host = context{};
    blockDim = l.block;
    gridDim = l.grid;
    std::vector<size_t> order;
    if (set().order == RANDOM && blocks <= 1u << 20) {
        order.resize(blocks);
        for (size_t i = 0; i < blocks; i++)
            order[i] = i;
        for (size_t i = blocks; i > 1; i--)
            std::swap(order[i - 1], order[draw(i)]);
    }
    now.waited = true;
    for (size_t i = 0; i < blocks; i++) {
        const size_t b = !order.empty() ? order[i] : set().order == REVERSE ? blocks - 1 - i : i;
        blockIdx = uint3{(unsigned)(b % l.grid.x), (unsigned)(b / l.grid.x % l.grid.y),
                         (unsigned)(b / l.grid.x / l.grid.y)};
        start_block();
        /* Shared memory is of no use to a kernel whose threads never wait: spared after a block. */
        if (now.waited)
            poison_shared(l.shared);
        now.waited = false;
        run_threads();
        if (!now.failed && !shared_is_whole())
            fail(cudaErrorIllegalAddress, "wrote outside of its shared memory");
        if (now.failed)
            return;
    }
}
} // namespace rm_emulated
