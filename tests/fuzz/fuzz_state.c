/* What is shared, loaded from a checkpoint in which any bytes stand: refused with words, or a
 * session that workers attach to as to one that was never away.
 *
 * The first byte chooses between a file - blocks whose lengths and checksums are made right, so
 * that what lies behind them is reached - and a whole state that is damaged here and there: part,
 * place, how many bytes, bytes. A place beyond the part's end changes its length. */
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "shm/session/session.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] =
    "{\"name\": \"t\", \"world\": {\"name\": \"count\"}, \"actor\": {\"count\": 2, \"worlds\": 2},"
    "\"algorithm\": {\"name\": \"dqn\"}, \"priority\": {\"kind\": \"proportional\"},"
    "\"ring\": {\"capacity\": 64}, \"sample\": {\"batch\": 8, \"min_fill\": 16},"
    "\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}}";

static struct rm_session session;
static struct rm_state *whole;

static struct rm_state *fresh(void)
{
    struct rm_state *state;
    demand(rm_state_create(&state, NULL) == 0, "no memory");
    return state;
}

static void write_some_rows(struct rm_ring *ring)
{
    struct rm_row row;
    for (int i = 0; i < 3 && rm_ring_reserve(ring, &row); i++)
        rm_ring_commit(ring);
}

static void make_session(void)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    static float params[4096];
    struct rm_error error = {""};
    demand(!rm_config_parse(&experiment, "f", config, strlen(config), NULL, 0, &error), error.text);
    demand(!rm_plan_make(&plan, &experiment, &error), error.text);
    demand(!rm_session_create(&session, &experiment, &plan, &error), error.text);
    for (uint32_t i = 0; i < session.objects.actors * session.objects.policies; i++)
        write_some_rows(&session.rings[i]);
    demand(session.weights[0].count <= sizeof params / sizeof *params, "a larger network");
    rm_weights_publish(&session.weights[0], params, (struct rm_weights_stamp){.updates = 1});
    rm_weights_publish(&session.weights[0], params, (struct rm_weights_stamp){.updates = 2});
    whole = fresh();
    rm_session_state(&session, whole);
    demand(!rm_state_end(whole, &error), error.text);
}

/* --- states ---------------------------------------------------------------------------------- */

static struct rm_state *state_of_file(const uint8_t *data, size_t size)
{
    struct rm_state *state = fresh();
    struct rm_error error = {""};
    char path[64];
    uint8_t *file = malloc(archive_bytes_max(size));
    demand(file != NULL, "no memory");
    const int fd = file_of(file, archive_of(data, size, file), path);
    if (rm_state_read(state, path, &error))
        demand(error.text[0] != '\0', "refused without words");
    close(fd);
    free(file);
    return state;
}

/* Adds part i with what stands in the damages that are about it. */
static void add_damaged(struct rm_state *state, size_t i, const uint8_t *data, size_t size)
{
    const struct rm_state_part *part = rm_state_at(whole, i);
    size_t bytes = part->bytes;
    uint8_t *copy = calloc(1, bytes + 65536 + 256);
    demand(copy != NULL, "no memory");
    memcpy(copy, part->data, bytes);
    while (size >= 4) {
        const size_t at = data[1] | (size_t)data[2] << 8, n = data[3];
        if (size - 4 < n)
            break;
        if (data[0] == i % 256) {
            memcpy(copy + at, data + 4, n);
            bytes = at > bytes ? at : bytes;
        }
        data += 4 + n;
        size -= 4 + n;
    }
    demand(!rm_state_add(state, part->name, part->kind, copy, bytes, NULL), "not added");
    free(copy);
}

static struct rm_state *state_of_damages(const uint8_t *data, size_t size)
{
    struct rm_state *state = fresh();
    for (size_t i = 0; i < rm_state_count(whole); i++)
        add_damaged(state, i, data, size);
    return state;
}

/* --- what came of it ------------------------------------------------------------------------- */

static int load(struct rm_state *state, struct rm_error *error)
{
    rm_state_load(state);
    rm_session_state(&session, state);
    return rm_state_end(state, error);
}

static void attach_to_all(void)
{
    static float params[4096];
    struct rm_board_view board;
    struct rm_weights weights;
    struct rm_priorities priorities;
    struct rm_weights_stamp stamp;
    struct rm_error error = {""};
    demand(rm_board_attach(&board, session.board.region.fd, false, &error) == 0, error.text);
    demand(RM_PEEK(&board.round->participants) == session.objects.actors + session.objects.policies,
           "others take part in rounds");
    rm_board_close(&board);
    demand(!rm_weights_attach(&weights, session.weights[0].region.fd, false, &error), error.text);
    rm_weights_read(&weights, params, weights.count, &stamp, NULL);
    rm_weights_close(&weights);
    demand(!rm_priorities_attach(&priorities, session.priorities[0].region.fd, false, &error),
           error.text);
    rm_priorities_close(&priorities);
    for (uint32_t i = 0; i < session.objects.actors; i++) {
        struct rm_ring ring;
        uint64_t first, end;
        demand(!rm_ring_attach(&ring, session.rings[i].region.fd, false, &error), error.text);
        rm_ring_window(&ring, &first, &end);
        demand(end - first <= ring.spec.rows, "a window of more rows than there are");
        rm_ring_close(&ring);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rm_error error = {""};
    if (size < 1)
        return 0;
    if (!whole)
        make_session();
    struct rm_state *state =
        data[0] & 1 ? state_of_file(data + 1, size - 1) : state_of_damages(data + 1, size - 1);
    if (load(state, &error))
        demand(error.text[0] != '\0', "refused without words");
    else
        attach_to_all();
    rm_state_destroy(state);
    demand(load(whole, &error) == 0, error.text);
    return 0;
}
