/* The state of the shared objects in a checkpoint. Each object has its own function; the board's is
 * here. It saves the board's counters, but not processes, times and requests, which belong to one
 * daemon. */
#include "shm/session/session.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>

static void enter(struct rm_state *s, const char *noun, uint32_t i)
{
    char name[32];
    snprintf(name, sizeof name, "%s%u", noun, i);
    rm_state_enter(s, name);
}

typedef uint64_t __attribute__((may_alias)) word_t;

/* Words that the daemon may change while a thread of it copies them: settings, what follows from
 * them, and the time of the phase in which a worker died. Each is copied whole; bytes is a multiple
 * of 8, at most that of the settings. */
static void words_state(struct rm_state *s, const char *name, void *words, size_t bytes)
{
    word_t *word = words, copy[RM_BOARD_SETTINGS] = {0};
    const size_t count = bytes / sizeof *word;
    for (size_t i = 0; i < count; i++)
        copy[i] = __atomic_load_n(&word[i], __ATOMIC_RELAXED);
    rm_state_bytes(s, name, copy, bytes);
    for (size_t i = 0; rm_state_loading(s) && i < count; i++)
        __atomic_store_n(&word[i], copy[i], __ATOMIC_RELAXED);
}

static void run_state(struct rm_board_run *run, struct rm_state *s)
{
    rm_state_enter(s, "run");
    words_state(s, "settings", run->settings, sizeof run->settings);
    RM_STATE(s, "evaluations", run->evaluations);
    RM_STATE(s, "eval_score_mean", run->eval_score_mean);
    RM_STATE(s, "eval_score_stderr", run->eval_score_stderr);
    RM_STATE(s, "eval_episodes", run->eval_episodes);
    RM_STATE(s, "eval_steps", run->eval_steps);
    RM_STATE(s, "eval_best", run->eval_best);
    RM_STATE(s, "scores", run->scores);
    RM_STATE(s, "lengths", run->lengths);
    if (run->stages) {
        RM_STATE(s, "stage", run->stage);
        rm_state_bytes(s, "stage_at", run->stage_at, sizeof run->stage_at);
        RM_STATE(s, "stage_mean", run->stage_mean);
        RM_STATE(s, "stage_episodes", run->stage_episodes);
    }
    rm_state_leave(s);
    if (rm_state_loading(s))
        RM_ADD_OWN(&run->settings_version, 1);
}

static void worker_state(struct rm_board_worker *w, bool stages, struct rm_state *s)
{
    RM_STATE(s, "turns", w->turns);
    RM_STATE(s, "sleeps", w->sleeps);
    _Static_assert(RM_PHASE_COUNT <= RM_BOARD_SETTINGS, "words_state() has room");
    words_state(s, "phase_ns", w->phase_ns, sizeof w->phase_ns);
    RM_STATE(s, "steps", w->steps);
    rm_state_bytes(s, "steps_at", w->steps_at, sizeof w->steps_at);
    if (!stages)
        return;
    RM_STATE(s, "stage", w->stage);
    rm_state_bytes(s, "stage_episodes", w->stage_episodes, sizeof w->stage_episodes);
    rm_state_bytes(s, "stage_sums", w->stage_sums, sizeof w->stage_sums);
    rm_state_bytes(s, "stage_episodes_at", w->stage_episodes_at, sizeof w->stage_episodes_at);
    rm_state_bytes(s, "stage_sums_at", w->stage_sums_at, sizeof w->stage_sums_at);
}

/* A finished run with a larger budget continues in the round in which all participants left:
 * learners had done their share of it, actors had not begun. With the old budget the run stays
 * finished. */
static void come_back(struct rm_session *session)
{
    struct rm_round *round = session->board.round;
    if (rm_session_budget_spent(session, rm_round_current(round)))
        return;
    for (uint32_t i = 0; i < RM_PEEK(&round->participants); i++)
        rm_round_come_back(round, i, i >= session->objects.actors);
}

static void round_state(struct rm_round *round, struct rm_state *s)
{
    uint32_t participants = RM_PEEK(&round->participants);
    RM_STATE(s, "participants", participants);
    RM_STATE(s, "current", round->current);
    rm_state_bytes(s, "arrived", round->arrived, sizeof round->arrived);
    if (RM_PEEK(&round->participants) != participants)
        rm_state_fail(s, -EPROTO, "round: the checkpoint has %u participants, this run has %u",
                      participants, RM_PEEK(&round->participants));
}

/* The counters of a block; the bytes between them are padding of pages. */
struct counted {
    const char *name;
    size_t from, to;
    bool later; /* checkpoints of former versions do not have it */
};

#define FROM_TO(name, type, first, last)                                                           \
    {                                                                                              \
        name, offsetof(struct type, first),                                                        \
            offsetof(struct type, last) + sizeof(((struct type *)NULL)->last), false               \
    }
