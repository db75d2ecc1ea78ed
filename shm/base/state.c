#include "shm/base/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define DEPTH_MAX 8

struct rm_state {
    struct rm_state_part *parts;
    size_t count, room;
    size_t next; /* loading: index at which to look for the next part first */
    bool loading;
    const char *const *only; /* NULL: all parts */
    char prefix[RM_STATE_NAME_MAX];
    size_t prefix_bytes, outer[DEPTH_MAX]; /* lengths of the enclosing prefixes */
    uint32_t depth;
    int failed;
    struct rm_error why;
};

int rm_state_create(struct rm_state **state, struct rm_error *error)
{
    *state = calloc(1, sizeof **state);
    return *state ? 0 : rm_fail(error, -ENOMEM, "no memory for a state");
}

void rm_state_destroy(struct rm_state *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->parts[i].data);
    free(s->parts);
    free(s);
}

void rm_state_load(struct rm_state *s)
{
    s->loading = true;
    s->next = 0;
    for (size_t i = 0; i < s->count; i++)
        s->parts[i].taken = false;
}

bool rm_state_loading(const struct rm_state *s)
{
    return s->loading;
}

void rm_state_fail(struct rm_state *s, int code, const char *format, ...)
{
    char text[sizeof s->why.text];
    va_list arguments;
    if (s->failed)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    s->failed = rm_fail(&s->why, code, "%s", text);
}

void rm_state_only(struct rm_state *s, const char *const *nouns)
{
    s->only = nouns;
}

/* --- names ----------------------------------------------------------------------------------- */

void rm_state_enter(struct rm_state *s, const char *name)
{
    const size_t room = sizeof s->prefix - s->prefix_bytes;
    if (s->depth < DEPTH_MAX)
        s->outer[s->depth] = s->prefix_bytes;
    s->depth++;
    const int n = snprintf(s->prefix + s->prefix_bytes, room, "%s.", name);
    if (s->depth > DEPTH_MAX || n < 0 || (size_t)n >= room)
        rm_state_fail(s, -ENAMETOOLONG, "%s%s: too deep or too long for a name", s->prefix, name);
    else
        s->prefix_bytes += (size_t)n;
}

void rm_state_leave(struct rm_state *s)
{
    s->depth--;
    if (s->depth < DEPTH_MAX)
        s->prefix_bytes = s->outer[s->depth];
    s->prefix[s->prefix_bytes] = '\0';
}

static bool full_name(struct rm_state *s, const char *name, char out[RM_STATE_NAME_MAX])
{
    if (snprintf(out, RM_STATE_NAME_MAX, "%s%s", s->prefix, name) < (int)RM_STATE_NAME_MAX)
        return true;
    rm_state_fail(s, -ENAMETOOLONG, "%s%s: too long for a name", s->prefix, name);
    return false;
}

