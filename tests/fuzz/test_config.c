#define CORPUS "config"
#include "tests/fuzz/fuzz_config.c"
#include "tests/fuzz/replay.h"
