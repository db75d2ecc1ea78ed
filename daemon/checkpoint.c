#include "daemon/checkpoint.h"

#include "config/config.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/fault.h"
#include "shm/duty.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDING_MS 1  /* between two checks, while workers hold */
#define LOOK_MS    20 /* between two checks, while workers work */

/* Workers hold at the latest so long after a learner's latest turn, and so long after they were
 * asked to: a rollout may have turns of a minute each, and a world may damage the count of turns.
 */
#define TURN_MAX_NS (120 * RM_NS_PER_S)
#define HOLD_MAX_NS (1800 * RM_NS_PER_S)

enum event {
    EVENT_ASKED = 0, /* checkpoint number `asked` was requested */
    EVENT_POSSIBLE,  /* the requested checkpoint can begin */
    EVENT_THREAD,    /* the thread has finished */
    EVENT_WORKERS,   /* all workers hold, or have written their parts */
    EVENT_FAILED,    /* the current checkpoint cannot be finished */
    EVENT_CANCEL,    /* the current checkpoint is cancelled, or has taken too long */
    EVENT_COUNT
};

enum action {
    ACT_NOTHING = 0,
    ACT_LOOK,    /* check whether it can begin */
    ACT_BEGIN,   /* create the folder, in a thread */
    ACT_HOLD,    /* ask all workers to hold */
    ACT_COPY,    /* copy the shared state, in a thread */
    ACT_WRITE,   /* let workers continue, and write the copy in a thread */
    ACT_SEAL,    /* add hashes and manifest, in a thread */
    ACT_FINISH,  /* the checkpoint is made */
    ACT_GIVE_UP, /* the checkpoint has failed */
};

struct transition {
    unsigned char next;
    unsigned char action;
};

enum {
    IDLE = RM_CHECKPOINT_IDLE,
    WAITING = RM_CHECKPOINT_WAITING,
    BEGINNING = RM_CHECKPOINT_BEGINNING,
    HOLDING = RM_CHECKPOINT_HOLDING,
    COPYING = RM_CHECKPOINT_COPYING,
    WRITING = RM_CHECKPOINT_WRITING,
    AWAITING = RM_CHECKPOINT_AWAITING,
    SEALING = RM_CHECKPOINT_SEALING,
    ABANDONING = RM_CHECKPOINT_ABANDONING
};

/* Two lines for each stage. Columns: asked, possible, thread; workers, failed, cancel. A request
 * during a checkpoint raises the number `asked`. A checkpoint that is being sealed is finished, or
 * its thread fails, because `read_until_ns` ends the reading of files. */
/* clang-format off */
static const struct transition table[][EVENT_COUNT] = {
    [IDLE]       = {{WAITING, ACT_LOOK},       {IDLE, ACT_NOTHING},       {IDLE, ACT_NOTHING},
                    {IDLE, ACT_NOTHING},       {IDLE, ACT_NOTHING},       {IDLE, ACT_NOTHING}},
    [WAITING]    = {{WAITING, ACT_LOOK},       {BEGINNING, ACT_BEGIN},    {WAITING, ACT_NOTHING},
                    {WAITING, ACT_NOTHING},    {IDLE, ACT_NOTHING},       {IDLE, ACT_NOTHING}},
    [BEGINNING]  = {{BEGINNING, ACT_NOTHING},  {BEGINNING, ACT_NOTHING},  {HOLDING, ACT_HOLD},
                    {BEGINNING, ACT_NOTHING},  {IDLE, ACT_GIVE_UP},       {ABANDONING, ACT_NOTHING}},
    [HOLDING]    = {{HOLDING, ACT_NOTHING},    {HOLDING, ACT_NOTHING},    {HOLDING, ACT_NOTHING},
                    {COPYING, ACT_COPY},       {IDLE, ACT_GIVE_UP},       {IDLE, ACT_GIVE_UP}},
    [COPYING]    = {{COPYING, ACT_NOTHING},    {COPYING, ACT_NOTHING},    {WRITING, ACT_WRITE},
                    {COPYING, ACT_NOTHING},    {IDLE, ACT_GIVE_UP},       {ABANDONING, ACT_NOTHING}},
    [WRITING]    = {{WRITING, ACT_NOTHING},    {WRITING, ACT_NOTHING},    {AWAITING, ACT_NOTHING},
                    {WRITING, ACT_NOTHING},    {IDLE, ACT_GIVE_UP},       {ABANDONING, ACT_NOTHING}},
    [AWAITING]   = {{AWAITING, ACT_NOTHING},   {AWAITING, ACT_NOTHING},   {AWAITING, ACT_NOTHING},
                    {SEALING, ACT_SEAL},       {IDLE, ACT_GIVE_UP},       {IDLE, ACT_GIVE_UP}},
    [SEALING]    = {{SEALING, ACT_NOTHING},    {SEALING, ACT_NOTHING},    {IDLE, ACT_FINISH},
                    {SEALING, ACT_NOTHING},    {IDLE, ACT_GIVE_UP},       {SEALING, ACT_NOTHING}},
    [ABANDONING] = {{ABANDONING, ACT_NOTHING}, {ABANDONING, ACT_NOTHING}, {IDLE, ACT_GIVE_UP},
                    {ABANDONING, ACT_NOTHING}, {IDLE, ACT_GIVE_UP},       {ABANDONING, ACT_NOTHING}},
};
/* clang-format on */
_Static_assert(sizeof table / sizeof table[0] == RM_CHECKPOINT_STAGES, "a row per stage");
_Static_assert(sizeof table[0] / sizeof table[0][0] == 6 && EVENT_COUNT == 6,
               "a column per event; adding one means filling it in every row");

