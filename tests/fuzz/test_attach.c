#define CORPUS "attach"
#include "tests/fuzz/fuzz_attach.c"
#include "tests/fuzz/replay.h"
