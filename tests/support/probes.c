#include "tests/cuda/probes/run.h"
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct probes probes;

static void *symbol_of(const char *name)
{
    void *symbol = dlsym(probes.object, name);
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return symbol;
}

void probes_open(void)
{
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"rm_emulated_counts", &probes.counts}, {"rm_emulated_order", &probes.order},
        {"rm_emulated_poison", &probes.poison}, {"rm_emulated_fault", &probes.fault},
        {"rm_emulated_reset", &probes.reset},   {"rm_emulated_complaint", &probes.complaint},
    };
    probes.object = dlopen(rm_test_build_path("lib/emulated/probes.so"), RTLD_NOW | RTLD_LOCAL);
    if (!probes.object) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = symbol_of(functions[i].name);
        memcpy(functions[i].to, &symbol, sizeof symbol);
    }
}

const char *probes_setting(unsigned i)
{
    static const struct {
        const char *name, *order;
        uint32_t poison;
    } settings[] = {
        {"forward", "forward", 0x7fc0deadu},
        {"reverse", "reverse", 0x4b18967fu}, /* 1e7 */
        {"random", "random:1", 0x00000003u},
        {"another random", "random:2", 0xffffffffu},
    };
    if (i >= sizeof settings / sizeof *settings)
        return NULL;
    probes.order(settings[i].order);
    probes.poison(settings[i].poison);
    return settings[i].name;
}

int probes_fresh(void **state)
{
    (void)state;
    probes.reset();
    probes_setting(0);
    return 0;
}

int probe(const char *name, float out[PROBE_OUT])
{
    char symbol[64];
    probe_fn *run;
    snprintf(symbol, sizeof symbol, "probe_%s", name);
    void *found = symbol_of(symbol);
    memcpy(&run, &found, sizeof run);
    memset(out, 0, PROBE_OUT * sizeof *out);
    return run(out);
}

/* As bits: what is not a number differs from itself. */
static bool same_bits(const float *a, const float *b)
{
    return !memcmp((const void *)a, (const void *)b, PROBE_OUT * sizeof *a);
}

void probe_everywhere(const char *name, float out[PROBE_OUT])
{
    const char *setting;
    for (unsigned i = 0; (setting = probes_setting(i)); i++) {
        float got[PROBE_OUT];
        assert_int_equal(probe(name, got), 0);
        if (i == 0)
            memcpy(out, got, sizeof got);
        else if (!same_bits(out, got))
            fail_msg("%s differs with %s", name, setting);
    }
}

bool probe_depends_on_setting(const char *name)
{
    float first[PROBE_OUT] = {0};
    bool differs = false;
    for (unsigned i = 0; probes_setting(i); i++) {
        float got[PROBE_OUT];
        assert_int_equal(probe(name, got), 0);
        if (i == 0)
            memcpy(first, got, sizeof got);
        differs = differs || !same_bits(first, got);
    }
    return differs;
}

void probe_fails(const char *name, int error, const char *words, const char *more)
{
    for (unsigned i = 0; i < 3; i++) {
        float out[PROBE_OUT];
        probes.reset();
        probes_setting(i);
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
