#include "daemon/ctl/exit_code.h"

const char *const rm_ctl_exit_docs[] = {
    [RM_CTL_OK] = "Done as asked.",
    [RM_CTL_REFUSED] = "The experiment refused: the message says why, and nothing changed.",
    [RM_CTL_USAGE] = "Wrong command line.",
    [RM_CTL_NO_EXPERIMENT] = "No such experiment, no daemon listens on its socket, or none was "
                             "named and not exactly one is running.",
    [RM_CTL_BAD_CONFIGURATION] = "The configuration, its world or its networks are invalid.",
    [RM_CTL_TIMED_OUT] =
        "No answer within the time-out, or what the command waited for did not end within it.",
    [RM_CTL_PROTOCOL] = "The other side speaks another protocol, or the connection was lost in the "
                        "middle of a reply.",
    [RM_CTL_FAILED] = "`ringctl` itself failed: a file could not be read, a program could not be "
                      "started, output could not be written.",
};

_Static_assert(sizeof rm_ctl_exit_docs / sizeof rm_ctl_exit_docs[0] == RM_CTL_EXIT_COUNT,
               "every exit code has a line");
