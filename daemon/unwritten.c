#include "daemon/unwritten.h"

#include "shm/base/clock.h"

#include <string.h>
#include <unistd.h>

static const char *name_of(const struct rm_unwritten *u, int fd)
{
    const struct {
        int fd;
        const char *name;
    } known[] = {
        {u->log->fd, "log.txt"},
        {u->metrics->csv_fd, "metrics.csv"},
        {u->metrics->board.fd, "the events of TensorBoard"},
        {u->kept->fd, "settings.jsonl"},
        {STDOUT_FILENO, "standard output"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].fd == fd)
            return known[i].name;
    return "standard error";
}

void rm_unwritten_log(void *unwritten)
{
    struct rm_unwritten *u = unwritten;
    const struct rm_writer_counts files = rm_writer_counts(u->log->files),
                                  echoes = rm_writer_counts(u->log->echoes);
    const uint64_t failed = files.failed + echoes.failed, lost = files.lost + echoes.lost;
    const uint64_t now = rm_now_ns();
    if ((failed == u->failed && lost == u->lost) || (u->at_ns && now - u->at_ns < RM_LOG_WINDOW_NS))
        return;
    const struct rm_writer_counts *latest = files.failed ? &files : &echoes;
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    char why[160] = "";
    if (failed > u->failed) {
        snprintf(why, sizeof why, " (the latest to %s: %s)", name_of(u, latest->failure_fd),
                 strerror(-latest->failure));
        fields.error = strerror(-latest->failure);
    }
    const unsigned long long failures = failed - u->failed, losses = lost - u->lost;
    u->failed = failed;
    u->lost = lost;
    u->at_ns = now;
    rm_log_message(u->log, RM_LOG_WARNING, RM_MESSAGE_UNWRITTEN, &fields,
                   "lines and rows that could not be written: %llu%s; dropped because writing took "
                   "too long: %llu; training continues",
                   failures, why, losses);
}