/* The effect of each `after`. */
static const struct {
    const char *without; /* for the log: no checkpoint was made */
    enum rm_log_level level;
    bool bounds; /* done at the end of the grace, even during a checkpoint */
} afters[] = {
    [RM_AFTER_CONTINUE] = {"no checkpoint", RM_LOG_NOTICE, false},
    [RM_AFTER_PAUSE] = {"no checkpoint before the end", RM_LOG_NOTICE, false},
    [RM_AFTER_EVALUATE] = {"no checkpoint at the end", RM_LOG_WARNING, false},
    [RM_AFTER_STOP] = {"no checkpoint before the end", RM_LOG_NOTICE, true},
};
_Static_assert(sizeof afters / sizeof afters[0] == RM_AFTER_STOP + 1, "a row for each");

static struct rm_board_run *run_of(const struct rm_checkpointer *c)
{
    return c->spec.session->board.run;
}

/* --- workers --------------------------------------------------------------------------------- */

/* Number of actors and learners, which are the first workers. */
static uint32_t participants(const struct rm_checkpointer *c)
{
    return rm_worker_evaluator(&c->spec.session->objects);
}

/* Why the workers cannot make a checkpoint now; NULL: they can. Workers whose share is done still
 * run if the run's end needs a checkpoint. *soon: the reason ends in a moment. */
static const char *missing_worker(const struct rm_checkpointer *c, bool *soon)
{
    static char text[128];
    const struct rm_session *session = c->spec.session;
    const bool stay = session->experiment.checkpoint.at_end;
    for (uint32_t i = 0; i < session->objects.workers; i++) {
        const struct rm_board_worker *slot = &session->board.workers[i];
        if (!stay && i < participants(c) && RM_SEE(&slot->state) == RM_WORKER_DONE)
            return "the run is ending";
        const enum rm_supervised state = c->spec.supervisor->workers[i].state;
        if (rm_session_has_process(session, i) && rm_role_has_state(RM_PEEK(&slot->role)) &&
            state != RM_SUPERVISED_UP) {
            *soon = state == RM_SUPERVISED_STARTING || state == RM_SUPERVISED_BACKING_OFF;
            snprintf(text, sizeof text, "%s is %s", slot->name, rm_supervised_name(state));
            return text;
        }
    }
    return NULL;
}

/* The worker that still writes its part of an earlier, failed checkpoint, and so cannot write
 * another now; NULL: none. (A number that was never requested comes from a hostile world, not from
 * a worker.) */
static const char *who_writes(const struct rm_checkpointer *c)
{
    const struct rm_session *session = c->spec.session;
    for (uint32_t i = 0; i < participants(c); i++) {
        const struct rm_board_worker *slot = &session->board.workers[i];
        const uint64_t held = RM_PEEK(&slot->checkpoint_held);
        if (rm_session_has_process(session, i) && held <= c->number &&
            held > RM_SEE(&slot->checkpoint_written))
            return slot->name;
    }
    return NULL;
}

/* 0: a checkpoint is possible. -EAGAIN: in a moment. -ENODATA: not yet, or no more. */
static int able(const struct rm_checkpointer *c, struct rm_error *error)
{
    const enum rm_checkpoint_run where = c->spec.ops->where(c->spec.user);
    /* After a killed daemon there is something to save; a signal's checkpoint begins as soon as
     * there is. */
    bool soon = where == RM_RUN_IS_STARTING && (c->spec.adopted || c->insists);
    const char *why = where == RM_RUN_IS_STARTING   ? "nothing has been done yet"
                      : where == RM_RUN_IS_TRAINING ? missing_worker(c, &soon)
                                                    : "the run is ending";
    return why ? rm_fail(error, soon ? -EAGAIN : -ENODATA, "%s", why) : 0;
}

