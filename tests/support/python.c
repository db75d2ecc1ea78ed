#include "tests/support/python.h"

#include "actor/worlds/bridges/python.h"
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INTERPRETER "/usr/bin/python3"

bool rm_test_python(void)
{
    char here[1024], path[sizeof here + 64];
    /* Tests are started from the folder of the sources. */
    if (!getcwd(here, sizeof here))
        return false;
    snprintf(path, sizeof path, "%s/tests/unit/actor/worlds/data/python", here);
    setenv("PYTHONPATH", path, 1);
    snprintf(path, sizeof path, "%s/python", here);
    setenv("RINGMASTER_PYTHON", path, 1);
    setenv("RINGMASTER_STEPPER", rm_test_build_path("lib/ringmaster-stepper.so"), 1);
    unsetenv("VIRTUAL_ENV");
    return system(INTERPRETER " -c 'import numpy' 2>/dev/null") == 0;
}

void rm_test_python_config(struct rm_world_config *config, const char *python, const char *options)
{
    memset(config, 0, sizeof *config);
    snprintf(config->name, sizeof config->name, "test");
    snprintf(config->python, sizeof config->python, "%s", python);
    snprintf(config->interpreter, sizeof config->interpreter, INTERPRETER);
    snprintf(config->options, sizeof config->options, "%s", options ? options : "{}");
}

void rm_test_python_place(uint32_t workers, double deadline_s, enum rm_sandbox_mode sandbox)
{
    static struct rm_experiment experiment;
    experiment.actor.python_workers = workers;
    experiment.actor.step_deadline_s = deadline_s;
    experiment.actor.sandbox = sandbox;
    experiment.supervisor.deaths_max = 1000;
    experiment.supervisor.deaths_window_s = 1000;
    rm_python_place(&experiment, NULL);
}

static int before = -1, said = -1;

void rm_test_said_begin(void)
{
    fflush(stderr);
    before = dup(STDERR_FILENO);
    said = memfd_create("said", 0);
    assert_true(before >= 0 && said >= 0);
    dup2(said, STDERR_FILENO);
}

const char *rm_test_said_end(void)
{
    static char text[65536];
    fflush(stderr);
    const ssize_t n = pread(said, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    dup2(before, STDERR_FILENO);
    close(before);
    close(said);
    return text;
}
