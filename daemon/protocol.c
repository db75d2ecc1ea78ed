#include "daemon/protocol.h"

#include "config/json_memory.h"

#include "config/config.h"

#include <stdlib.h>
#include <string.h>

static const char *const access_names[] = {"see", "operate", "administer"};
_Static_assert(sizeof access_names / sizeof access_names[0] == RM_ACCESS_COUNT, "names");

static const char *const refusal_names[] = {
    "none",          "bad-request", "too-long", "unknown-command", "invalid-argument",
    "access-denied", "not-now"};
_Static_assert(sizeof refusal_names / sizeof refusal_names[0] == RM_REFUSED_COUNT, "names");

static const char *const type_names[] = {"string", "integer", "number", "boolean",
                                         "object", "array",   "any"};
_Static_assert(sizeof type_names / sizeof type_names[0] == RM_FIELD_TYPE_COUNT, "names");

const char *rm_access_name(enum rm_access access)
{
    return (unsigned)access < RM_ACCESS_COUNT ? access_names[access] : "?";
}

const char *rm_refusal_name(enum rm_refusal refusal)
{
    return (unsigned)refusal < RM_REFUSED_COUNT ? refusal_names[refusal] : "?";
}

static const char *type_name(enum rm_field_type type)
{
    return (unsigned)type < RM_FIELD_TYPE_COUNT ? type_names[type] : "?";
}

static enum rm_refusal refuse(enum rm_refusal refusal, struct rm_error *error, const char *text)
{
    rm_fail(error, -1, "%s", text);
    return refusal;
}

/* Depth is checked before parsing, on brackets outside strings: the parser recurses. */
static bool too_deep(const char *line, size_t bytes)
{
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = line[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > RM_PROTOCOL_DEPTH_MAX)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

enum rm_refusal rm_request_parse(struct rm_request *request, const char *line, size_t bytes,
                                 struct rm_error *error)
{
    static const char *const members[] = {"execute", "arguments", "id", NULL};
    memset(request, 0, sizeof *request);
    if (bytes >= RM_PROTOCOL_LINE_MAX)
        return refuse(RM_REFUSED_TOO_LONG, error, "a line is at most 65536 bytes");
    if (too_deep(line, bytes))
        return refuse(RM_REFUSED_BAD_REQUEST, error, "nested more than 16 deep");
    json_error_t parse;
    const uint64_t mark = rm_json_failures();
    json_t *root = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &parse);
    if (rm_json_failures() != mark) {
        json_decref(root);
        return refuse(RM_REFUSED_NOT_NOW, error, "out of memory");
    }
    if (!root) {
        rm_fail(error, -1, "not JSON: %s at column %d", parse.text, parse.column);
        return RM_REFUSED_BAD_REQUEST;
    }
    enum rm_refusal refusal = RM_REFUSED_NOT;
    if (!json_is_object(root)) {
        refusal = refuse(RM_REFUSED_BAD_REQUEST, error,
                         "a request is an object: {\"execute\": NAME, \"arguments\": {}}");
        goto out;
    }
    request->id = json_incref(json_object_get(root, "id"));
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        bool known = false;
        for (size_t i = 0; members[i]; i++)
            known |= strcmp(key, members[i]) == 0;
        if (!known) {
            const char *near = rm_nearest(key, members);
            rm_fail(error, -1, "unknown member \"%.40s\"%s%s%s", key,
                    near ? "; did you mean \"" : "", near ? near : "",
                    near ? "\"?" : "; a request has execute, arguments and id");
            refusal = RM_REFUSED_BAD_REQUEST;
            goto out;
        }
    }
    json_t *execute = json_object_get(root, "execute");
    if (!json_is_string(execute)) {
        refusal = refuse(RM_REFUSED_BAD_REQUEST, error, "\"execute\" must name a command");
        goto out;
    }
    size_t length = json_string_length(execute);
    if (length >= sizeof request->execute || strlen(json_string_value(execute)) != length) {
        refusal = refuse(RM_REFUSED_UNKNOWN_COMMAND, error, "no command has such a name");
        goto out;
    }
    json_t *arguments = json_object_get(root, "arguments");
    if (arguments && !json_is_object(arguments)) {
        refusal = refuse(RM_REFUSED_BAD_REQUEST, error, "\"arguments\" must be an object");
        goto out;
    }
    memcpy(request->execute, json_string_value(execute), length + 1);
    request->arguments = arguments ? json_incref(arguments) : json_object();
    if (!request->arguments)
        refusal = refuse(RM_REFUSED_NOT_NOW, error, "out of memory");
out:
    json_decref(root);
    return refusal;
}

void rm_request_free(struct rm_request *request)
{
    json_decref(request->arguments);
    json_decref(request->id);
    request->arguments = request->id = NULL;
}

