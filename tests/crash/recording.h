/* recording: what a program did to the files below a folder, operation by operation, and what may
 * be found there after a power loss.
 *
 * What a disk promises: the bytes of a file last from its fsync on, what happened to the names in a
 * folder from the folder's fsync on, and nothing else. Whatever else happened may have reached the
 * disk or not, in any order and, of a write, in part. So a state after a loss is all operations
 * that last by then and any choice of the others; an operation of which the name was lost but not
 * the bytes changes a file that nobody finds. */
#ifndef RM_TESTS_CRASH_RECORDING_H
#define RM_TESTS_CRASH_RECORDING_H

#include "tests/crash/disk.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define RECORD_OPS   512
#define RECORD_NODES 256
#define RECORD_FDS   256

enum record_kind {
    RECORD_ENTER, /* `node` is called `name` in `folder` from now on */
    RECORD_LEAVE, /* and no more */
    RECORD_WRITE,
    RECORD_EMPTY,       /* truncated to nothing */
    RECORD_SYNC,        /* bytes of a file */
    RECORD_SYNC_FOLDER, /* names in a folder */
};

struct record_op {
    enum record_kind kind;
    int node, folder;
    char name[64];
    char old[64]; /* RECORD_ENTER by a rename: the name that goes in the same step; "" else */
    size_t at, bytes;
    uint8_t *data;
    int lasts_by; /* index of the operation from which on it lasts; INT_MAX: never */
};

struct record_node {
    bool folder;
    char target[64]; /* of a link; "" else */
};

static char record_root[PATH_MAX];
static struct record_op record_op[RECORD_OPS];
static int record_count;
static struct record_node record_node[RECORD_NODES];
static int record_nodes;
static int record_fd[RECORD_FDS]; /* node, or -1 */
static size_t record_at[RECORD_FDS];

/* --- a tree of names and bytes --------------------------------------------------------------- */

struct record_entry {
    int folder, node;
    char name[64];
};

struct record_tree {
    struct record_entry entry[RECORD_NODES];
    int entries;
    uint8_t *data[RECORD_NODES];
    size_t bytes[RECORD_NODES];
};

static struct record_tree record_now; /* as everybody sees it */

static inline void tree_clear(struct record_tree *t)
{
    for (int i = 0; i < RECORD_NODES; i++)
        free(t->data[i]);
    memset(t, 0, sizeof *t);
}

static inline int tree_find(const struct record_tree *t, int folder, const char *name)
{
    for (int i = 0; i < t->entries; i++)
        if (t->entry[i].folder == folder && strcmp(t->entry[i].name, name) == 0)
            return i;
    return -1;
}

static inline void tree_leave(struct record_tree *t, int folder, const char *name)
{
    const int i = tree_find(t, folder, name);
    if (i >= 0)
        t->entry[i] = t->entry[--t->entries];
}

static inline void tree_write(struct record_tree *t, int node, size_t at, const uint8_t *data,
                              size_t bytes)
{
    if (at + bytes > t->bytes[node]) {
        t->data[node] = realloc(t->data[node], at + bytes);
        assert_non_null(t->data[node]);
        memset(t->data[node] + t->bytes[node], 0, at + bytes - t->bytes[node]);
        t->bytes[node] = at + bytes;
    }
    if (data)
        memcpy(t->data[node] + at, data, bytes);
    else
        memset(t->data[node] + at, 0, bytes);
}

enum record_part { RECORD_ALL, RECORD_HALF, RECORD_ZEROS };

static inline void tree_apply(struct record_tree *t, const struct record_op *op,
                              enum record_part part)
{
    if (op->kind == RECORD_ENTER) {
        if (op->old[0])
            tree_leave(t, op->folder, op->old);
        tree_leave(t, op->folder, op->name);
        assert_true(t->entries < RECORD_NODES);
        struct record_entry *e = &t->entry[t->entries++];
        *e = (struct record_entry){.folder = op->folder, .node = op->node};
        memcpy(e->name, op->name, sizeof e->name);
    } else if (op->kind == RECORD_LEAVE) {
        tree_leave(t, op->folder, op->name);
    } else if (op->kind == RECORD_WRITE) {
        tree_write(t, op->node, op->at, part == RECORD_ZEROS ? NULL : op->data,
                   part == RECORD_HALF ? op->bytes / 2 : op->bytes);
    } else if (op->kind == RECORD_EMPTY) {
        t->bytes[op->node] = 0;
    }
}