/* The same for a checkpoint that begins now. */
static int can_begin(const struct rm_checkpointer *c, struct rm_error *error)
{
    const int rc = able(c, error);
    const char *who = rc ? NULL : who_writes(c);
    return who ? rm_fail(error, -EAGAIN, "%s still writes its part of an earlier one", who) : rc;
}

/* Number of starts of the processes that take part. If it changes, a worker has died, with its
 * part. */
static uint64_t starts(const struct rm_checkpointer *c)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < c->spec.session->objects.workers; i++)
        if (rm_role_has_state(RM_PEEK(&c->spec.session->board.workers[i].role)))
            all += c->spec.supervisor->workers[i].generation;
    return all;
}

/* Why the workers can no longer finish the current checkpoint, or NULL. *back: the worker will be
 * restarted in a moment. */
static const char *lost_worker(const struct rm_checkpointer *c, bool *back)
{
    *back = false;
    const char *why = missing_worker(c, back);
    if (why || starts(c) == c->starts)
        return why;
    *back = true;
    return "a worker died and was restarted";
}

/* The first worker that does not hold yet, or NULL. */
static const struct rm_board_worker *who_works(const struct rm_checkpointer *c)
{
    for (uint32_t i = 0; i < participants(c); i++) {
        const struct rm_board_worker *slot = &c->spec.session->board.workers[i];
        if (RM_SEE(&slot->checkpoint_held) != c->number)
            return slot;
    }
    return NULL;
}

static uint64_t learner_turns(const struct rm_checkpointer *c)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < participants(c); i++) {
        const struct rm_board_worker *slot = &c->spec.session->board.workers[i];
        if (RM_PEEK(&slot->role) == RM_ROLE_LEARNER)
            all += RM_PEEK(&slot->turns);
    }
    return all;
}

/* Have all workers written their parts? A worker that reported it once counts, even if its world
 * changes the word afterwards. On false, `damaged` has a message or "". */
static bool all_have_written(struct rm_checkpointer *c, char *damaged, size_t size)
{
    bool all = true;
    damaged[0] = '\0';
    for (uint32_t i = 0; i < participants(c); i++) {
        const struct rm_board_worker *slot = &c->spec.session->board.workers[i];
        const uint64_t says = RM_SEE(&slot->checkpoint_written);
        if (c->written[i] == c->number)
            continue;
        if (says < c->written[i] || says > c->number)
            snprintf(damaged, size,
                     "the board was damaged by %s: it says that it has written checkpoint %llu",
                     slot->name, (unsigned long long)says);
        c->written[i] = says;
        all &= says == c->number;
    }
    return all;
}

static const struct rm_board_worker *who_failed(const struct rm_checkpointer *c)
{
    for (uint32_t i = 0; i < participants(c); i++) {
        const struct rm_board_worker *slot = &c->spec.session->board.workers[i];
        if (RM_PEEK(&slot->checkpoint_failed))
            return slot;
    }
    return NULL;
}

/* --- events ---------------------------------------------------------------------------------- */

static void act(struct rm_checkpointer *c, enum action action);
static void check_deadlines(uv_timer_t *timer);

static void fire(struct rm_checkpointer *c, enum event event)
{
    const struct transition *t = &table[c->stage][event];
    if (t->next != c->stage && t->next == IDLE)
        uv_timer_stop(&c->timer);
    else if (t->next != c->stage)
        uv_timer_start(&c->timer, check_deadlines, t->next == HOLDING ? HOLDING_MS : LOOK_MS,
                       t->next == HOLDING ? HOLDING_MS : LOOK_MS);
    c->stage = t->next;
    act(c, t->action);
}

/* `again`: the checkpoint is tried once more. */
static void give_up_because(struct rm_checkpointer *c, const char *why, bool again)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    if (again)
        c->asked = c->number + 1;
    else if (afters[c->after].bounds) /* the next one would probably fail too */
        c->asked = c->number;
    fire(c, EVENT_FAILED);
}