static struct rm_state_part *find(const struct rm_state *s, const char *name, size_t hint)
{
    const uint64_t hash = XXH3_64bits(name, strlen(name));
    for (size_t i = 0; i < s->count; i++) {
        struct rm_state_part *p = &s->parts[(hint + i) % s->count];
        if (p->hash == hash && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

/* --- parts ----------------------------------------------------------------------------------- */

static struct rm_state_part *append(struct rm_state *s, const char *name, enum rm_state_kind kind,
                                    size_t bytes)
{
    if (s->count == s->room) {
        const size_t room = s->room ? 2 * s->room : 32;
        struct rm_state_part *more = realloc(s->parts, room * sizeof *more);
        if (!more)
            return NULL;
        s->parts = more;
        s->room = room;
    }
    struct rm_state_part *p = &s->parts[s->count];
    *p = (struct rm_state_part){.kind = kind, .bytes = bytes};
    p->hash = XXH3_64bits(name, strlen(name));
    snprintf(p->name, sizeof p->name, "%s", name);
    p->data = malloc(bytes ? bytes : 1);
    if (!p->data)
        return NULL;
    s->count++;
    return p;
}

static void *part_to_save(struct rm_state *s, const char *name, enum rm_state_kind kind,
                          size_t bytes)
{
    if (find(s, name, 0)) {
        rm_state_fail(s, -EEXIST, "%s: two parts have this name", name);
        return NULL;
    }
    struct rm_state_part *p = append(s, name, kind, bytes);
    if (!p)
        rm_state_fail(s, -ENOMEM, "%s: no memory for a copy of %zu bytes", name, bytes);
    return p ? p->data : NULL;
}

static void *part_to_load(struct rm_state *s, const char *name, size_t bytes)
{
    struct rm_state_part *p = s->count ? find(s, name, s->next) : NULL;
    if (!p) {
        rm_state_fail(s, -EPROTO, "%s: is missing", name);
        return NULL;
    }
    if (p->bytes != bytes) {
        rm_state_fail(s, -EPROTO, "%s: has %zu bytes; this run needs %zu", name, p->bytes, bytes);
        return NULL;
    }
    p->taken = true;
    s->next = (size_t)(p - s->parts) + 1;
    return p->data;
}

/* Is `noun` one of the words between the dots of `name`? */
static bool is_within(const char *name, const char *noun)
{
    const size_t n = strlen(noun);
    for (const char *word = name;; word++) {
        if (strncmp(word, noun, n) == 0 && (word[n] == '.' || word[n] == '\0'))
            return true;
        word = strchr(word, '.');
        if (!word)
            return false;
    }
}

void *rm_state_part(struct rm_state *s, const char *name, enum rm_state_kind kind, size_t bytes)
{
    char full[RM_STATE_NAME_MAX];
    if (s->failed || !full_name(s, name, full))
        return NULL;
    bool wanted = !s->loading || !s->only;
    for (const char *const *noun = s->only; !wanted && *noun; noun++)
        wanted = is_within(full, *noun);
    if (!wanted)
        return NULL;
    return s->loading ? part_to_load(s, full, bytes) : part_to_save(s, full, kind, bytes);
}

static void transfer(struct rm_state *s, const char *name, enum rm_state_kind kind, void *data,
                     size_t bytes)
{
    void *part = rm_state_part(s, name, kind, bytes);
    if (!part || !bytes)
        return;
    if (s->loading)
        memcpy(data, part, bytes);
    else
        memcpy(part, data, bytes);
}

void rm_state_bytes(struct rm_state *s, const char *name, void *data, size_t bytes)
{
    transfer(s, name, RM_STATE_BYTES, data, bytes);
}

void rm_state_floats(struct rm_state *s, const char *name, float *data, size_t count)
{
    transfer(s, name, RM_STATE_FLOATS, data, count * sizeof *data);
}

static const struct rm_state_part *find_prefixed(const struct rm_state *s, const char *name)
{
    char full[RM_STATE_NAME_MAX];
    if (snprintf(full, sizeof full, "%s%s", s->prefix, name) >= (int)sizeof full)
        return NULL;
    return find(s, full, 0);
}

bool rm_state_has(const struct rm_state *s, const char *name)
{
    return find_prefixed(s, name) != NULL;
}

size_t rm_state_bytes_of(const struct rm_state *s, const char *name)
{
    const struct rm_state_part *p = find_prefixed(s, name);
    return p ? p->bytes : 0;
}

int rm_state_end(struct rm_state *s, struct rm_error *error)
{
    for (size_t i = 0; s->loading && !s->only && i < s->count; i++)
        if (!s->parts[i].taken)
            rm_state_fail(s, -EPROTO, "%s: no object of this run has this part", s->parts[i].name);
    return s->failed ? rm_fail(error, s->failed, "%s", s->why.text) : 0;
}

/* --- files ----------------------------------------------------------------------------------- */

size_t rm_state_count(const struct rm_state *s)
{
    return s->count;
}

const struct rm_state_part *rm_state_at(const struct rm_state *s, size_t i)
{
    return &s->parts[i];
}

int rm_state_add(struct rm_state *s, const char *name, enum rm_state_kind kind, const void *data,
                 size_t bytes, struct rm_error *error)
{
    if (strlen(name) >= RM_STATE_NAME_MAX)
        return rm_fail(error, -ENAMETOOLONG, "%s: too long for a name", name);
    if (find(s, name, 0))
        return rm_fail(error, -EEXIST, "%s: two parts have this name", name);
    struct rm_state_part *p = append(s, name, kind, bytes);
    if (!p)
        return rm_fail(error, -ENOMEM, "%s: no memory for %zu bytes", name, bytes);
    if (bytes)
        memcpy(p->data, data, bytes);
    return 0;
}

/* A stream is its kind, its length, its bytes. */
struct part_head {
    uint64_t kind, bytes;
};

int rm_state_write(const struct rm_state *s, const char *path, unsigned kinds,
                   struct rm_error *error)
{
    struct rm_archive_writer *writer;
    uint64_t bytes;
    int rc = rm_archive_create(&writer, path, error);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->count; i++) {
        const struct rm_state_part *p = &s->parts[i];
        const struct part_head head = {p->kind, p->bytes};
        if (!(kinds & 1u << p->kind))
            continue;
        rm_archive_begin(writer, p->name);
        rm_archive_put(writer, &head, sizeof head);
        rm_archive_put(writer, p->data, p->bytes);
        rm_archive_end(writer);
    }
    return rm_archive_close(writer, &bytes, error);
}

/* Grow the buffer as bytes arrive, so that a wrong length in the file cannot allocate too much. */
static int fill(struct rm_state_part *p, uint64_t bytes, struct rm_archive_reader *reader,
                struct rm_error *error)
{
    int rc = 0;
    for (size_t room = 1u << 20; rc == 0 && p->bytes < bytes; room *= 2) {
        room = room < bytes ? room : bytes;
        uint8_t *data = realloc(p->data, room);
        if (!data)
            return rm_fail(error, -ENOMEM, "%s: no memory for %zu bytes", p->name, room);
        p->data = data;
        rc = rm_archive_get(reader, data + p->bytes, room - p->bytes, error);
        if (rc == 0)
            p->bytes = room;
    }
    return rc;
}

static int read_part(struct rm_state *s, struct rm_archive_reader *reader, const char *name,
                     struct rm_error *error)
{
    struct part_head head;
    int rc = rm_archive_get(reader, &head, sizeof head, error);
    if (rc)
        return rc;
    if ((head.kind != RM_STATE_BYTES && head.kind != RM_STATE_FLOATS) || head.bytes > SIZE_MAX / 2)
        return rm_fail(error, -EPROTO, "%s: kind %llu with %llu bytes is invalid", name,
                       (unsigned long long)head.kind, (unsigned long long)head.bytes);
    if (find(s, name, 0))
        return rm_fail(error, -EPROTO, "%s: two parts have this name", name);
    struct rm_state_part *p = append(s, name, (enum rm_state_kind)head.kind, 0);
    if (!p)
        return rm_fail(error, -ENOMEM, "%s: no memory for a part", name);
    return fill(p, head.bytes, reader, error);
}

int rm_state_read(struct rm_state *s, const char *path, struct rm_error *error)
{
    char name[RM_ARCHIVE_NAME_MAX];
    struct rm_archive_reader *reader;
    int rc = rm_archive_open(&reader, path, error);
    if (rc)
        return rc;
    while ((rc = rm_archive_next(reader, name, error)) > 0)
        if ((rc = read_part(s, reader, name, error)) < 0)
            break;
    rm_archive_reader_close(reader);
    return rc < 0 ? rm_fail_within(error, rc, "%s", path) : 0;
}
