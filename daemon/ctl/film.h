/* film: writes pictures to a .gif or .mp4 file. Runs ffmpeg, or else python3 with imageio, and
 * sends the pictures through a pipe, 3 bytes per pixel. */
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

/* Checks that a film can be written to `path`. -EINVAL: the name has another ending; -ENOENT: no
 * program for this ending is installed. */
int rm_film_check(const char *path, struct rm_error *error);

/* Adds a picture. All pictures must have the size of the first. */
int rm_film_add(struct rm_film *film, const char *path, double fps, const uint8_t *rgb,
                uint32_t width, uint32_t height, struct rm_error *error);

/* Waits for the program. -EIO: it failed; its messages are on standard error. */
int rm_film_end(struct rm_film *film, struct rm_error *error);

#endif
