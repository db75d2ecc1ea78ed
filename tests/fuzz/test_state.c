#define CORPUS "state"
#include "tests/fuzz/fuzz_state.c"
#include "tests/fuzz/replay.h"