/* Fails the current checkpoint if a worker has died, with its part. */
static bool give_up_if_lost(struct rm_checkpointer *c, uint64_t now)
{
    bool back;
    const char *why = lost_worker(c, &back);
    if (!why)
        return false;
    give_up_because(c, why, back && (c->insists || c->after != RM_AFTER_CONTINUE));
    if (back)
        c->due_ns = now + RM_NS_PER_S;
    return true;
}

static void announce(struct rm_checkpointer *c, uint64_t number, bool made)
{
    c->spec.ops->event(c->spec.user, "checkpoint",
                       json_pack("{s:I,s:b,s:I,s:s}", "count", (json_int_t)number, "made", made,
                                 "step", (json_int_t)c->facts.step, "reason", c->why));
}

/* Does the `after` of the latest checkpoint. */
static void go_on(struct rm_checkpointer *c)
{
    const enum rm_checkpoint_after after = c->after;
    c->after = RM_AFTER_CONTINUE;
    c->insists = false;
    c->asked = c->number;
    if (after != RM_AFTER_CONTINUE)
        c->spec.ops->then(c->spec.user, after, c->end_why);
}

/* The pending checkpoint will not be made. A client that waits for it gets this answer. */
static void do_without(struct rm_checkpointer *c, const struct rm_error *error)
{
    fire(c, EVENT_FAILED);
    if (c->after == RM_AFTER_CONTINUE || c->spec.ops->where(c->spec.user) != RM_RUN_IS_ENDING)
        rm_log(c->spec.log, afters[c->after].level, "%s: %s", afters[c->after].without,
               error->text);
    if (c->after == RM_AFTER_CONTINUE && !c->insists) {
        snprintf(c->why, sizeof c->why, "%s", error->text);
        announce(c, c->asked, false);
    }
    go_on(c);
}

/* --- checks by the timer --------------------------------------------------------------------- */

static void look_at_waiting(struct rm_checkpointer *c, uint64_t now)
{
    struct rm_error error = {""};
    const int rc = can_begin(c, &error);
    if (rc == 0)
        fire(c, EVENT_POSSIBLE);
    else if (rc != -EAGAIN || (c->after != RM_AFTER_CONTINUE && now >= c->end_by_ns))
        do_without(c, &error);
}

static void look_at_holding(struct rm_checkpointer *c, uint64_t now)
{
    if (give_up_if_lost(c, now))
        return;
    const struct rm_board_worker *who = who_works(c);
    const uint64_t turns = learner_turns(c);
    if (turns != c->turns)
        c->turned_ns = now;
    c->turns = turns;
    if (!who) {
        fire(c, EVENT_WORKERS);
    } else if (now - c->turned_ns > TURN_MAX_NS || now - c->held_from_ns > HOLD_MAX_NS) {
        char text[128];
        snprintf(text, sizeof text, "%s did not finish its turn within %llu s", who->name,
                 (unsigned long long)((now - c->held_from_ns) / RM_NS_PER_S));
        give_up_because(c, text, false);
    }
}

static void look_at_parts(struct rm_checkpointer *c, uint64_t now)
{
    char text[256];
    if (!all_have_written(c, text, sizeof text)) {
        if (!give_up_if_lost(c, now) && text[0])
            give_up_because(c, text, false);
        return;
    }
    const struct rm_board_worker *failed = who_failed(c);
    if (failed) {
        const int why = (int)(RM_PEEK(&failed->checkpoint_failed) & INT_MAX);
        snprintf(text, sizeof text, "%s could not write its part: %s", failed->name, strerror(why));
        give_up_because(c, text, false);
    } else {
        fire(c, EVENT_WORKERS);
    }
}

/* NULL: a thread does the work. */
static void (*const looks[RM_CHECKPOINT_STAGES])(struct rm_checkpointer *c, uint64_t now) = {
    [WAITING] = look_at_waiting,
    [HOLDING] = look_at_holding,
    [AWAITING] = look_at_parts,
};

static void check_deadlines(uv_timer_t *timer)
{
    struct rm_checkpointer *c = timer->data;
    const uint64_t now = rm_now_ns();
    if (afters[c->after].bounds && now >= c->end_by_ns) {
        const enum rm_checkpoint_after after = c->after;
        RM_POKE(&c->read_until_ns, now);
        rm_checkpointer_cancel(c, "supervisor.stop_grace_s have passed");
        c->spec.ops->then(c->spec.user, after, c->end_why);
    } else if (looks[c->stage]) {
        looks[c->stage](c, now);
    }
}

/* --- threads --------------------------------------------------------------------------------- */

