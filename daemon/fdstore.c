#include "daemon/fdstore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef RM_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

#define PREFIX "ringmaster."

static int by_name(const char *name)
{
    char *end;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
        return -1;
    const long index = strtol(name + sizeof PREFIX - 1, &end, 10);
    return *end || end == name + sizeof PREFIX - 1 || index < 0 || index >= RM_FDSTORE_MAX
               ? -1
               : (int)index;
}

static void close_all(int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

bool rm_fdstore_has_some(void)
{
    return sd_listen_fds(0) > 0;
}

uint32_t rm_fdstore_take(int *fds, uint32_t max)
{
    char **names = NULL;
    const int n = sd_listen_fds_with_names(1, &names);
    uint32_t count = 0, found = 0;
    for (uint32_t i = 0; i < max; i++)
        fds[i] = -1;
    for (int i = 0; i < n; i++) {
        const int fd = SD_LISTEN_FDS_START + i, index = by_name(names[i]);
        if (index < 0 || (uint32_t)index >= max || fds[index] >= 0) {
            close(fd); /* not ours, or twice */
        } else {
            fds[index] = fd;
            found++;
            count = (uint32_t)index + 1 > count ? (uint32_t)index + 1 : count;
        }
        free(names[i]);
    }
    free(names);
    if (found != count) { /* a daemon that was killed while it handed them over */
        close_all(fds, count);
        rm_fdstore_forget(count);
        return 0;
    }
    return count;
}

void rm_fdstore_keep(const struct rm_session *session)
{
    static int fds[RM_FDSTORE_MAX];
    const uint32_t count = rm_session_kept(session, fds, RM_FDSTORE_MAX);
    if (count > RM_FDSTORE_MAX || !getenv("NOTIFY_SOCKET"))
        return;
    rm_fdstore_forget(1); /* the configuration is another one than what was kept */
    for (uint32_t i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=" PREFIX "%u", i);
        sd_pid_notify_with_fds(0, 0, text, &fds[i], 1);
    }
}

void rm_fdstore_forget(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=" PREFIX "%u", i);
        sd_notify(0, text);
    }
}

#else

bool rm_fdstore_has_some(void)
{
    return false;
}

uint32_t rm_fdstore_take(int *fds, uint32_t max)
{
    (void)fds, (void)max;
    return 0;
}

void rm_fdstore_keep(const struct rm_session *session)
{
    (void)session;
}

void rm_fdstore_forget(uint32_t count)
{
    (void)count;
}

#endif
