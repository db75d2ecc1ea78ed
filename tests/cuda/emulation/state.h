/* state: the emulation from the inside. One mutex for all of it: calls come from any thread, and
 * what they wait for runs on the thread that waits. */
#ifndef RM_TESTS_CUDA_EMULATION_STATE_H
#define RM_TESTS_CUDA_EMULATION_STATE_H

#include "control.h"
#include "rm_emulated.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <pthread.h>

#define RM_EXPORT extern "C" __attribute__((visibility("default")))

namespace rm_emulated
{
/* --- settings (settings.cc) ------------------------------------------------------------------- */

enum order { FORWARD, REVERSE, RANDOM };

struct settings {
    enum order order = FORWARD;
    uint64_t random = 1; /* state of the generator */
    uint32_t poison = 0x7fc0deadu;
    unsigned devices = 1, capability = 90;
    uint64_t memory = 4ull << 30;
    bool guard = true;
};
settings &set();
uint64_t draw(uint64_t below); /* 0 to below - 1 */

/* --- calls and their errors (fault.cc) -------------------------------------------------------- */

struct per_thread {
    int device;
    cudaError_t last;
};
per_thread &mine();

bool is_sticky(cudaError_t error);

void forget_errors();

/* Held by every call of the interface. `result()` is the error that the call must give at once:
 * the sticky one, or an injected one. */
class call
{
  public:
    explicit call(const char *name);
    ~call();
    call(const call &) = delete;
    call &operator=(const call &) = delete;
    cudaError_t result() const
    {
        return error_;
    }
    /* Remembers the error for cudaGetLastError and returns it. */
    cudaError_t gives(cudaError_t error) const;

  private:
    std::unique_lock<std::recursive_mutex> lock_;
    cudaError_t error_;
};
#define RM_CALL(name)                                                                              \
    const ::rm_emulated::call here(name);                                                          \
    if (here.result() != cudaSuccess)                                                              \
    return here.result()

/* Lets another thread in, from within a call. */
void step_aside();

/* The context is lost: everything from now on gives this error. Tells why on stderr. */
void lose(cudaError_t error, const std::string &why);
/* What is wrong with a call, on stderr, for an error that is not sticky. Returns it. */
cudaError_t complain(cudaError_t error, const std::string &why);
cudaError_t lost(); /* cudaSuccess where it is not */
int injected(const char *name);
std::string format(const char *f, ...) __attribute__((format(printf, 1, 2)));

extern struct rm_emulated_counts counts;

/* --- memory (memory.cc) ----------------------------------------------------------------------- */

enum memory_kind { MEMORY_UNKNOWN, MEMORY_DEVICE, MEMORY_FREED, MEMORY_PINNED, MEMORY_REGISTERED };

struct memory {
    memory_kind kind = MEMORY_UNKNOWN;
    char *at = nullptr;
    size_t bytes = 0;
    int device = 0;
    bool read_only = false;
};

/* The piece of memory that p points into, or just behind. */
memory find(const void *p);
/* "" or what is wrong with `bytes` at p as memory of the device (or as the host's). */
std::string wrong_on_device(const void *p, size_t bytes, int device);
std::string wrong_on_host(const void *p, size_t bytes);
/* Whether a kernel on `device` may hold this pointer, and a word that may be none. */
std::string wrong_argument(const void *p, int device);
std::string wrong_word(uint64_t word, int device);
void fill(void *at, size_t bytes); /* with the poison */
/* Whether something was written beside the device's memory: which, in words. */
std::string written_beside();
/* The device's memory can be touched while there is one of these; the host's code cannot. */
class touching
{
  public:
    touching();
    ~touching();
    touching(const touching &) = delete;
    touching &operator=(const touching &) = delete;
};

/* --- streams (stream.cc) ---------------------------------------------------------------------- */

struct operation {
    uint64_t number = 0; /* of all operations, in the order they were put */
    pthread_t by = 0;    /* who put it */
    std::function<void()> run;
    std::shared_ptr<CUstream_st> after; /* waits until this stream has passed this number */
    uint64_t after_number = 0;
};
struct capture;
struct graph_nodes;

std::shared_ptr<CUstream_st> stream_of(cudaStream_t stream); /* null where there is no such one */
/* Puts it on the stream, or into the graph that the stream is captured into. */
cudaError_t put(cudaStream_t stream, std::function<void()> run);
/* What a host thread waits for. */
void run_until(const std::shared_ptr<CUstream_st> &stream, uint64_t number);
void run_all();
cudaError_t put_wait(CUstream_st &stream, const std::shared_ptr<CUstream_st> &after,
                     uint64_t number);
/* Within an operation: until waiting() is false, other streams and other threads go on. False after
 * a minute, or where the context is lost. */
bool wait_while(bool (*waiting)(void *), void *data);
cudaError_t query_mark(const std::shared_ptr<CUstream_st> &stream, uint64_t number);
bool passed(const CUstream_st &stream, uint64_t number);
bool several_devices(); /* whether there are streams of several */
std::vector<std::shared_ptr<CUstream_st>> &all_streams();
/* What rm_emulated_reset() does in each room; how many things were left. */
uint64_t forget_streams();
uint64_t forget_events();
uint64_t forget_graphs();
uint64_t forget_memory();

/* --- captures (graph.cc) ---------------------------------------------------------------------- */

/* Calls that may not be made while this thread captures: the capture is lost by it. */
cudaError_t unsafe_in_capture();
bool capturing(const CUstream_st &stream);
cudaError_t capture_put(CUstream_st &stream, std::function<void()> run);
cudaError_t capture_event(CUstream_st &stream, cudaEvent_t event);
cudaError_t capture_wait(const std::shared_ptr<CUstream_st> &stream, cudaEvent_t event);

/* --- blocks (block.cc) ------------------------------------------------------------------------ */

/* All blocks of a launch. */
void run_grid(const kernel_launch &l);
/* tensor.cc: copies of the block before. */
void forget_copies();
} // namespace rm_emulated

struct CUstream_st {
    int device = 0;
    unsigned flags = 0;
    int priority = 0;
    bool null = false;
    bool busy = false; /* with the first of its operations */
    std::deque<rm_emulated::operation> queue;
    uint64_t last = 0; /* number of what was put last */
    std::shared_ptr<rm_emulated::capture> capture;
    std::vector<size_t> tails; /* of a capture: nodes that what comes next depends on */
};

struct CUevent_st {
    unsigned flags = 0;
    int device = 0;
    std::shared_ptr<CUstream_st> stream; /* where it was recorded last; null: never */
    uint64_t number = 0;
    std::shared_ptr<double> at_ms;
    std::weak_ptr<rm_emulated::capture> capture; /* recorded inside of this one */
    std::vector<size_t> nodes;
    bool captured = false;
};

#endif
