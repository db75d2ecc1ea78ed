/* What programs that write learners' numbers for tests/oracle have in common: an experiment in the
 * corridor, made from a few words of JSON, and two files: NAME.json has the resolved experiment,
 * the tensors and the names and lengths of the arrays, NAME.f32 the arrays, one after the other.
 * They say what is wrong and exit: these are no tests. */
#ifndef RM_TESTS_SUPPORT_DUMP_H
#define RM_TESTS_SUPPORT_DUMP_H

#include "actor/worlds/worlds.h"
#include "shm/session/session.h"
#include "learner/net/net.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* What stands between the braces of these sections; of "sample" and "priority" what is no default,
 * with a comma after it in the first. */
struct rm_test_dump_sample {
    const char *name, *algorithm, *network, *optimizer, *sample, *priority;
};

#define RM_DUMP_TWO_LAYERS                                                                         \
    "\"layers\": [{\"type\": \"linear\", \"units\": 16}, {\"type\": \"tanh\"},"                    \
    " {\"type\": \"linear\", \"units\": 12}, {\"type\": \"tanh\"}]"
#define RM_DUMP_RECURRENT(cell)                                                                    \
    "\"layers\": [{\"type\": \"linear\", \"units\": 8}, {\"type\": \"tanh\"},"                     \
    " {\"type\": \"" cell "\", \"units\": 6}]"
#define RM_DUMP_QUANTILES                                                                          \
    "\"layers\": [{\"type\": \"linear\", \"units\": 16}, {\"type\": \"tanh\"},"                    \
    " {\"type\": \"cosine_embedding\", \"cosines\": 16}]"
#define RM_DUMP_DUELING  ", \"head\": {\"dueling\": true}"
#define RM_DUMP_SEPARATE ", \"trunk\": \"separate\""
#define RM_DUMP_SHARED   ", \"trunk\": \"shared\""

struct rm_test_dump {
    struct rm_backend *backend;
    struct rm_session session;
    struct rm_world world;
    struct rm_env *env;
    json_t *arrays;
    FILE *file;
};

_Noreturn void rm_test_dump_fail(const char *what);

/* The corridor with masks and so many choices a step, 0: the pendulum, whose actions are real; and
 * the files. */
void rm_test_dump_open(struct rm_test_dump *d, const struct rm_test_dump_sample *sample,
                       int choices, const char *directory);
/* `more` is taken over: members of NAME.json. */
void rm_test_dump_close(struct rm_test_dump *d, const struct rm_test_dump_sample *sample,
                        const struct rm_net *net, const char *directory, json_t *more);

/* Array "NAME.number": of floats, of the backend's memory, of numbers of any type. */
void rm_test_dump_put(struct rm_test_dump *d, const char *name, uint64_t number, const float *x,
                      size_t n);
void rm_test_dump_arena(struct rm_test_dump *d, const char *name, uint64_t number,
                        const float *arena, size_t n);
#define RM_TEST_DUMP_NUMBERS(d, name, number, x, n)                                                \
    do {                                                                                           \
        float *as = calloc((n) + 1, sizeof *as);                                                   \
        for (size_t k = 0; as && k < (n); k++)                                                     \
            as[k] = (float)(x)[k];                                                                 \
        if (!as)                                                                                   \
            rm_test_dump_fail("out of memory");                                                    \
        rm_test_dump_put(d, name, number, as, n);                                                  \
        free(as);                                                                                  \
    } while (0)

json_t *rm_test_dump_tensors(const struct rm_net *net);

#endif
