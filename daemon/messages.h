/* messages: the kinds of journal entries that programs may look for, each with an id that never
 * changes (MESSAGE_ID of the system's journal). docs/journal.md lists them; a test holds it to this
 * table. */
#ifndef RM_DAEMON_MESSAGES_H
#define RM_DAEMON_MESSAGES_H

enum rm_message {
    RM_MESSAGE_OTHER = 0, /* for people only: no id */
    RM_MESSAGE_RUN_BEGAN,
    RM_MESSAGE_STATE,
    RM_MESSAGE_RUN_FAILED,
    RM_MESSAGE_WORKER,
    RM_MESSAGE_WORKER_DIED,
    RM_MESSAGE_EVALUATED,
    RM_MESSAGE_SETTING,
    RM_MESSAGE_RELOADED,
    RM_MESSAGE_COMMAND,
    RM_MESSAGE_SUPPRESSED,
    RM_MESSAGE_ADOPTED,
    RM_MESSAGE_CHECKPOINT,
    RM_MESSAGE_RESUMED,
    RM_MESSAGE_DEVICE,
    RM_MESSAGE_STACK,
    RM_MESSAGE_PRINTED,
    RM_MESSAGE_UNWRITTEN,
    RM_MESSAGE_COUNT
};

struct rm_message_row {
    const char *name; /* "worker-died" */
    const char *id;   /* 32 hexadecimal digits, "" for RM_MESSAGE_OTHER */
    const char *doc;
};

extern const struct rm_message_row rm_messages[RM_MESSAGE_COUNT];

#endif
