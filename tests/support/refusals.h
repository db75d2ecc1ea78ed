/* Tables of configurations that are refused, and of what is said of them. Helpers assert; they are
 * called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_REFUSALS_H
#define RM_TESTS_SUPPORT_REFUSALS_H

#include "shm/base/error.h"

#include <stddef.h>

/* A sound file to which each case adds its own line 2. */
#define RM_REFUSAL_WITH(line) "{\"world\": {\"name\": \"cartpole\"},\n" line "}"
/* Before a word: it is an override, "key=value". */
#define RM_REFUSAL_SET "\1"

struct rm_refusal {
    const char *text;     /* of a file, t.json */
    const char *words[5]; /* fragments of the message, and overrides; NULL ends them */
};

/* Every case is refused with all of its words; those that are not are printed. */
void rm_test_refused(const struct rm_refusal *cases, size_t count);

/* Parses one, and returns what the parser does. What is refused leaves the experiment alone. */
int rm_test_refusal_parse(const struct rm_refusal *c, struct rm_error *error);

#endif
