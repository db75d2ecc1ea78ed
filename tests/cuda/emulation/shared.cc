#include "shared.h"
#include "state.h"

#include <link.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RM_ASAN 1
#endif
#ifdef RM_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace rm_emulated
{
unsigned char *dynamic_shared;

namespace
{
#define ZONE 4096u

/* Keeps the segment from being empty, and tells which object's it is. */
__thread unsigned of_this_object;

alignas(256) unsigned char room[ZONE + RM_SHARED_MOST + ZONE];
size_t in_use;

struct segment {
    char *at;
    size_t bytes;
};

int look(dl_phdr_info *info, size_t, void *found)
{
    segment *s = static_cast<segment *>(found);
    const char *mark = reinterpret_cast<const char *>(&of_this_object);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        char *at = static_cast<char *>(info->dlpi_tls_data);
        const size_t bytes = info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_TLS && at && mark >= at && mark < at + bytes) {
            s->at = at;
            s->bytes = bytes;
            return 1;
        }
    }
    return 0;
}

/* Each host thread has one of its own. */
segment shared_segment()
{
    static auto *known = new std::map<const void *, segment>;
    segment &s = (*known)[&of_this_object];
    if (!s.at)
        dl_iterate_phdr(look, &s);
    return s;
}

/* A red zone may not be touched by instrumented code, this one apart. */
#if defined(__clang__)
__attribute__((no_sanitize("address")))
#else
__attribute__((no_sanitize_address))
#endif
void write_words(void *at, size_t bytes, uint32_t word)
{
    volatile uint32_t *w = static_cast<uint32_t *>(at);
    for (size_t i = 0; i < bytes / 4; i++)
        w[i] = word;
}
} // namespace

void poison_shared(size_t dynamic_bytes)
{
    const segment s = shared_segment();
    write_words(s.at, s.bytes, set().poison);
    in_use = dynamic_bytes;
    dynamic_shared = room + ZONE;
#ifdef RM_ASAN
    ASAN_UNPOISON_MEMORY_REGION(room, sizeof room);
#endif
    const size_t used = (dynamic_bytes + 3) / 4 * 4;
    write_words(dynamic_shared, used, set().poison);
    if (dynamic_bytes) {
        memset(room, 0xa5, ZONE);
        memset(dynamic_shared + dynamic_bytes, 0xa5, ZONE);
    }
#ifdef RM_ASAN
    ASAN_POISON_MEMORY_REGION(room, ZONE);
    ASAN_POISON_MEMORY_REGION(dynamic_shared + dynamic_bytes, ZONE);
#endif
}

bool shared_is_whole()
{
#ifndef RM_ASAN
    if (in_use)
        for (size_t i = 0; i < ZONE; i++)
            if (room[i] != 0xa5 || dynamic_shared[in_use + i] != 0xa5)
                return false;
#endif
    return true;
}
} // namespace rm_emulated
