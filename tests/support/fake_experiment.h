/* An experiment that is none: listens on a control socket in a thread and answers by a list of
 * rules, so that a client meets what a real daemon would never send. One client at a time. */
#ifndef RM_TESTS_SUPPORT_FAKE_EXPERIMENT_H
#define RM_TESTS_SUPPORT_FAKE_EXPERIMENT_H

#include <pthread.h>
#include <stdbool.h>

#define RM_FAKE_GREETING                                                                           \
    "{\"ringmaster\":{\"version\":\"9.9\",\"protocol\":1,\"capabilities\":[]}}\n"

struct rm_fake_rule {
    const char *command; /* which request; the list ends with NULL */
    const char
        *text;  /* sent as it is, but for $id, which becomes the request's id; NULL: nothing */
    bool close; /* then hangs up */
};

struct rm_fake {
    char directory[64]; /* a new one: RINGMASTER_RUNTIME_DIR */
    char socket[108];   /* directory/NAME/control.sock */
    const char *greeting;
    const struct rm_fake_rule *rules;
    int listen_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    char request[4096]; /* the last line that came */
    _Atomic unsigned clients;
};

/* Makes a directory of its own, sets RINGMASTER_RUNTIME_DIR to it and listens. `greeting` NULL is
 * RM_FAKE_GREETING. Returns 0, or -1 with errno. */
int rm_fake_start(struct rm_fake *fake, const char *name, const char *greeting,
                  const struct rm_fake_rule *rules);

/* Copies the last request. */
void rm_fake_request(struct rm_fake *fake, char *text, unsigned size);

/* Hangs up, removes socket and directories. */
void rm_fake_stop(struct rm_fake *fake);

#endif
