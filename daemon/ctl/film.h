/* film: pictures written to a .gif or .mp4 file by a program that can: ffmpeg, or python3 with
 * imageio, whichever is there. Pictures go to it through a pipe as bytes, three a pixel. */
#ifndef RM_DAEMON_CTL_FILM_H
#define RM_DAEMON_CTL_FILM_H

#include "shm/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rm_film {
    const char *path;
    pid_t pid; /* of the program; 0: not begun */
    int to;    /* the pipe */
    uint32_t width, height;
};

/* Can it be written: by its name, and by what programs there are? -EINVAL, -ENOENT. */
int rm_film_check(const char *path, struct rm_error *error);

/* The first picture decides on the size. */
int rm_film_add(struct rm_film *film, const char *path, double fps, const uint8_t *rgb,
                uint32_t width, uint32_t height, struct rm_error *error);

/* Waits for the program. -EIO: it failed; what it said is on standard error. */
int rm_film_end(struct rm_film *film, struct rm_error *error);

#endif
