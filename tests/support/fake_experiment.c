#include "tests/support/fake_experiment.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void send_text(int fd, const char *text, const char *id)
{
    for (const char *at; text && *text; text = at + 3) {
        at = strstr(text, "$id");
        size_t bytes = at ? (size_t)(at - text) : strlen(text);
        /* A client that hung up meanwhile is part of what is tested. */
        if (send(fd, text, bytes, MSG_NOSIGNAL) < 0 || !at)
            return;
        if (send(fd, id, strlen(id), MSG_NOSIGNAL) < 0)
            return;
    }
}

/* Answers one line. Returns whether to go on with this client. */
static bool answer(struct rm_fake *fake, int fd, const char *line)
{
    json_t *request = json_loads(line, 0, NULL);
    const char *command = json_string_value(json_object_get(request, "execute"));
    char *id = json_dumps(json_object_get(request, "id"), JSON_ENCODE_ANY);
    bool go_on = true;
    pthread_mutex_lock(&fake->lock);
    snprintf(fake->request, sizeof fake->request, "%.*s", (int)sizeof fake->request - 1, line);
    pthread_mutex_unlock(&fake->lock);
    for (const struct rm_fake_rule *rule = fake->rules; command && rule && rule->command; rule++) {
        if (strcmp(rule->command, command) != 0)
            continue;
        send_text(fd, rule->text, id ? id : "null");
        go_on = !rule->close;
        break;
    }
    free(id);
    json_decref(request);
    return go_on;
}

static void serve(struct rm_fake *fake, int fd)
{
    char buffer[70000];
    size_t used = 0;
    send_text(fd, fake->greeting, "");
    for (;;) {
        ssize_t n = recv(fd, buffer + used, sizeof buffer - 1 - used, 0);
        if (n <= 0)
            return;
        used += (size_t)n;
        buffer[used] = '\0';
        for (char *newline; (newline = memchr(buffer, '\n', used));) {
            *newline = '\0';
            if (!answer(fake, fd, buffer))
                return;
            used -= (size_t)(newline + 1 - buffer);
            memmove(buffer, newline + 1, used + 1);
        }
    }
}

static void *run(void *user)
{
    struct rm_fake *fake = user;
    for (int fd; (fd = accept(fake->listen_fd, NULL, NULL)) >= 0; close(fd)) {
        fake->clients++;
        serve(fake, fd);
    }
    return NULL;
}

int rm_fake_start(struct rm_fake *fake, const char *name, const char *greeting,
                  const struct rm_fake_rule *rules)
{
    memset(fake, 0, sizeof *fake);
    fake->greeting = greeting ? greeting : RM_FAKE_GREETING;
    fake->rules = rules;
    snprintf(fake->directory, sizeof fake->directory, "/tmp/rm-fake-XXXXXX");
    if (!mkdtemp(fake->directory))
        return -1;
    setenv("RINGMASTER_RUNTIME_DIR", fake->directory, 1);
    char own[100];
    snprintf(own, sizeof own, "%s/%s", fake->directory, name);
    snprintf(fake->socket, sizeof fake->socket, "%s/%s/control.sock", fake->directory, name);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, fake->socket, strlen(fake->socket) + 1);
    fake->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (mkdir(own, 0700) || fake->listen_fd < 0 ||
        bind(fake->listen_fd, (const struct sockaddr *)&address, sizeof address) ||
        listen(fake->listen_fd, 8))
        return -1;
    pthread_mutex_init(&fake->lock, NULL);
    return pthread_create(&fake->thread, NULL, run, fake) ? -1 : 0;
}

void rm_fake_request(struct rm_fake *fake, char *text, unsigned size)
{
    pthread_mutex_lock(&fake->lock);
    snprintf(text, size, "%s", fake->request);
    pthread_mutex_unlock(&fake->lock);
}

void rm_fake_stop(struct rm_fake *fake)
{
    shutdown(fake->listen_fd,
             SHUT_RDWR); /* accept() returns; a client served now ends on its own */
    pthread_join(fake->thread, NULL);
    close(fake->listen_fd);
    pthread_mutex_destroy(&fake->lock);
    unlink(fake->socket);
    *strrchr(fake->socket, '/') = '\0';
    rmdir(fake->socket);
    rmdir(fake->directory);
}
