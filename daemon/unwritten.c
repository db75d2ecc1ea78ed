#include "daemon/unwritten.h"

#include "daemon/daemon.h"
#include "shm/base/clock.h"

#include <string.h>
#include <unistd.h>

static const char *name_of(const struct rm_daemon *daemon, int fd)
{
    const struct {
        int fd;
        const char *name;
    } known[] = {
        {daemon->log.fd, "log.txt"},
        {daemon->metrics.csv_fd, "metrics.csv"},
        {daemon->metrics.board.fd, "the events of TensorBoard"},
        {daemon->settings.kept.fd, "settings.jsonl"},
        {STDOUT_FILENO, "standard output"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].fd == fd)
            return known[i].name;
    return "standard error";
}

void rm_daemon_log_unwritten(struct rm_daemon *daemon)
{
    struct rm_unwritten *reported = &daemon->unwritten;
    const struct rm_writer_counts files = rm_writer_counts(&daemon->files),
                                  echoes = rm_writer_counts(&daemon->echoes);
    const uint64_t failed = files.failed + echoes.failed, lost = files.lost + echoes.lost;
    const uint64_t now = rm_now_ns();
    if ((failed == reported->failed && lost == reported->lost) ||
        (reported->at_ns && now - reported->at_ns < RM_LOG_WINDOW_NS))
        return;
    const struct rm_writer_counts *latest = files.failed ? &files : &echoes;
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    char why[160] = "";
    if (failed > reported->failed) {
        snprintf(why, sizeof why, " (the latest to %s: %s)", name_of(daemon, latest->failure_fd),
                 strerror(-latest->failure));
        fields.error = strerror(-latest->failure);
    }
    const unsigned long long failures = failed - reported->failed, losses = lost - reported->lost;
    *reported = (struct rm_unwritten){.failed = failed, .lost = lost, .at_ns = now};
    rm_log_message(&daemon->log, RM_LOG_WARNING, RM_MESSAGE_UNWRITTEN, &fields,
                   "lines and rows that could not be written: %llu%s; dropped because writing took "
                   "too long: %llu; training goes on",
                   failures, why, losses);
}
