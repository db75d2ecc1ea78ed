#include "actor/worlds/builtin/prover_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rm_prover_text_fail(struct rm_prover_text *text, const char *format, ...)
{
    va_list args;
    int used = snprintf(text->error, text->error_size, "%s:%u: ", text->where, text->line);
    if (used >= 0 && (size_t)used < text->error_size) {
        va_start(args, format);
        vsnprintf(text->error + used, text->error_size - (size_t)used, format, args);
        va_end(args);
    }
    return -EINVAL;
}

/* --- files ------------------------------------------------------------------------------------ */

void rm_prover_text_hold(struct rm_prover_text *text, char *bytes, size_t size, const char *where,
                         enum rm_prover_dialect dialect, char *error, size_t error_size)
{
    *text = (struct rm_prover_text){
        .bytes = bytes, .size = size, .dialect = dialect, .error = error, .error_size = error_size};
    rm_text_file_name(where, text->where);
}

void rm_prover_text_close(struct rm_prover_text *text)
{
    free(text->bytes);
    text->bytes = NULL;
}

int rm_prover_text_open(struct rm_prover_text *text, const char *path,
                        enum rm_prover_dialect dialect, bool optional, char *error,
                        size_t error_size)
{
    rm_prover_text_hold(text, NULL, 0, path, dialect, error, error_size);
    if (optional && access(path, F_OK) < 0 && errno == ENOENT)
        return -ENOENT;
    return rm_text_file_read(path, RM_PROVER_TEXT_MAX, &text->bytes, &text->size, error,
                             error_size);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip(char **at)
{
    while (blank(**at))
        ++*at;
}

/* The next line without its end, NUL-terminated. Returns false after the last. */
static bool next_line(struct rm_prover_text *text, char **line)
{
    if (text->at >= text->size)
        return false;
    char *begin = text->bytes + text->at, *end = memchr(begin, '\n', text->size - text->at);
    const size_t length = end ? (size_t)(end - begin) : text->size - text->at;
    text->at += length + (end != NULL);
    text->line++;
    begin[length] = 0;
    if (length && begin[length - 1] == '\r')
        begin[length - 1] = 0;
    *line = begin;
    return true;
}

/* A byte of a name that may stand bare. Bytes of other scripts are none. */
static bool word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool nothing_left(char *at)
{
    skip(&at);
    return *at == 0 || *at == '%';
}

/* A quoted name at *at, written back without its quotes. */
static int read_quoted(struct rm_prover_text *text, char **at, const char **name)
{
    char *from = *at + 1, *to = from;
    *name = from;
    for (; *from && !(from[0] == '\'' && from[1] != '\''); from++) {
        from += *from == '\''; /* two stand for one */
        *to++ = *from;
    }
    if (!*from)
        return rm_prover_text_fail(text, "a quoted name has no end; it ends with '");
    *to = 0;
    *at = from + 1;
    if (!**name)
        return rm_prover_text_fail(text, "a name is empty");
    return 0;
}

/* A name or variable as Prolog writes them. A bare name is not ended with NUL yet: *end is where,
 * once what follows has been looked at; NULL: it is. */
static int read_name(struct rm_prover_text *text, char **at, struct rm_prover_name *name,
                     char **end)
{
    skip(at);
    char *begin = *at;
    *end = NULL;
    name->variable = false;
    if (*begin == '\'')
        return read_quoted(text, at, &name->text);
    while (word_byte(**at))
        ++*at;
    if (!*begin)
        return rm_prover_text_fail(text, "a name is expected at the end of the line");
    if (*at == begin)
        return rm_prover_text_fail(text,
                                   "a name is expected at '%.20s'; a name with other characters "
                                   "than letters, digits and _ needs quotes: 'so'",
                                   begin);
    name->variable = *begin == '_' || (*begin >= 'A' && *begin <= 'Z');
    name->text = begin;
    *end = *at;
    return 0;
}

/* pred(arg,arg) */
static int read_literal(struct rm_prover_text *text, char **at, struct rm_prover_literal *literal)
{
    struct rm_prover_name name = {.text = NULL};
    char *end, sign;
    int rc = read_name(text, at, &name, &end);
    if (rc < 0)
        return rc;
    if (name.variable)
        return rm_prover_text_fail(text,
                                   "a predicate is called '%.*s', which is a variable: names "
                                   "begin with a small letter, or stand in quotes",
                                   (int)(end - name.text), name.text);
    literal->name = name.text;
    sign = **at;
    if (end)
        *end = 0;
    if (sign != '(')
        return rm_prover_text_fail(text, "'%s' should be followed by its arguments, as in %s(a,b)",
                                   literal->name, literal->name);
    for (literal->arity = 0; sign == '(' || sign == ','; literal->arity++) {
        struct rm_prover_name arg = {.text = NULL};
        ++*at;
        rc = read_name(text, at, &arg, &end);
        if (rc < 0)
            return rc;
        skip(at);
        sign = **at;
        if (end)
            *end = 0;
        if (sign == '(')
            return rm_prover_text_fail(
                text, "an argument of %s is the term %s(...); arguments are names and variables",
                literal->name, arg.text);
        if (literal->arity < 2)
            literal->arg[literal->arity] = arg;
    }
    if (sign != ')')
        return rm_prover_text_fail(text, "the arguments of %s should end with ), not with '%c'",
                                   literal->name, sign ? sign : ' ');
    ++*at;
    if (literal->arity > 2)
        return rm_prover_text_fail(text, "%s has %u arguments; a predicate has 1 or 2",
                                   literal->name, literal->arity);
    return 0;
}

/* --- dialects --------------------------------------------------------------------------------- */

static int too_long(struct rm_prover_text *text)
{
    return rm_prover_text_fail(text, "a rule with more than %d atoms in its body", RM_PROVER_BODY);
}

static int read_prolog(struct rm_prover_text *text, char *at, struct rm_prover_clause *clause)
{
    int rc = read_literal(text, &at, &clause->head);
    if (rc < 0)
        return rc;
    skip(&at);
    clause->bodies = 0;
    for (bool more = at[0] == ':' && at[1] == '-'; more; more = *at == ',') {
        at += *at == ':' ? 2 : 1;
        if (clause->bodies == RM_PROVER_BODY)
            return too_long(text);
        rc = read_literal(text, &at, &clause->body[clause->bodies++]);
        if (rc < 0)
            return rc;
        skip(&at);
    }
    if (nothing_left(at))
        return rm_prover_text_fail(
            text, "a clause is one line that ends with a dot; this one, of %s, has none",
            clause->head.name);
    if (*at != '.' || !nothing_left(at + 1))
        return rm_prover_text_fail(text,
                                   "a clause is one line that ends with a dot; after %s it "
                                   "goes on with '%.20s'",
                                   clause->head.name, at);
    return 0;
}

static int read_query(struct rm_prover_text *text, char *at, struct rm_prover_clause *clause)
{
    char *end;
    int rc = read_literal(text, &at, &clause->head);
    if (rc < 0)
        return rc;
    clause->bodies = 0;
    at += *at == '.';
    if (!nothing_left(at)) {
        /* How deep a known proof is. Nothing here needs it. */
        const long depth = blank(*at) ? strtol(at, &end, 10) : -2;
        if (depth < -1 || end == at || !nothing_left(end))
            return rm_prover_text_fail(text,
                                       "only a dot, a blank and the depth of its proof (-1: "
                                       "unknown) may follow a query, not '%.20s'",
                                       at);
    }
    return 0;
}

/* A name up to one of `ends`, without blanks around it. Returns where it ended; NULL: there is
 * nothing before it, or none of the ends follows. */
static char *cut_name(char *at, const char *ends, char *sign, const char **name)
{
    skip(&at);
    char *end = at + strcspn(at, ends), *last = end;
    *sign = *end;
    while (last > at && blank(last[-1]))
        last--;
    *name = at;
    if (last == at || !*end)
        return NULL;
    *last = 0;
    return end + 1;
}

/* b1(x,z), arguments are variables whatever they look like. Returns where it ended, or NULL. */
static char *read_arrow_literal(struct rm_prover_text *text, char *at,
                                struct rm_prover_literal *literal)
{
    char sign;
    at = cut_name(at, "(", &sign, &literal->name);
    literal->arity = 0;
    for (; at && sign != ')'; literal->arity++) {
        struct rm_prover_name arg = {.variable = true};
        at = cut_name(at, ",()", &sign, &arg.text);
        if (at && sign == '(')
            at = NULL;
        if (literal->arity < 2)
            literal->arg[literal->arity] = arg;
    }
    if (!at) {
        rm_prover_text_fail(
            text,
            "a rule is written id:confidence:b1(x,z), b2(z,y) -> h(x,y), but this line is not");
        return NULL;
    }
    if (literal->arity > 2) {
        rm_prover_text_fail(text, "%s has %u arguments; a predicate has 1 or 2", literal->name,
                            literal->arity);
        return NULL;
    }
    skip(&at);
    return at;
}

static int read_arrow(struct rm_prover_text *text, char *at, struct rm_prover_clause *clause)
{
    char *colon = strchr(at, ':'), *arrow = NULL;
    colon = colon ? strchr(colon + 1, ':') : NULL;
    for (char *found = colon; found && (found = strstr(found, "->")); found += 2)
        arrow = found;
    if (!arrow)
        return rm_prover_text_fail(
            text,
            "a rule is written id:confidence:b1(x,z), b2(z,y) -> h(x,y), but this line is not");
    *arrow = 0;
    clause->bodies = 0;
    at = colon + 1;
    do {
        at += *at == ',';
        if (clause->bodies == RM_PROVER_BODY)
            return too_long(text);
        at = read_arrow_literal(text, at, &clause->body[clause->bodies++]);
        if (!at)
            return -EINVAL;
    } while (*at == ',');
    if (*at)
        return rm_prover_text_fail(
            text, "a comma is expected between the atoms of a body, not '%.20s'", at);
    at = read_arrow_literal(text, arrow + 2, &clause->head);
    if (at && *at)
        return rm_prover_text_fail(text, "a rule ends with its head, but '%.20s' follows", at);
    return at ? 0 : -EINVAL;
}

static int read_tsv(struct rm_prover_text *text, char *at, struct rm_prover_clause *clause)
{
    char *field[3] = {at, NULL, NULL};
    uint32_t fields = 1;
    for (; *at; at++)
        if (*at == '\t' && fields++ < 3) {
            *at = 0;
            field[fields - 1] = at + 1;
        }
    if (fields != 3 || !*field[0] || !*field[1] || !*field[2])
        return rm_prover_text_fail(text,
                                   "a line is head, relation and tail with tabs between them, but "
                                   "this line has %u fields, or an empty one",
                                   fields);
    *clause = (struct rm_prover_clause){
        .head = {.name = field[1], .arity = 2, .arg = {{.text = field[0]}, {.text = field[2]}}}};
    return 0;
}

static int (*const readers[RM_PROVER_DIALECT_COUNT])(struct rm_prover_text *, char *,
                                                     struct rm_prover_clause *) = {
    [RM_PROVER_PROLOG] = read_prolog,
    [RM_PROVER_QUERY] = read_query,
    [RM_PROVER_ARROW] = read_arrow,
    [RM_PROVER_TSV] = read_tsv,
};

/* The next line that says something: comments are Prolog's, so triples and arrows have none. */
static bool next_content(struct rm_prover_text *text, char **line)
{
    const bool foreign = text->dialect == RM_PROVER_TSV || text->dialect == RM_PROVER_ARROW;
    while (next_line(text, line)) {
        char *at = *line;
        skip(&at);
        const bool directive = text->dialect == RM_PROVER_PROLOG && at[0] == ':' && at[1] == '-';
        if (*at && !directive && (foreign || *at != '%')) {
            *line = foreign ? *line : at;
            return true;
        }
    }
    return false;
}

int rm_prover_text_clause(struct rm_prover_text *text, struct rm_prover_clause *clause)
{
    char *line;
    if (!next_content(text, &line))
        return 0;
    const int rc = readers[text->dialect](text, line, clause);
    return rc < 0 ? rc : 1;
}

int rm_prover_text_line(struct rm_prover_text *text, char **line)
{
    return next_content(text, line);
}

int rm_prover_text_name(struct rm_prover_text *text, char **line, const char **name)
{
    *name = NULL;
    if (nothing_left(*line))
        return 0;
    skip(line);
    if (**line == '\'')
        return read_quoted(text, line, name);
    *name = *line;
    *line += strcspn(*line, " \t");
    if (**line)
        *(*line)++ = 0;
    return 0;
}

size_t rm_prover_text_write(const char *name, char *text, size_t size)
{
    bool bare = *name >= 'a' && *name <= 'z';
    size_t used = 0;
    for (const char *c = name; bare && *c; c++)
        bare = word_byte(*c);
    if (bare) {
        const int length = snprintf(text, size, "%s", name);
        return length < 0 ? 0 : (size_t)length;
    }
#define PUT(c) ((void)(used + 1 < size ? (text[used] = (c)) : 0), used++)
    PUT('\'');
    for (; *name; name++) {
        if (*name == '\'')
            PUT('\'');
        PUT(*name);
    }
    PUT('\'');
#undef PUT
    if (size)
        text[used < size ? used : size - 1] = 0;
    return used;
}
