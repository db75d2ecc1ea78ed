/* A learner's turns and an actor's in one thread, with the actor let in at every point at which the
 * learner looks at shared memory: whatever comes between two looks, nobody sleeps for good, and all
 * updates are made. */
#include "tests/support/unit.h"

#include "learner/pace.h"
#include "shm/atomic.h"

#define AHEAD 2 /* updates that the limiter lets the learner make too early */

static void look(void);
static uint64_t window;

#undef RM_PEEK
#undef RM_SEE
#define RM_PEEK(word)                   (look(), atomic_load_explicit((word), memory_order_relaxed))
#define RM_SEE(word)                    (look(), atomic_load_explicit((word), memory_order_acquire))
#define rm_atomic_limiter_counted(word) (look(), atomic_load_explicit((word), memory_order_acquire))
#define rm_sampler_window_free(sampler)                                                            \
    ((void)(sampler), window = atomic_load(&scene.policy.limiter.inserted), look())

static struct {
    struct rm_session session;
    struct rm_board_policy policy;
    struct rm_board_worker workers[2];
    struct rm_pace pace;
    uint64_t rows;  /* that the actor makes in all */
    uint64_t few;   /* no batch can be drawn from fewer rows */
    uint64_t looks; /* of the learner, so far */
    uint64_t at;    /* the look before which the actor is let in */
    uint64_t late;  /* looks until what it counted last there makes it look whether to signal */
    uint64_t burst; /* for so many rows */
    bool counted;   /* the actor has, and has yet to look whether to signal */
    bool looking;   /* the learner, not the actor */
    bool asleep;    /* the learner has said so */
    bool signalled;
} scene;

#include "learner/pace.c"
#include "shm/limiter.c"

/* What actor/actor.c does of it, in two halves. False: the limiter holds the actor, or it is done.
 */
static bool actor_counts(void)
{
    struct rm_limiter *l = &scene.policy.limiter;
    if (atomic_load(&l->inserted) >= scene.rows) {
        atomic_store(&scene.workers[0].state, RM_WORKER_DONE);
        scene.signalled |= scene.asleep;
        return false;
    }
    if (!rm_limiter_may_insert(l, 1))
        return false;
    rm_limiter_inserted(l, 1);
    scene.counted = true;
    return true;
}

static void actor_signals(void)
{
    const uint64_t inserted = atomic_load(&scene.policy.limiter.inserted);
    if (scene.counted && inserted >= atomic_load(&scene.workers[1].wake.threshold))
        scene.signalled |= scene.asleep;
    scene.counted = false;
}

static void look(void)
{
    if (!scene.looking)
        return;
    const uint64_t now = scene.looks++;
    scene.looking = false;
    if (now == scene.at)
        for (uint64_t i = 0; i < scene.burst && actor_counts(); i++)
            if (i + 1 < scene.burst)
                actor_signals();
    if (now == scene.at + scene.late)
        actor_signals();
    scene.looking = true;
}

static enum rm_turn learner_turn(void)
{
    scene.looking = true;
    enum rm_turn turn = rm_pace_next(&scene.pace);
    if (turn == RM_TURN_UPDATE && window < scene.few)
        turn = rm_pace_too_few(&scene.pace);
    if (turn == RM_TURN_UPDATE)
        rm_pace_drawn(&scene.pace);
    scene.looking = false;
    return turn;
}

/* As shm/duty.c has it: nothing to do, says so, looks once more, sleeps. */
static enum rm_turn learner_until_asleep(void)
{
    enum rm_turn turn;
    for (;;) {
        scene.asleep = scene.signalled = false;
        if ((turn = learner_turn()) == RM_TURN_FINISHED)
            return turn;
        if (turn != RM_TURN_WAIT)
            continue;
        scene.asleep = true;
        if ((turn = learner_turn()) == RM_TURN_FINISHED)
            return turn;
        if (turn == RM_TURN_WAIT)
            return turn;
    }
}

static void begin(uint64_t few, uint64_t at, uint64_t late, uint64_t burst)
{
    const uint64_t rows = scene.rows;
    memset(&scene, 0, sizeof scene);
    scene.rows = rows;
    struct rm_experiment *e = &scene.session.experiment;
    e->mode = RM_MODE_FREE;
    e->sample.batch = 4;
    e->sample.min_fill = 12;
    e->limiter.updates_per_step = 1;
    scene.session.objects = (struct rm_objects){.actors = 1, .policies = 1, .workers = 2};
    scene.session.board.policies = &scene.policy;
    scene.session.board.workers = scene.workers;
    /* At the least fill the actor is far ahead already: it stops there, or at the fewest rows that
     * a batch can be drawn from. */
    rm_limiter_init(&scene.policy.limiter, 4, -4 * AHEAD, few ? 4.0 * (double)few : 8,
                    e->sample.min_fill);
    rm_pace_start(&scene.pace, &scene.session, NULL, 0, 0);
    scene.few = few;
    scene.at = at;
    scene.late = late;
    scene.burst = burst;
}

/* Returns how often the learner looked. */
static uint64_t run(uint64_t few, uint64_t at, uint64_t late, uint64_t burst)
{
    begin(few, at, late, burst);
    while (learner_until_asleep() != RM_TURN_FINISHED)
        for (actor_signals(); !scene.signalled; actor_signals())
            if (!actor_counts() && !scene.signalled)
                fail_msg("look %llu, %llu rows, %llu looks later: the learner sleeps until %llu "
                         "are inserted, the limiter holds the actor at %llu",
                         (unsigned long long)at, (unsigned long long)burst,
                         (unsigned long long)late,
                         (unsigned long long)atomic_load(&scene.workers[1].wake.threshold),
                         (unsigned long long)atomic_load(&scene.policy.limiter.inserted));
    assert_int_equal(atomic_load(&scene.policy.limiter.inserted), scene.rows);
    assert_in_range(scene.pace.attempts, scene.rows, scene.rows + AHEAD);
    return scene.looks;
}

static void try_all(uint64_t rows, uint64_t few)
{
    static const uint64_t bursts[] = {1, 2, 5, 100};
    scene.rows = rows;
    const uint64_t looks = run(few, UINT64_MAX / 2, 0, 0);
    assert_true(looks > rows);
    for (size_t b = 0; b < sizeof bursts / sizeof *bursts; b++)
        for (uint64_t at = 0; at < looks; at++)
            for (uint64_t late = 0; late < 8; late++)
                run(few, at, late, bursts[b]);
}

static void rows_between_any_two_looks(void **state)
{
    (void)state;
    try_all(30, 0);
    try_all(30, 13);
    try_all(13, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_between_any_two_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
