/* pages: answers requests that need the experiments: metrics, data for the page, commands. Used by
 * the thread that asks the experiments; the thread that serves HTTP waits for the answer. */
#ifndef RM_DAEMON_WEB_PAGES_H
#define RM_DAEMON_WEB_PAGES_H

#include "daemon/web/gpus.h"
#include "daemon/web/runs.h"

#include <stdint.h>

enum rm_web_page {
    RM_PAGE_METRICS = 0,
    RM_PAGE_PLAIN_METRICS,
    RM_PAGE_RUNS,    /* a summary of all experiments */
    RM_PAGE_RUN,     /* one experiment: status, explain, log */
    RM_PAGE_CURVES,  /* the curves of one experiment; of all if `name` is "" */
    RM_PAGE_COMMAND, /* POST: {"run": NAME, "command": COMMAND, "arguments": {..}} */
};

#define RM_WEB_NAME_MAX 256
#define RM_WEB_BODY_MAX 4096 /* bytes of a request's body */
#define RM_WEB_CACHED   16   /* number of answers that are cached, for RM_WEB_FRESH_NS each */

struct rm_web_question {
    enum rm_web_page page;
    char name[RM_WEB_NAME_MAX];
    char body[RM_WEB_BODY_MAX + 1]; /* of a POST */
};

struct rm_web_answer {
    unsigned status; /* of HTTP */
    const char *type;
    char *body; /* the caller's to free; NULL: no memory */
    size_t bytes;
};

struct rm_web_pages {
    struct rm_web_runs runs;
    struct rm_gpus gpus; /* opened by the caller */
    bool control;        /* commands are allowed */
    struct {
        enum rm_web_page page;
        char name[RM_WEB_NAME_MAX];
        uint64_t at_ns;
        struct rm_web_answer answer;
    } cache[RM_WEB_CACHED];
};

void rm_web_answer(struct rm_web_pages *pages, const struct rm_web_question *question,
                   struct rm_web_answer *answer);
void rm_web_pages_free(struct rm_web_pages *pages);

#endif
