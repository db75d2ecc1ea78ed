/* One learner publishing as fast as it can, four readers: no copy mixes two versions, versions
 * never go backwards, and readers never stop the writer. */
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT   20011u
#define READERS 4

static struct rm_error error;

struct course {
    struct rm_weights weights;
    _Atomic uint32_t done;
    _Atomic uint32_t met; /* readers that have a copy, or have failed */
    _Atomic uint64_t published, reads, retries, early;
    uint64_t end_ns;
};

static float value_at(uint64_t version, uint64_t i)
{
    /* 24 bits, exact in a float. */
    return (float)((version * 7919 + i) & 0xffffff);
}

static int writer(void *arg, uint32_t who)
{
    struct course *c = arg;
    float *params = malloc(COUNT * sizeof *params);
    (void)who;
    uint64_t version = 0;
    /* On a busy host it takes longer until everybody had enough of it. */
    while (rm_now_ns() < c->end_ns || version <= 10 || RM_PEEK(&c->met) < READERS) {
        version++;
        for (uint64_t i = 0; i < COUNT; i++)
            params[i] = value_at(version, i);
        struct rm_weights_stamp stamp = {
            .updates = 3 * version, .round = version / 2, .time_ns = 5 * version};
        if (rm_weights_publish(&c->weights, params, stamp) != version)
            return 1;
        RM_ADD(&c->published, 1);
    }
    RM_RAISE(&c->done, 1);
    free(params);
    return 0;
}

static bool stamp_is_whole(const struct rm_weights_stamp *s)
{
    return s->updates == 3 * s->version && s->round == s->version / 2 &&
           s->time_ns == 5 * s->version;
}

static int read_on(struct course *c, uint32_t who, float *params)
{
    uint64_t reads = 0, retries = 0, early = 0, last = 0;
    while (!RM_SEE(&c->done)) {
        struct rm_weights_stamp stamp;
        uint64_t n = (reads + who) % 3 ? COUNT : 100;
        if (reads % 8 == 7) {
            /* A round that began a few versions ago. */
            uint64_t round = rm_weights_latest(&c->weights).round;
            if (!rm_weights_read_before(&c->weights, round, params, n, &stamp)) {
                reads++;
                continue; /* overwritten since: allowed */
            }
            if (stamp.round >= round)
                return 2;
            early++;
        } else {
            if (!rm_weights_read(&c->weights, params, n, &stamp, &retries))
                continue; /* nothing published yet */
            if (stamp.version < last)
                return 3;
            last = stamp.version;
        }
        if (stamp.version == 0 || !stamp_is_whole(&stamp))
            return 4;
        for (uint64_t i = 0; i < n; i++)
            if (params[i] != value_at(stamp.version, i))
                return 5;
        stamp = rm_weights_latest(&c->weights);
        if (stamp.version < last || !stamp_is_whole(&stamp))
            return 6;
        if (reads++ == 0)
            RM_ADD(&c->met, 1);
    }
    RM_ADD(&c->reads, reads);
    RM_ADD(&c->retries, retries);
    RM_ADD(&c->early, early);
    return 0;
}

static int reader(void *arg, uint32_t who)
{
    struct course *c = arg;
    float *params = malloc(COUNT * sizeof *params);
    const int reason = params ? read_on(c, who, params) : 7;
    if (reason)
        RM_ADD(&c->met, 1);
    free(params);
    return reason;
}

static void copies_are_of_one_version(void **state)
{
    (void)state;
    struct course *c = rm_crew_memory(sizeof *c);
    assert_int_equal(rm_weights_create(&c->weights, 0, COUNT, COUNT, &error), 0);
    c->end_ns = rm_now_ns() + (uint64_t)(rm_torture_seconds(1.5) * 1e9);
    struct rm_crew crew = {0};
    rm_crew_start(&crew, writer, c);
    for (int i = 0; i < READERS; i++)
        rm_crew_start(&crew, reader, c);
    assert_int_equal(rm_crew_join(&crew), 0);
    printf("  published %llu, read %llu (%llu of an earlier round), retries %llu\n",
           (unsigned long long)c->published, (unsigned long long)c->reads,
           (unsigned long long)c->early, (unsigned long long)c->retries);
    assert_true(c->published > 10 && c->reads >= READERS);
    rm_weights_close(&c->weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_of_one_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
