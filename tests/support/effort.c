#include "tests/support/effort.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#endif

uint32_t rm_test_effort(uint32_t whole, uint32_t little)
{
#ifdef SANITIZER
    (void)whole;
    return little;
#else
    return getenv("RM_TEST_LITTLE") ? little : whole;
#endif
}