/* --- recording ------------------------------------------------------------------------------- */

static inline int node_of(const char *path, int *folder, char name[64])
{
    const size_t n = strlen(record_root);
    int node = 0;
    *folder = -1;
    if (strncmp(path, record_root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return -2; /* not ours */
    for (const char *at = path + n; *at == '/';) {
        const size_t length = strcspn(++at, "/");
        if (length == 0)
            break;
        assert_true(node >= 0 && length < 64);
        *folder = node;
        snprintf(name, 64, "%.*s", (int)length, at);
        const int i = tree_find(&record_now, node, name);
        node = i < 0 ? -1 : record_now.entry[i].node;
        at += length;
    }
    return node;
}

static inline struct record_op *record(enum record_kind kind, int node)
{
    assert_true(record_count < RECORD_OPS);
    struct record_op *op = &record_op[record_count++];
    *op = (struct record_op){.kind = kind, .node = node, .folder = -1, .lasts_by = INT_MAX};
    return op;
}

static inline struct record_op *record_name(enum record_kind kind, int node, int folder,
                                            const char *name)
{
    struct record_op *op = record(kind, node);
    op->folder = folder;
    snprintf(op->name, sizeof op->name, "%s", name);
    return op;
}

static inline int new_node(bool folder, const char *target)
{
    assert_true(record_nodes < RECORD_NODES);
    record_node[record_nodes] = (struct record_node){.folder = folder};
    snprintf(record_node[record_nodes].target, 64, "%s", target);
    return record_nodes++;
}

static inline void on_opened(int fd, const char *path, int flags)
{
    char name[64];
    int folder, node = node_of(path, &folder, name);
    assert_true(fd < RECORD_FDS && !(flags & O_APPEND));
    record_fd[fd] = -1;
    if (node == -2)
        return;
    if (node == -1) {
        assert_true(flags & O_CREAT);
        node = new_node(false, "");
        tree_apply(&record_now, record_name(RECORD_ENTER, node, folder, name), RECORD_ALL);
    } else if (flags & O_TRUNC) {
        tree_apply(&record_now, record(RECORD_EMPTY, node), RECORD_ALL);
    }
    record_fd[fd] = node;
    record_at[fd] = 0;
}

static inline void on_closed(int fd)
{
    if (fd >= 0 && fd < RECORD_FDS)
        record_fd[fd] = -1;
}

static inline void on_wrote(int fd, const void *data, size_t bytes)
{
    if (fd >= RECORD_FDS || record_fd[fd] < 0)
        return;
    struct record_op *op = record(RECORD_WRITE, record_fd[fd]);
    op->at = record_at[fd];
    op->bytes = bytes;
    op->data = malloc(bytes);
    assert_non_null(op->data);
    memcpy(op->data, data, bytes);
    record_at[fd] += bytes;
    tree_apply(&record_now, op, RECORD_ALL);
}

static inline void on_synced(int fd)
{
    if (fd >= RECORD_FDS || record_fd[fd] < 0)
        return;
    const int node = record_fd[fd], now = record_count;
    const bool folder = record_node[node].folder;
    record(folder ? RECORD_SYNC_FOLDER : RECORD_SYNC, node);
    for (int i = 0; i < now; i++) {
        struct record_op *op = &record_op[i];
        const bool name = op->kind == RECORD_ENTER || op->kind == RECORD_LEAVE;
        const bool bytes = op->kind == RECORD_WRITE || op->kind == RECORD_EMPTY;
        if (op->lasts_by == INT_MAX &&
            ((folder && name && op->folder == node) || (!folder && bytes && op->node == node)))
            op->lasts_by = now;
    }
}

/* Within one folder, as all renames here are: the old name goes and the new one comes in one step.
 */
static inline void on_renamed(const char *from, const char *to)
{
    char old[64], fresh[64];
    int folder, other;
    const int node = node_of(from, &folder, old);
    (void)node_of(to, &other, fresh);
    if (node < 0)
        return;
    assert_int_equal(folder, other);
    struct record_op *op = record_name(RECORD_ENTER, node, folder, fresh);
    snprintf(op->old, sizeof op->old, "%s", old);
    tree_apply(&record_now, op, RECORD_ALL);
}

static inline void on_made(const char *path, const char *target)
{
    char name[64];
    int folder;
    if (node_of(path, &folder, name) == -1)
        tree_apply(&record_now,
                   record_name(RECORD_ENTER, new_node(!target, target ? target : ""), folder, name),
                   RECORD_ALL);
}

static inline void on_removed(const char *path)
{
    char name[64];
    int folder;
    const int node = node_of(path, &folder, name);
    if (node >= 0)
        tree_apply(&record_now, record_name(RECORD_LEAVE, node, folder, name), RECORD_ALL);
}

static const struct disk_recorder record_all = {on_opened,  on_closed, on_wrote,  on_synced,
                                                on_renamed, on_made,   on_removed};

/* From now on, below `root`, which is there and empty. */
static inline void record_begin(const char *root)
{
    assert_non_null(realpath(root, record_root));
    for (int i = 0; i < RECORD_FDS; i++)
        record_fd[i] = -1;
    while (record_count > 0)
        free(record_op[--record_count].data);
    record_nodes = 0;
    tree_clear(&record_now);
    new_node(true, "");
    disk_recorder = &record_all;
}

static inline void record_end(void)
{
    disk_recorder = NULL;
}

/* --- what may be found ----------------------------------------------------------------------- */

/* Which of the operations that do not last yet are there. */
enum record_loss {
    LOSS_NONE,        /* all of them */
    LOSS_ALL,         /* none */
    LOSS_BYTES,       /* names are, bytes are not */
    LOSS_BYTES_ZEROS, /* names are, and zeros where bytes should be */
    LOSS_NAMES,       /* bytes are, names are not */
    LOSS_TORN,        /* all of them, of every write half */
    LOSS_ONE,         /* all but `which` */
    LOSS_BUT_ONE,     /* only `which` */
    LOSS_KINDS,
};

static inline bool is_name(const struct record_op *op)
{
    return op->kind == RECORD_ENTER || op->kind == RECORD_LEAVE;
}

static inline bool is_there(const struct record_op *op, enum record_loss loss, bool which)
{
    switch (loss) {
    case LOSS_NONE:
    case LOSS_BYTES_ZEROS:
    case LOSS_TORN:
        return true;
    case LOSS_BYTES:
        return is_name(op);
    case LOSS_NAMES:
        return !is_name(op);
    case LOSS_ONE:
        return !which;
    case LOSS_BUT_ONE:
        return which;
    default:
        return false;
    }
}

/* The tree after the power failed before operation `end`. */
static inline void record_replay(struct record_tree *t, int end, enum record_loss loss, int which)
{
    tree_clear(t);
    for (int i = 0; i < end; i++) {
        const struct record_op *op = &record_op[i];
        const bool lasts = op->lasts_by < end;
        if (lasts)
            tree_apply(t, op, RECORD_ALL);
        else if (is_there(op, loss, i == which))
            tree_apply(t, op,
                       loss == LOSS_TORN          ? RECORD_HALF
                       : loss == LOSS_BYTES_ZEROS ? RECORD_ZEROS
                                                  : RECORD_ALL);
    }
}

/* Of what it holds: names in whatever order, and bytes. */
static inline uint64_t record_hash(const struct record_tree *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < t->entries; i++) {
        const struct record_entry *e = &t->entry[i];
        const uint64_t bytes = XXH3_64bits(t->data[e->node], t->bytes[e->node]);
        sum += XXH3_64bits_withSeed(e->name, strlen(e->name),
                                    bytes + (uint64_t)e->folder * RECORD_NODES + (uint64_t)e->node);
    }
    return sum;
}

/* Makes the files of a tree below `path`, a folder that is there and empty. */
static inline void record_make(const struct record_tree *t, int folder, const char *path)
{
    char below[PATH_MAX];
    for (int i = 0; i < t->entries; i++) {
        const struct record_entry *e = &t->entry[i];
        if (e->folder != folder)
            continue;
        snprintf(below, sizeof below, "%s/%s", path, e->name);
        if (record_node[e->node].folder) {
            assert_int_equal(mkdir(below, 0755), 0);
            record_make(t, e->node, below);
        } else if (record_node[e->node].target[0]) {
            assert_int_equal(symlink(record_node[e->node].target, below), 0);
        } else {
            const int fd = open(below, O_WRONLY | O_CREAT | O_EXCL, 0644);
            assert_true(fd >= 0);
            assert_int_equal(write(fd, t->data[e->node], t->bytes[e->node]), t->bytes[e->node]);
            close(fd);
        }
    }
}

#endif
