/* Any bytes as a sealed memfd that is attached to as a ring, weights, a board or priorities:
 * refused with words, or a view that lies within the mapping and can be used, in both directions,
 * without end or harm.
 *
 * The first byte: kind, and whether the header is any bytes too or right. The second: how the size
 * of the file is chosen: as long as the bytes, or as what stands in them asks for. */
#include "learner/priority_tree.h"
#include "shm/layout.h"
#include "tests/fuzz/file.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MAX ((size_t)1 << 22)

static const enum rm_region_kind kinds[] = {RM_REGION_RING, RM_REGION_WEIGHTS, RM_REGION_BOARD,
                                            RM_REGION_PRIORITIES};

static void within(const struct rm_region *region, const void *at, size_t bytes)
{
    const uint8_t *base = region->base, *from = at;
    demand(from >= base && bytes <= region->bytes && from + bytes <= base + region->bytes,
           "a view reaches beyond its mapping");
}

/* --- what can be done with each ------------------------------------------------------------- */

static void look_at_row(struct rm_ring *ring, uint64_t index)
{
    static uint8_t copy[BYTES_MAX];
    const struct rm_ring_spec *s = &ring->spec;
    const size_t lanes = s->lanes;
    struct rm_row row = rm_ring_row(ring, index);
    within(&ring->region, row.obs, lanes * s->obs_bytes);
    within(&ring->region, row.reward, lanes * sizeof(float));
    within(&ring->region, row.flags, lanes);
    within(&ring->region, row.action, lanes * s->action_words * sizeof(int32_t));
    if (row.mask)
        within(&ring->region, row.mask, lanes * s->mask_bytes);
    if (row.logp)
        within(&ring->region, row.logp, lanes * sizeof(float));
    if (row.value)
        within(&ring->region, row.value, lanes * sizeof(float));
    if (row.state)
        within(&ring->region, row.state, lanes * s->state_floats * sizeof(float));
    rm_ring_copy_out(copy, row.obs, lanes * s->obs_bytes);
}

