/* cmocka with the headers that it wants included before it. */
#ifndef RM_TESTS_SUPPORT_UNIT_H
#define RM_TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
