#include "state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

namespace rm_emulated
{
struct rm_emulated_counts counts;

namespace
{
int read_order(const char *text, settings *s)
{
    const std::string t = text ? text : "";
    if (t.empty() || t == "forward")
        s->order = FORWARD;
    else if (t == "reverse")
        s->order = REVERSE;
    else if (t.compare(0, 6, "random") == 0 && (t.size() == 6 || t[6] == ':')) {
        s->order = RANDOM;
        s->random = t.size() > 7 ? strtoull(t.c_str() + 7, nullptr, 10) : 1;
    } else
        return -EINVAL;
    return 0;
}

settings from_environment()
{
    settings s;
    if (read_order(getenv("RM_EMULATED_ORDER"), &s))
        fprintf(stderr, "RM_EMULATED_ORDER: forward, reverse or random[:SEED], not '%s'\n",
                getenv("RM_EMULATED_ORDER"));
    if (const char *v = getenv("RM_EMULATED_DEVICES"))
        s.devices = (unsigned)strtoul(v, nullptr, 10);
    if (const char *v = getenv("RM_EMULATED_CAPABILITY"))
        s.capability = (unsigned)strtoul(v, nullptr, 10);
    if (const char *v = getenv("RM_EMULATED_MEMORY"))
        s.memory = strtoull(v, nullptr, 10);
    if (const char *v = getenv("RM_EMULATED_POISON"))
        s.poison = (uint32_t)strtoul(v, nullptr, 16);
    if (const char *v = getenv("RM_EMULATED_GUARD"))
        s.guard = *v != '0';
    return s;
}
} // namespace

settings &set()
{
    static settings *s = new settings(from_environment());
    return *s;
}

/* splitmix64 (Steele 2014) */
uint64_t draw(uint64_t below)
{
    uint64_t z = set().random += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % below;
}

std::string format(const char *f, ...)
{
    char text[1024];
    va_list list;
    va_start(list, f);
    vsnprintf(text, sizeof text, f, list);
    va_end(list);
    return text;
}
} // namespace rm_emulated

using namespace rm_emulated;

RM_EXPORT int rm_emulated_order(const char *order)
{
    const call here(nullptr);
    run_all();
    return read_order(order, &set());
}

RM_EXPORT int rm_emulated_poison(uint32_t word)
{
    const call here(nullptr);
    run_all();
    set().poison = word;
    return 0;
}

RM_EXPORT void rm_emulated_counts(struct rm_emulated_counts *out)
{
    const call here(nullptr);
    *out = counts;
    for (const auto &s : all_streams())
        out->waiting += s->queue.size();
}

RM_EXPORT uint64_t rm_emulated_reset(void)
{
    const call here(nullptr);
    const uint64_t left = forget_streams() + forget_events() + forget_graphs() + forget_memory();
    forget_errors();
    counts = {};
    return left;
}

RM_EXPORT int rm_emulated_enqueue(void *stream, void (*run)(void *), void *data,
                                  void (*kept)(void *, int))
{
    const call here(nullptr);
    const auto s = stream_of(static_cast<cudaStream_t>(stream));
    std::shared_ptr<void> reference; /* shared by the copies of a graph's node */
    if (s && capturing(*s)) {
        kept(data, 1);
        reference = std::shared_ptr<void>(data, [kept](void *d) { kept(d, -1); });
    }
    return here.gives(
        put(static_cast<cudaStream_t>(stream), [run, data, reference] { run(data); }));
}

RM_EXPORT const char *rm_emulated_wrong(void *stream, const void *p, uint64_t bytes)
{
    static std::string *words = new std::string;
    const call here(nullptr);
    const auto s = stream_of(static_cast<cudaStream_t>(stream));
    *words = s ? wrong_on_device(p, bytes, s->device) : std::string("no such stream");
    return words->empty() ? nullptr : words->c_str();
}

namespace
{
struct asked {
    int (*waiting)(void *);
    void *data;
};
} // namespace

RM_EXPORT int rm_emulated_while(int (*waiting)(void *), void *data)
{
    const call here(nullptr);
    asked a = {waiting, data};
    return !wait_while(
        [](void *p) {
            const asked *q = static_cast<const asked *>(p);
            return q->waiting(q->data) != 0;
        },
        &a);
}

RM_EXPORT void rm_emulated_lose(int error, const char *why)
{
    const call here(nullptr);
    lose((cudaError_t)error, why);
}

RM_EXPORT int rm_emulated_device(void)
{
    const call here(nullptr);
    return mine().device;
}

RM_EXPORT int rm_emulated_injected(const char *name)
{
    const call here(nullptr);
    return injected(name);
}
