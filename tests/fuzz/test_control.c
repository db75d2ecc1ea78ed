#define CORPUS "control"
#include "tests/fuzz/fuzz_control.c"
#include "tests/fuzz/replay.h"
