#define CORPUS "manifest"
#include "tests/fuzz/fuzz_manifest.c"
#include "tests/fuzz/replay.h"