/* Is the run still this daemon's? 0, or why not. */
static int keep_run(struct rm_checkpointer *c)
{
    const int rc = c->spec.lock ? rm_run_lock_keep(c->spec.lock, &c->error) : 0;
    c->lost = rc == -EEXIST;
    return rc;
}

static void make_folder(uv_work_t *work)
{
    struct rm_checkpointer *c = work->data;
    c->rc = keep_run(c);
    if (c->rc == 0)
        c->rc = rm_checkpoint_begin(c->spec.run_directory, c->number, &c->error);
}

/* Rings have many megabytes, and each page of their copy must be allocated. */
static void copy_shared(uv_work_t *work)
{
    struct rm_checkpointer *c = work->data;
    c->rc = rm_state_create(&c->shared, &c->error);
    if (c->rc == 0) {
        rm_session_state(c->spec.session, c->shared);
        c->rc = rm_state_end(c->shared, &c->error);
    }
}

static void write_shared(uv_work_t *work)
{
    struct rm_checkpointer *c = work->data;
    char folder[RM_SESSION_PATH_MAX], path[RM_SESSION_PATH_MAX];
    RM_FAULT("checkpoint.shared.before");
    c->rc = rm_session_checkpoint_folder(c->spec.run_directory, c->number, true, folder, &c->error);
    if (c->rc == 0)
        c->rc = rm_session_checkpoint_file(folder, "shared", 0, "state", path, &c->error);
    if (c->rc == 0)
        c->rc = rm_state_write(c->shared, path, RM_STATE_ALL, &c->error);
    RM_FAULT("checkpoint.shared.after");
    rm_state_destroy(c->shared);
    c->shared = NULL;
}

static void seal(uv_work_t *work)
{
    struct rm_checkpointer *c = work->data;
    c->rc = keep_run(c);
    if (c->rc == 0)
        c->rc = rm_checkpoint_seal(c->spec.run_directory, &c->facts, &c->read_until_ns, &c->error);
    c->warning.text[0] = '\0';
    if (c->rc)
        return;
    const int rc = keep_run(c); /* sealing may take minutes */
    if (rc == 0)
        rm_checkpoint_prune(c->spec.run_directory, &c->kept, &c->warning);
    else if (!c->lost)
        c->warning = c->error;
    if (c->warning.text[0])
        rm_fail_within(&c->warning, rc, "%s",
                       rc ? "older checkpoints stay" : "an incomplete checkpoint is ignored");
}

static void worked(uv_work_t *work, int status)
{
    struct rm_checkpointer *c = work->data;
    (void)status;
    if (c->lost) /* cancels all that is pending: the run is the other daemon's */
        c->spec.ops->lost(c->spec.user, c->error.text);
    if (c->rc)
        give_up_because(c, c->error.text, false);
    else
        fire(c, EVENT_THREAD);
}

static void have_done(struct rm_checkpointer *c, uv_work_cb work)
{
    c->rc = 0;
    c->error.text[0] = '\0';
    c->work.data = c;
    if (uv_queue_work(c->spec.loop, &c->work, work, worked) < 0) {
        work(&c->work);
        worked(&c->work, 0);
    }
}

/* --- removing a failed checkpoint: that may wait for the disk -------------------------------- */

struct removal {
    uv_work_t work;
    struct rm_checkpointer *checkpointer;
    uint64_t number;
};

static void remove_files(uv_work_t *work)
{
    const struct removal *r = work->data;
    rm_checkpoint_abandon(r->checkpointer->spec.run_directory, r->number);
}

static void removed(uv_work_t *work, int status)
{
    struct removal *r = work->data;
    (void)status;
    r->checkpointer->removals--;
    free(r);
}

static void remove_abandoned(struct rm_checkpointer *c)
{
    struct removal *r = calloc(1, sizeof *r);
    if (!r) { /* the next finished checkpoint removes it too */
        rm_log(c->spec.log, RM_LOG_WARNING, "no memory to remove what is left of checkpoint %llu",
               (unsigned long long)c->number);
        return;
    }
    *r = (struct removal){.work.data = r, .checkpointer = c, .number = c->number};
    c->removals++;
    if (uv_queue_work(c->spec.loop, &r->work, remove_files, removed) < 0) {
        remove_files(&r->work);
        removed(&r->work, 0);
    }
}

/* --- actions --------------------------------------------------------------------------------- */

static void look_now(struct rm_checkpointer *c)
{
    struct rm_error error = {""};
    if (can_begin(c, &error) == -EAGAIN)
        rm_log(c->spec.log, RM_LOG_NOTICE, "the checkpoint waits: %s", error.text);
    look_at_waiting(c, rm_now_ns());
}

