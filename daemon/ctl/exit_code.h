/* Exit codes of ringctl. Documented by the table in exit_code.c, which the man page and
 * docs/exit-codes.md are made from. Values never change: scripts depend on them. */
#ifndef RM_DAEMON_CTL_EXIT_CODE_H
#define RM_DAEMON_CTL_EXIT_CODE_H

#include <stddef.h>

enum rm_ctl_exit {
    RM_CTL_OK = 0,
    RM_CTL_REFUSED = 1,
    RM_CTL_USAGE = 2,
    RM_CTL_NO_EXPERIMENT = 3,
    RM_CTL_BAD_CONFIGURATION = 4,
    RM_CTL_TIMED_OUT = 5,
    RM_CTL_PROTOCOL = 6,
    RM_CTL_FAILED = 7,
    RM_CTL_EXIT_COUNT
};

/* [RM_CTL_EXIT_COUNT], by value. */
extern const char *const rm_ctl_exit_docs[];

#endif
