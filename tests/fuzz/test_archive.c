#define CORPUS "archive"
#include "tests/fuzz/fuzz_archive.c"
#include "tests/fuzz/replay.h"