static void begin(struct rm_checkpointer *c)
{
    c->number++;
    have_done(c, make_folder);
}

static void hold(struct rm_checkpointer *c)
{
    c->held_from_ns = c->turned_ns = rm_now_ns();
    c->turns = learner_turns(c);
    c->starts = starts(c);
    memset(c->written, 0, sizeof c->written);
    rm_duty_hold_all(run_of(c), c->number);
    rm_session_wake_up(c->spec.session);
}

/* Lets workers continue. */
static void release(struct rm_checkpointer *c)
{
    rm_duty_release_all(run_of(c));
    rm_session_wake_up(c->spec.session);
}

/* The configuration of the file; the board has later settings. */
static json_t *config_of(const struct rm_checkpointer *c)
{
    struct rm_experiment *e = malloc(sizeof *e);
    if (!e)
        return NULL;
    *e = c->spec.session->experiment;
    rm_config_apply_hot(e, c->spec.file_hot);
    json_t *config = rm_config_to_json(e);
    free(e);
    return config;
}

/* The board's current numbers. */
static struct rm_checkpoint_facts facts_of(const struct rm_checkpointer *c)
{
    const struct rm_session *session = c->spec.session;
    const uint64_t evaluations = RM_PEEK(&run_of(c)->evaluations);
    struct rm_checkpoint_facts facts = {
        .number = c->number,
        .step = rm_session_steps(session),
        .updates = rm_session_updates(session),
        .round = rm_round_current(session->board.round),
        .evaluations = evaluations,
        .score = evaluations ? RM_PEEK(&run_of(c)->eval_score_mean) : (double)NAN,
    };
    snprintf(facts.run, sizeof facts.run, "%.47s", session->experiment.name);
    return facts;
}

/* No worker counts faster than once a nanosecond, and a manifest has no number above INT64_MAX: a
 * larger number was written by a world. */
static bool can_be(const struct rm_checkpointer *c, uint64_t now, uint64_t opened)
{
    return now <= INT64_MAX &&
           (now <= opened || (now - opened) / RM_BOARD_WORKERS <= rm_now_ns() - c->opened_ns);
}

/* The first impossible fact, with a message; "": none. */
static void find_damage(const struct rm_checkpointer *c, char *text, size_t size)
{
    const struct {
        const char *name;
        uint64_t now, opened;
    } counts[] = {
        {"step", c->facts.step, c->opened.step},
        {"update", c->facts.updates, c->opened.updates},
        {"round", c->facts.round, c->opened.round},
        {"evaluation", c->facts.evaluations, c->opened.evaluations},
    };
    text[0] = '\0';
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !text[0]; i++)
        if (!can_be(c, counts[i].now, counts[i].opened))
            snprintf(
                text, size,
                "the board was damaged by a world: it says %s %llu, but this daemon began at %llu",
                counts[i].name, (unsigned long long)counts[i].now,
                (unsigned long long)counts[i].opened);
}

static void copy(struct rm_checkpointer *c)
{
    char damage[192];
    c->facts = facts_of(c);
    c->facts.config = config_of(c);
    find_damage(c, damage, sizeof damage);
    if (damage[0])
        give_up_because(c, damage, false);
    else if (!c->facts.config)
        give_up_because(c, "no memory for the configuration", false);
    else
        have_done(c, copy_shared);
}

/* If a stop is pending, keep workers held, so that nothing is learned after this checkpoint. If a
 * stop comes later, another one is made. */
static void write_copy(struct rm_checkpointer *c)
{
    c->held_until_ns = rm_now_ns();
    if (c->after == RM_AFTER_STOP)
        c->asked = c->number;
    else
        release(c);
    have_done(c, write_shared);
}

static void read_kept(struct rm_checkpointer *c)
{
    c->kept.newest = c->spec.session->experiment.checkpoint.keep;
    c->kept.best = c->spec.session->experiment.checkpoint.keep_best;
}

static void begin_seal(struct rm_checkpointer *c)
{
    read_kept(c);
    RM_POKE(&c->read_until_ns, 0);
    have_done(c, seal);
}

/* Idle again: begins the next requested checkpoint, or does the `after`. */
static void settle(struct rm_checkpointer *c, bool made)
{
    const double interval_s = c->spec.session->experiment.checkpoint.interval_s;
    c->due_ns = rm_now_ns() + (uint64_t)(interval_s * 1e9);
    announce(c, c->number, made);
    rm_checkpoint_facts_free(&c->facts);
    if (c->asked > c->number)
        fire(c, EVENT_ASKED);
    else
        go_on(c);
}