#define LATER(name, type, first, last)                                                             \
    {                                                                                              \
        name, offsetof(struct type, first),                                                        \
            offsetof(struct type, last) + sizeof(((struct type *)NULL)->last), true                \
    }

static const struct counted limiter_counted =
    FROM_TO("sampled", rm_board_policy, limiter.sampled, limiter.min_inserted);
_Static_assert(offsetof(struct rm_limiter, min_inserted) < RM_BOARD_SETTINGS * sizeof(uint64_t),
               "words_state() has room");
static const struct counted policy_counted[] = {
    FROM_TO("inserted", rm_board_policy, limiter.inserted, limiter.inserted),
    FROM_TO("actors", rm_board_policy, env_steps, epsilon),
    FROM_TO("learner", rm_board_policy, updates, reward_scale),
    FROM_TO("evaluator", rm_board_policy, eval_seq, eval_version),
};
static const struct counted agent_counted[] = {
    FROM_TO("actors", rm_board_agent, scores, env_steps),
    FROM_TO("evaluator", rm_board_agent, eval_mean, eval_stderr),
    LATER("figures", rm_board_agent, lengths, figures),
    LATER("eval_figures", rm_board_agent, eval_length, eval_figures),
};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void block_state(void *block, const struct counted *counted, size_t n, struct rm_state *s)
{
    for (size_t i = 0; i < n; i++)
        if (!counted[i].later || !rm_state_loading(s) || rm_state_has(s, counted[i].name))
            rm_state_bytes(s, counted[i].name, (uint8_t *)block + counted[i].from,
                           counted[i].to - counted[i].from);
}

static void board_state(struct rm_board_view *board, struct rm_state *s)
{
    run_state(board->run, s);
    round_state(board->round, s);
    for (uint32_t i = 0; i < board->run->policies; i++) {
        enter(s, "policy", i);
        words_state(s, limiter_counted.name, (uint8_t *)&board->policies[i] + limiter_counted.from,
                    limiter_counted.to - limiter_counted.from);
        block_state(&board->policies[i], policy_counted, COUNT(policy_counted), s);
        rm_state_leave(s);
    }
    for (uint32_t i = 0; i < board->run->agents; i++) {
        enter(s, "agent", i);
        block_state(&board->agents[i], agent_counted, COUNT(agent_counted), s);
        rm_state_leave(s);
    }
    for (uint32_t i = 0; i < board->run->workers; i++) {
        enter(s, "worker", i);
        worker_state(&board->workers[i], board->run->stages, s);
        rm_state_leave(s);
    }
}

void rm_session_state(struct rm_session *session, struct rm_state *s)
{
    const struct rm_objects *o = &session->objects;
    rm_state_enter(s, "board");
    board_state(&session->board, s);
    if (rm_state_loading(s))
        come_back(session);
    rm_state_leave(s);
    for (uint32_t p = 0; p < o->policies; p++) {
        enter(s, "weights", p);
        rm_weights_state(&session->weights[p], s);
        rm_state_leave(s);
    }
    for (uint32_t i = 0; i < o->actors * o->policies; i++) {
        enter(s, "ring", i);
        rm_ring_state(&session->rings[i], s);
        rm_state_leave(s);
    }
    for (uint32_t p = 0; p < o->priorities; p++) {
        enter(s, "priorities", p);
        rm_priorities_state(&session->priorities[p], s);
        rm_state_leave(s);
    }
}

void rm_session_place(struct rm_session *session, const char *directory, const char *resume)
{
    snprintf(session->directory, sizeof session->directory, "%s", directory ? directory : "");
    snprintf(session->resume, sizeof session->resume, "%s", resume ? resume : "");
}

void rm_session_place_newest(struct rm_session *session, const char *folder)
{
    snprintf(session->newest, sizeof session->newest, "%s", folder ? folder : "");
}

int rm_session_checkpoint_folder(const char *directory, uint64_t number, bool unfinished,
                                 char *path, struct rm_error *error)
{
    const int n = snprintf(path, RM_SESSION_DIRECTORY_MAX, "%s/checkpoints/%06llu%s", directory,
                           (unsigned long long)number, unfinished ? ".tmp" : "");
    return n < RM_SESSION_DIRECTORY_MAX
               ? 0
               : rm_fail(error, -ENAMETOOLONG, "%s: path too long", directory);
}

int rm_session_checkpoint_file(const char *folder, const char *part, uint32_t index,
                               const char *ending, char *path, struct rm_error *error)
{
    const int n = snprintf(path, RM_SESSION_PATH_MAX, "%s/%s-%u.%s", folder, part, index, ending);
    return n < RM_SESSION_PATH_MAX
               ? 0
               : rm_fail(error, -ENAMETOOLONG, "%s/%s-%u: path too long", folder, part, index);
}
