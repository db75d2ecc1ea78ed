#include "daemon/web/pages.h"

#include "daemon/web/openmetrics.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json; charset=utf-8"

/* What a browser may have executed. */
static const char *const commands[] = {"pause", "resume", "set", "evaluate", "checkpoint", "stop"};

static void write_json(FILE *out, json_t *value)
{
    json_dumpf(value, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    json_decref(value);
}

static unsigned refuse(FILE *out, unsigned status, const char *text)
{
    write_json(out, json_pack("{s:s}", "error", text));
    return status;
}

/* A member of the status, null if there is none. */
static json_t *member(const struct rm_web_run *run, const char *key)
{
    json_t *value = json_object_get(run->status, key);
    return value ? json_incref(value) : json_null();
}

static unsigned write_runs(const struct rm_web_pages *pages, FILE *out)
{
    static const char *const shown[] = {"state", "mode",  "version",    "uptime_s", "progress",
                                        "rates", "score", "evaluation", "seed"};
    json_t *all = json_array();
    for (size_t i = 0; i < pages->runs.count; i++) {
        const struct rm_web_run *run = pages->runs.run[i];
        json_t *one = json_pack("{s:s,s:s}", "name", run->name, "why", run->why);
        for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
            json_object_set_new(one, shown[k], member(run, shown[k]));
        json_array_append_new(all, one);
    }
    write_json(out, json_pack("{s:o,s:b,s:s,s:o}", "runs", all, "control", pages->control,
                              "version", RM_VERSION, "gpus", rm_gpus_json(&pages->gpus)));
    return 200;
}

static unsigned write_run(struct rm_web_run *run, FILE *out)
{
    json_t *log = run->status ? rm_web_run_log(run) : NULL;
    json_t *explained = run->status ? json_incref((json_t *)rm_web_run_explain(run)) : json_null();
    write_json(out,
               json_pack("{s:s,s:s,s:O?,s:o,s:o}", "name", run->name, "why", run->why, "status",
                         run->status, "explain", explained, "log", log ? log : json_null()));
    return 200;
}

/* All curves of a run, or its score alone. */
static void write_curve(struct rm_web_run *run, bool whole, FILE *out)
{
    const char *directory = rm_web_run_directory(run);
    if (directory)
        rm_web_curves_read(&run->curves, RM_WEB_CURVES_RUN, directory);
    if (directory && whole)
        rm_web_curves_read(&run->losses, RM_WEB_CURVES_LOSSES, directory);
    fputs("{\"name\":", out);
    write_json(out, json_string(run->name));
    fprintf(out, ",\"rows\":%zu,\"series\":[", run->curves.count);
    const bool begun = rm_web_curves_write(&run->curves, whole ? NULL : "score_last", false, out);
    if (whole)
        rm_web_curves_write(&run->losses, NULL, begun, out);
    fputs("]}", out);
}

static unsigned write_curves(const struct rm_web_pages *pages, struct rm_web_run *one, FILE *out)
{
    fputs("{\"runs\":[", out);
    if (one)
        write_curve(one, true, out);
    for (size_t i = 0; !one && i < pages->runs.count; i++) {
        fputs(i ? "," : "", out);
        write_curve(pages->runs.run[i], false, out);
    }
    fputs("]}", out);
    return 200;
}

static bool is_allowed(const char *command)
{
    for (size_t i = 0; command && i < sizeof commands / sizeof commands[0]; i++)
        if (!strcmp(command, commands[i]))
            return true;
    return false;
}

static unsigned execute(struct rm_web_pages *pages, const char *body, FILE *out)
{
    struct rm_error error = {""};
    json_t *request = json_loads(body, JSON_REJECT_DUPLICATES, NULL), *reply = NULL;
    const char *name = json_string_value(json_object_get(request, "run"));
    const char *command = json_string_value(json_object_get(request, "command"));
    const struct rm_web_run *run = name ? rm_web_run_find(&pages->runs, name) : NULL;
    unsigned status = 200;
    if (!request || !name || !is_allowed(command)) {
        status = refuse(out, 400,
                        "give \"run\" and \"command\": pause, resume, set, evaluate, "
                        "checkpoint or stop");
    } else if (!run) {
        status = refuse(out, 404, "there is no such experiment");
    } else if (rm_web_run_command(run, command, json_incref(json_object_get(request, "arguments")),
                                  &reply, &error)) {
        status = refuse(out, 409, error.text);
    } else {
        write_json(out, json_pack("{s:O}", "return", reply));
        pages->runs.asked_ns = 0; /* the next answer shows what it did */
    }
    json_decref(reply);
    json_decref(request);
    return status;
}

static unsigned write_page(struct rm_web_pages *pages, const struct rm_web_question *q, FILE *out)
{
    const bool of_one = q->page == RM_PAGE_RUN || (q->page == RM_PAGE_CURVES && q->name[0]);
    rm_web_runs_refresh(&pages->runs);
    rm_gpus_read(&pages->gpus);
    struct rm_web_run *run = of_one ? rm_web_run_find(&pages->runs, q->name) : NULL;
    if (of_one && !run) { /* it ended while a page shows it: no error of that page */
        write_json(out, json_pack("{s:[],s:n,s:s}", "runs", "status", "why", "it is not running"));
        return 200;
    }
    switch (q->page) {
    case RM_PAGE_METRICS:
    case RM_PAGE_PLAIN_METRICS:
        rm_openmetrics_write(&pages->runs, &pages->gpus,
                             q->page == RM_PAGE_METRICS ? RM_OPENMETRICS : RM_PLAIN_TEXT, out);
        return 200;
    case RM_PAGE_RUNS:
        return write_runs(pages, out);
    case RM_PAGE_RUN:
        return write_run(run, out);
    case RM_PAGE_CURVES:
        return write_curves(pages, run, out);
    case RM_PAGE_COMMAND:
        return execute(pages, q->body, out);
    }
    return refuse(out, 404, "there is no such page");
}

static const char *type_of(enum rm_web_page page)
{
    return page == RM_PAGE_METRICS         ? rm_exposition_type(RM_OPENMETRICS)
           : page == RM_PAGE_PLAIN_METRICS ? rm_exposition_type(RM_PLAIN_TEXT)
                                           : JSON_TYPE;
}

static void make(struct rm_web_pages *pages, const struct rm_web_question *q,
                 struct rm_web_answer *answer)
{
    *answer = (struct rm_web_answer){.type = type_of(q->page)};
    FILE *out = open_memstream(&answer->body, &answer->bytes);
    if (!out)
        return;
    answer->status = write_page(pages, q, out);
    const bool failed = ferror(out);
    if (fclose(out) || failed) {
        free(answer->body);
        answer->body = NULL;
    }
}

static void copy(struct rm_web_answer *to, const struct rm_web_answer *from)
{
    *to = *from;
    to->body = from->body ? malloc(from->bytes + 1) : NULL;
    if (to->body)
        memcpy(to->body, from->body, from->bytes + 1);
}

static void forget(struct rm_web_pages *pages)
{
    for (size_t i = 0; i < RM_WEB_CACHED; i++) {
        free(pages->cache[i].answer.body);
        pages->cache[i].answer.body = NULL;
    }
}

void rm_web_answer(struct rm_web_pages *pages, const struct rm_web_question *q,
                   struct rm_web_answer *answer)
{
    size_t oldest = 0;
    if (q->page == RM_PAGE_COMMAND) {
        make(pages, q, answer);
        forget(pages);
        return;
    }
    for (size_t i = 0; i < RM_WEB_CACHED; i++) {
        if (pages->cache[i].at_ns < pages->cache[oldest].at_ns)
            oldest = i;
        if (pages->cache[i].answer.body && pages->cache[i].page == q->page &&
            !strcmp(pages->cache[i].name, q->name) &&
            rm_now_ns() - pages->cache[i].at_ns < RM_WEB_FRESH_NS) {
            copy(answer, &pages->cache[i].answer);
            return;
        }
    }
    make(pages, q, answer);
    if (q->name[0] && !rm_web_run_find(&pages->runs, q->name))
        return; /* names of nothing do not push answers out */
    free(pages->cache[oldest].answer.body);
    pages->cache[oldest].page = q->page;
    pages->cache[oldest].at_ns = rm_now_ns();
    memcpy(pages->cache[oldest].name, q->name, sizeof q->name);
    copy(&pages->cache[oldest].answer, answer);
}

void rm_web_pages_free(struct rm_web_pages *pages)
{
    forget(pages);
    rm_web_runs_free(&pages->runs);
    rm_gpus_close(&pages->gpus);
}
