/* prover_text: reads the text of a knowledge base line by line. A line is a clause - a fact, a rule
 * or a query - in one of several dialects, or a list of names. Names are not interpreted.
 *
 * Used while a world is created. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_PROVER_TEXT_H
#define RM_ACTOR_WORLDS_BUILTIN_PROVER_TEXT_H

#include "actor/worlds/builtin/text_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RM_PROVER_BODY = 16, /* most atoms of a rule's body */
    RM_PROVER_TEXT_MAX = 1 << 30
};

enum rm_prover_dialect {
    RM_PROVER_PROLOG, /* pred(a,b).  head :- atom, atom. */
    RM_PROVER_QUERY,  /* pred(a,b), perhaps with a dot, perhaps with a depth behind it */
    RM_PROVER_ARROW,  /* id:confidence:b1(x,z), b2(z,y) -> h(x,y), all arguments variables */
    RM_PROVER_TSV,    /* head <tab> relation <tab> tail */
    RM_PROVER_NAMES,  /* name name name */
    RM_PROVER_DIALECT_COUNT
};

/* A text that is being read. The reader owns `bytes` and NUL-terminates names in it. */
struct rm_prover_text {
    char *bytes;
    size_t size, at;
    uint32_t line; /* the line read last, from 1 */
    enum rm_prover_dialect dialect;
    char where[RM_TEXT_NAME]; /* path, for messages */
    char *error;              /* messages go here */
    size_t error_size;
};

struct rm_prover_name {
    const char *text; /* without quotes */
    bool variable;
};

struct rm_prover_literal {
    const char *name;
    uint32_t arity; /* 1, 2 */
    struct rm_prover_name arg[2];
};

struct rm_prover_clause {
    struct rm_prover_literal head;
    uint32_t bodies; /* 0: a fact or a query */
    struct rm_prover_literal body[RM_PROVER_BODY];
};

/* Reads a file whole. 0, or -ENOENT if there is none and it is `optional`, without a message; else
 * a negative errno with one. Messages of the text go to `error` from then on. */
int rm_prover_text_open(struct rm_prover_text *text, const char *path,
                        enum rm_prover_dialect dialect, bool optional, char *error,
                        size_t error_size);

/* The same for bytes in memory. Takes ownership of `bytes`. */
void rm_prover_text_hold(struct rm_prover_text *text, char *bytes, size_t size, const char *where,
                         enum rm_prover_dialect dialect, char *error, size_t error_size);

void rm_prover_text_close(struct rm_prover_text *text);

/* The next clause; its names are valid as long as the text. 1; 0 at the end; or -EINVAL with a
 * message that names file and line. Not for RM_PROVER_NAMES. */
int rm_prover_text_clause(struct rm_prover_text *text, struct rm_prover_clause *clause);

/* The next line of names, which rm_prover_text_name() reads one by one. 1, or 0 at the end. */
int rm_prover_text_line(struct rm_prover_text *text, char **line);

/* The next name of *line, which is advanced; *name is NULL after the last one. 0 or -EINVAL. */
int rm_prover_text_name(struct rm_prover_text *text, char **line, const char **name);

/* Leaves "FILE:LINE: " and a message. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int rm_prover_text_fail(struct rm_prover_text *text,
                                                              const char *format, ...);

/* Writes `name` in Prolog's syntax, quoted if necessary: at most 2 strlen(name) + 3 bytes, with the
 * NUL, truncated to `size`. Returns the bytes of the whole text, without the NUL. */
size_t rm_prover_text_write(const char *name, char *text, size_t size);

#endif
