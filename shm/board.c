#include "shm/board.h"

#include "shm/base/clock.h"
#include "shm/layout.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

static bool alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool rm_name_valid(const char *name)
{
    const size_t length = strnlen(name, RM_NAME_MAX);
    if (length == 0 || length == RM_NAME_MAX || !alphanumeric(name[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!alphanumeric(name[i]) && !strchr("._-", name[i]))
            return false;
    return true;
}

static size_t board_bytes(const struct rm_board *b)
{
    return b->workers_at + b->workers * sizeof(struct rm_board_worker);
}

/* Offsets follow from the counts. False when a count is out of range. */
static bool place(struct rm_board *b, uint32_t policies, uint32_t agents, uint32_t workers)
{
    if (policies == 0 || policies > RM_BOARD_POLICIES || agents == 0 || agents > RM_BOARD_AGENTS ||
        workers == 0 || workers > RM_BOARD_WORKERS)
        return false;
    b->policies = policies;
    b->agents = agents;
    b->workers = workers;
    b->policies_at = sizeof(struct rm_board);
    b->agents_at = b->policies_at + policies * sizeof(struct rm_board_policy);
    b->workers_at = b->agents_at + agents * sizeof(struct rm_board_agent);
    return true;
}

static void adopt(struct rm_board_view *view, const struct rm_board *placed)
{
    uint8_t *base = view->region.base;
    struct rm_board *board = view->region.base;
    view->run = &board->run;
    view->round = &board->round;
    view->policies = (struct rm_board_policy *)(base + placed->policies_at);
    view->agents = (struct rm_board_agent *)(base + placed->agents_at);
    view->workers = (struct rm_board_worker *)(base + placed->workers_at);
}

/* A window entry is NAN until its episode's score is stored: a worker may die between claiming an
 * episode and storing its score. */
static void init_scores(struct rm_scores *scores)
{
    for (unsigned i = 0; i < RM_SCORE_WINDOW; i++) {
        RM_POKE(&scores->first[i], NAN);
        RM_POKE(&scores->last[i], NAN);
    }
}

int rm_board_create(struct rm_board_view *view, uint32_t policies, uint32_t agents,
                    uint32_t workers, struct rm_error *error)
{
    *view = (struct rm_board_view){.region.fd = -1};
    struct rm_board placed = {0};
    if (!place(&placed, policies, agents, workers))
        return rm_fail(error, -EINVAL,
                       "board: %u policies, %u agents, %u workers; each must be at least 1 and at "
                       "most %u, %u and %u",
                       policies, agents, workers, RM_BOARD_POLICIES, RM_BOARD_AGENTS,
                       RM_BOARD_WORKERS);
    int rc =
        rm_region_create(&view->region, RM_REGION_BOARD, "rm-board", board_bytes(&placed), error);
    if (rc)
        return rc;
    struct rm_board *board = view->region.base;
    place(board, policies, agents, workers);
    adopt(view, &placed);
    view->run->policies = policies;
    view->run->agents = agents;
    view->run->workers = workers;
    init_scores(&view->run->scores);
    for (uint32_t i = 0; i < agents; i++) {
        init_scores(&view->agents[i].scores);
        init_scores(&view->agents[i].lengths);
        for (uint32_t f = 0; f < RM_BOARD_FIGURES; f++)
            init_scores(&view->agents[i].figures[f]);
    }
    rm_round_init(view->round, 0);
    rm_region_publish(&view->region);
    return 0;
}

int rm_board_attach(struct rm_board_view *view, int fd, bool writable, struct rm_error *error)
{
    *view = (struct rm_board_view){.region.fd = -1};
    int rc = rm_region_attach(&view->region, fd, RM_REGION_BOARD, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    const struct rm_board *board = view->region.base;
    struct rm_board placed = {0};
    if (view->region.bytes < sizeof *board ||
        !place(&placed, board->policies, board->agents, board->workers) ||
        board_bytes(&placed) != view->region.bytes || board->run.policies != placed.policies ||
        board->run.agents != placed.agents || board->run.workers != placed.workers ||
        board->run.figures > RM_BOARD_FIGURES ||
        RM_PEEK(&board->round.participants) > RM_ROUND_MAX) {
        rc = rm_fail(error, -EPROTO,
                     "board: its size of %zu bytes does not match the numbers of policies, agents, "
                     "workers and participants in its header",
                     view->region.bytes);
        rm_board_close(view);
        return rc;
    }
    adopt(view, &placed);
    return RM_ATTACH_OK;
}

/* --- which role may write which pages -------------------------------------------------------- */

#define ACTORS     (1u << RM_ROLE_ACTOR)
#define EVALUATORS (1u << RM_ROLE_EVALUATOR)
#define LEARNERS   (1u << RM_ROLE_LEARNER)
#define EVERYBODY  (ACTORS | EVALUATORS | LEARNERS)

enum block { RUN, ROUND, POLICY, AGENT, WORKER };

/* Pages [from, to) of every block of a kind. The process of sequential mode has all roles at
 * once. */
static const struct piece {
    enum block block;
    size_t from, to;
    unsigned roles; /* roles that write these pages of every block */
    unsigned own;   /* roles that write them in their own slot only */
} pieces[] = {
    {RUN, offsetof(struct rm_board_run, evaluations), offsetof(struct rm_board_run, scores),
     EVALUATORS, 0},
    {RUN, offsetof(struct rm_board_run, scores), sizeof(struct rm_board_run), ACTORS, 0},
    {ROUND, offsetof(struct rm_round, current), sizeof(struct rm_round), ACTORS | LEARNERS, 0},
    {POLICY, offsetof(struct rm_board_policy, limiter.sampled),
     offsetof(struct rm_board_policy, limiter.inserted), LEARNERS, 0},
    {POLICY, offsetof(struct rm_board_policy, limiter.inserted),
     offsetof(struct rm_board_policy, updates), ACTORS, 0},
    {POLICY, offsetof(struct rm_board_policy, updates), offsetof(struct rm_board_policy, eval_seq),
     LEARNERS, 0},
    {POLICY, offsetof(struct rm_board_policy, eval_seq), sizeof(struct rm_board_policy), EVALUATORS,
     0},
    {AGENT, offsetof(struct rm_board_agent, scores), offsetof(struct rm_board_agent, eval_mean),
     ACTORS, 0},
    {AGENT, offsetof(struct rm_board_agent, eval_mean), sizeof(struct rm_board_agent), EVALUATORS,
     0},
    {WORKER, offsetof(struct rm_board_worker, state), offsetof(struct rm_board_worker, wake), 0,
     EVERYBODY},
    {WORKER, offsetof(struct rm_board_worker, wake), sizeof(struct rm_board_worker),
     ACTORS | LEARNERS, EVERYBODY},
};

/* Offset of the first block of a kind in the region, the distance between blocks, and their
 * number. */
static size_t place_of(const struct rm_board *b, enum block block, size_t *stride, uint32_t *count)
{
    const struct {
        size_t at, stride;
        uint32_t count;
    } blocks[] = {
        [RUN] = {offsetof(struct rm_board, run), sizeof(struct rm_board_run), 1},
        [ROUND] = {offsetof(struct rm_board, round), sizeof(struct rm_round), 1},
        [POLICY] = {b->policies_at, sizeof(struct rm_board_policy), b->policies},
        [AGENT] = {b->agents_at, sizeof(struct rm_board_agent), b->agents},
        [WORKER] = {b->workers_at, sizeof(struct rm_board_worker), b->workers},
    };
    *stride = blocks[block].stride;
    *count = blocks[block].count;
    return blocks[block].at;
}

/* Maps these pages writable over the read-only mapping, at the same addresses. */
static int open_pages(const struct rm_board_view *view, int fd, size_t from, size_t to,
                      struct rm_error *error)
{
    void *at = (uint8_t *)view->region.base + from;
    /* cppcheck-suppress leakReturnValNotUsed ; it is where it was asked for */
    if (mmap(at, to - from, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)from) ==
        MAP_FAILED)
        return rm_fail(error, -errno, "board: bytes %zu to %zu cannot be mapped writable: %s", from,
                       to, strerror(errno));
    return 0;
}

int rm_board_attach_as(struct rm_board_view *view, int fd, enum rm_role role, uint32_t worker,
                       struct rm_error *error)
{
    int rc = rm_board_attach(view, fd, false, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    struct rm_board placed = {0};
    place(&placed, view->run->policies, view->run->agents, view->run->workers);
    for (size_t i = 0; rc == 0 && i < sizeof pieces / sizeof pieces[0]; i++) {
        const struct piece *p = &pieces[i];
        size_t stride;
        uint32_t count;
        const size_t at = place_of(&placed, p->block, &stride, &count);
        for (uint32_t n = 0; rc == 0 && n < count; n++)
            if (role == RM_ROLE_SOLO || ((p->roles | (n == worker ? p->own : 0)) & 1u << role))
                rc =
                    open_pages(view, fd, at + n * stride + p->from, at + n * stride + p->to, error);
    }
    if (rc < 0)
        rm_board_close(view);
    return rc;
}

void rm_board_close(struct rm_board_view *view)
{
    rm_region_close(&view->region);
    *view = (struct rm_board_view){.region.fd = -1};
}

void rm_scores_add(struct rm_scores *scores, double score)
{
    uint64_t episode = RM_ADD(&scores->episodes, 1);
    if (episode < RM_SCORE_WINDOW)
        RM_POKE(&scores->first[episode], (float)score);
    RM_POKE(&scores->last[episode % RM_SCORE_WINDOW], (float)score);
    RM_POKE(&scores->last_score, score);
}

static uint32_t window_mean(const struct rm_scores *scores, const _Atomic float *window,
                            double *mean)
{
    uint64_t episodes = RM_PEEK(&scores->episodes);
    double sum = 0;
    uint32_t n = 0;
    for (unsigned i = 0; i < RM_SCORE_WINDOW && i < episodes; i++) {
        float score = RM_PEEK(&window[i]);
        if (isnan(score))
            continue;
        sum += (double)score;
        n++;
    }
    *mean = n ? sum / n : NAN;
    return n;
}

uint32_t rm_scores_first(const struct rm_scores *scores, double *mean)
{
    return window_mean(scores, scores->first, mean);
}

uint32_t rm_scores_last(const struct rm_scores *scores, double *mean)
{
    return window_mean(scores, scores->last, mean);
}

double rm_scores_share(const struct rm_scores *scores, uint32_t word)
{
    const uint64_t episodes = RM_PEEK(&scores->episodes);
    uint32_t n = 0, of_word = 0;
    for (unsigned i = 0; i < RM_SCORE_WINDOW && i < episodes; i++) {
        const float value = RM_PEEK(&scores->last[i]);
        n += !isnan(value);
        of_word += value == (float)word;
    }
    return n ? (double)of_word / n : NAN;
}

double rm_board_figure_last(const struct rm_board_view *view, uint32_t agent, uint32_t figure,
                            uint32_t value)
{
    const struct rm_scores *scores = &view->agents[agent].figures[figure];
    double mean = NAN;
    if (view->run->figure[figure].words)
        return rm_scores_share(scores, value);
    rm_scores_last(scores, &mean);
    return mean;
}

double rm_board_figure_evaluated(const struct rm_board_view *view, uint32_t agent, uint32_t figure,
                                 uint32_t value)
{
    return RM_PEEK(&view->run->evaluations)
               ? RM_PEEK(&view->agents[agent].eval_figures[figure][value])
               : NAN;
}

uint32_t rm_board_figure_values(const struct rm_board_figure *figure)
{
    return figure->words ? figure->words : 1;
}

/* --- time of workers -------------------------------------------------------------------------- */

void rm_board_spend(struct rm_board_worker *worker, enum rm_phase phase, enum rm_wait wait,
                    uint64_t ns)
{
    RM_POKE(&worker->phase, 0);
    /* A reader that sees the new sum sees no phase that would be added to it again. */
    RM_RAISE(&worker->phase_ns[phase], RM_PEEK(&worker->phase_ns[phase]) + ns);
    if (phase == RM_PHASE_WAITING)
        RM_RAISE(&worker->wait_ns[wait], RM_PEEK(&worker->wait_ns[wait]) + ns);
}

/* How long the phase of this mark has lasted. Clocks of two cores may differ. */
static uint64_t lasts(uint64_t mark)
{
    const uint64_t now = rm_now_ns(), since = RM_TRACE_NS(mark, now + RM_NS_PER_S);
    return now > since ? now - since : 0;
}

#define READ_TRIES 100 /* the worker changes the sums for a few nanoseconds */

uint64_t rm_board_spent_ns(const struct rm_board_worker *worker, const _Atomic uint64_t *counter)
{
    uint64_t spent = 0, mark = 0;
    for (int i = 0; i < READ_TRIES; i++) {
        mark = RM_SEE(&worker->phase);
        spent = RM_SEE(counter);
        if (mark && RM_PEEK(&worker->phase) == mark)
            break;
        mark = 0;
    }
    const unsigned phase = RM_TRACE_PHASE(mark), wait = RM_TRACE_WAIT(mark);
    const bool in_it =
        (phase < RM_PHASE_COUNT && counter == &worker->phase_ns[phase]) ||
        (phase == RM_PHASE_WAITING && wait < RM_WAIT_COUNT && counter == &worker->wait_ns[wait]);
    return mark && in_it ? spent + lasts(mark) : spent;
}

void rm_board_end_phase(struct rm_board_worker *worker)
{
    const uint64_t mark = RM_PEEK(&worker->phase);
    const unsigned phase = RM_TRACE_PHASE(mark), wait = RM_TRACE_WAIT(mark);
    if (mark && phase < RM_PHASE_COUNT && wait < RM_WAIT_COUNT)
        rm_board_spend(worker, (enum rm_phase)phase, (enum rm_wait)wait, lasts(mark));
    RM_POKE(&worker->phase, 0);
}
