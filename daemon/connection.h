/* connection: one client of the control socket (control.h), and what is sent to it. For control.c
 * and connection.c alone. */
#ifndef RM_DAEMON_CONNECTION_H
#define RM_DAEMON_CONNECTION_H

#include "daemon/control.h"

struct rm_connection {
    uv_pipe_t pipe;
    struct rm_control *control;
    struct rm_connection *next;
    struct ucred peer;
    enum rm_access access;
    bool subscribed;
    uint64_t number;
    bool deferred; /* a request of it will be answered later, and it waits for that */
    json_t *deferred_id;
    bool discarding;    /* in the rest of a line that was too long */
    bool stalled;       /* not read from: its output stands */
    uint64_t queued_as; /* its requests wait for a later turn, in this order; 0: they do not */
    bool ended;         /* sent all it will send; closed once its output is out */
    bool closing;
    uint64_t lost;      /* events dropped since the last one sent */
    bool moved;         /* it took output since rm_control_expire() looked */
    uint64_t moved_ns;  /* when rm_control_expire() last saw that it had, or that there was none */
    size_t queued_then; /* output queued when it last looked */
    size_t used;        /* bytes of `in` */
    char in[RM_PROTOCOL_LINE_MAX];
};

struct rm_control {
    uv_pipe_t listener;
    const struct rm_control_ops *ops;
    void *user;
    struct rm_connection *clients;
    struct rm_control_counts counts;
    bool closing;
    /* A turn of the loop answers for RM_CONTROL_TURN_NS; what is left waits in line. */
    uv_prepare_t turn;
    uv_idle_t later;
    uint64_t turn_ends_ns; /* 0: nothing was answered in this turn yet */
    uint64_t last_queued;
    uint64_t numbered; /* clients so far */
    uint32_t handles;  /* of its own that are not closed yet */
};

size_t rm_connection_queued(const struct rm_connection *client); /* bytes that were not taken yet */

/* Takes `line`, which may be NULL (no memory): the client is closed then. */
void rm_connection_send(struct rm_connection *client, char *line, size_t bytes);
void rm_connection_refuse(struct rm_connection *client, enum rm_refusal refusal, const char *text,
                          json_t *id);

/* The answer to a request. Takes `reply`. `mark`: of jansson's failures (config/json_memory.h),
 * before any of it was made. */
void rm_connection_send_answer(struct rm_connection *client, enum rm_refusal refusal, json_t *reply,
                               json_t *id, uint64_t mark, const struct rm_error *why);

void rm_connection_close(struct rm_connection *client);

/* Looks at what it has sent (control.c): it takes answers again, or has the one it waited for. */
void rm_connection_process(struct rm_connection *client);

/* The last of its clients and handles is gone. */
void rm_control_free_if_over(struct rm_control *control);

#endif