static struct rm_log_fields fields_of(const struct rm_checkpointer *c)
{
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    fields.step = (int64_t)c->facts.step;
    return fields;
}

static void finish(struct rm_checkpointer *c)
{
    const struct rm_log_fields fields = fields_of(c);
    if (c->warning.text[0] && strcmp(c->warning.text, c->warned.text) != 0)
        rm_log(c->spec.log, RM_LOG_WARNING, "%s", c->warning.text);
    c->warned = c->warning;
    c->why[0] = '\0';
    c->made++;
    c->last = c->number;
    c->step = c->facts.step;
    c->updates = c->facts.updates;
    rm_log_message(c->spec.log, RM_LOG_INFO, RM_MESSAGE_CHECKPOINT, &fields,
                   "checkpoint %llu: step %llu, update %llu; workers held for %.1f ms, "
                   "written %.1f s after",
                   (unsigned long long)c->number, (unsigned long long)c->facts.step,
                   (unsigned long long)c->facts.updates,
                   (double)(c->held_until_ns - c->held_from_ns) / 1e6,
                   (double)(rm_now_ns() - c->held_until_ns) / 1e9);
    settle(c, true);
}

static void give_up(struct rm_checkpointer *c)
{
    struct rm_log_fields fields = fields_of(c);
    release(c);
    rm_state_destroy(c->shared);
    c->shared = NULL;
    c->failed++;
    if (!c->lost) /* or the other daemon may be writing it */
        remove_abandoned(c);
    fields.error = c->why;
    rm_log_message(c->spec.log, RM_LOG_WARNING, RM_MESSAGE_CHECKPOINT, &fields,
                   "checkpoint %llu was given up: %s", (unsigned long long)c->number, c->why);
    settle(c, false);
}

static void act(struct rm_checkpointer *c, enum action action)
{
    static void (*const actions[])(struct rm_checkpointer * c) = {
        [ACT_LOOK] = look_now, [ACT_BEGIN] = begin,      [ACT_HOLD] = hold,
        [ACT_COPY] = copy,     [ACT_WRITE] = write_copy, [ACT_SEAL] = begin_seal,
        [ACT_FINISH] = finish, [ACT_GIVE_UP] = give_up,
    };
    if (action != ACT_NOTHING)
        actions[action](c);
}

/* --- requests -------------------------------------------------------------------------------- */

static bool in_hand(const struct rm_checkpointer *c)
{
    return c->stage != RM_CHECKPOINT_IDLE && c->stage != RM_CHECKPOINT_WAITING;
}

int rm_checkpointer_ask(struct rm_checkpointer *c, uint64_t *number, struct rm_error *error)
{
    const int rc = in_hand(c) ? able(c, error) : can_begin(c, error);
    if (rc)
        return rc;
    *number = c->asked = c->number + 1;
    fire(c, EVENT_ASKED);
    return 0;
}

void rm_checkpointer_insist(struct rm_checkpointer *c)
{
    c->insists = true;
    c->asked = c->number + 1;
    fire(c, EVENT_ASKED);
}

static uint64_t end_of_grace(const struct rm_checkpointer *c, uint64_t now_ns)
{
    return now_ns + (uint64_t)(c->spec.session->experiment.supervisor.stop_grace_s * 1e9);
}

void rm_checkpointer_end(struct rm_checkpointer *c, enum rm_checkpoint_after after, const char *why)
{
    if (after <= c->after)
        return;
    c->after = after;
    snprintf(c->end_why, sizeof c->end_why, "%s", why);
    c->end_by_ns = end_of_grace(c, rm_now_ns());
    c->asked = c->number + 1;
    fire(c, EVENT_ASKED);
}

void rm_checkpointer_cancel(struct rm_checkpointer *c, const char *why)
{
    c->after = RM_AFTER_CONTINUE;
    c->insists = false;
    c->asked = c->number;
    const uint64_t end_ns = end_of_grace(c, rm_now_ns()), set_ns = RM_PEEK(&c->read_until_ns);
    if (!set_ns || set_ns > end_ns)
        RM_POKE(&c->read_until_ns, end_ns);
    if (in_hand(c) && c->stage != RM_CHECKPOINT_ABANDONING)
        snprintf(c->why, sizeof c->why, "%s", why);
    fire(c, EVENT_CANCEL);
}

bool rm_checkpointer_is_current(const struct rm_checkpointer *c)
{
    return c->made && c->step == rm_session_steps(c->spec.session) &&
           c->updates == rm_session_updates(c->spec.session);
}

