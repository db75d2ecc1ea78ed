/* Death of a learner whose device draws and keeps the priorities (learner/feed.h): at every kernel
 * of an update, and by kill -9 at random moments. What the device wrote through to shared memory is
 * a tree that any successor goes on with, on the CPU or on a device, and no row is lost. */
#include "learner/feed.h"
#include "shm/base/rng.h"
#include "tests/crash/priority_scene.h"
#include "tests/crash/victim.h"
#include "tests/support/emulated.h"

#include <string.h>

enum { DIED = 70, BEGUN = 4 };

/* --- who dies -------------------------------------------------------------------------------- */

struct learner {
    struct rm_backend *device;
    struct rm_sampler *sampler;
    struct rm_feed *feed;
    struct rm_device_sampler draw;
    float *error; /* on the device */
};

static void *on_device(struct learner *l, size_t bytes)
{
    return l->device->ops->alloc_bytes(l->device, bytes, &failure);
}

static int take_over(struct scene *s, struct learner *l)
{
    const struct rm_sampler_spec spec = spec_of(s);
    memset(l, 0, sizeof *l);
    l->device = rm_test_device_open();
    const struct rm_feed_spec feed = {
        .backend = l->device, .sampler = &spec, .kind = RM_FEED_RESIDENT, .name = "policy"};
    if (rm_sampler_create(&l->sampler, &spec, &failure) ||
        rm_feed_create(&l->feed, &feed, &failure))
        return 1;
    rm_sampler_device_draws(l->sampler, true);
    l->draw = *rm_feed_draw(l->feed);
    l->draw.knobs = on_device(l, sizeof *l->draw.knobs);
    l->draw.turn = on_device(l, rm_device_turn_bytes(1));
    l->draw.figures = on_device(l, sizeof *l->draw.figures);
    l->draw.drawn_copy = on_device(l, sizeof *l->draw.drawn_copy);
    l->draw.picks = on_device(l, BATCH * sizeof *l->draw.picks);
    l->draw.action = on_device(l, BATCH * sizeof *l->draw.action);
    l->draw.ret = on_device(l, BATCH * sizeof *l->draw.ret);
    l->draw.discount = on_device(l, BATCH * sizeof *l->draw.discount);
    l->draw.weight = on_device(l, BATCH * sizeof *l->draw.weight);
    l->draw.leaf = on_device(l, BATCH * sizeof *l->draw.leaf);
    l->error = on_device(l, BATCH * sizeof *l->error);
    return l->error ? 0 : 1;
}

static void send(struct learner *l, const void *to, const void *from, size_t bytes)
{
    l->device->ops->upload(l->device, (float *)to, from, bytes / sizeof(float));
}

static void one_update(struct scene *s, struct learner *l)
{
    const uint64_t u = RM_PEEK(&s->updates) + 1;
    const struct rm_update_knobs knobs = {.before = u - 1};
    _Alignas(8) uint8_t turn[sizeof(struct rm_device_turn) + sizeof(struct rm_row_span)];
    float error[BATCH];
    for (uint32_t i = 0; i < BATCH; i++)
        error[i] = (float)((u * 7 + i * 3) % 29);
    rm_sampler_window_free(l->sampler);
    rm_feed_copy(l->feed, l->sampler);
    rm_feed_turn(l->feed, l->sampler, 1, (void *)turn);
    send(l, l->draw.knobs, &knobs, sizeof knobs);
    send(l, l->draw.turn, turn, sizeof turn);
    send(l, l->error, error, sizeof error);
    l->device->ops->finish(l->device);
    l->device->device->feed->draw(l->device, &l->draw);
    l->device->device->feed->learned(l->device, &l->draw, l->error);
    l->device->ops->finish(l->device);
    RM_POKE(&s->updates, u);
}

/* Goes on until it is killed, or its device gives an error. */
static int learner(void *arg)
{
    struct scene *s = arg;
    struct learner l;
    if (take_over(s, &l))
        return l.device && l.device->ops->failed(l.device, &failure) ? DIED : 1;
    while (!l.device->ops->failed(l.device, &failure))
        one_update(s, &l);
    return DIED;
}

/* A few updates of a successor, which ends well if all of them drew. */
static int successor(void *arg)
{
    struct scene *s = arg;
    struct learner l;
    struct rm_device_drawn drawn;
    if (take_over(s, &l))
        return 1;
    for (int i = 0; i < 3; i++)
        one_update(s, &l);
    if (l.device->ops->failed(l.device, &failure))
        return 2;
    l.device->ops->download(l.device, (float *)(void *)&drawn,
                            (const float *)(const void *)l.draw.drawn_copy,
                            sizeof drawn / sizeof(float));
    return drawn.dry ? 3 : drawn.rejected ? 4 : drawn.age_count == 3 * BATCH ? 0 : 5;
}

/* --- what is left ---------------------------------------------------------------------------- */

static void check(struct scene *s)
{
    const struct rm_sampler_spec spec = spec_of(s);
    struct rm_sampler *sampler = NULL;
    assert_int_equal(victim_wait(victim_start(successor, s, NULL, 0)), 0);
    if (rm_sampler_create(&sampler, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_sampler_window_free(sampler);
    check_rows(s);
    const uint64_t number = RM_PEEK(&s->updates) + 1;
    assert_true(rm_sampler_draw(sampler, number, rm_sampler_batch(sampler)));
    assert_int_equal(rm_sampler_counts(sampler).rejected, 0);
    rm_sampler_destroy(sampler);
}

/* Every kernel of a take-over and of the updates behind it: those before it have run, no other. */
static void learner_dies_at_every_kernel(void **state)
{
    (void)state;
    struct scene *s = begin();
    write_rows(s, 12);
    for (unsigned nth = 1; nth <= 12; nth++) {
        char fault[32];
        snprintf(fault, sizeof fault, "launch:719@%u", nth);
        write_rows(s, 7);
        setenv("RM_EMULATED_FAULT", fault, 1);
        const pid_t pid = victim_start(learner, s, NULL, 0);
        unsetenv("RM_EMULATED_FAULT");
        assert_int_equal(victim_wait(pid), DIED);
        check(s);
    }
    assert_true(RM_PEEK(&s->written) > SLOTS && RM_PEEK(&s->updates) > 12);
    end(s);
}

static void random_kills(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 1, 0);
    struct scene *s = begin();
    write_rows(s, 50);
    const unsigned kills = (unsigned)(12 * rm_torture_seconds(1.0));
    for (unsigned i = 0; i < kills; i++) {
        const uint64_t before = RM_PEEK(&s->updates);
        write_rows(s, 5);
        pid_t pid = victim_start(learner, s, NULL, 0);
        while (RM_PEEK(&s->updates) < before + BEGUN && waitpid(pid, NULL, WNOHANG) == 0)
            usleep(100);
        usleep(rm_rng_below(&rng, 3000));
        kill(pid, SIGKILL);
        assert_int_equal(victim_wait(pid), VICTIM_KILLED);
        check(s);
    }
    printf("  %u kills, %llu updates\n", kills, (unsigned long long)RM_PEEK(&s->updates));
    end(s);
}

int main(void)
{
    rm_test_device_use();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learner_dies_at_every_kernel),
        cmocka_unit_test(random_kills),
    };
    alarm(240); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
