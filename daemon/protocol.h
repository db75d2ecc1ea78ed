/* protocol: the lines of the control socket. Requests in, replies and events out; no sockets here.
 * Pure functions over untrusted text; callable from any thread.
 *
 *   greeting  {"ringmaster":{"version":V,"protocol":1,"capabilities":[...]}}
 *   request   {"execute":NAME,"arguments":{...},"id":any}
 *   reply     {"return":value,"id":any} or {"error":{"class":C,"desc":D},"id":any}
 *   event     {"event":NAME,"time":T,"data":{...},"lost":N} */
#ifndef RM_DAEMON_PROTOCOL_H
#define RM_DAEMON_PROTOCOL_H

#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_PROTOCOL_VERSION   1
#define RM_PROTOCOL_LINE_MAX  65536 /* bytes of a request, newline included */
#define RM_PROTOCOL_DEPTH_MAX 16    /* objects and arrays within each other */
#define RM_COMMAND_NAME_MAX   64

/* Who may do what: each level includes those before it. */
enum rm_access { RM_ACCESS_SEE = 0, RM_ACCESS_OPERATE, RM_ACCESS_ADMINISTER, RM_ACCESS_COUNT };
const char *rm_access_name(enum rm_access access);

/* Error classes: what a program can branch on. */
enum rm_refusal {
    RM_REFUSED_NOT = 0,
    RM_REFUSED_BAD_REQUEST, /* not JSON, not an object, too deep, unknown member */
    RM_REFUSED_TOO_LONG,    /* the line */
    RM_REFUSED_UNKNOWN_COMMAND,
    RM_REFUSED_INVALID_ARGUMENT, /* unknown, missing, wrong type, or a value that was refused */
    RM_REFUSED_ACCESS_DENIED,
    RM_REFUSED_NOT_NOW, /* right, but not in the run's present state */
    RM_REFUSED_COUNT
};
const char *rm_refusal_name(enum rm_refusal refusal);

struct rm_request {
    char execute[RM_COMMAND_NAME_MAX];
    json_t *arguments; /* an object, possibly empty */
    json_t *id;        /* NULL = none given */
};

/* Parses a line (without its newline). On refusal nothing else of *request than `id` is set, if it
 * could be read. In any case the caller calls rm_request_free(). */
enum rm_refusal rm_request_parse(struct rm_request *request, const char *line, size_t bytes,
                                 struct rm_error *error);
void rm_request_free(struct rm_request *request);

/* Each returns a malloc'ed line with its newline and stores its length, or NULL without memory.
 * `value` is taken over, `id` is not. */
char *rm_reply_line(json_t *value, json_t *id, size_t *bytes);
char *rm_refusal_line(enum rm_refusal refusal, const char *text, json_t *id, size_t *bytes);
char *rm_greeting_line(size_t *bytes);
char *rm_event_line(const char *name, double time, json_t *data, uint64_t lost, size_t *bytes);

/* --- commands ------------------------------------------------------------------------------- */

enum rm_field_type {
    RM_FIELD_STRING = 0,
    RM_FIELD_INTEGER,
    RM_FIELD_NUMBER,
    RM_FIELD_BOOLEAN,
    RM_FIELD_OBJECT,
    RM_FIELD_ARRAY,
    RM_FIELD_ANY,
    RM_FIELD_TYPE_COUNT
};

/* A member of an argument or reply object. Lists end with name NULL. */
struct rm_field {
    const char *name;
    enum rm_field_type type;
    bool required; /* of replies: always there */
    const char *doc;
};

struct rm_connection;

struct rm_command {
    const char *name;
    enum rm_access access;
    const struct rm_field *arguments;
    const struct rm_field *reply;
    const char *doc;
    /* Runs with checked arguments. Fills *reply (a new reference), or refuses with a message. */
    enum rm_refusal (*run)(void *user, struct rm_connection *client, json_t *arguments,
                           json_t **reply, struct rm_error *error);
};

/* Finds the command of a request and checks access and arguments; no side effect. */
enum rm_refusal rm_command_check(const struct rm_command *commands, size_t count,
                                 const struct rm_request *request, enum rm_access access,
                                 const struct rm_command **command, struct rm_error *error);

/* The table as JSON, for query-schema: arguments and replies as JSON Schema objects. */
json_t *rm_commands_describe(const struct rm_command *commands, size_t count);

#endif
