#include "config/source.h"
#include "config/schema.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scanner {
    struct rm_source *source;
    size_t at;
    struct rm_text_place place; /* of `at` */
    int depth;
    struct rm_error *error;
};

static const unsigned char *here(const struct scanner *s)
{
    return (const unsigned char *)s->source->text + s->at;
}

/* The current character, -1 at the end. */
static int peek(const struct scanner *s)
{
    return s->at < s->source->bytes ? *here(s) : -1;
}

static void step(struct scanner *s)
{
    int c = peek(s);
    s->at++;
    if (c == '\n') {
        s->place.line++;
        s->place.column = 1;
    } else if ((peek(s) & 0xc0) != 0x80 || s->at >= s->source->bytes) {
        s->place.column++; /* continuation bytes belong to the character before */
    }
}

static int refuse(struct scanner *s, struct rm_text_place place, const char *what)
{
    return rm_fail(s->error, -EINVAL, "%s:%u:%u: %s", s->source->name, place.line, place.column,
                   what);
}

static void skip_space(struct scanner *s)
{
    int c;
    while ((c = peek(s)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        step(s);
}

/* Check the encoding first, so that later code can count characters. */
static int check_encoding(struct scanner *s)
{
    const unsigned char *text = (const unsigned char *)s->source->text;
    size_t bytes = s->source->bytes;
    struct rm_text_place place = {1, 1};

    if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        return refuse(s, place,
                      "the file begins with a byte-order mark; save it as UTF-8 without one");
    if (bytes >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
        return refuse(s, place, "the file is in UTF-16; save it as UTF-8");
    for (size_t at = 0; at < bytes;) {
        size_t n = rm_utf8_length(s->source->text + at, bytes - at);
        if (n == 0 || text[at] == 0) {
            char what[64];
            snprintf(what, sizeof(what), "byte 0x%02x is not UTF-8 text", text[at]);
            return refuse(s, place, what);
        }
        place.column++;
        if (text[at] == '\n') {
            place.line++;
            place.column = 1;
        }
        at += n;
    }
    return 0;
}

static int scan_value(struct scanner *s, int mark);

/* Scans from the opening quote to after the closing one. */
static int scan_string(struct scanner *s)
{
    struct rm_text_place open = s->place;
    step(s);
    for (;;) {
        int c = peek(s);
        if (c < 0)
            return refuse(s, open, "this string has no closing '\"'");
        if (c == '\n')
            return refuse(s, open, "this string has no closing '\"' on its line");
        if (c < 0x20)
            return refuse(s, s->place, "a control character in a string; write it as \\u00XX");
        if (c == '"') {
            step(s);
            return 0;
        }
        if (c == '\\') {
            struct rm_text_place slash = s->place;
            step(s);
            c = peek(s);
            if (c < 0 || !strchr("\"\\/bfnrtu", c))
                return refuse(s, slash, "'\\' must be followed by one of \" \\ / b f n r t u");
            if (c == 'u')
                for (int i = 1; i <= 4; i++)
                    if (s->at + (size_t)i >= s->source->bytes ||
                        !strchr("0123456789abcdefABCDEF", here(s)[i]))
                        return refuse(s, slash, "'\\u' must be followed by four hex digits");
        }
        step(s);
    }
}

static void skip_digits(struct scanner *s, size_t *count)
{
    for (*count = 0; peek(s) >= '0' && peek(s) <= '9'; ++*count)
        step(s);
}

static int scan_number(struct scanner *s)
{
    struct rm_text_place start = s->place;
    size_t from = s->at, digits, more;
    bool integer = true;

    if (peek(s) == '-')
        step(s);
    bool zero = peek(s) == '0';
    skip_digits(s, &digits);
    if (digits == 0)
        return refuse(s, start,
                      peek(s) == 'I' || peek(s) == 'i'
                          ? "infinity is not a JSON number; write a finite one"
                          : "'-' must be followed by a digit");
    if (zero && digits > 1)
        return refuse(s, start, "a number must not begin with 0");
    if (peek(s) == '.') {
        integer = false;
        step(s);
        skip_digits(s, &more);
        if (more == 0)
            return refuse(s, start, "a digit must follow the decimal point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        integer = false;
        step(s);
        if (peek(s) == '+' || peek(s) == '-')
            step(s);
        skip_digits(s, &more);
        if (more == 0)
            return refuse(s, start, "a digit must follow the exponent's 'e'");
    }

    char number[64];
    size_t n = s->at - from;
    if (n >= sizeof(number))
        return refuse(s, start, "a number of more than 63 characters");
    memcpy(number, s->source->text + from, n);
    number[n] = 0;
    errno = 0;
    if (integer) {
        (void)strtoll(number, NULL, 10);
        if (errno == ERANGE)
            return refuse(s, start, "the number does not fit into 64 bits");
    } else if (isinf(strtod(number, NULL))) {
        return refuse(s, start, "the number is too large for a double");
    }
    return 0;
}

/* true, false, null; with clear messages for the words of other notations. */
static int scan_word(struct scanner *s)
{
    static const char *const valid[] = {"true", "false", "null", NULL};
    static const struct {
        const char *word, *what;
    } others[] = {
        {"NaN", "NaN is not a JSON number; write a finite one"},
        {"nan", "NaN is not a JSON number; write a finite one"},
        {"Infinity", "infinity is not a JSON number; write a finite one"},
        {"inf", "infinity is not a JSON number; write a finite one"},
        {"True", "True is not JSON; write true"},
        {"False", "False is not JSON; write false"},
        {"None", "None is not JSON; write null, or leave the key out"},
    };
    struct rm_text_place start = s->place;
    size_t from = s->at;
    int c;

    while (((c = peek(s)) >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_')
        step(s);
    size_t n = s->at - from;
    const char *word = s->source->text + from;
    for (size_t i = 0; valid[i]; i++)
        if (n == strlen(valid[i]) && !memcmp(word, valid[i], n))
            return 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (n == strlen(others[i].word) && !memcmp(word, others[i].word, n))
            return refuse(s, start, others[i].what);
    return refuse(s, start, "a word without quotes; text goes between double quotes");
}

static int add_mark(struct scanner *s, struct rm_mark mark)
{
    struct rm_source *source = s->source;
    if (source->mark_count == source->mark_room) {
        size_t room = source->mark_room ? 2 * source->mark_room : 128;
        struct rm_mark *marks = realloc(source->marks, room * sizeof(*marks));
        if (!marks)
            return rm_fail(s->error, -ENOMEM, "%s: out of memory", source->name);
        source->marks = marks;
        source->mark_room = room;
    }
    source->marks[source->mark_count] = mark;
    return (int)source->mark_count++;
}

/* A key with its colon. Fills all of *mark but its value. */
static int scan_key(struct scanner *s, struct rm_mark *mark, int last)
{
    char what[160];
    if (peek(s) == '\'')
        return refuse(s, s->place, "keys go between double quotes");
    if (peek(s) == '/' || peek(s) == '#')
        return refuse(s, s->place, "JSON has no comments; use a key \"//\" with text");
    if (peek(s) != '"')
        return refuse(s, s->place, "a key between double quotes is expected here");
    mark->key = s->place;
    mark->key_at = (uint32_t)s->at + 1;
    int rc = scan_string(s);
    if (rc)
        return rc;
    mark->key_bytes = (uint32_t)s->at - 1 - mark->key_at;
    if (mark->key_bytes > RM_SOURCE_KEY_BYTES) {
        snprintf(what, sizeof(what), "a key of %u bytes; at most %d", mark->key_bytes,
                 RM_SOURCE_KEY_BYTES);
        return refuse(s, mark->key, what);
    }
    mark->before = last;
    int count = 1;
    for (int i = last; i >= 0; i = s->source->marks[i].before, count++) {
        const struct rm_mark *other = &s->source->marks[i];
        if (other->key_bytes == mark->key_bytes &&
            !memcmp(s->source->text + other->key_at, s->source->text + mark->key_at,
                    mark->key_bytes)) {
            snprintf(what, sizeof(what), "\"%.*s\": the same key is already at line %u, column %u",
                     (int)mark->key_bytes, s->source->text + mark->key_at, other->key.line,
                     other->key.column);
            return refuse(s, mark->key, what);
        }
    }
    if (count > RM_SOURCE_KEYS_MAX) {
        snprintf(what, sizeof(what), "an object of more than %d keys", RM_SOURCE_KEYS_MAX);
        return refuse(s, mark->key, what);
    }
    skip_space(s);
    if (peek(s) != ':')
        return refuse(s, s->place,
                      peek(s) == '=' ? "':' is expected here, not '='"
                                     : "':' is expected after the key");
    step(s);
    return 0;
}

/* An object or list; `self` is its mark. */
static int scan_group(struct scanner *s, int self, char close)
{
    struct rm_text_place open = s->place;
    bool element = close == ']';
    int last = -1, rc;

    if (++s->depth > RM_SOURCE_DEPTH_MAX) {
        char what[80];
        snprintf(what, sizeof(what), "objects and lists are nested more than %d deep",
                 RM_SOURCE_DEPTH_MAX);
        return refuse(s, open, what);
    }
    step(s);
    skip_space(s);
    for (uint32_t index = 0; peek(s) != close || index > 0; index++) {
        struct rm_mark mark = {.parent = self, .before = -1, .index = index, .element = element};
        if (index > 0 && peek(s) == close)
            return refuse(s, s->place, element ? "a comma before ']'" : "a comma before '}'");
        if (peek(s) < 0)
            return refuse(s, open, element ? "this '[' has no ']'" : "this '{' has no '}'");
        if (!element && (rc = scan_key(s, &mark, last)))
            return rc;
        skip_space(s);
        mark.value = s->place;
        if (element)
            mark.key = mark.value;
        int added = add_mark(s, mark);
        if (added < 0)
            return added;
        if (!element)
            last = added;
        if ((rc = scan_value(s, added)))
            return rc;
        skip_space(s);
        if (peek(s) == close)
            break;
        if (peek(s) < 0)
            return refuse(s, open, element ? "this '[' has no ']'" : "this '{' has no '}'");
        if (peek(s) == '/' || peek(s) == '#')
            return refuse(s, s->place, "JSON has no comments; use a key \"//\" with text");
        if (peek(s) != ',')
            return refuse(s, s->place,
                          element ? "',' or ']' is expected here" : "',' or '}' is expected here");
        step(s);
        skip_space(s);
    }
    step(s);
    s->depth--;
    return 0;
}

static int scan_value(struct scanner *s, int mark)
{
    int c = peek(s);
    if (c == '{')
        return scan_group(s, mark, '}');
    if (c == '[')
        return scan_group(s, mark, ']');
    if (c == '"')
        return scan_string(s);
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return scan_word(s);
    return refuse(s, s->place,
                  c < 0                  ? "the file ends where a value is expected"
                  : c == '\''            ? "text goes between double quotes"
                  : c == '+'             ? "a number must not begin with '+'"
                  : c == '.'             ? "a number must not begin with '.'"
                  : c == '/' || c == '#' ? "JSON has no comments; use a key \"//\" with text"
                                         : "a value is expected here");
}

int rm_source_scan(struct rm_source *source, struct rm_error *error)
{
    struct scanner s = {.source = source, .place = {1, 1}, .error = error};
    int rc;

    source->mark_count = 0;
    if (source->bytes > RM_SOURCE_BYTES_MAX)
        return rm_fail(error, -EINVAL, "%s: %zu bytes; an experiment has at most %d", source->name,
                       source->bytes, RM_SOURCE_BYTES_MAX);
    if ((rc = check_encoding(&s)))
        return rc;
    skip_space(&s);
    source->root = s.place;
    if (peek(&s) < 0)
        return refuse(&s, s.place, "the file is empty; an experiment is a JSON object {...}");
    if (peek(&s) == '/' || peek(&s) == '#')
        return refuse(&s, s.place, "JSON has no comments; use a key \"//\" with text");
    if (peek(&s) != '{')
        return refuse(&s, s.place, "an experiment is a JSON object and begins with '{'");
    if ((rc = scan_value(&s, -1)))
        return rc;
    skip_space(&s);
    if (peek(&s) >= 0)
        return refuse(&s, s.place, "something follows the closing '}'");
    return 0;
}

void rm_source_close(struct rm_source *source)
{
    free(source->marks);
    source->marks = NULL;
    source->mark_count = source->mark_room = 0;
}

/* Is mark `m` the path component at *path? Then moves *path behind it. */
static bool takes(const struct rm_source *source, const struct rm_mark *m, const char **path)
{
    const char *p = *path;
    if (m->element) {
        char index[16];
        size_t n = (size_t)snprintf(index, sizeof(index), "[%u]", m->index);
        if (strncmp(p, index, n) != 0)
            return false;
        p += n;
    } else {
        if (m->parent >= 0 && *p++ != '.')
            return false;
        if (strncmp(p, source->text + m->key_at, m->key_bytes) != 0)
            return false;
        p += m->key_bytes;
        if (*p && *p != '.' && *p != '[')
            return false;
    }
    *path = p;
    return true;
}

bool rm_source_find(const struct rm_source *source, const char *path, bool key,
                    struct rm_text_place *place)
{
    if (!source->name)
        return false;
    *place = source->root;
    int parent = -1;
    /* Members follow their object in the list of marks, so one forward pass resolves the whole
     * path. */
    for (size_t i = 0; i < source->mark_count && *path; i++) {
        const struct rm_mark *m = &source->marks[i];
        if (m->parent == parent && takes(source, m, &path)) {
            parent = (int)i;
            *place = key ? m->key : m->value;
            if (*path)
                *place = m->value;
        }
    }
    return true;
}
