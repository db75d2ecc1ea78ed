#define CORPUS "safetensors"
#include "tests/fuzz/fuzz_safetensors.c"
#include "tests/fuzz/replay.h"
