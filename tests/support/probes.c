#include "tests/cuda/probes/run.h"
#include "tests/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct emulated probes;

void probes_open(void)
{
    probes = emulated_open("probes.so");
}

int probes_fresh(void **state)
{
    (void)state;
    probes.reset();
    emulated_setting(&probes, 0);
    return 0;
}

int probe(const char *name, float out[PROBE_OUT])
{
    char symbol[64];
    probe_fn *run;
    snprintf(symbol, sizeof symbol, "probe_%s", name);
    void *found = emulated_symbol(&probes, symbol);
    memcpy(&run, &found, sizeof run);
    memset(out, 0, PROBE_OUT * sizeof *out);
    return run(out);
}

void probe_everywhere(const char *name, float out[PROBE_OUT])
{
    const char *setting;
    for (unsigned i = 0; (setting = emulated_setting(&probes, i)); i++) {
        float got[PROBE_OUT];
        assert_int_equal(probe(name, got), 0);
        if (i == 0)
            memcpy(out, got, sizeof got);
        else if (memcmp(out, got, sizeof got) != 0)
            fail_msg("%s differs with %s", name, setting);
    }
}

bool probe_depends_on_setting(const char *name)
{
    float first[PROBE_OUT] = {0};
    bool differs = false;
    for (unsigned i = 0; emulated_setting(&probes, i); i++) {
        float got[PROBE_OUT];
        assert_int_equal(probe(name, got), 0);
        if (i == 0)
            memcpy(first, got, sizeof got);
        differs = differs || memcmp(first, got, sizeof got) != 0;
    }
    return differs;
}

void probe_fails(const char *name, int error, const char *words, const char *more)
{
    for (unsigned i = 0; i < 3; i++) {
        float out[PROBE_OUT];
        probes.reset();
        emulated_setting(&probes, i);
        assert_int_equal(probe(name, out), error);
        if (!strstr(probes.complaint(), words) || !strstr(probes.complaint(), more))
            fail_msg("%s: '%s' lacks '%s' or '%s'", name, probes.complaint(), words, more);
    }
}

bool probe_kills(const char *name)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        float out[PROBE_OUT];
        signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
        signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr))
            probe(name, out);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status != 0;
}