static int use_ring(int fd, bool writable, struct rm_error *error)
{
    struct rm_ring ring;
    struct rm_row row;
    uint64_t first, end;
    const int rc = rm_ring_attach(&ring, fd, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    rm_ring_window(&ring, &first, &end);
    demand(end - first <= ring.spec.rows, "a window of more rows than there are");
    for (uint64_t i = first; i != end; i++)
        look_at_row(&ring, i);
    (void)rm_ring_offered(&ring);
    if (writable) {
        demand(rm_ring_writer_open(&ring) <= 1, "more than a row is lost");
        for (int i = 0; i < 5 && rm_ring_reserve(&ring, &row); i++) {
            look_at_row(&ring, row.index);
            memset(row.obs, i, (size_t)ring.spec.lanes * ring.spec.obs_bytes);
            rm_ring_offer(&ring);
            rm_ring_commit(&ring);
            rm_ring_consume(&ring, rm_ring_committed(&ring));
        }
    }
    rm_ring_close(&ring);
    return RM_ATTACH_OK;
}

static int use_weights(int fd, bool writable, struct rm_error *error)
{
    static float params[BYTES_MAX / sizeof(float)];
    struct rm_weights weights;
    struct rm_weights_stamp stamp;
    const int rc = rm_weights_attach(&weights, fd, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    const uint64_t n = weights.count, latest = rm_weights_latest(&weights).version;
    demand(n <= sizeof params / sizeof params[0], "more weights than bytes");
    demand(rm_weights_read(&weights, params, n, &stamp, NULL) == (latest > 0), "no weights");
    rm_weights_read_version(&weights, latest, params, n, &stamp);
    rm_weights_read_version(&weights, latest - 1, params, n, &stamp);
    rm_weights_read_before(&weights, stamp.round, params, n, &stamp);
    if (writable)
        for (int i = 0; i < 4; i++) {
            stamp = (struct rm_weights_stamp){.updates = 7, .round = (uint64_t)i};
            const uint64_t version = rm_weights_publish(&weights, params, stamp);
            if (version == 0) /* they have been counted to the end */
                break;
            demand(rm_weights_read_version(&weights, version, params, n, &stamp), "not published");
        }
    rm_weights_close(&weights);
    return RM_ATTACH_OK;
}

static int use_board(int fd, bool writable, struct rm_error *error)
{
    struct rm_board_view b;
    double sum = 0, mean;
    const int rc = rm_board_attach(&b, fd, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    within(&b.region, b.policies, b.run->policies * sizeof *b.policies);
    within(&b.region, b.agents, b.run->agents * sizeof *b.agents);
    within(&b.region, b.workers, b.run->workers * sizeof *b.workers);
    for (uint32_t p = 0; p < b.run->policies; p++)
        for (size_t m = 0; m < rm_policy_metric_count; m++)
            sum += rm_metric_value(&rm_policy_metrics[m], &b.policies[p]);
    for (uint32_t w = 0; w < b.run->workers; w++) {
        for (size_t m = 0; m < rm_worker_metric_count; m++)
            sum += rm_metric_value(&rm_worker_metrics[m], &b.workers[w]);
        demand(rm_worker_state_name(RM_PEEK(&b.workers[w].state)) != NULL, "a state of no name");
        demand(rm_role_name(RM_PEEK(&b.workers[w].role)) != NULL, "a role of no name");
    }
    demand(rm_run_state_name(RM_PEEK(&b.run->state)) != NULL, "a state of no name");
    for (uint32_t a = 0; a < b.run->agents; a++)
        demand(rm_scores_first(&b.agents[a].scores, &mean) <= RM_SCORE_WINDOW &&
                   rm_scores_last(&b.agents[a].scores, &mean) <= RM_SCORE_WINDOW,
               "more scores than are kept");
    if (writable) {
        for (uint32_t a = 0; a < b.run->agents; a++)
            rm_scores_add(&b.agents[a].scores, sum);
        rm_round_settle(b.round);
        for (uint32_t who = 0; who < RM_PEEK(&b.round->participants); who++)
            rm_round_arrive(b.round, who);
    }
    rm_board_close(&b);
    return RM_ATTACH_OK;
}

static int use_priorities(int fd, bool writable, struct rm_error *error)
{
    struct rm_priorities p;
    double at[4] = {0, 1, 0, 0};
    uint64_t leaf[4];
    const int rc = rm_priorities_attach(&p, fd, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    within(&p.region, (void *)p.entered, p.spec.sources * sizeof *p.entered);
    for (uint32_t l = 0; l < p.levels; l++)
        within(&p.region, p.level[l], p.nodes[l] * sizeof(double));
    (void)rm_priority_count(&p);
    for (int again = 0; writable && again < 2; again++) {
        rm_priority_rebuild(&p); /* as whoever goes on with what another left */
        at[2] = rm_priority_total(&p) / 2;
        at[3] = rm_priority_total(&p);
        rm_priority_find(&p, at, 4, leaf);
        for (int i = 0; i < 4; i++)
            demand(leaf[i] < p.spec.slots * p.spec.lanes, "a leaf that is not there");
        rm_priority_set(&p, leaf, (const double[]){1, 0, 2, 3}, 4);
    }
    rm_priorities_close(&p);
    return RM_ATTACH_OK;
}

static int (*const use[])(int, bool, struct rm_error *) = {use_ring, use_weights, use_board,
                                                           use_priorities};

/* --- the file ------------------------------------------------------------------------------- */

/* As many bytes as what stands in the region asks for, if that is little; 0 otherwise. */
static size_t asked_for(unsigned kind, const uint8_t *image, size_t bytes)
{
    const size_t head = sizeof(struct rm_region_header);
    size_t asked = 0;
    if (kind == 0 && bytes >= head + sizeof(struct rm_ring_spec)) {
        struct rm_ring_spec spec;
        memcpy(&spec, image + head, sizeof spec);
        asked = rm_ring_bytes(&spec);
    } else if (kind == 1 && bytes >= head + sizeof(uint64_t)) {
        uint64_t count;
        memcpy(&count, image + head, sizeof count);
        asked =
            count < BYTES_MAX ? 4096 + RM_WEIGHTS_SLOTS * ((count * 4 + 4095) / 4096 * 4096) : 0;
    } else if (kind == 2 && bytes >= head + 36) {
        uint32_t n[3];
        memcpy(n, image + head + 24, sizeof n);
        if (n[0] < 1000 && n[1] < 1000 && n[2] < 1000)
            asked = sizeof(struct rm_board) + n[0] * sizeof(struct rm_board_policy) +
                    n[1] * sizeof(struct rm_board_agent) + n[2] * sizeof(struct rm_board_worker);
    } else if (kind == 3 && bytes >= head + sizeof(struct rm_priorities_spec)) {
        struct rm_priorities_spec spec;
        memcpy(&spec, image + head, sizeof spec);
        asked = rm_priorities_bytes(&spec);
    }
    return asked <= BYTES_MAX ? asked : 0;
}

static int region_of(unsigned kind, bool right, bool fitting, const uint8_t *data, size_t size)
{
    const size_t head = right ? sizeof(struct rm_region_header) : 0;
    uint8_t *image = calloc(1, head + size + 1);
    demand(image != NULL, "no memory");
    memcpy(image + head, data, size);
    size_t bytes = head + size;
    const size_t asked = fitting ? asked_for(kind, image, bytes) : 0;
    if (right) {
        struct rm_region_header header = {.layout_hash = rm_layout_hash(),
                                          .bytes = asked ? asked : bytes,
                                          .kind = (uint32_t)kinds[kind],
                                          .name = "fuzz"};
        RM_POKE(&header.magic, RM_LAYOUT_MAGIC);
        RM_POKE(&header.version, RM_LAYOUT_VERSION);
        memcpy(image, &header, sizeof header);
    }
    const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    demand(fd >= 0, "no file in memory");
    if (asked && asked < bytes)
        bytes = asked;
    demand(pwrite(fd, image, bytes, 0) == (ssize_t)bytes, "no room in memory");
    if (asked)
        demand(ftruncate(fd, (off_t)asked) == 0, "no room in memory");
    demand(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "no seals");
    free(image);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const unsigned kind = data[0] & 3;
    const int fd = region_of(kind, data[0] & 4, data[1] & 1, data + 2, size - 2);
    for (int writable = 0; writable < 2; writable++) {
        struct rm_error error = {{0}};
        const int rc = use[kind](fd, writable, &error);
        demand(rc >= 0 || error.text[0] != '\0', "refused without words");
    }
    close(fd);
    return 0;
}
