/* Runs one of the built programs and keeps what it says. */
#ifndef RM_TESTS_SUPPORT_PROGRAM_H
#define RM_TESTS_SUPPORT_PROGRAM_H

struct rm_program {
    int code; /* exit code; 128 + signal when it was killed */
    char out[262144], err[16384];
};

/* Runs $BUILD/bin/`argv[0]` (BUILD: "build" unless set) with these arguments, NULL at the end, and
 * an empty standard input, to its end. Returns 0, or -1 when it could not be started. */
int rm_program_run(struct rm_program *program, const char *const *argv);

/* Runs ringctl with these words, NULL at the end, inside a cmocka test. Returns its exit code,
 * which must come with a message unless it is 0. */
int rm_program_ctl(struct rm_program *program, const char *const *words);

/* Fails the test unless it said this, on one stream or the other. */
void rm_program_says(const struct rm_program *program, const char *text);

/* $BUILD/bin/NAME */
void rm_program_path(char *path, unsigned size, const char *name);

#endif
