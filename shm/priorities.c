#include "shm/priorities.h"

#include "shm/base/state.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>

#define LEAVES_MAX  (1ull << 40)
#define SOURCES_MAX 1024u

static uint64_t padded(uint64_t nodes)
{
    return (nodes + RM_PRIORITY_FAN - 1) / RM_PRIORITY_FAN * RM_PRIORITY_FAN;
}

static size_t aligned(size_t bytes)
{
    return (bytes + RM_LINE - 1) / RM_LINE * RM_LINE;
}

static bool in_range(const struct rm_priorities_spec *spec)
{
    return spec->slots > 0 && spec->lanes > 0 && spec->sources > 0 &&
           spec->sources <= SOURCES_MAX && spec->slots <= LEAVES_MAX / spec->lanes;
}

/* Computes the offsets of the levels in the region. Returns its bytes. */
static size_t place(const struct rm_priorities_spec *spec, uint32_t *levels, uint64_t *nodes,
                    size_t *at)
{
    size_t bytes = sizeof(struct rm_priorities_shared) + aligned(spec->sources * sizeof(uint64_t));
    uint64_t n = padded(spec->slots * spec->lanes);
    for (uint32_t l = 0;; l++) {
        nodes[l] = n;
        at[l] = bytes;
        bytes += aligned(n * sizeof(double));
        *levels = l + 1;
        if (n == RM_PRIORITY_FAN)
            return bytes;
        n = padded(n / RM_PRIORITY_FAN);
    }
}

size_t rm_priorities_bytes(const struct rm_priorities_spec *spec)
{
    uint32_t levels;
    uint64_t nodes[RM_PRIORITY_LEVELS];
    size_t at[RM_PRIORITY_LEVELS];
    return in_range(spec) ? place(spec, &levels, nodes, at) : 0;
}

static void adopt(struct rm_priorities *p, const struct rm_priorities_spec *spec)
{
    size_t at[RM_PRIORITY_LEVELS];
    char *base = p->region.base;
    p->shared = p->region.base;
    p->spec = *spec;
    p->entered = (_Atomic uint64_t *)(void *)(base + sizeof(struct rm_priorities_shared));
    place(spec, &p->levels, p->nodes, at);
    for (uint32_t l = 0; l < p->levels; l++)
        p->level[l] = (double *)(void *)(base + at[l]);
}

int rm_priorities_create(struct rm_priorities *p, const struct rm_priorities_spec *spec,
                         struct rm_error *error)
{
    char name[RM_REGION_NAME_MAX];
    *p = (struct rm_priorities){.region.fd = -1};
    if (!in_range(spec))
        return rm_fail(
            error, -EINVAL,
            "priorities of policy %u: %llu rows of %u lanes from %u rings; each at least "
            "1, at most 2^40 leaves and %u rings",
            spec->policy, (unsigned long long)spec->slots, spec->lanes, spec->sources, SOURCES_MAX);
    snprintf(name, sizeof name, "rm-priorities-p%u", spec->policy);
    int rc =
        rm_region_create(&p->region, RM_REGION_PRIORITIES, name, rm_priorities_bytes(spec), error);
    if (!p->region.base)
        return rc;
    struct rm_priorities_shared *shared = p->region.base;
    shared->spec = *spec;
    shared->tree_at =
        sizeof(struct rm_priorities_shared) + aligned(spec->sources * sizeof(uint64_t));
    RM_POKE(&shared->largest, 1.0);
    adopt(p, spec);
    rm_region_publish(&p->region);
    return 0;
}

int rm_priorities_attach(struct rm_priorities *p, int fd, bool writable, struct rm_error *error)
{
    *p = (struct rm_priorities){.region.fd = -1};
    int rc = rm_region_attach(&p->region, fd, RM_REGION_PRIORITIES, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    if (p->region.bytes < sizeof(struct rm_priorities_shared)) {
        rc = rm_fail(error, -EPROTO,
                     "priorities: a region of %zu bytes is too small for the %zu-byte header",
                     p->region.bytes, sizeof(struct rm_priorities_shared));
        rm_priorities_close(p);
        return rc;
    }
    const struct rm_priorities_spec spec = ((struct rm_priorities_shared *)p->region.base)->spec;
    const size_t bytes = rm_priorities_bytes(&spec);
    if (bytes != p->region.bytes) {
        rc = rm_fail(error, -EPROTO,
                     "priorities of policy %u: the spec needs %zu bytes, the region has %zu",
                     spec.policy, bytes, p->region.bytes);
        rm_priorities_close(p);
        return rc;
    }
    adopt(p, &spec);
    return RM_ATTACH_OK;
}

void rm_priorities_close(struct rm_priorities *p)
{
    rm_region_close(&p->region);
    *p = (struct rm_priorities){.region.fd = -1};
}

void rm_priorities_state(struct rm_priorities *p, struct rm_state *s)
{
    RM_STATE(s, "largest", p->shared->largest);
    rm_state_bytes(s, "entered", p->entered, p->spec.sources * sizeof *p->entered);
    rm_state_bytes(s, "leaves", p->level[0], p->spec.slots * p->spec.lanes * sizeof(double));
}
