/* Errors: those that work on the device gave, and injected ones. */
#include "state.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

namespace rm_emulated
{
namespace
{
struct fault {
    std::string call;
    int code;
    uint64_t at, seen;
    bool on; /* and every one after */
};

std::recursive_mutex &lock()
{
    static std::recursive_mutex *m = new std::recursive_mutex;
    return *m;
}

cudaError_t sticky = cudaSuccess;
std::string &complaint = *new std::string;

int parse(const char *text, std::vector<fault> *out)
{
    while (text && *text) {
        char name[64];
        int code, used = 0;
        unsigned long long at;
        if (sscanf(text, "%63[^:]:%d@%llu%n", name, &code, &at, &used) != 3 || !at)
            return -EINVAL;
        text += used;
        const bool on = *text == '+';
        text += on;
        out->push_back({name, code, at, 0, on});
        if (*text && *text++ != ',')
            return -EINVAL;
    }
    return 0;
}

std::vector<fault> &faults()
{
    static std::vector<fault> *list = nullptr;
    if (!list) {
        list = new std::vector<fault>;
        const char *text = getenv("RM_EMULATED_FAULT");
        if (parse(text, list))
            fprintf(stderr, "RM_EMULATED_FAULT: CALL:CODE@N[+][,...], not '%s'\n", text);
    }
    return *list;
}
} // namespace

/* Not thread-local: that segment is the shared memory of blocks. */
per_thread &mine()
{
    static pthread_key_t key;
    static const int made = pthread_key_create(&key, free);
    void *p = pthread_getspecific(key);
    if (!p && made == 0) {
        p = calloc(1, sizeof(per_thread));
        pthread_setspecific(key, p);
    }
    return *static_cast<per_thread *>(p);
}

bool is_sticky(cudaError_t e)
{
    switch (e) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return true;
    default:
        return false;
    }
}

int injected(const char *name)
{
    int code = 0;
    for (fault &f : faults())
        if (f.call == name || (f.call == "any" && strcmp(name, "launch") != 0)) {
            f.seen++;
            if (f.seen == f.at || (f.on && f.seen > f.at))
                code = f.code;
        }
    return code;
}

/* How often the thread that holds the lock has taken it. */
static unsigned depth;

call::~call()
{
    depth--;
}

void step_aside()
{
    const unsigned taken = depth;
    depth = 0;
    for (unsigned i = 0; i < taken; i++)
        lock().unlock();
    usleep(100);
    for (unsigned i = 0; i < taken; i++)
        lock().lock();
    depth = taken;
}

call::call(const char *name) : lock_(lock()), error_(cudaSuccess)
{
    depth++;
    if (!name)
        return;
    if (sticky == cudaSuccess)
        error_ = gives((cudaError_t)injected(name));
    else
        error_ = gives(sticky);
    if (is_sticky(error_))
        sticky = error_;
}

cudaError_t call::gives(cudaError_t error) const
{
    if (error != cudaSuccess)
        mine().last = error;
    return error;
}

cudaError_t lost()
{
    return sticky;
}

void lose(cudaError_t error, const std::string &why)
{
    if (sticky != cudaSuccess)
        return; /* what follows from the first one */
    sticky = error;
    complain(error, why);
}

cudaError_t complain(cudaError_t error, const std::string &why)
{
    complaint = why;
    fprintf(stderr, "emulated device: %s\n", why.c_str());
    return error;
}

void forget_errors()
{
    sticky = cudaSuccess;
    complaint.clear();
    faults().clear();
    mine().last = cudaSuccess;
}
} // namespace rm_emulated

using namespace rm_emulated;

cudaError_t cudaGetLastError()
{
    const call here(nullptr);
    const cudaError_t e = lost() != cudaSuccess ? lost() : mine().last;
    mine().last = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError()
{
    const call here(nullptr);
    return lost() != cudaSuccess ? lost() : mine().last;
}

RM_EXPORT const char *rm_emulated_complaint(void)
{
    return complaint.c_str();
}

RM_EXPORT int rm_emulated_fault(const char *text)
{
    const call here(nullptr);
    std::vector<fault> list;
    const int rc = parse(text, &list);
    if (!rc)
        faults() = list;
    return rc;
}
