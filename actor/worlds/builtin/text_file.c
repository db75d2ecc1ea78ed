#include "actor/worlds/builtin/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 160 }; /* bytes of a path */

void rm_text_file_name(const char *path, char name[RM_TEXT_NAME])
{
    const size_t length = strlen(path);
    snprintf(name, RM_TEXT_NAME, "%s%s", length > SHOWN ? "..." : "",
             length > SHOWN ? path + length - SHOWN : path);
}

static int read_all(int fd, char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t part = read(fd, bytes + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return part < 0 ? -errno : -EIO;
        done += (size_t)part;
    }
    bytes[size] = 0;
    return memchr(bytes, 0, size) ? -EILSEQ : 0;
}

static int read_open(int fd, size_t most, char **text, size_t *size)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0)
        return -errno;
    if (!S_ISREG(stat.st_mode))
        return -EISDIR;
    if ((uint64_t)stat.st_size > most)
        return -EFBIG;
    *size = (size_t)stat.st_size;
    *text = malloc(*size + 1);
    if (!*text)
        return -ENOMEM;
    const int rc = read_all(fd, *text, *size);
    if (rc < 0) {
        free(*text);
        *text = NULL;
    }
    return rc;
}

int rm_text_file_read(const char *path, size_t most, char **text, size_t *size, char *error,
                      size_t error_size)
{
    char name[RM_TEXT_NAME];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int rc = fd < 0 ? -errno : read_open(fd, most, text, size);
    if (fd >= 0)
        close(fd);
    if (rc < 0) {
        rm_text_file_name(path, name);
        snprintf(error, error_size, "%s cannot be read: %s", name,
                 rc == -EILSEQ ? "it has a NUL byte; text is expected" : strerror(-rc));
    }
    return rc;
}
