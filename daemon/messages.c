#include "daemon/messages.h"

const struct rm_message_row rm_messages[RM_MESSAGE_COUNT] = {
    [RM_MESSAGE_OTHER] = {"other", "", "anything else, for people"},
    [RM_MESSAGE_RUN_BEGAN] = {"run-began", "6f1d0c7a9e5b4d3c8a72b1e04c95d3f0",
                              "an experiment was started"},
    [RM_MESSAGE_STATE] = {"state", "0a4be2f9d1c64b7fa3e85c2d7f106b9e",
                          "the run is in another state"},
    [RM_MESSAGE_RUN_FAILED] = {"run-failed", "c35f8e1b72d94a60b6f70d3a1e48c592",
                               "the run failed; ERROR says why"},
    [RM_MESSAGE_WORKER] = {"worker", "91e7a2c4f05d48b3902c6d8b5fa7e134",
                           "a worker is in another state"},
    [RM_MESSAGE_WORKER_DIED] = {"worker-died", "e84b0d6c3f2a49718d5ce9f1a7b03625",
                                "a worker died or hung; ERROR says how"},
    [RM_MESSAGE_EVALUATED] = {"evaluated", "27c9f3b85e1d46a0bb4e70f8d2a6951c",
                              "greedy episodes were played"},
    [RM_MESSAGE_SETTING] = {"setting", "b60d4e9a7c1f43829e3f5a8c0d72e61b",
                            "a key was changed while running; KEY, BEFORE, AFTER, USER"},
    [RM_MESSAGE_RELOADED] = {"reloaded", "3d82f61c9b0e47d5a1c46f2e8b973a05",
                             "the configuration was read again"},
    [RM_MESSAGE_COMMAND] = {"command", "58a1c7e3d90b4f26b8e20c5d6f4a7193",
                            "a command that changes something came in; USER"},
    [RM_MESSAGE_SUPPRESSED] = {"suppressed", "fd07b3a2e6c84915a4d91e7c3b5f8206",
                               "entries of one kind came too fast and were left out"},
    [RM_MESSAGE_ADOPTED] =
        {"adopted", "7be2049d1f6c4a83b05de8a93c27f164",
         "replay and weights of a killed daemon were taken over: rows of replay as "
         "that one counted them last, and as they were found"},
    [RM_MESSAGE_CHECKPOINT] = {"checkpoint", "4c9d17e2b8a35f604de1937a2f0b86c5",
                               "a checkpoint was made, or given up; ERROR says why"},
    [RM_MESSAGE_RESUMED] = {"resumed", "a26f80c53d1e49b7b8047cd5e1392f6a",
                            "the run goes on from a checkpoint"},
    [RM_MESSAGE_DEVICE] = {"device", "296486a775f2473dab5019cab0386980",
                           "a GPU failed too often and is left alone; its UUID is in the text"},
    [RM_MESSAGE_STACK] = {"stack", "d15b7c08e94a4f3f9a26c37b80d1e652",
                          "gdb looked at a worker that crashed or hangs; the entry says where the "
                          "stacks are"},
};