/* Takes `object`, which was begun at `mark`. */
static char *line_of(json_t *object, uint64_t mark, size_t *bytes)
{
    object = rm_json_whole(object, mark);
    char *text = rm_json_dump(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (!text)
        return NULL;
    size_t n = strlen(text);
    char *line = realloc(text, n + 2);
    if (!line) {
        free(text);
        return NULL;
    }
    line[n] = '\n';
    line[n + 1] = '\0';
    *bytes = n + 1;
    return line;
}

char *rm_reply_line(json_t *value, json_t *id, size_t *bytes)
{
    const uint64_t mark = rm_json_failures();
    json_t *reply = json_object();
    json_object_set_new(reply, "return", value ? value : json_object());
    if (id)
        json_object_set(reply, "id", id);
    return line_of(reply, mark, bytes);
}

char *rm_refusal_line(enum rm_refusal refusal, const char *text, json_t *id, size_t *bytes)
{
    const uint64_t mark = rm_json_failures();
    json_t *desc = json_string(text);
    if (!desc) /* a message that quotes what was not UTF-8 */
        desc = json_string("refused");
    json_t *reply =
        json_pack("{s:{s:s,s:o}}", "error", "class", rm_refusal_name(refusal), "desc", desc);
    if (reply && id)
        json_object_set(reply, "id", id);
    return line_of(reply, mark, bytes);
}

char *rm_greeting_line(size_t *bytes)
{
    const uint64_t mark = rm_json_failures();
    return line_of(json_pack("{s:{s:s,s:i,s:[s]}}", "ringmaster", "version", RM_VERSION, "protocol",
                             RM_PROTOCOL_VERSION, "capabilities", "events"),
                   mark, bytes);
}

char *rm_event_line(const char *name, double time, json_t *data, uint64_t lost, size_t *bytes)
{
    const uint64_t mark = rm_json_failures();
    json_t *event = json_pack("{s:s,s:f}", "event", name, "time", time);
    if (event && data)
        json_object_set(event, "data", data);
    if (event && lost)
        json_object_set_new(event, "lost", json_integer((json_int_t)lost));
    return line_of(event, mark, bytes);
}

static bool of_type(const json_t *value, enum rm_field_type type)
{
    switch (type) {
    case RM_FIELD_STRING:
        return json_is_string(value);
    case RM_FIELD_INTEGER:
        return json_is_integer(value);
    case RM_FIELD_NUMBER:
        return json_is_number(value);
    case RM_FIELD_BOOLEAN:
        return json_is_boolean(value);
    case RM_FIELD_OBJECT:
        return json_is_object(value);
    case RM_FIELD_ARRAY:
        return json_is_array(value);
    case RM_FIELD_ANY:
    case RM_FIELD_TYPE_COUNT:
        break;
    }
    return true;
}

#define CANDIDATES_MAX 64

static const struct rm_command *find(const struct rm_command *commands, size_t count,
                                     const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static enum rm_refusal check_arguments(const struct rm_command *command, const json_t *arguments,
                                       struct rm_error *error)
{
    const struct rm_field *fields = command->arguments;
    const char *names[CANDIDATES_MAX + 1] = {NULL};
    for (size_t i = 0; i < CANDIDATES_MAX && fields[i].name; i++)
        names[i] = fields[i].name;

    const char *key;
    json_t *value;
    json_object_foreach((json_t *)arguments, key, value)
    {
        const struct rm_field *field = fields;
        while (field->name && strcmp(field->name, key) != 0)
            field++;
        if (!field->name) {
            const char *near = rm_nearest(key, names);
            rm_fail(error, -1, "%s: unknown argument \"%.60s\"%s%s%s", command->name, key,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
            return RM_REFUSED_INVALID_ARGUMENT;
        }
        if (!of_type(value, field->type)) {
            rm_fail(error, -1, "%s: %s: must be of type %s", command->name, key,
                    type_name(field->type));
            return RM_REFUSED_INVALID_ARGUMENT;
        }
    }
    for (const struct rm_field *field = fields; field->name; field++)
        if (field->required && !json_object_get(arguments, field->name)) {
            rm_fail(error, -1, "%s: argument \"%s\" is missing: %s", command->name, field->name,
                    field->doc);
            return RM_REFUSED_INVALID_ARGUMENT;
        }
    return RM_REFUSED_NOT;
}

enum rm_refusal rm_command_check(const struct rm_command *commands, size_t count,
                                 const struct rm_request *request, enum rm_access access,
                                 const struct rm_command **command, struct rm_error *error)
{
    *command = find(commands, count, request->execute);
    if (!*command) {
        const char *names[CANDIDATES_MAX + 1] = {NULL};
        for (size_t i = 0; i < count && i < CANDIDATES_MAX; i++)
            names[i] = commands[i].name;
        const char *near = rm_nearest(request->execute, names);
        rm_fail(error, -1, "unknown command \"%s\"; %s%s%s", request->execute,
                near ? "did you mean \"" : "query-schema lists all", near ? near : "",
                near ? "\"?" : "");
        return RM_REFUSED_UNKNOWN_COMMAND;
    }
    if (access < (*command)->access) {
        rm_fail(error, -1, "%s: needs access level %s, yours is %s", (*command)->name,
                rm_access_name((*command)->access), rm_access_name(access));
        return RM_REFUSED_ACCESS_DENIED;
    }
    return check_arguments(*command, request->arguments, error);
}

static json_t *describe_fields(const struct rm_field *fields, bool closed)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    for (const struct rm_field *f = fields; f->name; f++) {
        json_t *property = json_object();
        if (f->type != RM_FIELD_ANY)
            json_object_set_new(property, "type", json_string(type_name(f->type)));
        json_object_set_new(property, "description", json_string(f->doc));
        json_object_set_new(properties, f->name, property);
        if (f->required)
            json_array_append_new(required, json_string(f->name));
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", !closed);
}

json_t *rm_commands_describe(const struct rm_command *commands, size_t count)
{
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(all, json_pack("{s:s,s:s,s:s,s:o,s:o}", "name", commands[i].name,
                                             "access", rm_access_name(commands[i].access),
                                             "description", commands[i].doc, "arguments",
                                             describe_fields(commands[i].arguments, true),
                                             "returns", describe_fields(commands[i].reply, false)));
    return all;
}
