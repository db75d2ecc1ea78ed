/* Any bytes as lines of the control socket: each is refused with words or is a request whose
 * command and arguments are checked; every reply is one line of JSON that carries the request's id.
 * No command is run. The first byte chooses the access level. */
#include "daemon/protocol.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "fuzz_control: %s\n", what);
        abort();
    }
}

static const struct rm_field nothing[] = {{NULL, RM_FIELD_ANY, false, NULL}};
static const struct rm_field arguments[] = {
    {"key", RM_FIELD_STRING, true, "a key"},           {"value", RM_FIELD_ANY, true, "its value"},
    {"count", RM_FIELD_INTEGER, false, "how many"},    {"rate", RM_FIELD_NUMBER, false, "how fast"},
    {"on", RM_FIELD_BOOLEAN, false, "whether"},        {"list", RM_FIELD_ARRAY, false, "several"},
    {"more", RM_FIELD_OBJECT, false, "anything else"}, {NULL, RM_FIELD_ANY, false, NULL}};
static const struct rm_command commands[] = {
    {"status", RM_ACCESS_SEE, nothing, nothing, "says", NULL},
    {"set", RM_ACCESS_ADMINISTER, arguments, nothing, "sets", NULL},
    {"stop", RM_ACCESS_OPERATE, nothing, nothing, "stops", NULL},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

/* A line of ours: one newline, at its end, and JSON. Takes it. */
static void check_line(char *line, size_t bytes, const json_t *id)
{
    demand(line != NULL, "no reply");
    demand(bytes == strlen(line) && line[bytes - 1] == '\n', "a reply does not end its line");
    demand(memchr(line, '\n', bytes) == line + bytes - 1, "a reply has two lines");
    json_t *reply = json_loadb(line, bytes, 0, NULL);
    demand(json_is_object(reply), "a reply is no JSON object");
    if (id && !json_is_real(id)) /* reals are rounded */
        demand(json_is_real(json_object_get(reply, "id")) || json_is_array(id) ||
                   json_is_object(id) || json_equal((json_t *)id, json_object_get(reply, "id")),
               "a reply lost its id");
    json_decref(reply);
    free(line);
}

static void one_line(const char *line, size_t bytes, enum rm_access access)
{
    struct rm_request request;
    struct rm_error error = {.text = ""};
    const struct rm_command *command = NULL;
    size_t size = 0;
    enum rm_refusal refusal = rm_request_parse(&request, line, bytes, &error);
    if (refusal == RM_REFUSED_NOT) {
        demand(json_is_object(request.arguments), "a request without arguments");
        refusal = rm_command_check(commands, COMMANDS, &request, access, &command, &error);
        demand(refusal != RM_REFUSED_NOT || command->access <= access, "access was not checked");
    }
    if (refusal != RM_REFUSED_NOT) {
        demand(error.text[0] != '\0', "refused without words");
        char *text = rm_refusal_line(refusal, error.text, request.id, &size);
        check_line(text, size, request.id);
    } else {
        char *text = rm_reply_line(json_incref(request.arguments), request.id, &size);
        check_line(text, size, request.id);
    }
    rm_request_free(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum rm_access access = (enum rm_access)(data[0] % RM_ACCESS_COUNT);
    const char *at = (const char *)data + 1, *end = (const char *)data + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        one_line(at, (size_t)(stop - at), access);
        at = stop + 1;
    }
    return 0;
}