void rm_checkpointer_tick(struct rm_checkpointer *c, uint64_t now_ns)
{
    const double interval_s = c->spec.session->experiment.checkpoint.interval_s;
    struct rm_error error;
    uint64_t number;
    if (c->spec.ops->where(c->spec.user) != RM_RUN_IS_TRAINING || !(interval_s > 0) ||
        c->stage != RM_CHECKPOINT_IDLE)
        return;
    const uint64_t all_ns = (uint64_t)(interval_s * 1e9);
    if (c->due_ns == 0 || c->due_ns > now_ns + all_ns)
        c->due_ns = now_ns + all_ns; /* the interval was made shorter */
    if (now_ns < c->due_ns || rm_session_steps(c->spec.session) == c->step)
        return;
    if (rm_checkpointer_ask(c, &number, &error))
        c->due_ns = now_ns + RM_NS_PER_S; /* a worker is being restarted */
}

void rm_checkpointer_away(struct rm_checkpointer *c, uint64_t away_ns, uint64_t now_ns)
{
    c->held_from_ns = rm_moved_ns(c->held_from_ns, away_ns, now_ns);
    c->held_until_ns = rm_moved_ns(c->held_until_ns, away_ns, now_ns);
    c->turned_ns = rm_moved_ns(c->turned_ns, away_ns, now_ns);
    c->end_by_ns = rm_moved_ns(c->end_by_ns, away_ns, end_of_grace(c, now_ns));
}

/* --- the beginning and the end of a run ------------------------------------------------------ */

void rm_checkpointer_open(struct rm_checkpointer *c, const struct rm_checkpointer_spec *spec)
{
    struct rm_error error = {""};
    uint64_t *numbers = calloc(RM_CHECKPOINTS_MAX, sizeof *numbers);
    c->spec = *spec;
    uv_timer_init(spec->loop, &c->timer);
    c->timer.data = c;
    if (numbers && rm_checkpoint_list(spec->run_directory, numbers, RM_CHECKPOINTS_MAX))
        c->number = c->last = numbers[0];
    free(numbers);
    if (spec->whole)
        c->kept =
            (struct rm_checkpoints_kept){.damaged_above = spec->whole, .damaged_to = c->number};
    /* Confined actors may write only below this folder, so it must exist before them. */
    if (rm_experiment_confines(&spec->session->experiment) &&
        rm_checkpoint_parent(spec->run_directory, &error) < 0)
        rm_log(spec->log, RM_LOG_WARNING, "%s", error.text);
    /* The board may have been left by a daemon that was killed during a checkpoint. */
    if (RM_PEEK(&run_of(c)->checkpoint_request) > c->number)
        c->number = RM_PEEK(&run_of(c)->checkpoint_request);
    c->asked = c->number;
    RM_POKE(&run_of(c)->checkpoint_request, c->number);
    rm_duty_release_all(run_of(c));
    c->opened_ns = rm_now_ns();
    c->opened = facts_of(c);
    /* After a daemon was killed, makes a checkpoint soon, because the service manager may not keep
     * the session when the next one is killed. */
    if (spec->adopted)
        c->due_ns = 1;
}

void rm_checkpointer_close(struct rm_checkpointer *c, bool evaluated)
{
    const struct rm_session *session = c->spec.session;
    const double score = RM_PEEK(&session->board.run->eval_score_mean);
    const char *directory = c->spec.run_directory;
    char folder[RM_SESSION_PATH_MAX];
    struct rm_error error = {""};
    struct rm_checkpoint_facts facts = {0};
    if (c->last && (rm_session_checkpoint_folder(directory, c->last, false, folder, &error) ||
                    rm_checkpoint_check(folder, false, &facts, &error)))
        rm_log(c->spec.log, RM_LOG_WARNING, "the last checkpoint, %llu, was removed: %s",
               (unsigned long long)c->last, error.text);
    rm_checkpoint_facts_free(&facts);
    if (!evaluated || !rm_checkpointer_is_current(c))
        return;
    if (rm_session_checkpoint_folder(directory, c->last, false, folder, &error) < 0 ||
        rm_manifest_rescore(folder, score, &error) < 0)
        rm_log(c->spec.log, RM_LOG_WARNING,
               "the final score could not be added to checkpoint %llu: %s",
               (unsigned long long)c->last, error.text);
    else if (!in_hand(c) && !c->removals) {
        read_kept(c);
        rm_checkpoint_prune(directory, &c->kept, NULL);
    }
}
