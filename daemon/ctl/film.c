#include "daemon/ctl/film.h"

#include "daemon/ctl/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes what comes on standard input: (frames, height, width, 3). */
static const char imageio_program[] =
    "import sys\n"
    "import imageio, numpy\n"
    "path, fps, width, height = sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:5])\n"
    "kind = {'duration': 1000 / fps, 'loop': 0} if path.endswith('.gif') else {'fps': fps}\n"
    "with imageio.get_writer(path, **kind) as film:\n"
    "    while True:\n"
    "        data = sys.stdin.buffer.read(3 * width * height)\n"
    "        if len(data) < 3 * width * height:\n"
    "            break\n"
    "        film.append_data(numpy.frombuffer(data, 'uint8').reshape(height, width, 3))\n";

static const char imageio_there[] = "import imageio, numpy\n";

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

static bool has_ffmpeg(void)
{
    return rm_tool_call((const char *const[]){"ffmpeg", "-version", NULL}) == 0;
}

static bool has_imageio(void)
{
    return rm_tool_call((const char *const[]){"python3", "-c", imageio_there, NULL}) == 0;
}

int rm_film_check(const char *path, struct rm_error *error)
{
    if (!ends_with(path, ".gif") && !ends_with(path, ".mp4"))
        return rm_fail(error, -EINVAL, "--record %s: the name of a film ends with .gif or .mp4",
                       path);
    if (!has_ffmpeg() && !has_imageio())
        return rm_fail(error, -ENOENT,
                       "--record %s: needs ffmpeg, or python3 with the packages imageio and numpy; "
                       "neither is there",
                       path);
    return 0;
}

static int begin(struct rm_film *film, double fps, struct rm_error *error)
{
    char size[32], width[16], height[16], rate[32];
    int ends[2];
    snprintf(size, sizeof size, "%ux%u", film->width, film->height);
    snprintf(width, sizeof width, "%u", film->width);
    snprintf(height, sizeof height, "%u", film->height);
    snprintf(rate, sizeof rate, "%g", fps);
    const bool film_of_codec = ends_with(film->path, ".mp4");
    const char *const by_ffmpeg[] = {"ffmpeg",
                                     "-y",
                                     "-loglevel",
                                     "error",
                                     "-f",
                                     "rawvideo",
                                     "-pix_fmt",
                                     "rgb24",
                                     "-s",
                                     size,
                                     "-r",
                                     rate,
                                     "-i",
                                     "-",
                                     film_of_codec ? "-pix_fmt" : film->path,
                                     film_of_codec ? "yuv420p" : NULL,
                                     film->path,
                                     NULL};
    const char *const by_imageio[] = {"python3", "-c",  imageio_program, film->path,
                                      rate,      width, height,          NULL};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return rm_fail(error, -errno, "--record %s: %s", film->path, strerror(errno));
    film->pid = rm_tool_start(has_ffmpeg() ? by_ffmpeg : by_imageio, ends[0], false);
    close(ends[0]);
    film->to = ends[1];
    signal(SIGPIPE, SIG_IGN); /* its end is seen by writing */
    return film->pid > 0
               ? 0
               : rm_fail(error, -EIO, "--record %s: no program could be started", film->path);
}

int rm_film_add(struct rm_film *film, const char *path, double fps, const uint8_t *rgb,
                uint32_t width, uint32_t height, struct rm_error *error)
{
    if (!film->pid) {
        *film = (struct rm_film){.path = path, .to = -1, .width = width, .height = height};
        const int rc = begin(film, fps, error);
        if (rc < 0)
            return rc;
    }
    if (width != film->width || height != film->height)
        return rm_fail(error, -EINVAL, "--record %s: a picture of %u x %u after some of %u x %u",
                       path, width, height, film->width, film->height);
    for (size_t left = (size_t)width * height * 3; left > 0;) {
        const ssize_t n = write(film->to, rgb, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return rm_fail(error, -EIO, "--record %s: the program that writes it has ended", path);
        rgb += n;
        left -= (size_t)n;
    }
    return 0;
}

int rm_film_end(struct rm_film *film, struct rm_error *error)
{
    if (!film->pid)
        return 0;
    if (film->to >= 0)
        close(film->to);
    const int code = rm_tool_wait(film->pid);
    film->pid = 0;
    return code == 0
               ? 0
               : rm_fail(error, -EIO, "--record %s: the program that writes it failed", film->path);
}
