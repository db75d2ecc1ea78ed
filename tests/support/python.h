/* Worlds of tests/unit/actor/worlds/data/python/, made by the system's interpreter. Helpers assert;
 * they are called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_PYTHON_H
#define RM_TESTS_SUPPORT_PYTHON_H

#include "config/experiment.h"

/* Has the system an interpreter with NumPy? Else the test is to be skipped. */
bool rm_test_python(void);

/* `python`: "games:corridor". options: JSON, NULL for none. */
void rm_test_python_config(struct rm_world_config *config, const char *python, const char *options);

/* What workers may do, and how many there are (actor/worlds/bridges/python.h). deadline_s: of a
 * step. */
void rm_test_python_place(uint32_t workers, double deadline_s, enum rm_sandbox_mode sandbox);

/* Collects what this process writes on standard error, until rm_test_said_end() gives it back. */
void rm_test_said_begin(void);
const char *rm_test_said_end(void);

#endif
